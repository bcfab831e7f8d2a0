// How RunBook starts: from what is stored, row by row, because a million rows must not be in memory
// twice.
#include <algorithm>

#include "base/exec/shared_mutex.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "record/runs/run_store.h"
#include "track/run_book.h"

namespace athanor {

// Fills a book that is locked as long as this lives. Labels come ordered by their owners, as runs
// do.
class RunBook::Loader : public RunVisitor, public KeptMetrics::Reader {
 public:
  explicit Loader(RunBook& book) : book_(book), before_(std::exchange(book.runs_, {})) {
    book_.experiments_.clear();
    book_.experiment_ids_.clear();
    book_.table_.Clear();
    book_.index_.Clear();
    book_.counts_.Clear();
    book_.to_keep_.clear();
  }

  void On(ExperimentRow row) override {
    book_.mutex_.AssertHeld();
    book_.experiment_ids_[row.name] = row.id;
    // The default experiment was created with the database, before its place was known.
    if (row.id == 0 && row.location == fmt::format("{}/0", kOwnArtifacts)) {
      row.location = fmt::format("{}/0", book_.artifact_root_);
    }
    book_.experiments_[row.id].row = std::move(row);
  }

  void On(RunRow row) override {
    book_.mutex_.AssertHeld();
    RunEntry& run = book_.runs_.try_emplace(book_.runs_.end(), row.id)->second;
    run.id = row.id;
    run.experiment = row.experiment;
    run.name = std::move(row.name);
    run.user = book_.KeyOf(row.user);
    run.status = row.status;
    run.started_ms = row.started_ms;
    run.ended_ms = row.ended_ms;
    run.is_job = row.is_job;
    run.deleted = row.deleted;
    run.touched = 1;
    if (row.deleted_ms != 0) run.AddMore().deleted_ms = row.deleted_ms;
    if (row.artifacts != book_.ArtifactsOf(run)) run.AddMore().artifacts = std::move(row.artifacts);
    // Perhaps not all of its runs were marked when the server ended.
    const auto experiment = book_.experiments_.find(row.experiment);
    if (experiment != book_.experiments_.end() && experiment->second.row.deleted && !run.deleted) {
      run.deleted = true;
      run.AddMore().deleted_ms = experiment->second.row.updated_ms;
    }
    // Where attempts resumed is stored with jobs, not with runs: what was known stays.
    if (const auto at = before_.find(row.id); at != before_.end() && at->second.extra) {
      run.AddMore().resumes = at->second.extra->resumes;
    }
  }

  void On(const LabelView& label) override {
    book_.mutex_.AssertHeld();
    if (label.kind == LabelKind::kExperimentTag) {
      const auto at =
          book_.experiments_.find(std::strtoll(std::string(label.owner).c_str(), nullptr, 10));
      if (at != book_.experiments_.end()) {
        at->second.tags[std::string(label.key)] = std::string(label.value);
      }
      return;
    }
    if (label.owner != owner_) {
      owner_ = label.owner;
      const auto id = JobId::Parse(owner_);
      Fit();
      run_ = id ? FindNext(*id) : nullptr;
    }
    if (run_ == nullptr) return;
    auto& labels = label.kind == LabelKind::kParam ? run_->params : run_->tags;
    labels.Put(book_.KeyOf(label.key), label.value);
  }

  void On(InputRow row) override {
    if (RunEntry* run = FindNext(row.run)) run->AddMore().inputs.push_back(std::move(row));
  }
  void On(ModelLinkRow row) override {
    if (RunEntry* run = FindNext(row.run)) run->AddMore().links.push_back(std::move(row));
  }

  uint32_t KeyOf(std::string_view name) override {
    book_.mutex_.AssertHeld();
    return book_.KeyOf(name);
  }
  bool Kept(JobId id, Resumes resumes, std::vector<RunMetric> metrics) override {
    RunEntry* run = FindNext(id);
    if (run == nullptr) return false;
    const bool fresh = !run->kept && run->read == 0;
    std::sort(metrics.begin(), metrics.end(),
              [](const auto& a, const auto& b) { return a.key < b.key; });
    run->metrics = std::move(metrics);
    if (!resumes.empty() || run->extra) run->AddMore().resumes = std::move(resumes);
    run->read = run->touched;
    run->kept = true;
    return fresh;
  }
  void Touched(JobId id) override {
    RunEntry* run = FindNext(id);
    if (run == nullptr || !run->kept) return;
    ++run->touched;
    run->kept = false;
  }

  // Everything is loaded: runs get their positions.
  void Finish() {
    book_.mutex_.AssertHeld();
    Fit();
    book_.table_.Reserve(book_.runs_.size());
    book_.index_.Reserve(book_.runs_.size());
    for (auto& [id, run] : book_.runs_) {
      book_.table_.Add(run);
      book_.index_.Add(run);
      book_.counts_.Add(run);
      if (!run.kept) book_.ToKeep(run);
    }
  }

 private:
  void Fit() {
    if (run_ == nullptr) return;
    run_->params.Fit();
    run_->tags.Fit();
  }
  // Most often the one that follows the one found before.
  RunEntry* FindNext(JobId id) {
    book_.mutex_.AssertHeld();
    if (next_ == book_.runs_.end() || next_->first != id) next_ = book_.runs_.find(id);
    if (next_ == book_.runs_.end()) return nullptr;
    return &(next_++)->second;
  }

  RunBook& book_;
  const Runs before_;
  Runs::iterator next_ = book_.runs_.end();
  std::string owner_;
  RunEntry* run_ = nullptr;
};

Status RunBook::Load(const RunStore& store, KeptMetrics* kept) {
  const WriteLock lock(mutex_);
  Loader loader(*this);
  ATHANOR_CHECK_OK(store.Visit(loader));
  if (kept != nullptr) {
    kept_ = kept;
    kept->Read(loader);
  } else if (kept_ != nullptr) {
    kept_->BeginAnew();  // the book no longer knows which runs are in it
  }
  loader.Finish();
  if (kept == nullptr || !kept->IsBloated()) return Ok();
  kept->BeginAnew();
  for (auto& [id, run] : runs_) {
    if (!run.kept) continue;
    run.kept = kept->Keep(id, run.more().resumes, run.metrics,
                          [this](uint32_t key) -> const std::string& { return KeyName(key); });
  }
  return Ok();
}

void RunBook::Load(const RunBatch& all) {
  const WriteLock lock(mutex_);
  Loader loader(*this);
  for (const auto& row : all.experiments) loader.On(row);
  for (const auto& row : all.runs) loader.On(row);
  for (const auto& label : all.labels) {
    const bool ours = label.kind == LabelKind::kExperimentTag || label.kind == LabelKind::kParam ||
                      label.kind == LabelKind::kTag;
    if (ours && label.value) loader.On(LabelView{label.kind, label.owner, label.key, *label.value});
  }
  for (const auto& input : all.inputs) loader.On(input);
  for (const auto& link : all.links) loader.On(link);
  loader.Finish();
}

}  // namespace athanor
