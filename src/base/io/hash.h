// SHA-256, for names by content and for values that are compared but never shown.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace athanor {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  void Update(std::string_view bytes);
  std::string HexDigest();  // ends the computation

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string Sha256Hex(std::string_view bytes);
Result<std::string> Sha256File(int fd);  // from its current offset to its end
// In a time that does not tell where they differ: for tokens and signatures.
bool SameSecretText(std::string_view a, std::string_view b);

}  // namespace athanor
