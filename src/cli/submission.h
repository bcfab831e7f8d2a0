// From what the user typed to an accepted job: reads the job file, packages the source, checks what
// can be checked here, and submits with a key that is made before the first try, so that a lost
// reply never makes two jobs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/text/json.h"
#include "cli/client.h"
#include "job/spec.h"

namespace athanor {

struct RunOptions {
  std::string file;                  // a job file; empty: none
  std::string sagemaker;             // a CreateTrainingJob body instead; empty: none
  std::vector<std::string> command;  // after `--`
  std::vector<std::pair<std::string, std::string>> flags;  // "--memory", "2GB": see ApplyFlag
  std::string key;
  bool detach = false;
  bool debug = false;
  bool json = false;
  bool quiet = false;
  bool dry_run = false;
  bool current = false;          // of retry: the source as it is now
  bool preflight = false;        // only that
  bool no_preflight = false;     // whatever the settings say
  std::string preflight_time;    // "30s"
  std::string preflight_sample;  // of each channel: "64MB"
};

struct PreparedJob {
  JobSpec spec;
  std::vector<std::string> notes;  // about the source, for a person
};

// Everything on the client's side. Reads the source folder.
Result<PreparedJob> PrepareJob(const Home& home, const RunOptions& options);

// The same for a job that ran before, from its source folder as it is now.
Result<PreparedJob> PrepareAgain(const Home& home, JobSpec spec);

// What a job gets from the shell in which it is submitted.
void InheritEnvironment(JobSpec& spec);

struct SubmittedJob {
  std::string id;
  std::string name;
  std::string same_as;
  std::string warning;             // of the server's, about where its jobs run
  std::vector<std::string> notes;  // of the server's, about what it asked for
  bool simulated = false;
};
// Posts `text`, which names the job's source, and sends the source if the server does not have it.
// The key depends on the text, so it may be sent again after a lost reply.
Result<Json> PostWithSource(Client& client, const PreparedJob& job, const std::string& target,
                            const std::string& text, const Home& home);

Result<SubmittedJob> SubmitJob(Client& client, const PreparedJob& job, const std::string& key,
                               const Home& home);

}  // namespace athanor
