#include "eventfile/plugins.h"

#include <cstdlib>
#include <cstring>

#include "eventfile/tensor.h"

namespace athanor {
namespace {

using proto::Field;
using proto::TakeField;
using proto::WireType;
using Form = SummaryValue::Form;

tl::unexpected<Error> Bad(const char* what) {
  return Fail(ErrorCode::kInvalid, std::string("not ") + what);
}

void TakeDoubles(const Field& field, std::vector<double>& out) {
  if (field.type == WireType::kFixed64) out.push_back(field.AsDouble());
  if (field.type != WireType::kBytes) return;
  for (size_t at = 0; at + 8 <= field.bytes.size(); at += 8) {
    double value;
    std::memcpy(&value, field.bytes.data() + at, sizeof value);
    out.push_back(value);
  }
}

// Limits are right edges over all numbers; the outer ones become the extremes that were seen.
Result<HistogramValue> OldHistogram(std::string_view in) {
  double min = 0;
  double max = 0;
  std::vector<double> limits;
  std::vector<double> counts;
  Field field;
  while (TakeField(in, field)) {
    if (field.number == 1 && field.type == WireType::kFixed64) min = field.AsDouble();
    if (field.number == 2 && field.type == WireType::kFixed64) max = field.AsDouble();
    if (field.number == 6) TakeDoubles(field, limits);
    if (field.number == 7) TakeDoubles(field, counts);
  }
  if (!in.empty() || limits.size() != counts.size()) return Bad("a histogram");
  HistogramValue value;
  size_t first = 0;
  size_t last = counts.size();
  while (first < last && counts[first] == 0) ++first;
  while (last > first && counts[last - 1] == 0) --last;
  for (size_t i = first; i < last; ++i) {
    value.buckets.push_back(
        {i == first ? min : limits[i - 1], i + 1 == last ? max : limits[i], counts[i]});
  }
  return value;
}

// All the texts of a string tensor.
Result<std::vector<std::string>> Texts(const SummaryValue& value, const char* what) {
  if (value.form != Form::kTensor) return Bad(what);
  ATHANOR_TRY(auto tensor, ReadTensor(value.bytes));
  if (tensor.type != TensorType::kString) return Bad(what);
  return std::move(tensor.strings);
}

// google.protobuf.Value
bool TakeParam(std::string_view in, HParam& out) {
  Field field;
  while (TakeField(in, field)) {
    if (field.number == 2 && field.type == WireType::kFixed64) out = field.AsDouble();
    if (field.number == 3 && field.type == WireType::kBytes) out = std::string(field.bytes);
    if (field.number == 4 && field.type == WireType::kVarint) out = field.raw != 0;
  }
  return in.empty();
}

// Text fields of a message by number, in order.
std::vector<std::string_view> FieldsOf(std::string_view in, uint32_t number) {
  std::vector<std::string_view> found;
  Field field;
  while (TakeField(in, field)) {
    if (field.number == number && field.type == WireType::kBytes) found.push_back(field.bytes);
  }
  return found;
}

std::string First(std::string_view in, uint32_t number) {
  const auto found = FieldsOf(in, number);
  return found.empty() ? std::string() : std::string(found.front());
}

Status TakeStart(std::string_view in, HParamsValue& value) {
  value.group = First(in, 4);
  for (const auto entry : FieldsOf(in, 1)) {
    HParam param = std::string();
    for (const auto inner : FieldsOf(entry, 2)) {
      if (!TakeParam(inner, param)) return Bad("a hyper-parameter");
    }
    value.params.emplace_back(First(entry, 1), std::move(param));
  }
  return Ok();
}

}  // namespace

Result<HistogramValue> ReadHistogram(const SummaryValue& value) {
  if (value.form == Form::kHistogram) return OldHistogram(value.bytes);
  if (value.form != Form::kTensor) return Bad("a histogram");
  ATHANOR_TRY(const auto tensor, ReadTensor(value.bytes));
  if (tensor.shape.size() != 2 || tensor.shape[1] != 3) return Bad("a histogram");
  HistogramValue histogram;
  for (size_t i = 0; i + 3 <= tensor.numbers.size(); i += 3) {
    histogram.buckets.push_back({tensor.numbers[i], tensor.numbers[i + 1], tensor.numbers[i + 2]});
  }
  return histogram;
}

Result<ImageValue> ReadImage(const SummaryValue& value) {
  ImageValue image;
  if (value.form == Form::kImage) {
    std::string_view in = value.bytes;
    Field field;
    while (TakeField(in, field)) {
      if (field.number == 1) image.height = field.AsInt();
      if (field.number == 2) image.width = field.AsInt();
      if (field.number == 4) image.encoded.emplace_back(field.bytes);
    }
    if (!in.empty() || image.encoded.size() != 1) return Bad("an image");
    return image;
  }
  ATHANOR_TRY(auto texts, Texts(value, "an image"));
  if (texts.size() < 2) return Bad("an image");
  image.width = std::strtoll(texts[0].c_str(), nullptr, 10);
  image.height = std::strtoll(texts[1].c_str(), nullptr, 10);
  image.encoded.assign(std::make_move_iterator(texts.begin() + 2),
                       std::make_move_iterator(texts.end()));
  return image;
}

Result<AudioValue> ReadAudio(const SummaryValue& value) {
  AudioValue audio;
  if (value.form == Form::kAudio) {
    std::string_view in = value.bytes;
    Field field;
    while (TakeField(in, field)) {
      if (field.number == 1) audio.sample_rate = field.AsFloat();
      if (field.number == 4) audio.encoded.emplace_back(field.bytes);
      if (field.number == 5) audio.content_type = field.bytes;
    }
    if (!in.empty() || audio.encoded.size() != 1) return Bad("audio");
    return audio;
  }
  ATHANOR_TRY(auto texts, Texts(value, "audio"));
  audio.content_type = "audio/wav";
  // Pairs of sound and label.
  for (size_t i = 0; i < texts.size(); i += 2) audio.encoded.push_back(std::move(texts[i]));
  return audio;
}

Result<TextValue> ReadText(const SummaryValue& value) {
  ATHANOR_TRY(auto texts, Texts(value, "text"));
  return TextValue{std::move(texts)};
}

Result<PrCurveValue> ReadPrCurve(const SummaryValue& value) {
  if (value.form != Form::kTensor) return Bad("a PR curve");
  ATHANOR_TRY(const auto tensor, ReadTensor(value.bytes));
  if (tensor.shape.size() != 2 || tensor.shape[0] != 6) return Bad("a PR curve");
  PrCurveValue curve;
  const auto columns = static_cast<size_t>(tensor.shape[1]);
  size_t at = 0;
  for (auto* row : {&curve.true_positives, &curve.false_positives, &curve.true_negatives,
                    &curve.false_negatives, &curve.precision, &curve.recall}) {
    row->assign(tensor.numbers.begin() + static_cast<ptrdiff_t>(at),
                tensor.numbers.begin() + static_cast<ptrdiff_t>(at + columns));
    at += columns;
  }
  return curve;
}

Result<HParamsValue> ReadHParams(const SummaryValue& value) {
  std::string_view in = PluginContent(value.metadata);
  HParamsValue out;
  bool known = false;
  Field field;
  while (TakeField(in, field)) {
    if (field.type != WireType::kBytes || field.number < 2 || field.number > 4) continue;
    known = true;
    if (field.number == 2) {
      out.part = HParamsValue::Part::kExperiment;
      for (const auto info : FieldsOf(field.bytes, 4)) out.params.emplace_back(First(info, 1), "");
      for (const auto info : FieldsOf(field.bytes, 5)) {
        out.metrics.push_back(First(First(info, 1), 2));
      }
    } else if (field.number == 3) {
      out.part = HParamsValue::Part::kStart;
      ATHANOR_CHECK_OK(TakeStart(field.bytes, out));
    } else {
      out.part = HParamsValue::Part::kEnd;
      std::string_view end = field.bytes;
      Field inner;
      while (TakeField(end, inner)) {
        if (inner.number == 1 && inner.type == WireType::kVarint) out.status = inner.AsInt();
      }
    }
  }
  if (!known || !in.empty()) return Bad("hyper-parameters");
  return out;
}

std::string WriteMetadata(std::string_view plugin, std::string_view content, int data_class) {
  std::string data;
  proto::PutBytes(data, 1, plugin);
  if (!content.empty()) proto::PutBytes(data, 2, content);
  std::string out;
  proto::PutBytes(out, 1, data);
  proto::PutInt(out, 4, data_class);
  return out;
}

std::string WriteHParams(const HParamsValue& value) {
  std::string part;
  uint32_t number = 3;
  switch (value.part) {
    case HParamsValue::Part::kExperiment:
      number = 2;
      for (const auto& [name, kind] : value.params) {
        std::string info;
        proto::PutBytes(info, 1, name);
        constexpr int kTypes[] = {1, 3, 2};  // in the order of HParam
        proto::PutInt(info, 4, kTypes[kind.index()]);
        proto::PutBytes(part, 4, info);
      }
      for (const auto& tag : value.metrics) {
        std::string name;
        proto::PutBytes(name, 2, tag);
        std::string info;
        proto::PutBytes(info, 1, name);
        proto::PutBytes(part, 5, info);
      }
      break;
    case HParamsValue::Part::kStart:
      for (const auto& [name, param] : value.params) {
        std::string inner;
        if (const auto* text = std::get_if<std::string>(&param)) proto::PutBytes(inner, 3, *text);
        if (const auto* real = std::get_if<double>(&param)) proto::PutDouble(inner, 2, *real);
        if (const auto* flag = std::get_if<bool>(&param)) proto::PutInt(inner, 4, *flag);
        std::string entry;
        proto::PutBytes(entry, 1, name);
        proto::PutBytes(entry, 2, inner);
        proto::PutBytes(part, 1, entry);
      }
      if (!value.group.empty()) proto::PutBytes(part, 4, value.group);
      break;
    case HParamsValue::Part::kEnd:
      number = 4;
      proto::PutInt(part, 1, value.status);
      break;
  }
  std::string out;
  proto::PutBytes(out, number, part);
  return out;
}

}  // namespace athanor
