#include "eventfile/event.h"

#include "eventfile/tensor.h"

namespace athanor {

using proto::Field;
using proto::TakeField;
using proto::WireType;

bool ReadEvent(std::string_view payload, EventView& event) {
  event = EventView();
  Field field;
  while (TakeField(payload, field)) {
    if (field.number == 1 && field.type == WireType::kFixed64) {
      event.wall_time = field.AsDouble();
    } else if (field.number == 2 && field.type == WireType::kVarint) {
      event.step = field.AsInt();
    } else if (field.type == WireType::kBytes && field.number >= 3 && field.number <= 7) {
      using Kind = EventView::Kind;
      constexpr Kind kKinds[] = {Kind::kFileVersion, Kind::kGraph, Kind::kSummary, Kind::kOther,
                                 Kind::kSession};
      event.kind = kKinds[field.number - 3];
      event.body = field.bytes;
    }
  }
  return payload.empty();
}

bool TakeValue(std::string_view& summary, SummaryValue& value) {
  using Form = SummaryValue::Form;
  Field outer;
  while (TakeField(summary, outer)) {
    if (outer.number != 1 || outer.type != WireType::kBytes) continue;
    value = SummaryValue();
    std::string_view in = outer.bytes;
    Field field;
    while (TakeField(in, field)) {
      if (field.number == 2 && field.type == WireType::kFixed32) {
        value.form = Form::kSimple;
        value.simple = field.AsFloat();
      }
      if (field.type != WireType::kBytes) continue;
      switch (field.number) {
        case 1:
          value.tag = field.bytes;
          break;
        case 4:
          value.form = Form::kImage;
          value.bytes = field.bytes;
          break;
        case 5:
          value.form = Form::kHistogram;
          value.bytes = field.bytes;
          break;
        case 6:
          value.form = Form::kAudio;
          value.bytes = field.bytes;
          break;
        case 8:
          value.form = Form::kTensor;
          value.bytes = field.bytes;
          break;
        case 9:
          value.metadata = field.bytes;
          break;
        default:
          break;
      }
    }
    if (!in.empty()) return false;
    return true;
  }
  return false;
}

namespace {

std::string_view PluginField(std::string_view metadata, uint32_t wanted) {
  Field field;
  while (TakeField(metadata, field)) {
    if (field.number != 1 || field.type != WireType::kBytes) continue;
    std::string_view plugin = field.bytes;
    while (TakeField(plugin, field)) {
      if (field.number == wanted && field.type == WireType::kBytes) return field.bytes;
    }
    return {};
  }
  return {};
}

}  // namespace

std::string_view PluginName(std::string_view metadata) { return PluginField(metadata, 1); }
std::string_view PluginContent(std::string_view metadata) { return PluginField(metadata, 2); }

std::string_view TagKinds::KindOf(const SummaryValue& value) {
  using Form = SummaryValue::Form;
  switch (value.form) {
    case Form::kSimple:
      return "scalars";
    case Form::kHistogram:
      return "histograms";
    case Form::kImage:
      return "images";
    case Form::kAudio:
      return "audio";
    case Form::kNone:
    case Form::kTensor:
      break;
  }
  const auto name = PluginName(value.metadata);
  const auto known = kinds_.find(value.tag);
  if (name.empty()) return known == kinds_.end() ? std::string_view() : known->second;
  if (known != kinds_.end()) return known->second;
  return kinds_.emplace(value.tag, name).first->second;
}

std::optional<double> OneNumber(std::string_view tensor) {
  // What writers make of a scalar: a float in float_val, or four or eight bytes of content.
  Field field;
  uint64_t dtype = 0;
  std::string_view in = tensor;
  while (TakeField(in, field)) {
    if (field.number == 1 && field.type == WireType::kVarint) dtype = field.raw;
    if (field.number == 5 && field.type == WireType::kBytes && field.bytes.size() == 4 &&
        dtype == 1) {
      float value;
      std::memcpy(&value, field.bytes.data(), sizeof value);
      return value;
    }
  }
  const auto read = ReadTensor(tensor);
  if (!read || read->numbers.size() != 1) return std::nullopt;
  return read->numbers.front();
}

std::optional<double> ScalarOf(const SummaryValue& value) {
  if (value.form == SummaryValue::Form::kSimple) return value.simple;
  if (value.form == SummaryValue::Form::kTensor) return OneNumber(value.bytes);
  return std::nullopt;
}

int64_t WallNs(double seconds) {
  const double ns = seconds * 1e9;
  return ns > -9.2e18 && ns < 9.2e18 ? static_cast<int64_t>(ns) : 0;
}

}  // namespace athanor
