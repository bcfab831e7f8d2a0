#include "tune/journal.h"

#include <charconv>

#include <nlohmann/json.hpp>

#include "base/io/crc32c.h"
#include "base/text/format.h"

namespace athanor::tune {
namespace {

constexpr size_t kHead = 9;  // eight digits and a space

tl::unexpected<Error> Corrupt(size_t line, std::string why) {
  return Fail(
      Error{ErrorCode::kCorrupt, fmt::format("line {} of the journal is damaged", line),
            fmt::format("keep the first {} lines in a new file to go on from there", line - 1)}
          .Why(std::move(why))
          .Id("ATH-T0005"));
}

}  // namespace

std::string JournalWriter::Line(const Json& event) {
  const auto text = DumpJson(event);
  checksum_ = Crc32c(text, checksum_);
  return fmt::format("{:08x} {}\n", checksum_, text);
}

Result<JournalText> ReadJournal(std::string_view text) {
  JournalText out;
  for (size_t number = 1; out.whole < text.size(); ++number) {
    const auto end = text.find('\n', out.whole);
    if (end == std::string_view::npos) break;
    const auto line = text.substr(out.whole, end - out.whole);
    uint32_t checksum = 0;
    if (line.size() <= kHead || line[kHead - 1] != ' ') return Corrupt(number, "no checksum");
    const auto [stop, error] = std::from_chars(line.data(), line.data() + kHead - 1, checksum, 16);
    if (error != std::errc() || stop != line.data() + kHead - 1) {
      return Corrupt(number, "no checksum");
    }
    const auto body = line.substr(kHead);
    if (Crc32c(body, out.checksum) != checksum) {
      return Corrupt(number,
                     "its checksum does not fit: it was changed, or a line before it is gone");
    }
    auto event = ParseJson(body);
    if (!event || !event->is_object()) return Corrupt(number, "it is not an event");
    out.events.emplace_back(body);
    out.checksum = checksum;
    out.whole = end + 1;
  }
  return out;
}

}  // namespace athanor::tune
