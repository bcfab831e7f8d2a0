#include "door/native/piece_feed.h"

#include <utility>

namespace athanor {
namespace {

constexpr size_t kMostBacklog = 512 << 10;  // a client this far behind is waited for

}  // namespace

PieceFeed::PieceFeed(DoorContext& context, Stream stream)
    : context_(context), stream_(std::move(stream)) {}

void PieceFeed::Go() {
  if (reading_ || waiting_) {
    again_ = true;
    return;
  }
  if (!stream_.open()) return;
  if (stream_.backlog() > kMostBacklog) {
    waiting_ = true;
    return stream_.OnDrained([self = shared_from_this()] {
      self->waiting_ = false;
      self->Go();
    });
  }
  again_ = false;
  reading_ = true;
  const bool taken = context_.readers.Submit([self = shared_from_this()] {
    self->context_.loop.Post(
        [self, piece = self->ReadPiece()]() mutable { self->Took(std::move(piece)); });
  });
  if (!taken) stream_.Close();  // the server is stopping
}

void PieceFeed::Took(std::optional<std::string> piece) {
  reading_ = false;
  if (piece) {
    if (!piece->empty()) stream_.Write(*piece);
    return Go();
  }
  if (again_) return Go();
  if (stream_.open()) Dry();
}

}  // namespace athanor
