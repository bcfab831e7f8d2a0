#include "run/ship/exit_gate.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/io/files.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "eventfile/proto.h"
#include "record/series/series_file.h"

namespace athanor {
namespace {

constexpr size_t kPiece = 64 << 10;
constexpr size_t kMostNames = 100'000;
constexpr int kDeepest = 32;

bool ScrubValues(const ExitGate& gate, Json& value, bool is_name) {
  bool any = false;
  if (value.is_string()) {
    auto& text = value.get_ref<std::string&>();
    any = gate.ScrubText(text);
    if (any && is_name) std::replace(text.begin(), text.end(), '*', '_');
  } else if (value.is_array()) {
    for (auto& one : value) any = ScrubValues(gate, one, false) || any;
  } else if (value.is_object()) {
    for (auto& [name, one] : value.items()) any = ScrubValues(gate, one, name == "key") || any;
  }
  return any;
}

void PutNumber(std::string& out, const proto::Field& field) {
  switch (field.type) {
    case proto::WireType::kVarint:
      return proto::PutInt(out, field.number, field.AsInt());
    case proto::WireType::kFixed64:
      return proto::PutDouble(out, field.number, field.AsDouble());
    case proto::WireType::kFixed32:
      return proto::PutFloat(out, field.number, field.AsFloat());
    case proto::WireType::kBytes:
      return;
  }
}

bool IsMessage(std::string_view bytes) {
  proto::Field field;
  while (proto::TakeField(bytes, field)) {
  }
  return bytes.empty();
}

// Only a schema could tell a message from a string: bytes that can be parsed as a message are
// treated as one. If they are a string, the value is removed from it just the same.
bool ScrubFields(const ExitGate& gate, std::string& message, int depth) {
  std::string whole = message;
  if (!gate.ScrubText(whole)) return false;
  if (depth < kDeepest && IsMessage(message)) {
    std::string out;
    std::string_view rest = message;
    bool any = false;
    for (proto::Field field; proto::TakeField(rest, field);) {
      if (field.type != proto::WireType::kBytes) {
        PutNumber(out, field);
        continue;
      }
      std::string inner(field.bytes);
      any = ScrubFields(gate, inner, depth + 1) || any;
      proto::PutBytes(out, field.number, inner);
    }
    if (any) {
      message = std::move(out);
      // Where fields meet there may be one more.
      whole = message;
      if (!gate.ScrubText(whole)) return true;
    }
  }
  message = std::move(whole);
  return true;
}

}  // namespace

bool IsTextBegin(std::string_view bytes) {
  if (bytes.find('\0') != std::string_view::npos) return false;
  for (size_t cut = 0; cut < 4 && cut <= bytes.size(); ++cut) {
    if (IsUtf8(bytes.substr(0, bytes.size() - cut))) return true;
  }
  return false;
}

bool ExitGate::ScrubText(std::string& text) const {
  if (!patterns_ || patterns_->empty()) return false;
  Scrubber scrubber(patterns_);
  std::string clean(scrubber.Feed(text));
  clean += scrubber.Flush();
  if (scrubber.replaced() == 0) return false;
  text = std::move(clean);
  return true;
}

bool ExitGate::ScrubJson(std::string& document) const {
  if (!patterns_ || patterns_->empty()) return false;
  std::string raw = document;
  const bool found = ScrubText(raw);
  // Without an escape a string's bytes are its value.
  if (!found && document.find('\\') == std::string::npos) return false;
  auto json = ParseJson(document);
  if (!json) {
    if (found) document = std::move(raw);
    return found;
  }
  if (!ScrubValues(*this, *json, false)) return false;
  document = DumpJson(*json);
  return true;
}

bool ExitGate::ScrubMessage(std::string& message) const { return ScrubFields(*this, message, 0); }

Result<bool> ExitGate::CopyText(int from, int to) const {
  std::string piece(kPiece, '\0');
  Scrubber scrubber(patterns_);
  for (off_t at = 0;;) {
    const ssize_t size = ::pread(from, piece.data(), piece.size(), at);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return FailErrno("read a file that is sent", errno);
    const std::string_view bytes(piece.data(), static_cast<size_t>(size));
    if (at == 0 && !IsTextBegin(bytes)) return false;
    if (size == 0) break;
    at += size;
    ATHANOR_CHECK_OK(WriteAll(to, scrubber.Feed(bytes)));
  }
  ATHANOR_CHECK_OK(WriteAll(to, scrubber.Flush()));
  return true;
}

void ExitGate::ScrubCause(Cause& cause) const {
  for (auto* text : {&cause.text, &cause.hint, &cause.detail}) (void)ScrubText(*text);
}

void ExitGate::ScrubName(std::string& name) {
  const auto known = names_.find(name);
  if (known != names_.end()) {
    if (!known->second.empty()) name = known->second;
    return;
  }
  if (names_.size() >= kMostNames) names_.clear();
  std::string clean = name;
  const bool any = ScrubText(clean);
  if (clean.size() > kMaxSeriesName) clean.resize(kMaxSeriesName);
  names_.emplace(name, any ? clean : std::string());
  name = std::move(clean);
}

void ExitGate::ScrubFrames(std::vector<ReportFrame>& frames) {
  if (!patterns_ || patterns_->empty()) return;
  struct Visit {
    ExitGate& gate;
    void operator()(HelloFrame&) const {}
    void operator()(LogFrame&) const {}  // scrubbed as a stream
    void operator()(PointsFrame& frame) const {
      for (auto& item : frame.batch.items) gate.ScrubName(item.point.name);
    }
    void operator()(UsageFrame&) const {}
    void operator()(ProgressFrame&) const {}
    void operator()(StartedFrame& frame) const {
      for (auto& text : frame.off) (void)gate.ScrubText(text);
    }
    void operator()(PrepareFailedFrame& frame) const { gate.ScrubCause(frame.cause); }
    void operator()(EndedFrame& frame) const {
      gate.ScrubCause(frame.cause);
      (void)gate.ScrubText(frame.exit.spawn_error);
    }
    void operator()(UploadedFrame& frame) const {
      gate.ScrubCause(frame.failure);
      for (auto& output : frame.outputs) {
        (void)gate.ScrubText(output.largest);
        for (auto& left : output.left_out.largest) {
          (void)gate.ScrubText(left.name);
          (void)gate.ScrubText(left.why);
        }
      }
    }
    void operator()(NoteFrame& frame) const { gate.ScrubCause(frame.cause); }
    void operator()(ResumedFrame&) const {}
    void operator()(CheckpointFrame&) const {}
    void operator()(FiringFrame& frame) const {
      auto& firing = frame.firing;
      for (auto* text : {&firing.rule, &firing.metric, &firing.value, &firing.threshold,
                         &firing.action, &firing.advice}) {
        (void)gate.ScrubText(*text);
      }
    }
  };
  for (auto& frame : frames) std::visit(Visit{*this}, frame);
}

}  // namespace athanor
