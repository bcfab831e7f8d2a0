#include "link/wire.h"

#include <bit>
#include <cstring>

#include <nlohmann/json.hpp>

#include "job/codec.h"

namespace athanor {
namespace {

// Frame types; numbers never change.
enum class Type : uint8_t {
  kHello = 1,
  kLog = 2,
  kPoints = 3,
  kUsage = 4,
  kProgress = 5,
  kStarted = 6,
  kPrepareFailed = 7,
  kEnded = 8,
  kUploaded = 9,
  kNote = 10,
  kResumed = 11,
  kCheckpoint = 12,
  kFiring = 13,
  kLogAck = 64,
  kStop = 65,
  kFenced = 66,
};

class Packer {
 public:
  template <class T>
  requires std::is_arithmetic_v<T>
  void Put(T value) {
    char raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));  // little endian is the wire order and the machine's
    out_.append(raw, sizeof(T));
  }
  void Put(std::string_view bytes) {
    Put(static_cast<uint32_t>(bytes.size()));
    out_.append(bytes);
  }
  void Put(const Json& json) { Put(std::string_view(DumpJson(json))); }
  std::string& out() { return out_; }

 private:
  std::string out_;
};

class Unpacker {
 public:
  explicit Unpacker(std::string_view in) : in_(in) {}
  template <class T>
  requires std::is_arithmetic_v<T> T Get() {
    T value{};
    if (in_.size() < sizeof(T)) {
      ok_ = false;
      return value;
    }
    std::memcpy(&value, in_.data(), sizeof(T));
    in_.remove_prefix(sizeof(T));
    return value;
  }
  std::string_view GetBytes() {
    auto size = Get<uint32_t>();
    if (!ok_ || in_.size() < size) {
      ok_ = false;
      return {};
    }
    auto bytes = in_.substr(0, size);
    in_.remove_prefix(size);
    return bytes;
  }
  std::string GetString() { return std::string(GetBytes()); }
  Json GetJson() {
    auto parsed = ParseJson(GetBytes());
    if (!parsed) {
      ok_ = false;
      return {};
    }
    return std::move(*parsed);
  }
  template <class T>
  T Take(Result<T> result) {
    if (!result) {
      ok_ = false;
      return {};
    }
    return std::move(*result);
  }
  Cause GetCause() { return Take(CauseFromJson(GetJson())); }
  LogStream GetStream() {
    auto raw = Get<uint8_t>();
    if (raw > 2) ok_ = false;
    return static_cast<LogStream>(raw);
  }
  bool ok() const { return ok_; }
  bool done() const { return in_.empty(); }

 private:
  std::string_view in_;
  bool ok_ = true;
};

void PutFrame(std::string& out, Type type, const std::string& payload) {
  Packer head;
  head.Put(static_cast<uint8_t>(type));
  head.Put(static_cast<uint32_t>(payload.size()));
  out += head.out();
  out += payload;
}

void PutStrings(Packer& packer, const std::vector<std::string>& items) {
  packer.Put(static_cast<uint32_t>(items.size()));
  for (const auto& item : items) packer.Put(std::string_view(item));
}

std::vector<std::string> GetStrings(Unpacker& in) {
  std::vector<std::string> items;
  auto count = in.Get<uint32_t>();
  for (uint32_t i = 0; i < count && in.ok(); ++i) items.push_back(in.GetString());
  return items;
}

struct ReportEncoder {
  std::string& out;

