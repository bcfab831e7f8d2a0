// TensorBoard's Event, Summary and what they carry, read in place: views borrow the record's bytes.
// Only what cannot be parsed is refused; unknown fields are skipped.
//
// The kind of a value is the name of its plug-in. A writer needs to give it only with the first
// record of a tag, so a reader of a run must remember it (TagKinds).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "eventfile/proto.h"

namespace athanor {

struct EventView {
  enum class Kind { kOther, kFileVersion, kGraph, kSummary, kSession };
  double wall_time = 0;  // seconds
  int64_t step = 0;
  Kind kind = Kind::kOther;
  std::string_view body;  // the version's text, the GraphDef, the Summary, the SessionLog
};
// False: not a message.
bool ReadEvent(std::string_view payload, EventView& event);

struct SummaryValue {
  enum class Form { kNone, kSimple, kTensor, kHistogram, kImage, kAudio };
  std::string_view tag;
  Form form = Form::kNone;
  float simple = 0;
  std::string_view bytes;     // of all forms but kSimple: the inner message
  std::string_view metadata;  // SummaryMetadata, if this record has one
};
// Takes the next value off the front of a Summary; false at its end or at invalid data.
bool TakeValue(std::string_view& summary, SummaryValue& value);

std::string_view PluginName(std::string_view metadata);
std::string_view PluginContent(std::string_view metadata);

// What a tag contains, in TensorBoard's terms: scalars, histograms, images, audio, text, hparams,
// pr_curves, or another plug-in's name; empty if it is unknown.
class TagKinds {
 public:
  std::string_view KindOf(const SummaryValue& value);

 private:
  std::map<std::string, std::string, std::less<>> kinds_;
};

// The only number of a TensorProto that has just one.
std::optional<double> OneNumber(std::string_view tensor);
// An event's time in nanoseconds; 0 if it is not a time.
int64_t WallNs(double seconds);
// For a value whose kind is "scalars", in the old style and the new.
std::optional<double> ScalarOf(const SummaryValue& value);

}  // namespace athanor
