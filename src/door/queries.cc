#include "door/queries.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <iterator>

#include <algorithm>
#include <charconv>

#include "base/text/format.h"
#include "base/text/text.h"

namespace athanor {

Result<std::optional<uint64_t>> WholeNumber(const Request& request, const char* name) {
  const auto text = request.Query(name);
  if (!text) return std::optional<uint64_t>();
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || end != text->data() + text->size() || number > INT64_MAX) {
    return Fail(Error{ErrorCode::kInvalid, std::string(name) + " is not a whole number",
                      "give a whole number from 0, such as 10"}
                    .Why("got '" + Printable(std::string_view(*text).substr(0, 80)) + "'")
                    .Id("ATH-R0014"));
  }
  return std::optional(number);
}

int64_t CreatedMs(const RunEntry& run) {
  if (!run.is_job) return run.started_ms;
  int64_t ms = 0;
  for (int i = 0; i < 6; ++i) ms = ms << 8 | run.id.value.bytes[static_cast<size_t>(i)];
  return std::min(ms, run.started_ms);
}

std::optional<int64_t> BeganMs(const RunEntry& run) {
  // MLflow knows no run without a start: a job whose script has not run has there the time it was
  // made (a moment after its id was), and no script runs within that moment.
  constexpr int64_t kMomentMs = 3;
  const bool never = run.is_job && run.started_ms - CreatedMs(run) <= kMomentMs;
  return never ? std::nullopt : std::optional(run.started_ms);
}

void OnReader(DoorContext& context, const Call& call, std::function<void()> work) {
  if (context.readers.Submit(std::move(work))) return;
  call.Refuse(Error{ErrorCode::kUnavailable, "the server is stopping"});
}

void OnDisk(DoorContext& context, const Call& call, std::function<void()> work) {
  if (context.transfers.Submit(std::move(work))) return;
  call.Refuse(Error{ErrorCode::kUnavailable, "the server is stopping"});
}

std::optional<std::pair<uint64_t, uint64_t>> ByteRange(std::string_view header, uint64_t size) {
  constexpr std::string_view kBytes = "bytes=";
  if (!StartsWith(header, kBytes) || header.find(',') != std::string_view::npos) {
    return std::nullopt;
  }
  header.remove_prefix(kBytes.size());
  const size_t dash = header.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto number = [](std::string_view text) -> std::optional<uint64_t> {
    uint64_t value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
    return value;
  };
  const auto first = number(header.substr(0, dash));
  const auto last = number(header.substr(dash + 1));
  if (!first && last && *last > 0) {
    const uint64_t length = std::min(*last, size);
    return std::pair(size - length, length);
  }
  if (!first || *first >= size || (last && *last < *first)) return std::nullopt;
  const uint64_t end = last ? std::min(*last + 1, size) : size;
  return std::pair(*first, end - *first);
}

void SendUserBytes(const Call& call, const std::string& type, bool shown, Result<UniqueFd> file,
                   const std::string& name) {
  if (!file) return call.Refuse(file.error());
  struct stat info {};
  if (::fstat(file->get(), &info) != 0) return call.Refuse(FailErrno("stat", errno).value());
  const auto size = static_cast<uint64_t>(info.st_size);
  Response head;
  head.headers.Add("Content-Type", type);
  head.headers.Add("Content-Disposition",
                   std::string(shown ? "inline" : "attachment") +
                       (name.empty() ? "" : "; filename*=UTF-8''" + UrlEncode(name)));
  head.headers.Add("X-Content-Type-Options", "nosniff");
  head.headers.Add("Content-Security-Policy", "sandbox; default-src 'none'");
  head.headers.Add("Accept-Ranges", "bytes");
  uint64_t offset = 0;
  uint64_t length = size;
  if (const auto header = call.request.headers.Get("Range"); !header.empty()) {
    if (const auto range = ByteRange(header, size)) {
      offset = range->first;
      length = range->second;
      head.status = 206;
      head.headers.Add("Content-Range",
                       fmt::format("bytes {}-{}/{}", offset, offset + length - 1, size));
    }
  }
  call.responder.SendFile(std::move(head), std::move(*file), offset, length);
}

std::optional<std::string> RasterTypeOf(std::string_view path) {
  static constexpr std::pair<std::string_view, const char*> kTypes[] = {
      {".png", "image/png"}, {".jpg", "image/jpeg"},  {".jpeg", "image/jpeg"},
      {".gif", "image/gif"}, {".webp", "image/webp"}, {".bmp", "image/bmp"}};
  const std::string lower = ToLower(path);
  for (const auto& [end, type] : kTypes) {
    if (EndsWith(lower, end)) return type;
  }
  return std::nullopt;
}

void Append(RunBatch& all, RunBatch more) {
  const auto add = [](auto& to, auto& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  add(all.experiments, more.experiments);
  add(all.runs, more.runs);
  add(all.labels, more.labels);
  add(all.datasets, more.datasets);
  add(all.inputs, more.inputs);
  add(all.links, more.links);
  add(all.models, more.models);
  add(all.versions, more.versions);
  add(all.logged, more.logged);
  add(all.runs_gone, more.runs_gone);
  add(all.models_gone, more.models_gone);
  add(all.versions_gone, more.versions_gone);
}

}  // namespace athanor
