// Reads the members of a request as AWS would: types, bounds and required members, with its
// messages. The first fault is kept and the rest is read as defaults, so an operation reads
// everything it needs and then checks for the fault once.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/json.h"
#include "door/aws/aws_front.h"

namespace athanor {

class Members {
 public:
  // `invalid`: the service's code for what breaks a constraint. `object` is borrowed.
  Members(const Json& object, std::string invalid, std::string path = {});

  bool Has(std::string_view name) const;
  std::string Text(std::string_view name, size_t longest = std::numeric_limits<size_t>::max());
  std::string RequiredText(std::string_view name,
                           size_t longest = std::numeric_limits<size_t>::max());
  // A number in a text counts: the Query protocol has only texts. So for Flag and Time.
  std::optional<int64_t> Number(std::string_view name, int64_t least, int64_t most);
  bool Flag(std::string_view name, bool otherwise);
  // In milliseconds, from seconds since 1970 or ISO 8601.
  std::optional<int64_t> Time(std::string_view name);
  std::vector<std::string> Texts(std::string_view name, size_t most);
  // Objects; each is read by Members of its own, whose fault is to be given to Adopt.
  const Json* List(std::string_view name, size_t most);
  const Json* Object(std::string_view name);
  Members In(const Json& object, const std::string& name) const;
  void Adopt(const Members& inner);

  // As AWS puts it: "1 validation error detected: Value '...' at '...' failed to satisfy ...".
  void Constraint(std::string_view name, std::string_view value, std::string_view constraint);
  void Missing(std::string_view name);
  void Fault(AwsError error);
  const std::optional<AwsError>& fault() const { return fault_; }

 private:
  const Json* Find(std::string_view name) const;
  std::string PathOf(std::string_view name) const;
  void WrongType(std::string_view name);

  const Json& object_;
  std::string invalid_;
  std::string path_;
  std::optional<AwsError> fault_;
};

// "2026-11-16T02:47:41Z", with a fraction or an offset, or a date alone; in milliseconds.
std::optional<int64_t> ParseIsoTime(std::string_view text);

}  // namespace athanor
