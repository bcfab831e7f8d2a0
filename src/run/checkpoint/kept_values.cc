#include "run/checkpoint/kept_values.h"

#include <cstdlib>

#include "base/text/format.h"
#include "base/text/text.h"
#include "link/job_dir.h"

namespace athanor {
namespace {

constexpr size_t kMostBytes = size_t{256} << 20;

}  // namespace

Status KeptValues::Load(JobFiles& files) {
  if (loaded_) return Ok();
  const auto text = ReadText(files, job_dir::kValues, kMostBytes);
  if (!text && text.error().code != ErrorCode::kNotFound) return Fail(text.error());
  bytes_ = text ? text->size() : 0;
  if (text) Read(*text);
  loaded_ = true;
  return Ok();
}

void KeptValues::Read(std::string_view text) {
  for (const auto& line : Split(text, '\n')) {
    char* rest = nullptr;
    const auto step = std::strtoll(line.c_str(), &rest, 10);
    if (rest == line.c_str() || *rest != ' ') continue;
    char* end = nullptr;
    const double value = std::strtod(rest + 1, &end);
    if (end != rest + 1 && *end == 0) values_[step] = value;
  }
}

std::optional<double> KeptValues::At(JobFiles& files, int64_t step, std::optional<double> now) {
  const auto known = values_.find(step);
  if (!now) return known == values_.end() ? std::nullopt : std::optional(known->second);
  if (known != values_.end() && known->second == *now) return now;
  auto kept = Keep(files, step, *now);
  // It is shorter than it was: what is there now counts.
  if (!kept && kept.error().code == ErrorCode::kConflict) {
    loaded_ = false;
    kept = Keep(files, step, *now);
  }
  // Otherwise it is kept when it is asked for again.
  if (kept) values_[step] = *now;
  return now;
}

Status KeptValues::Keep(JobFiles& files, int64_t step, double value) {
  ATHANOR_CHECK_OK(Load(files));
  // After a line that was cut short, this one would be lost, too.
  ATHANOR_TRY(bytes_,
              files.Append(job_dir::kValues, bytes_, fmt::format("\n{} {}\n", step, value)));
  return Ok();
}

}  // namespace athanor
