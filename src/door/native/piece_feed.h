// Sends the content of files to a stream, piece by piece: each is read on a reader's thread and
// written on the loop's, as fast as the client reads.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "door/context.h"
#include "net/http/http_server.h"

namespace athanor {

// Threads: the loop's, except ReadPiece, which is called on a reader's, never twice at a time.
class PieceFeed : public std::enable_shared_from_this<PieceFeed> {
 public:
  PieceFeed(DoorContext& context, Stream stream);
  virtual ~PieceFeed() = default;
  // There may be more to read.
  void Go();

 protected:
  // The next bytes, possibly none; nullopt if there are no more now.
  virtual std::optional<std::string> ReadPiece() = 0;
  // Everything has been written. Called again after each Go that finds nothing more.
  virtual void Dry() = 0;

  DoorContext& context() const { return context_; }
  Stream& stream() { return stream_; }

 private:
  void Took(std::optional<std::string> piece);

  DoorContext& context_;
  Stream stream_;
  bool reading_ = false;
  bool waiting_ = false;  // for the network
  bool again_ = false;
};

}  // namespace athanor