  void operator()(const HelloFrame& f) const {
    Packer p;
    p.Put(std::string_view(f.attempt.ToString()));
    p.Put(f.pid);
    p.Put(f.host);
    p.Put(std::string_view(f.address));
    PutFrame(out, Type::kHello, p.out());
  }
  void operator()(const LogFrame& f) const {
    Packer p;
    p.Put(f.host);
    p.Put(f.rank);
    p.Put(static_cast<uint8_t>(f.stream));
    p.Put(f.offset);
    p.Put(f.wall_ms);
    p.Put(std::string_view(f.bytes));
    PutFrame(out, Type::kLog, p.out());
  }
  void operator()(const PointsFrame& f) const {
    Packer p;
    p.Put(f.batch.rank);
    p.Put(f.batch.channel);
    p.Put(static_cast<uint32_t>(f.batch.items.size()));
    for (const auto& item : f.batch.items) {
      p.Put(item.seq);
      p.Put(static_cast<uint8_t>(item.point.step.has_value()));
      p.Put(item.point.step.value_or(0));
      p.Put(item.point.wall_ns);
      p.Put(item.point.value);
      p.Put(std::string_view(item.point.name));
    }
    p.Put(f.batch.host);
    PutFrame(out, Type::kPoints, p.out());
  }
  void operator()(const UsageFrame& f) const {
    Packer p;
    p.Put(f.held_ms);
    p.Put(f.cpu_percent);
    p.Put(f.memory_bytes);
    p.Put(f.memory_peak);
    PutFrame(out, Type::kUsage, p.out());
  }
  void operator()(const ProgressFrame& f) const {
    Packer p;
    p.Put(f.done);
    p.Put(f.total);
    PutFrame(out, Type::kProgress, p.out());
  }
  void operator()(const StartedFrame& f) const {
    Packer p;
    p.Put(f.setup_ms);
    PutStrings(p, f.off);
    p.Put(f.supervisor_pid);
    PutFrame(out, Type::kStarted, p.out());
  }
  void operator()(const PrepareFailedFrame& f) const {
    Packer p;
    p.Put(ToJson(f.cause));
    PutFrame(out, Type::kPrepareFailed, p.out());
  }
  void operator()(const EndedFrame& f) const {
    Packer p;
    p.Put(ToJson(f.exit));
    p.Put(ToJson(f.cause));
    p.Put(static_cast<uint32_t>(f.ranks.size()));
    for (const auto& end : f.ranks) {
      p.Put(end.rank);
      p.Put(end.code);
      p.Put(end.signal);
      p.Put(end.ran_ms);
    }
    PutFrame(out, Type::kEnded, p.out());
  }
  void operator()(const UploadedFrame& f) const {
    Packer p;
    p.Put(static_cast<uint32_t>(f.outputs.size()));
    for (const auto& output : f.outputs) p.Put(ToJson(output));
    p.Put(ToJson(f.failure));
    p.Put(std::string_view(f.packages));
    PutFrame(out, Type::kUploaded, p.out());
  }
  void operator()(const NoteFrame& f) const {
    Packer p;
    p.Put(ToJson(f.cause));
    PutFrame(out, Type::kNote, p.out());
  }
  void operator()(const ResumedFrame& f) const {
    Packer p;
    p.Put(std::string_view(f.checkpoint));
    p.Put(static_cast<uint8_t>(f.step.has_value()));
    p.Put(f.step.value_or(0));
    PutFrame(out, Type::kResumed, p.out());
  }
  void operator()(const CheckpointFrame& f) const {
    Packer p;
    p.Put(ToJson(f.checkpoint));
    p.Put(ToJson(f.advice));
    PutFrame(out, Type::kCheckpoint, p.out());
  }
  void operator()(const FiringFrame& f) const {
    Packer p;
    p.Put(ToJson(f.firing));
    PutFrame(out, Type::kFiring, p.out());
  }
};

PointsFrame GetPoints(Unpacker& in) {
  PointsFrame f;
  f.batch.rank = in.Get<uint32_t>();
  f.batch.channel = in.Get<uint32_t>();
  auto count = in.Get<uint32_t>();
  for (uint32_t i = 0; i < count && in.ok(); ++i) {
    PointBatch::Item item;
    item.seq = in.Get<uint64_t>();
    bool has_step = in.Get<uint8_t>() != 0;
    auto step = in.Get<int64_t>();
    if (has_step) item.point.step = step;
    item.point.wall_ns = in.Get<int64_t>();
    item.point.value = in.Get<double>();
    item.point.name = in.GetString();
    f.batch.items.push_back(std::move(item));
  }
  if (!in.done()) f.batch.host = in.Get<uint32_t>();
  return f;
}

UploadedFrame GetUploaded(Unpacker& in) {
  UploadedFrame f;
  auto count = in.Get<uint32_t>();
  for (uint32_t i = 0; i < count && in.ok(); ++i) {
    f.outputs.push_back(in.Take(OutputFromJson(in.GetJson())));
  }
  f.failure = in.GetCause();
  f.packages = in.GetString();
  return f;
}

