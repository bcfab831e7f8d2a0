#include "net/http/content_coding.h"

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

namespace athanor {
namespace {

std::string Text(size_t size) {
  std::string text;
  while (text.size() < size) text += "{\"step\":" + std::to_string(text.size() * 7919) + "}\n";
  return text;
}

Request Get(std::string accept, std::string have = {}) {
  Request request;
  request.method = "GET";
  if (!accept.empty()) request.headers.Add("Accept-Encoding", std::move(accept));
  if (!have.empty()) request.headers.Add("If-None-Match", std::move(have));
  return request;
}

Response Answer(const Request& request, Response response) {
  Fit(WishesOf(request), response);
  return response;
}

std::string Gunzip(const std::string& bytes, size_t size) {
  std::string out(size, '\0');
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  inflateEnd(&stream);
  return out;
}

TEST(ContentCoding, ChoosesWhatTheClientLikesAndWeLike) {
  EXPECT_EQ(ChooseCoding(""), Coding::kNone);
  EXPECT_EQ(ChooseCoding("identity"), Coding::kNone);
  EXPECT_EQ(ChooseCoding("gzip, deflate"), Coding::kGzip);
  EXPECT_EQ(ChooseCoding("gzip, deflate, br, zstd"), Coding::kZstd);
  EXPECT_EQ(ChooseCoding("zstd;q=0.1, GZIP;q=0.5"), Coding::kGzip);
  EXPECT_EQ(ChooseCoding("gzip;q=0"), Coding::kNone);
  EXPECT_EQ(ChooseCoding("gzip; q=0.0, *"), Coding::kNone);
  EXPECT_EQ(ChooseCoding("*"), Coding::kGzip);
  EXPECT_EQ(ChooseCoding("*;q=0"), Coding::kNone);
  EXPECT_EQ(ChooseCoding("br"), Coding::kNone);
  EXPECT_EQ(ChooseCoding("gzip;q=banana"), Coding::kGzip);
  EXPECT_EQ(ChooseCoding(",;,=;q"), Coding::kNone);
}

TEST(ContentCoding, GivesBackTheSameBytes) {
  const std::string text = Text(200'000);
  const auto gzip = Answer(Get("gzip"), Response::Json(200, text));
  EXPECT_EQ(gzip.headers.Get("Content-Encoding"), "gzip");
  EXPECT_EQ(gzip.headers.Get("Vary"), "Accept-Encoding");
  EXPECT_LT(gzip.body.size(), text.size() / 2);
  EXPECT_EQ(Gunzip(gzip.body, text.size()), text);

  const auto zstd = Answer(Get("zstd"), Response::Json(200, text));
  EXPECT_EQ(zstd.headers.Get("Content-Encoding"), "zstd");
  std::string out(text.size(), '\0');
  EXPECT_EQ(ZSTD_decompress(out.data(), out.size(), zstd.body.data(), zstd.body.size()),
            text.size());
  EXPECT_EQ(out, text);
}

TEST(ContentCoding, LeavesAloneWhatGainsNothing) {
  const std::string text = Text(4096);
  const auto same = [&](const Request& request, Response response) {
    const auto answer = Answer(request, response);
    return answer.body == response.body && !answer.headers.Has("Content-Encoding");
  };
  EXPECT_TRUE(same(Get("gzip"), Response::Json(200, text.substr(0, kLeastEncoded))));
  EXPECT_TRUE(same(Get(""), Response::Json(200, text)));
  Response picture{200, {{"Content-Type", "image/png"}}, text};
  EXPECT_TRUE(same(Get("gzip"), picture));
  Response events{200, {{"Content-Type", "text/event-stream"}}, text};
  EXPECT_TRUE(same(Get("gzip"), events));
  Response file = Response::Text(200, text);
  file.headers.Add("Content-Disposition", "attachment");
  EXPECT_TRUE(same(Get("gzip"), file));
  Response packed = Response::Json(200, text);
  packed.headers.Add("Content-Encoding", "br");
  EXPECT_EQ(Answer(Get("gzip"), packed).body, text);
}

TEST(ContentCoding, SendsNothingToWhoHasItAlready) {
  const std::string text = Text(4096);
  const auto first = Answer(Get("gzip"), Response::Json(200, text));
  const std::string tag(first.headers.Get("ETag"));
  ASSERT_FALSE(tag.empty());
  EXPECT_EQ(first.headers.Get("Cache-Control"), "private, no-cache");
  const auto again = Answer(Get("zstd", "\"other\", " + tag), Response::Json(200, text));
  EXPECT_EQ(again.status, 304);
  EXPECT_EQ(again.body, "");
  EXPECT_EQ(again.headers.Get("ETag"), tag);
  EXPECT_FALSE(again.headers.Has("Content-Encoding"));
  EXPECT_EQ(Answer(Get("gzip", tag), Response::Json(200, text + "x")).status, 200);
  EXPECT_EQ(Answer(Get("gzip", tag), Response::Json(404, text)).status, 404);
}

TEST(ContentCoding, APostIsCompressedAndHasNoTag) {
  Request request = Get("gzip", "*");
  request.method = "POST";
  const auto answer = Answer(request, Response::Json(200, Text(4096)));
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.headers.Get("Content-Encoding"), "gzip");
  EXPECT_FALSE(answer.headers.Has("ETag"));
}

}  // namespace
}  // namespace athanor
