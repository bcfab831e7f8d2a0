// StudyRecord is what is known about a tuning job now, computed from its journal. Events are
// values; they are stored before anything acts on them. Only Apply() changes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/exec/clock.h"
#include "base/result.h"
#include "base/text/json.h"
#include "job/record.h"
#include "record/studies/study_store.h"
#include "study/spec.h"
#include "tune/stopping.h"

namespace athanor {

// kFinishing: no new trials are asked for, running ones are being stopped.
enum class StudyState { kRunning, kFinishing, kCompleted, kStopped, kFailed };
std::string_view NameOf(StudyState state);  // "Running"
bool IsOver(StudyState state);

// kAsked: has parameters, and no job yet (or no longer: the platform lost it, or it was paused and
// will continue). kPaused: waits at a rung to be among the best; if the study ends, it stays so.
enum class TrialState { kAsked, kRunning, kPaused, kDone, kFailed, kStopped };
std::string_view NameOf(TrialState state);
bool IsOver(TrialState state);

struct TrialRecord {
  int64_t number = 0;     // from 1
  int64_t search_id = 0;  // of tune::Session
  std::string params;     // JSON object
  TrialState state = TrialState::kAsked;
  std::string job;                      // id; of the last try
  uint32_t losses = 0;                  // tries that the platform lost
  uint32_t promotions = 0;              // how often it continued after a pause
  std::string resume_job;               // whose checkpoint it continues from; empty: it starts
  bool told = false;                    // the search has a value of it
  bool own = false;                     // parameters that a person gave
  std::optional<double> value;          // of the objective: final once over, else the newest known
  std::optional<int64_t> step;          // of it
  std::vector<tune::CurvePoint> curve;  // what was reported, while early stopping is on
  bool stopping = false;                // a stop was decided
  Cause cause;                          // of the stop, or of the end
  int64_t cost_micros = 0;
  int64_t held_ms = 0;
  WallTime asked;
  WallTime ended;
  bool operator==(const TrialRecord&) const = default;
};

struct StudyEvent {
  enum class Kind {
    kCreated,
    kImported,   // params, value: a trial of an earlier study
    kAsked,      // trial, search_id, params, own
    kSubmitted,  // trial, job
    kReported,   // trial, points
    kStopping,   // trial, cause
    kEnded,      // trial, outcome, value, step, told, cause, cost, held
    kLost,       // trial, cause, cost, held: back to kAsked, with its own parameters
    kPaused,     // trial, value, step, told, cause, cost, held
    kPromoted,   // trial: back to kAsked, to continue from its checkpoint
    kExhausted,  // the space is used up
    kChanged,    // changes
    kFinishing,  // finish, cause
    kFinished,
  };
  Kind kind = Kind::kCreated;
  WallTime at{};
  int64_t trial = 0;
  int64_t search_id = 0;
  std::string params = {};
  bool own = false;
  std::string job = {};
  std::vector<tune::CurvePoint> points = {};
  TrialState outcome = TrialState::kDone;
  std::optional<double> value = {};
  std::optional<int64_t> step = {};
  bool told = false;  // the search is told: its value, or that it failed
  Cause cause = {};
  int64_t cost_micros = 0;
  int64_t held_ms = 0;
  std::string changes = {};  // JSON
  StudyState finish = StudyState::kCompleted;
  bool operator==(const StudyEvent&) const = default;
};
std::string WriteEvent(const StudyEvent& event);
Result<StudyEvent> ReadEvent(std::string_view line);  // kCorrupt

struct StudyRecord {
  StudyId id;
  std::string user;
  StudySpec spec;
  std::string first_space;  // before its ranges were changed; empty: they never were
  StudyState state = StudyState::kRunning;
  StudyState finish = StudyState::kCompleted;  // what it ends as, once kFinishing
  Cause cause;                                 // of the end
  std::vector<TrialRecord> trials;             // by number
  int64_t imported = 0;
  bool exhausted = false;
  uint64_t lines = 0;  // events so far
  WallTime created;
  WallTime updated;
  WallTime ended;

  size_t Count(TrialState trial_state) const;
  size_t Live() const;  // asked or running
  int64_t CostMicros() const;
  // The trial to show: the best done one, otherwise the best stopped or paused one; null: none has
  // a value.
  const TrialRecord* Best() const;
  TrialRecord* Find(int64_t number);
  const TrialRecord* Find(int64_t number) const;
};

// kCorrupt if the event cannot follow; the record is then unchanged.
Status Apply(StudyRecord& record, const StudyEvent& event);
// kCorrupt names the line.
Result<StudyRecord> Replay(const StudyRow& row, const std::vector<std::string>& lines);

// Whether the first of two values is better by the study's goal.
bool Better(const StudySpec& spec, double value, double than);

// The lines of the search's own journal (tune/journal.h) for this event; none: nothing.
std::optional<std::string> SearchLine(const StudyRecord& record, const StudyEvent& event);

}  // namespace athanor