// Adds the frame of `type` to `frames`; unknown types are skipped.
void DecodeReportFrame(Type type, Unpacker& in, std::vector<ReportFrame>& frames) {
  switch (type) {
    case Type::kHello: {
      HelloFrame f;
      auto id = AttemptId::Parse(in.GetString());
      if (id) f.attempt = *id;
      f.pid = in.Get<uint64_t>();
      // What follows is newer than some agents that still run after an upgrade.
      if (!in.done()) {
        f.host = in.Get<uint32_t>();
        f.address = in.GetString();
      }
      frames.emplace_back(std::move(f));
      return;
    }
    case Type::kLog: {
      LogFrame f;
      f.host = in.Get<uint32_t>();
      f.rank = in.Get<uint32_t>();
      f.stream = in.GetStream();
      f.offset = in.Get<uint64_t>();
      f.wall_ms = in.Get<int64_t>();
      f.bytes = in.GetString();
      frames.emplace_back(std::move(f));
      return;
    }
    case Type::kPoints:
      frames.emplace_back(GetPoints(in));
      return;
    case Type::kUsage: {
      UsageFrame f;
      f.held_ms = in.Get<int64_t>();
      f.cpu_percent = in.Get<uint32_t>();
      f.memory_bytes = in.Get<uint64_t>();
      f.memory_peak = in.Get<uint64_t>();
      frames.emplace_back(f);
      return;
    }
    case Type::kProgress: {
      ProgressFrame f;
      f.done = in.Get<int64_t>();
      f.total = in.Get<int64_t>();
      frames.emplace_back(f);
      return;
    }
    case Type::kStarted: {
      StartedFrame f;
      f.setup_ms = in.Get<int64_t>();
      f.off = GetStrings(in);
      f.supervisor_pid = in.Get<uint64_t>();
      frames.emplace_back(std::move(f));
      return;
    }
    case Type::kPrepareFailed:
      frames.emplace_back(PrepareFailedFrame{in.GetCause()});
      return;
    case Type::kEnded: {
      EndedFrame f;
      f.exit = in.Take(ExitFromJson(in.GetJson()));
      f.cause = in.GetCause();
      const auto count = in.done() ? 0 : in.Get<uint32_t>();
      for (uint32_t i = 0; i < count && in.ok(); ++i) {
        RankEnd end;
        end.rank = in.Get<uint32_t>();
        end.code = in.Get<int32_t>();
        end.signal = in.Get<int32_t>();
        end.ran_ms = in.Get<int64_t>();
        f.ranks.push_back(end);
      }
      frames.emplace_back(std::move(f));
      return;
    }
    case Type::kUploaded:
      frames.emplace_back(GetUploaded(in));
      return;
    case Type::kNote:
      frames.emplace_back(NoteFrame{in.GetCause()});
      return;
    case Type::kResumed: {
      ResumedFrame f;
      f.checkpoint = in.GetString();
      bool has_step = in.Get<uint8_t>() != 0;
      auto step = in.Get<int64_t>();
      if (has_step) f.step = step;
      frames.emplace_back(std::move(f));
      return;
    }
    case Type::kCheckpoint: {
      CheckpointFrame f;
      f.checkpoint = in.Take(CheckpointFromJson(in.GetJson()));
      f.advice = in.Take(AdviceFromJson(in.GetJson()));
      frames.emplace_back(std::move(f));
      return;
    }
    case Type::kFiring:
      frames.emplace_back(FiringFrame{in.Take(FiringFromJson(in.GetJson()))});
      return;
    case Type::kLogAck:
    case Type::kStop:
    case Type::kFenced:
      return;
  }
}

void DecodeReplyFrame(Type type, Unpacker& in, std::vector<ReplyFrame>& frames) {
  if (type == Type::kLogAck) {
    LogAckFrame f;
    f.host = in.Get<uint32_t>();
    f.rank = in.Get<uint32_t>();
    f.stream = in.GetStream();
    f.length = in.Get<uint64_t>();
    frames.emplace_back(f);
  } else if (type == Type::kStop) {
    StopFrame f;
    f.cause = in.GetCause();
    f.grace_ms = in.Get<int64_t>();
    if (!in.done()) f.interrupt = in.Get<uint8_t>() != 0;
    frames.emplace_back(std::move(f));
  } else if (type == Type::kFenced) {
    frames.emplace_back(FencedFrame{});
  }
}

template <class Frame>
Result<std::vector<Frame>> Decode(std::string_view bytes,
                                  void (*decode)(Type, Unpacker&, std::vector<Frame>&)) {
  std::vector<Frame> frames;
  Unpacker in(bytes);
  while (!in.done()) {
    auto type = static_cast<Type>(in.Get<uint8_t>());
    Unpacker payload(in.GetBytes());
    if (!in.ok()) return Fail(ErrorCode::kInvalid, "a frame is cut short");
    decode(type, payload, frames);
    if (!payload.ok()) return Fail(ErrorCode::kInvalid, "a frame's payload is malformed");
  }
  return frames;
}

}  // namespace

std::string EncodeReport(const std::vector<ReportFrame>& frames) {
  std::string out;
  for (const auto& frame : frames) std::visit(ReportEncoder{out}, frame);
  return out;
}

Result<std::vector<ReportFrame>> DecodeReport(std::string_view bytes) {
  return Decode<ReportFrame>(bytes, DecodeReportFrame);
}

std::string EncodeReply(const std::vector<ReplyFrame>& frames) {
  std::string out;
  for (const auto& frame : frames) {
    Packer p;
    if (const auto* ack = std::get_if<LogAckFrame>(&frame)) {
      p.Put(ack->host);
      p.Put(ack->rank);
      p.Put(static_cast<uint8_t>(ack->stream));
      p.Put(ack->length);
      PutFrame(out, Type::kLogAck, p.out());
    } else if (const auto* stop = std::get_if<StopFrame>(&frame)) {
      p.Put(ToJson(stop->cause));
      p.Put(stop->grace_ms);
      p.Put(static_cast<uint8_t>(stop->interrupt));
      PutFrame(out, Type::kStop, p.out());
    } else {
      PutFrame(out, Type::kFenced, p.out());
    }
  }
  return out;
}

Result<std::vector<ReplyFrame>> DecodeReply(std::string_view bytes) {
  return Decode<ReplyFrame>(bytes, DecodeReplyFrame);
}

}  // namespace athanor
