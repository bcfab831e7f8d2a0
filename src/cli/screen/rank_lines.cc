#include "cli/screen/rank_lines.h"

#include <nlohmann/json.hpp>

#include "base/text/format.h"
#include "base/text/text.h"
#include "cli/screen/reading.h"

namespace athanor {
namespace {

// Red is for errors.
constexpr Ink kInks[] = {Ink::kBlue, Ink::kGreen, Ink::kYellow, Ink::kBold};

}  // namespace

std::string RankLines::TagOf(const Json& event) const {
  if (!tags_) return "";
  const auto stream = Text(event, "stream");
  Terminal terminal = terminal_;
  terminal.color =
      terminal.color && (split_ && stream == "stderr" ? terminal.err_tty : terminal.out_tty);
  if (stream == "setup") {
    return Paint(terminal, Ink::kGrey, "[" + Printable(Text(event, "host")) + "]") + " ";
  }
  const auto rank = Number(event, "rank");
  return Paint(terminal, kInks[static_cast<size_t>(rank) % std::size(kInks)],
               fmt::format("[{}]", rank)) +
         " ";
}

void RankLines::Line(const Stream& stream, std::string_view line, std::string& out) const {
  const std::string kept = keep_ ? keep_(line) : std::string(line);
  if (kept.empty()) return;
  out += stream.tag;
  out += kept;
}

std::string RankLines::Take(const Json& event, std::string_view bytes) {
  const auto name = Text(event, "stream");
  auto& stream = streams_[fmt::format("{} {} {} {}", Number(event, "attempt"), Text(event, "host"),
                                      Number(event, "rank"), name)];
  if (stream.tag.empty()) stream.tag = TagOf(event);
  stream.error = name == "stderr";
  stream.open += bytes;
  std::string out;
  size_t start = 0;
  for (size_t end; (end = stream.open.find('\n', start)) != std::string::npos; start = end + 1) {
    Line(stream, std::string_view(stream.open).substr(start, end + 1 - start), out);
  }
  stream.open.erase(0, start);
  return out;
}

std::vector<std::pair<bool, std::string>> RankLines::Finish() {
  std::vector<std::pair<bool, std::string>> rest;
  for (auto& [key, stream] : streams_) {
    if (stream.open.empty()) continue;
    std::string out;
    Line(stream, stream.open + "\n", out);
    stream.open.clear();
    rest.emplace_back(stream.error, std::move(out));
  }
  return rest;
}

std::string LinesByTime::Add(const std::string& time, std::string lines) {
  bytes_ += lines.size();
  held_.emplace(time, std::move(lines));  // equal times stay in the order of arrival
  std::string out;
  while (bytes_ > kMost) {
    bytes_ -= held_.begin()->second.size();
    out += held_.begin()->second;
    held_.erase(held_.begin());
  }
  return out;
}

std::string LinesByTime::Finish() {
  std::string out;
  for (const auto& [time, lines] : held_) out += lines;
  held_.clear();
  bytes_ = 0;
  return out;
}

}  // namespace athanor
