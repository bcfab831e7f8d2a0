// What a client may be spared: bytes that compress well, and an answer it has already. Pure: the
// answer is changed in place, on whichever thread this is.
//
// Compressed is what is text, longer than kLeastEncoded, and not compressed already, if the client
// asks for it; zstd before gzip, being three times quicker at a better ratio (docs/benchmarks.md).
// Streams and files never come here.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "net/http_types.h"

namespace athanor {

enum class Coding { kNone, kGzip, kZstd };

inline constexpr size_t kLeastEncoded = 1024;     // bytes; below that nothing is gained
inline constexpr size_t kMostEncoded = 64 << 20;  // beyond it, time is worth more than bytes

// By "gzip;q=0.5, zstd, *;q=0". What is not understood is not asked for.
Coding ChooseCoding(std::string_view accept_encoding);

// What of a request decides how its answer is sent.
struct Wishes {
  Coding coding = Coding::kNone;
  bool get = false;          // a GET: its answer may be one that the client has
  std::string have;          // If-None-Match
  bool any() const { return coding != Coding::kNone || get; }
};
Wishes WishesOf(const Request& request);

// Whether Fit would change anything, which may take long: a millisecond for 200 KB.
bool Fits(const Wishes& wishes, const Response& response);
// Gives the answer to a GET its ETag and makes it a 304 where the client has it; compresses it.
void Fit(const Wishes& wishes, Response& response);

}  // namespace athanor
