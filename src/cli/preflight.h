// The preflight: the same job for a few steps on this machine, on a sample of its data, before an
// expensive machine is used for it.
#pragma once

#include "base/result.h"
#include "cli/submission.h"
#include "cli/verbs/verbs.h"
#include "serve/settings.h"

namespace athanor {

struct PreflightOutcome {
  bool passed = false;
  bool cancelled = false;  // Ctrl-C
};

// Runs it on this user's own server, whatever ATHANOR_URL says, through an interruption and a
// resume; prints the report (with --json one object on stdout). Keeps its job only if something is
// wrong with it.
Result<PreflightOutcome> RunPreflight(const Common& common, const RunOptions& options,
                                      const PreparedJob& prepared);

// Whether the settings ask for one before a job of this type: its price per hour is above
// preflight_above.
Result<bool> WantsPreflight(const Home& home, const JobSpec& spec);

}  // namespace athanor
