#include "eventfile/event_split.h"

#include <fcntl.h>

#include <functional>
#include <string_view>

#include "base/io/fd.h"
#include "base/io/files.h"
#include "eventfile/event.h"
#include "eventfile/event_reader.h"
#include "eventfile/proto.h"
#include "eventfile/tfrecord.h"

namespace athanor {
namespace {

using proto::Field;
using proto::TakeField;
using proto::WireType;

using Keep = std::function<bool(std::string_view tag)>;
using Metadata = std::map<std::string, std::string, std::less<>>;

void PutField(std::string& out, const Field& field) {
  switch (field.type) {
    case WireType::kVarint:
      return proto::PutInt(out, field.number, field.AsInt());
    case WireType::kFixed64:
      return proto::PutDouble(out, field.number, field.AsDouble());
    case WireType::kFixed32:
      return proto::PutFloat(out, field.number, field.AsFloat());
    case WireType::kBytes:
      return proto::PutBytes(out, field.number, field.bytes);
  }
}

// The summary's values that `keep` takes; `lacking`, if given, adds metadata to those without.
std::string FilterSummary(std::string_view summary, const Keep& keep, Metadata* lacking) {
  std::string out;
  Field field;
  while (TakeField(summary, field)) {
    if (field.number != 1 || field.type != WireType::kBytes) continue;
    std::string one;
    proto::PutBytes(one, 1, field.bytes);
    std::string_view alone = one;
    SummaryValue value;
    if (!TakeValue(alone, value) || !keep(value.tag)) continue;
    const auto known = lacking ? lacking->find(value.tag) : Metadata::iterator();
    if (!lacking || known == lacking->end() || !value.metadata.empty()) {
      out += one;
      continue;
    }
    std::string longer(field.bytes);
    proto::PutBytes(longer, 9, known->second);
    proto::PutBytes(out, 1, longer);
    lacking->erase(known);
  }
  return out;
}

std::string Filter(std::string_view payload, const Keep& keep, Metadata* lacking) {
  std::string out;
  bool any = false;
  Field field;
  while (TakeField(payload, field)) {
    if (field.number != 5 || field.type != WireType::kBytes) {
      PutField(out, field);
      continue;
    }
    const auto summary = FilterSummary(field.bytes, keep, lacking);
    any = any || !summary.empty();
    proto::PutBytes(out, 5, summary);
  }
  return any ? out : std::string();
}

bool IsBehind(const StepCuts& cuts, std::string_view tag, int64_t step) {
  const auto cut = cuts.find(tag);
  return cut != cuts.end() && step >= cut->second;
}

class Part {
 public:
  explicit Part(int fd) : fd_(fd) {}
  void Add(std::string_view payload) {
    AppendTfRecord(buffer_, payload);
    if (buffer_.size() > kBuffer) Flush();
  }
  void Flush() {
    if (status_.ok()) status_ = WriteAll(fd_, buffer_);
    buffer_.clear();
  }
  const Status& status() const { return status_; }

 private:
  static constexpr size_t kBuffer = 256u << 10;
  int fd_;
  std::string buffer_;
  Status status_;
};

class Splitter {
 public:
  Splitter(const StepCuts& cuts, int kept, int abandoned)
      : cuts_(cuts), kept_(kept), abandoned_(abandoned) {}

  void Take(std::string_view payload) {
    EventView event;
    if (!ReadEvent(payload, event)) return;
    if (event.kind == EventView::Kind::kFileVersion) version_ = payload;
    size_t staying = 0;
    size_t leaving = 0;
    if (event.kind == EventView::Kind::kSummary) Count(event, staying, leaving);
    if (leaving == 0) return kept_.Add(payload);
    if (!begun_ && !version_.empty()) abandoned_.Add(version_);
    begun_ = true;
    const auto behind = [&](std::string_view tag) { return IsBehind(cuts_, tag, event.step); };
    if (staying > 0) {
      kept_.Add(Filter(
          payload, [&](std::string_view tag) { return !behind(tag); }, nullptr));
    }
    abandoned_.Add(Filter(payload, behind, &described_));
  }

  Status Finish() {
    kept_.Flush();
    abandoned_.Flush();
    return kept_.status().ok() ? abandoned_.status() : kept_.status();
  }

 private:
  void Count(const EventView& event, size_t& staying, size_t& leaving) {
    std::string_view summary = event.body;
    SummaryValue value;
    while (TakeValue(summary, value)) {
      const bool behind = IsBehind(cuts_, value.tag, event.step);
      ++(behind ? leaving : staying);
      // This was part of a value that stays; the first value that leaves must have it, too.
      if (!behind && !value.metadata.empty()) described_[std::string(value.tag)] = value.metadata;
    }
  }

  const StepCuts& cuts_;
  Part kept_;
  Part abandoned_;
  bool begun_ = false;
  std::string version_;
  Metadata described_;
};

Status ReadRecords(int fd, const std::function<void(std::string_view payload)>& take) {
  UniqueFd own(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!own) return FailErrno("read an event file", errno);
  EventReader reader(std::move(own));
  ATHANOR_TRY([[maybe_unused]] const bool more,
              reader.Poll([&](uint64_t, std::string_view payload) { take(payload); }));
  return Ok();
}

}  // namespace

Result<uint64_t> CountBehind(int fd, const StepCuts& cuts) {
  uint64_t count = 0;
  ATHANOR_CHECK_OK(ReadRecords(fd, [&](std::string_view payload) {
    EventView event;
    if (!ReadEvent(payload, event) || event.kind != EventView::Kind::kSummary) return;
    SummaryValue value;
    while (TakeValue(event.body, value)) count += IsBehind(cuts, value.tag, event.step);
  }));
  return count;
}

Status SplitByStep(int fd, const StepCuts& cuts, int kept, int abandoned) {
  Splitter splitter(cuts, kept, abandoned);
  ATHANOR_CHECK_OK(ReadRecords(fd, [&](std::string_view payload) { splitter.Take(payload); }));
  return splitter.Finish();
}

}  // namespace athanor
