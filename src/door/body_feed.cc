#include "door/body_feed.h"

#include <utility>

#include "door/native/piece_feed.h"

namespace athanor {
namespace {

class BodyFeed final : public PieceFeed {
 public:
  BodyFeed(DoorContext& context, Stream stream, std::shared_ptr<BodySource> source)
      : PieceFeed(context, std::move(stream)), source_(std::move(source)) {}

 private:
  std::optional<std::string> ReadPiece() override {
    auto piece = source_->Next();
    failed_ = !piece;
    return piece ? std::move(*piece) : std::nullopt;
  }
  void Dry() override { failed_ ? stream().Abort() : stream().Close(); }

  std::shared_ptr<BodySource> source_;
  bool failed_ = false;
};

}  // namespace

void SendBody(DoorContext& context, const Call& call, Response head,
              std::shared_ptr<BodySource> source, const std::function<void(const Error&)>& refuse) {
  for (int pieces = 0; pieces < 2; ++pieces) {
    auto piece = source->Next();
    if (!piece) return refuse(piece.error());
    if (!*piece) return call.responder.Send(std::move(head));
    head.body += **piece;
  }
  context.loop.Post([&context, call, source = std::move(source),
                     head = std::make_shared<Response>(std::move(head))] {
    const std::string begun = std::exchange(head->body, {});
    Stream stream = call.responder.BeginStream(std::move(*head));
    stream.Write(begun);
    std::make_shared<BodyFeed>(context, std::move(stream), source)->Go();
  });
}

}  // namespace athanor
