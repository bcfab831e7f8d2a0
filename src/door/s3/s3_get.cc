// GET and HEAD of an object: conditions, ranges, parts.
#include <charconv>
#include <memory>

#include "base/text/format.h"
#include "base/text/text.h"
#include "door/s3/s3_call.h"

namespace athanor {
namespace {

struct Span {
  uint64_t offset = 0;
  uint64_t length = 0;
  bool partial = false;
};

bool NamesEtag(std::string_view list, const std::string& etag) {
  for (const auto& part : Split(list, ',')) {
    const std::string one = Unquoted(part);
    if (one == "*" || one == etag) return true;
  }
  return false;
}

// Conditions that prevent sending the object; in the order of RFC 9110.
std::optional<AwsError> CheckConditions(const S3Call& call, const ObjectInfo& info) {
  const WallTime modified{info.modified.ms / 1000 * 1000};
  const auto date = [&](std::string_view name) { return ParseHttpDate(call.Header(name)); };
  const AwsError failed{412, kPreconditionFailed,
                        "At least one of the pre-conditions you specified did not hold"};
  if (call.request.headers.Has("If-Match")) {
    if (!NamesEtag(call.Header("If-Match"), info.etag)) return failed;
  } else if (const auto since = date("If-Unmodified-Since"); since && modified > *since) {
    return failed;
  }
  const AwsError same{304, "NotModified", ""};
  if (call.request.headers.Has("If-None-Match")) {
    if (NamesEtag(call.Header("If-None-Match"), info.etag)) return same;
  } else if (const auto since = date("If-Modified-Since"); since && modified <= *since) {
    return same;
  }
  return std::nullopt;
}

std::optional<uint64_t> Number(std::string_view text) {
  uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || stop != text.data() + text.size())
    return std::nullopt;
  return value;
}

// "bytes=2-5", "bytes=2-", "bytes=-3". Anything else, including several ranges, is ignored; if none
// is within the object: no value.
std::optional<Span> ParseRange(std::string_view text, uint64_t size) {
  const Span whole{0, size, false};
  constexpr std::string_view kUnit = "bytes=";
  if (!StartsWith(text, kUnit)) return whole;
  text.remove_prefix(kUnit.size());
  const size_t dash = text.find('-');
  if (dash == std::string_view::npos) return whole;
  const auto first = Number(Trim(text.substr(0, dash)));
  const auto last = Number(Trim(text.substr(dash + 1)));
  if (Trim(text.substr(0, dash)).empty()) {
    if (!last) return whole;
    if (*last == 0 || size == 0) return std::nullopt;
    const uint64_t length = std::min(*last, size);
    return Span{size - length, length, true};
  }
  const bool open = Trim(text.substr(dash + 1)).empty();
  if (!first || (!open && (!last || *last < *first))) return whole;
  if (*first >= size) return std::nullopt;
  const uint64_t end = open ? size : std::min(*last, size - 1) + 1;
  return Span{*first, end - *first, true};
}

void AddObjectHeaders(const S3Call& call, const ObjectInfo& info, const Span& span,
                      Response& response) {
  auto& headers = response.headers;
  headers.Add("Last-Modified", HttpDate(info.modified));
  headers.Add("ETag", "\"" + info.etag + "\"");
  headers.Add("Accept-Ranges", "bytes");
  if (span.partial) {
    headers.Add("Content-Range", fmt::format("bytes {}-{}/{}", span.offset,
                                             span.offset + span.length - 1, info.size));
  }
  for (const auto& [name, value] : info.meta.headers) headers.Add(name, value);
  if (!info.meta.headers.contains("content-type")) {
    headers.Add("content-type", "binary/octet-stream");
  }
  for (const auto& [name, value] : info.meta.user) headers.Add("x-amz-meta-" + name, value);
  if (!info.meta.tags.empty()) {
    headers.Add("x-amz-tagging-count", std::to_string(info.meta.tags.size()));
  }
  // Of the whole object, so not together with a part of it.
  if (info.checksum && !span.partial && SameName(call.Header("x-amz-checksum-mode"), "ENABLED")) {
    headers.Add(ChecksumHeader(info.checksum->kind), info.checksum->value);
    headers.Add("x-amz-checksum-type", info.checksum->full_object ? "FULL_OBJECT" : "COMPOSITE");
  }
  constexpr std::string_view kOverrides[] = {"content-type",  "content-language",
                                             "expires",       "content-disposition",
                                             "cache-control", "content-encoding"};
  for (const auto name : kOverrides) {
    const std::string value = call.Query("response-" + std::string(name));
    if (!value.empty()) headers.Set(name, value);
  }
}

}  // namespace

void GetObject(const S3Call& call) {
  auto opened = call.store.Open(call.bucket, call.key);
  if (!opened) return call.Refuse(opened.error());
  // Shared by the pieces that are asked for while the answer leaves.
  const std::shared_ptr<ObjectReader> reader = std::move(*opened);
  const ObjectInfo& info = reader->info();
  if (auto refused = CheckConditions(call, info)) {
    if (refused->status != 304) return call.Refuse(*refused);
    Response response = call.Head(304);
    response.headers.Add("ETag", "\"" + info.etag + "\"");
    response.headers.Add("Last-Modified", HttpDate(info.modified));
    return call.Send(std::move(response));
  }
  std::optional<Span> span = Span{0, info.size, false};
  Response response = call.Head(200);
  if (call.Asks("partNumber")) {
    const auto number = Number(call.Query("partNumber"));
    const auto part =
        reader->Part(static_cast<uint32_t>(std::min<uint64_t>(number.value_or(0), UINT32_MAX)));
    if (!part) return call.Refuse(AwsError{416, "InvalidPartNumber", part.error().what});
    span = Span{part->first, part->second, info.parts > 0};
    if (info.parts > 0) response.headers.Add("x-amz-mp-parts-count", std::to_string(info.parts));
  } else if (call.request.headers.Has("Range")) {
    span = ParseRange(call.Header("Range"), info.size);
  }
  if (!span) {
    Response refusal = call.Head(416);
    refusal.headers.Add("Content-Range", "bytes */" + std::to_string(info.size));
    refusal.headers.Add("Content-Type", "application/xml");
    refusal.body =
        "<Error><Code>InvalidRange</Code><Message>The requested range is not "
        "satisfiable</Message><ActualObjectSize>" +
        std::to_string(info.size) + "</ActualObjectSize></Error>";
    return call.Send(std::move(refusal));
  }
  response.status = span->partial ? 206 : 200;
  AddObjectHeaders(call, info, *span, response);
  if (auto sought = reader->Seek(span->offset, span->length); !sought.ok()) {
    return call.Refuse(sought.error());
  }
  call.responder.SendPieces(std::move(response), span->length,
                            [reader]() -> std::optional<FileRange> {
                              auto piece = reader->Next();
                              return piece ? std::move(*piece) : std::nullopt;
                            });
}

}  // namespace athanor
