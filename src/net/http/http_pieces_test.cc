// Answers from several files, and bodies that a sink takes.
#include <fcntl.h>

#include <gtest/gtest.h>

#include "net/http/http_server.h"
#include "net/test_server.h"

namespace athanor {
namespace {

using testing::BodyOf;
using testing::RawClient;
using testing::TempDir;
using testing::TestServer;

constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

// Pieces of numbered files; each holds its own letter.
class Files {
 public:
  Files(int count, size_t size) : size_(size) {
    for (int i = 0; i < count; ++i) {
      const auto written = ReplaceFile(dir_ / std::to_string(i), std::string(size, Letter(i)));
      EXPECT_TRUE(written.ok());
    }
  }
  static char Letter(int i) { return static_cast<char>('a' + i % 26); }
  FileRange Piece(int i, uint64_t offset, uint64_t length) const {
    FileRange range;
    range.fd.reset(::open((dir_ / std::to_string(i)).c_str(), O_RDONLY | O_CLOEXEC));
    range.offset = offset;
    range.length = length;
    return range;
  }
  // All files, without their first byte.
  Responder::NextPiece Tails(int count) const {
    auto next = std::make_shared<int>(0);
    return [this, next, count]() -> std::optional<FileRange> {
      if (*next == count) return std::nullopt;
      return Piece((*next)++, 1, size_ - 1);
    };
  }

 private:
  TempDir dir_;
  size_t size_;
};

// Planted bug: forget the offset of a piece, or ask for the next one too early.
TEST(HttpPieces, SeveralFilesAreOneBodyAndTheConnectionGoesOn) {
  for (const size_t size : {size_t{2}, size_t{1000}, size_t{200'000}, size_t{5} << 20}) {
    SCOPED_TRACE(size);
    const Files files(3, size);
    TestServer server([&](Request, Responder responder) {
      responder.SendPieces({}, 3 * (size - 1), files.Tails(3));
    });
    auto client = RawClient::Tcp(server.port());
    for (int round = 0; round < 2; ++round) {
      client.Send(kGet);
      const std::string body = BodyOf(client.ReadResponse());
      const size_t part = size - 1;
      ASSERT_EQ(body.size(), 3 * part);
      EXPECT_TRUE(body == std::string(part, 'a') + std::string(part, 'b') + std::string(part, 'c'));
    }
  }
}

TEST(HttpPieces, AHeadHasTheLengthAndAsksForNothing) {
  TestServer server([](Request, Responder responder) {
    responder.SendPieces({}, 12345, []() -> std::optional<FileRange> {
      ADD_FAILURE() << "asked for a piece";
      return std::nullopt;
    });
  });
  auto client = RawClient::Tcp(server.port());
  client.Send("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_NE(client.ReadUntil("\r\n\r\n").find("Content-Length: 12345"), std::string::npos);
}

TEST(HttpPieces, MissingPiecesAndShortFilesCutTheConnection) {
  const Files files(2, 100'000);
  const auto body_of = [&](uint64_t length, const Responder::NextPiece& next) {
    TestServer server(
        [&](Request, Responder responder) { responder.SendPieces({}, length, next); });
    auto client = RawClient::Tcp(server.port());
    client.Send(kGet);
    return BodyOf(client.ReadAll()).size();
  };
  EXPECT_LT(body_of(300'000, files.Tails(2)), 300'000u);
  EXPECT_LT(
      body_of(200'000, [&]() -> std::optional<FileRange> { return files.Piece(0, 0, 200'000); }),
      200'000u);
  EXPECT_EQ(body_of(10, []() -> std::optional<FileRange> { return std::nullopt; }), 0u);
}

class Collector final : public BodySink {
 public:
  void Take(std::string_view bytes) override { text += bytes; }
  std::string text;
};

TEST(HttpPieces, ASinkSeesTheWholeBodyAndNothingIsKept) {
  TestServer server(
      [](Request request, Responder responder) {
        const auto sink = std::dynamic_pointer_cast<Collector>(request.body_sink);
        ASSERT_TRUE(sink);
        EXPECT_TRUE(request.body.empty());
        EXPECT_EQ(request.body_size, sink->text.size());
        responder.Send(Response::Text(200, sink->text));
      },
      {},
      [](const Request&) {
        BodyPolicy policy;
        policy.max_bytes = 300'000;
        policy.sink = std::make_shared<Collector>();
        return policy;
      });
  auto client = RawClient::Tcp(server.port());
  const std::string body(200'000, 'q');
  client.Send("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n" + body);
  EXPECT_EQ(BodyOf(client.ReadResponse()), body);
  client.Send(
      "PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
  EXPECT_EQ(BodyOf(client.ReadResponse()), "abcde");
  client.Send("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 300001\r\n\r\n");
  EXPECT_EQ(client.ReadUntil("\r\n").substr(9, 3), "413");
}

}  // namespace
}  // namespace athanor
