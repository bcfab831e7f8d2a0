// Sends a long answer while it is made: it is never completely in memory, and a client that does
// not read costs a few pieces of it, no thread and no file.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "door/context.h"
#include "door/doors.h"

namespace athanor {

// Threads: a reader's, never two at a time.
class BodySource {
 public:
  virtual ~BodySource() = default;
  // The next bytes, about kBodyPiece; nullopt if that was all. After an error it is not called
  // again: the answer is cut, so that the client notices.
  virtual Result<std::optional<std::string>> Next() = 0;
};

inline constexpr size_t kBodyPiece = 256 << 10;

// Answers with `head` and what the source gives. Short answers are sent in one piece, with their
// length; an error before anything was sent goes to `refuse` instead. On a reader's thread.
void SendBody(DoorContext& context, const Call& call, Response head,
              std::shared_ptr<BodySource> source, const std::function<void(const Error&)>& refuse);

}  // namespace athanor
