// Saves bytes: compresses answers, and leaves out an answer that the client already has. Pure: the
// answer is changed in place, on the calling thread.
//
// An answer is compressed if it is text, longer than kLeastEncoded, not compressed already, and the
// client asks for it. zstd is preferred to gzip: it is three times faster with a better ratio
// (docs/benchmarks.md). Streams and files never come here.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "net/http/http_types.h"

namespace athanor {

enum class Coding { kNone, kGzip, kZstd };

inline constexpr size_t kLeastEncoded = 1024;     // bytes; below that nothing is gained
inline constexpr size_t kMostEncoded = 64 << 20;  // above it, time matters more than bytes

// From "gzip;q=0.5, zstd, *;q=0". What is not understood counts as not accepted.
Coding ChooseCoding(std::string_view accept_encoding);

// The parts of a request that decide how its answer is sent.
struct Wishes {
  Coding coding = Coding::kNone;
  bool get = false;  // a GET: the client may have its answer already
  std::string have;  // If-None-Match
  bool any() const { return coding != Coding::kNone || get; }
};
Wishes WishesOf(const Request& request);

// Whether Fit would change anything. Fit can be slow: a millisecond for 200 KB.
bool Fits(const Wishes& wishes, const Response& response);
// Sets the ETag of the answer to a GET and makes it a 304 if the client has it; compresses it.
void Fit(const Wishes& wishes, Response& response);

}  // namespace athanor
