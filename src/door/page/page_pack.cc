#include "door/page/page_pack.h"

#include <charconv>

#include "base/text/text.h"

extern "C" {
extern const char athanor_page_begin[];
extern const char athanor_page_end[];
}

namespace athanor {
namespace {

constexpr std::string_view kHead = "athanor page 1";

tl::unexpected<Error> Broken(const char* why) {
  return Fail(Error{ErrorCode::kCorrupt, "the page in this program is damaged",
                    "tools/build_web, then build again"}
                  .Why(why));
}

std::string_view TakeLine(std::string_view& text) {
  const size_t end = text.find('\n');
  const auto line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

bool ReadSize(const std::string& text, size_t& size) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Result<PagePack> PagePack::Parse(std::string_view pack) {
  PagePack out;
  if (pack.empty()) return out;
  struct Row {
    std::string path;
    size_t bytes = 0;
    size_t gzip = 0;
    std::string etag;
  };
  std::vector<Row> rows;
  if (TakeLine(pack) != kHead) return Broken("its first line is not known");
  for (auto line = TakeLine(pack); !line.empty(); line = TakeLine(pack)) {
    const auto words = Split(line, ' ');
    Row row;
    if (words.size() != 4 || !ReadSize(words[1], row.bytes) || !ReadSize(words[2], row.gzip)) {
      return Broken("a line of its list is malformed");
    }
    row.path = words[0];
    row.etag = words[3];
    rows.push_back(std::move(row));
  }
  for (auto& row : rows) {
    if (row.bytes > pack.size() || row.gzip > pack.size() - row.bytes) {
      return Broken("it is shorter than its list says");
    }
    out.files_[row.path] = {pack.substr(0, row.bytes), pack.substr(row.bytes, row.gzip),
                            std::move(row.etag)};
    pack.remove_prefix(row.bytes + row.gzip);
  }
  if (!pack.empty()) return Broken("it is longer than its list says");
  return out;
}

const PagePack& PagePack::Embedded() {
  static const PagePack pack = [] {
    auto parsed =
        Parse({athanor_page_begin, static_cast<size_t>(athanor_page_end - athanor_page_begin)});
    return parsed ? std::move(*parsed) : PagePack();
  }();
  return pack;
}

const PageFile* PagePack::Find(std::string_view path) const {
  const auto at = files_.find(path);
  return at == files_.end() ? nullptr : &at->second;
}

}  // namespace athanor
