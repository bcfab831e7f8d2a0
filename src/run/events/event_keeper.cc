#include "run/events/event_keeper.h"

#include <cstdlib>

#include "base/io/files.h"
#include "base/io/unnamed_file.h"
#include "base/text/format.h"
#include "base/text/text.h"

namespace athanor {
namespace {

// Whose file is whose: "<attempt>\t<path below the folder>\t<number>" a line.
constexpr char kList[] = ".attempts";
constexpr size_t kMostList = 64u << 20;

std::string SubRunOf(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

}  // namespace

void FirstSteps::Saw(const std::string& sub_run, std::string_view tag, int64_t step) {
  auto& steps = steps_[sub_run];
  const auto known = steps.find(tag);
  if (known != steps.end() && known->second <= step) return;
  if (known == steps.end()) {
    steps.emplace(tag, step);
  } else {
    known->second = step;
  }
  changed_.insert(sub_run);
}

std::map<std::string, StepCuts> FirstSteps::Take() {
  std::map<std::string, StepCuts> taken;
  for (const auto& sub_run : changed_) taken.emplace(sub_run, steps_[sub_run]);
  changed_.clear();
  return taken;
}

void FirstSteps::PutBack(const std::set<std::string>& sub_runs) {
  changed_.insert(sub_runs.begin(), sub_runs.end());
}

EventKeeper::EventKeeper(JobFiles& files, std::string folder, uint32_t attempt,
                         std::string scratch_dir)
    : files_(files),
      folder_(std::move(folder)),
      attempt_(attempt),
      scratch_dir_(std::move(scratch_dir)) {}

// Once: nobody else writes there while this attempt runs.
Status EventKeeper::Load() {
  if (loaded_) return Ok();
  list_.clear();
  list_bytes_ = 0;
  auto text = ReadText(files_, JoinPath(folder_, kList), kMostList);
  if (!text && text.error().code != ErrorCode::kNotFound) return Fail(text.error());
  if (text) {
    // A line that was cut short is written over.
    text->resize(text->rfind('\n') == std::string::npos ? 0 : text->rfind('\n') + 1);
    list_bytes_ = text->size();
    for (const auto& line : Split(*text, '\n')) {
      const auto parts = Split(line, '\t');
      if (parts.size() < 2) continue;
      list_.push_back({static_cast<uint32_t>(std::strtoul(line.c_str(), nullptr, 10)), parts[1],
                       parts.size() > 2 ? parts[2] : std::string()});
    }
  }
  ATHANOR_TRY(const auto entries, files_.List(folder_));
  there_.clear();
  for (const auto& entry : entries) there_.insert(entry.name);
  for (const auto& one : list_) there_.insert(JoinPath(folder_, one.path));
  loaded_ = true;
  return Ok();
}

Result<std::string> EventKeeper::PlaceFor(uint32_t number, const std::string& sub_run,
                                          const std::string& name) {
  ATHANOR_CHECK_OK(Load());
  for (const auto& one : list_) {
    if (one.attempt == attempt_ && one.number == std::to_string(number)) {
      return JoinPath(folder_, one.path);
    }
  }
  const auto below = [&](const std::string& kept) {
    return sub_run.empty() ? kept : sub_run + "/" + kept;
  };
  const auto is_taken = [&](const std::string& kept) {
    return there_.contains(JoinPath(folder_, below(kept)));
  };
  // Another file may have the name: one of an earlier attempt, or of a folder that is named by a
  // time, which is left out.
  auto kept = name;
  if (is_taken(kept)) kept += fmt::format(".attempt-{}", attempt_);
  if (is_taken(kept)) kept += fmt::format(".{}", number);
  // Listed first: a file without an entry would belong to no attempt.
  const auto listed = files_.Append(JoinPath(folder_, kList), list_bytes_,
                                    fmt::format("{}\t{}\t{}\n", attempt_, below(kept), number));
  if (!listed) {
    loaded_ = false;  // who knows what is there now
    return Fail(listed.error());
  }
  list_bytes_ = *listed;
  list_.push_back({attempt_, below(kept), std::to_string(number)});
  const auto place = JoinPath(folder_, below(kept));
  there_.insert(place);
  return place;
}

Status EventKeeper::Settle(const std::map<std::string, StepCuts>& steps) {
  ATHANOR_CHECK_OK(Load());
  std::set<std::string> seen;
  for (const auto& listed : list_) {
    const auto cuts = steps.find(SubRunOf(listed.path));
    if (listed.attempt >= attempt_ || cuts == steps.end()) continue;
    if (!seen.insert(listed.path).second) continue;
    ATHANOR_CHECK_OK(Part(listed.path, listed.attempt, cuts->second));
  }
  return Ok();
}

Status EventKeeper::Part(const std::string& path, uint32_t attempt, const StepCuts& cuts) {
  const auto main = JoinPath(folder_, path);
  const auto from = files_.Read(main);
  if (!from) return from.error().code == ErrorCode::kNotFound ? Ok() : Fail(from.error());
  ATHANOR_TRY(const auto behind, CountBehind(from->get(), cuts));
  if (behind == 0) return Ok();
  const auto branch = JoinPath(
      JoinPath(folder_, fmt::format("abandoned/attempt-{}-by-{}", attempt, attempt_)), path);
  ATHANOR_TRY(const auto kept, UnnamedFile(scratch_dir_));
  ATHANOR_TRY(const auto abandoned, UnnamedFile(scratch_dir_));
  const auto earlier = files_.Read(branch);
  if (earlier) {
    // Other tags went this way before.
    ATHANOR_TRY(const auto bytes, ReadAll(earlier->get()));
    ATHANOR_CHECK_OK(WriteAll(abandoned.get(), bytes));
  } else if (earlier.error().code != ErrorCode::kNotFound) {
    return Fail(earlier.error());
  }
  ATHANOR_CHECK_OK(SplitByStep(from->get(), cuts, kept.get(), abandoned.get()));
  // The branch first: after a crash in between, it exists twice, never not at all.
  ATHANOR_CHECK_OK(files_.Replace(branch, abandoned.get()));
  return files_.Replace(main, kept.get());
}

}  // namespace athanor
