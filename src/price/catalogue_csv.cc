#include "price/catalogue_csv.h"

#include <map>
#include <optional>
#include <utility>

#include "base/text/format.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr size_t kMaxFile = 4u << 20;
constexpr size_t kMaxName = 63;
constexpr int64_t kMillion = 1'000'000;
// Above every real machine and price, and far below overflow.
constexpr int64_t kMaxCpus = 100'000;
constexpr int64_t kMaxGib = 1'000'000;
constexpr int64_t kMaxGpus = 1'024;
constexpr int64_t kMaxPrice = 1'000'000;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// "21.957642" as 21957642: exact, at most six decimals, at most `max` whole units.
std::optional<int64_t> ParseMicros(std::string_view text, int64_t max) {
  int64_t whole = 0;
  size_t i = 0;
  for (; i < text.size() && IsDigit(text[i]); ++i) {
    whole = whole * 10 + (text[i] - '0');
    if (whole > max) return std::nullopt;
  }
  if (i == 0) return std::nullopt;
  int64_t fraction = 0;
  if (i < text.size() && text[i] == '.') {
    const size_t first = ++i;
    int64_t scale = kMillion / 10;
    for (; i < text.size() && IsDigit(text[i]) && scale > 0; ++i, scale /= 10) {
      fraction += (text[i] - '0') * scale;
    }
    if (i == first) return std::nullopt;
  }
  if (i != text.size()) return std::nullopt;
  const int64_t micros = whole * kMillion + fraction;
  if (micros > max * kMillion) return std::nullopt;
  return micros;
}

uint64_t BytesOfMicroGib(int64_t micros) {
  const uint64_t value = static_cast<uint64_t>(micros);
  const uint64_t whole = value / kMillion;
  const uint64_t rest = value % kMillion;
  return (whole << 30) + ((rest << 30) + kMillion / 2) / kMillion;
}

bool IsName(std::string_view text) {
  if (text.empty() || text.size() > kMaxName) return false;
  for (char c : text) {
    const bool ok = IsDigit(c) || (c >= 'a' && c <= 'z') || c == '.' || c == '-' || c == '_';
    if (!ok) return false;
  }
  return text.front() != '.' && text.front() != '-';
}

bool IsModel(std::string_view text) {
  if (text.size() > kMaxName) return false;
  for (char c : text) {
    if (c < ' ' || c > '~' || c == '"') return false;
  }
  return true;
}

class Reader {
 public:
  explicit Reader(std::string_view file) : file_(file) {}

  Result<CatalogueFile> Read(std::string_view text) {
    if (text.size() > kMaxFile) return Refuse("the file is larger than 4 MiB", "");
    while (!text.empty()) {
      const size_t end = text.find('\n');
      std::string_view line = text.substr(0, end);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      if (EndsWith(line, "\r")) line.remove_suffix(1);
      ++line_;
      if (StartsWith(line, "#")) {
        ReadComment(line.substr(1));
      } else if (!line.empty()) {
        ATHANOR_CHECK_OK(ReadLine(line));
      }
    }
    if (!header_seen_) return Refuse("the header line is missing", "the file has no rows");
    const std::string source = out_.as_of.empty() ? file_ : "catalogue " + out_.as_of;
    for (InstanceType& type : out_.types) type.source = source;
    return std::move(out_);
  }

 private:
  tl::unexpected<Error> Refuse(std::string what, std::string_view seen) const {
    return Fail(
        Error{ErrorCode::kInvalid, std::move(what),
              fmt::format("the first line must be: {}\nath types --json shows good rows",
                          kCatalogueHeader)}
            .Why(seen.empty() ? "" : fmt::format("got '{}'", Printable(seen.substr(0, 120))))
            .Where(fmt::format("{}:{}", file_, line_)));
  }

  void ReadComment(std::string_view text) {
    text = Trim(text);
    constexpr std::string_view kAsOf = "as_of:";
    if (StartsWith(text, kAsOf))
      out_.as_of = Printable(Trim(text.substr(kAsOf.size())).substr(0, 32));
  }

  Status ReadLine(std::string_view line) {
    if (!header_seen_) {
      if (line != kCatalogueHeader) return Refuse("the header line is not the catalogue's", line);
      header_seen_ = true;
      return Ok();
    }
    return ReadRow(Split(line, ','));
  }

  Status ReadRow(const std::vector<std::string>& cells) {
    if (cells.size() != 8) {
      return Refuse(fmt::format("a row has 8 columns, this one has {}", cells.size()),
                    Join(cells, ","));
    }
    InstanceType type;
    type.name = cells[0];
    if (!IsName(type.name)) {
      return Refuse("a type's name is 1 to 63 of a-z 0-9 . - _", cells[0]);
    }
    if (const auto [it, fresh] = lines_.emplace(type.name, line_); !fresh) {
      return Refuse(fmt::format("{} appears twice; first in line {}", type.name, it->second), "");
    }
    const auto cpus = ParseMicros(cells[1], kMaxCpus);
    if (!cpus || *cpus == 0 || *cpus % 1'000 != 0) {
      return Refuse("cpus must be a number above 0 with at most 3 decimals", cells[1]);
    }
    type.cpu_millis = static_cast<uint32_t>(*cpus / 1'000);
    const auto memory = ParseMicros(cells[2], kMaxGib);
    if (!memory || *memory == 0) return Refuse("memory_gib must be a number above 0", cells[2]);
    type.memory_bytes = BytesOfMicroGib(*memory);
    ATHANOR_CHECK_OK(ReadGpu(cells, type));
    ATHANOR_CHECK_OK(ReadPrices(cells, type));
    out_.types.push_back(std::move(type));
    return Ok();
  }

  Status ReadGpu(const std::vector<std::string>& cells, InstanceType& type) const {
    if (cells[3].empty() && cells[4].empty() && cells[5].empty()) return Ok();
    if (cells[3].empty() || !IsModel(cells[3])) {
      return Refuse("gpu must name a model when gpu_count is given", cells[3]);
    }
    type.gpu_model = cells[3];
    const auto count = ParseMicros(cells[4], kMaxGpus);
    if (!count || *count == 0 || *count % kMillion != 0) {
      return Refuse("gpu_count must be a whole number above 0", cells[4]);
    }
    type.gpus = static_cast<uint32_t>(*count / kMillion);
    if (cells[5].empty()) return Ok();
    const auto memory = ParseMicros(cells[5], kMaxGib);
    if (!memory) return Refuse("gpu_mem_gib must be empty or a number", cells[5]);
    type.gpu_memory_bytes = BytesOfMicroGib(*memory);
    return Ok();
  }

  Status ReadPrices(const std::vector<std::string>& cells, InstanceType& type) const {
    const auto on_demand = ParseMicros(cells[6], kMaxPrice);
    if (!on_demand) {
      return Refuse("price_od must be dollars an hour, at most 6 decimals", cells[6]);
    }
    type.on_demand_micros = *on_demand;
    if (cells[7].empty()) return Ok();
    type.spot_micros = ParseMicros(cells[7], kMaxPrice);
    if (!type.spot_micros) {
      return Refuse("price_spot_mean must be empty or dollars an hour, at most 6 decimals",
                    cells[7]);
    }
    return Ok();
  }

  const std::string file_;
  CatalogueFile out_;
  std::map<std::string, int> lines_;
  int line_ = 0;
  bool header_seen_ = false;
};

}  // namespace

Result<CatalogueFile> ParseCatalogueCsv(std::string_view text, std::string_view file) {
  return Reader(file).Read(text);
}

}  // namespace athanor
