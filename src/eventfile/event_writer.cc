#include "eventfile/event_writer.h"

#include <fcntl.h>

#include <cmath>

#include "base/io/files.h"
#include "base/text/format.h"
#include "eventfile/proto.h"
#include "eventfile/tfrecord.h"

namespace athanor {
namespace {

constexpr size_t kBuffer = 256u << 10;
constexpr int kScalarClass = 1;
constexpr int kTensorClass = 2;
constexpr int kBlobClass = 3;
// {version: 0} of every plug-in's own message, which proto3 writes as nothing.
constexpr std::string_view kNoContent;

}  // namespace

bool IsEventFileName(std::string_view name) {
  return name.find("tfevents") != std::string_view::npos;
}

Result<EventWriter> EventWriter::Create(const std::string& dir, double wall_time,
                                        std::string_view label) {
  ATHANOR_CHECK_OK(MakeDirs(dir, 0755));
  auto path = JoinPath(
      dir, fmt::format("events.out.tfevents.{:010}.{}", static_cast<int64_t>(wall_time), label));
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd) return FailErrno("write " + path, errno);
  EventWriter writer(std::move(fd), std::move(path));
  ATHANOR_CHECK_OK(writer.Event(0, wall_time, 3, "brain.Event:2"));
  return writer;
}

Status EventWriter::Event(int64_t step, double wall_time, uint32_t field, std::string_view body) {
  std::string event;
  proto::PutDouble(event, 1, wall_time);
  if (step != 0) proto::PutInt(event, 2, step);
  proto::PutBytes(event, field, body);
  AppendTfRecord(buffer_, event);
  return buffer_.size() < kBuffer ? Ok() : Flush();
}

Status EventWriter::Value(std::string_view tag, int64_t step, double wall_time,
                          const Tensor& tensor, std::string_view plugin, std::string_view content,
                          int data_class) {
  std::string value;
  proto::PutBytes(value, 1, tag);
  proto::PutBytes(value, 8, WriteTensor(tensor));
  if (!described_.contains(tag)) {
    described_.emplace(tag);
    proto::PutBytes(value, 9, WriteMetadata(plugin, content, data_class));
  }
  std::string summary;
  proto::PutBytes(summary, 1, value);
  return Event(step, wall_time, 5, summary);
}

Status EventWriter::Scalar(std::string_view tag, int64_t step, double wall_time, double value) {
  return Value(tag, step, wall_time, {TensorType::kFloat, {}, {value}, {}}, "scalars", kNoContent,
               kScalarClass);
}

Status EventWriter::Histogram(std::string_view tag, int64_t step, double wall_time,
                              const HistogramValue& value) {
  Tensor tensor{TensorType::kDouble, {static_cast<int64_t>(value.buckets.size()), 3}, {}, {}};
  for (const auto& bucket : value.buckets) {
    tensor.numbers.insert(tensor.numbers.end(), {bucket.left, bucket.right, bucket.count});
  }
  return Value(tag, step, wall_time, tensor, "histograms", kNoContent, kTensorClass);
}

Status EventWriter::Image(std::string_view tag, int64_t step, double wall_time,
                          const ImageValue& value) {
  Tensor tensor{
      TensorType::kString, {}, {}, {std::to_string(value.width), std::to_string(value.height)}};
  tensor.strings.insert(tensor.strings.end(), value.encoded.begin(), value.encoded.end());
  tensor.shape = {static_cast<int64_t>(tensor.strings.size())};
  return Value(tag, step, wall_time, tensor, "images", kNoContent, kBlobClass);
}

Status EventWriter::Audio(std::string_view tag, int64_t step, double wall_time,
                          const AudioValue& value) {
  Tensor tensor{TensorType::kString, {static_cast<int64_t>(value.encoded.size()), 2}, {}, {}};
  for (const auto& sound : value.encoded) tensor.strings.insert(tensor.strings.end(), {sound, ""});
  std::string content;
  proto::PutInt(content, 2, 11);  // encoding: WAV
  return Value(tag, step, wall_time, tensor, "audio", content, kBlobClass);
}

Status EventWriter::Text(std::string_view tag, int64_t step, double wall_time,
                         const TextValue& value) {
  Tensor tensor{TensorType::kString, {static_cast<int64_t>(value.texts.size())}, {}, value.texts};
  return Value(tag, step, wall_time, tensor, "text", kNoContent, kTensorClass);
}

Status EventWriter::PrCurve(std::string_view tag, int64_t step, double wall_time,
                            const PrCurveValue& value) {
  const auto columns = static_cast<int64_t>(value.true_positives.size());
  Tensor tensor{TensorType::kFloat, {6, columns}, {}, {}};
  for (const auto* row : {&value.true_positives, &value.false_positives, &value.true_negatives,
                          &value.false_negatives, &value.precision, &value.recall}) {
    tensor.numbers.insert(tensor.numbers.end(), row->begin(), row->end());
  }
  std::string content;
  proto::PutInt(content, 2, columns);
  return Value(tag, step, wall_time, tensor, "pr_curves", content, kTensorClass);
}

Status EventWriter::HParams(double wall_time, const HParamsValue& value) {
  constexpr const char* kTags[] = {"_hparams_/experiment", "_hparams_/session_start_info",
                                   "_hparams_/session_end_info"};
  return Value(kTags[static_cast<int>(value.part)], 0, wall_time, {TensorType::kFloat, {0}, {}, {}},
               "hparams", WriteHParams(value), kTensorClass);
}

Status EventWriter::Graph(double wall_time, std::string_view graph_def) {
  return Event(0, wall_time, 4, graph_def);
}

Status EventWriter::Flush() {
  ATHANOR_CHECK_OK(WriteAll(fd_.get(), buffer_));
  buffer_.clear();
  return Ok();
}

}  // namespace athanor
