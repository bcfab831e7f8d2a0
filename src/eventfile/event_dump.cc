// event_dump FILE...: prints the content of event files as JSON lines: events, then damage and the
// tail. Long bytes are shown by their size. For tests that compare with other readers.
#include <fcntl.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/text/json.h"
#include "eventfile/event.h"
#include "eventfile/event_reader.h"
#include "eventfile/plugins.h"

namespace {

using namespace athanor;

void Describe(const SummaryValue& value, std::string_view kind, Json& line) {
  if (kind == "scalars") {
    if (const auto number = ScalarOf(value)) line["value"] = *number;
  } else if (kind == "histograms") {
    if (const auto read = ReadHistogram(value)) {
      line["buckets"] = Json::array();
      for (const auto& b : read->buckets) line["buckets"].push_back({b.left, b.right, b.count});
    }
  } else if (kind == "images") {
    if (const auto read = ReadImage(value)) {
      line["size"] = {read->width, read->height};
      line["bytes"] = Json::array();
      for (const auto& bytes : read->encoded) line["bytes"].push_back(bytes.size());
    }
  } else if (kind == "audio") {
    if (const auto read = ReadAudio(value)) {
      line["content_type"] = read->content_type;
      line["bytes"] = Json::array();
      for (const auto& bytes : read->encoded) line["bytes"].push_back(bytes.size());
    }
  } else if (kind == "text") {
    if (const auto read = ReadText(value)) line["texts"] = read->texts;
  } else if (kind == "pr_curves") {
    if (const auto read = ReadPrCurve(value)) {
      line["true_positives"] = read->true_positives;
      line["precision"] = read->precision;
      line["recall"] = read->recall;
    }
  } else if (kind == "hparams") {
    if (const auto read = ReadHParams(value)) {
      line["part"] = static_cast<int>(read->part);
      line["metrics"] = read->metrics;
      line["params"] = Json::object();
      for (const auto& [name, param] : read->params) {
        std::visit([&, key = name](const auto& inner) { line["params"][key] = inner; }, param);
      }
    }
  }
}

void DumpFile(const char* path) {
  EventReader reader{UniqueFd(::open(path, O_RDONLY | O_CLOEXEC))};
  TagKinds kinds;
  const auto on_record = [&](uint64_t offset, std::string_view payload) {
    EventView event;
    if (!ReadEvent(payload, event)) {
      std::puts(DumpJson(Json{{"offset", offset}, {"kind", "unreadable"}}).c_str());
      return;
    }
    if (event.kind == EventView::Kind::kFileVersion) {
      std::puts(
          DumpJson(Json{{"offset", offset}, {"kind", "version"}, {"text", event.body}}).c_str());
    } else if (event.kind == EventView::Kind::kGraph) {
      std::puts(DumpJson(Json{{"offset", offset}, {"kind", "graph"}, {"bytes", event.body.size()}})
                    .c_str());
    }
    if (event.kind != EventView::Kind::kSummary) return;
    SummaryValue value;
    while (TakeValue(event.body, value)) {
      const auto kind = kinds.KindOf(value);
      Json line = {{"offset", offset},
                   {"kind", kind},
                   {"tag", value.tag},
                   {"step", event.step},
                   {"wall_time", event.wall_time}};
      Describe(value, kind, line);
      std::puts(DumpJson(line).c_str());
    }
  };
  const auto read = reader.Poll(on_record);
  if (!read) std::fprintf(stderr, "%s: %s\n", path, read.error().what.c_str());
  for (const auto& damage : reader.damage()) {
    std::puts(DumpJson(Json{{"kind", "damage"}, {"offset", damage.offset}, {"bytes", damage.bytes}})
                  .c_str());
  }
  std::puts(DumpJson(Json{{"kind", "end"}, {"offset", reader.offset()}, {"torn", reader.tail()}})
                .c_str());
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) DumpFile(argv[i]);
  return 0;
}
