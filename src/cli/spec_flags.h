// What the command line offers, as tables: the options of `ath run` and `ath retry` that are keys
// of a job file, and the headings under which help lists options and commands.
#pragma once

namespace athanor {

// In help, options are under a heading, in the order in which they were added.
inline constexpr char kResources[] = "Resources";
inline constexpr char kData[] = "Data and parameters";
inline constexpr char kEnvironment[] = "Environment";
inline constexpr char kLimits[] = "Limits and retries";
inline constexpr char kSpot[] = "Spot";
inline constexpr char kChecks[] = "Checks before the run";
inline constexpr char kOutput[] = "Output";

// A flag of the job file's key table: stored in order, applied by ApplyFlag.
struct SpecFlag {
  const char* flag;
  const char* key;
  const char* value;  // what help calls it
  const char* group;
  const char* text;
  bool many = false;
};

inline constexpr SpecFlag kSpecFlags[] = {
    {"--name", "--name", "NAME", "", "Name of the job"},
    {"--experiment", "--experiment", "NAME", "", "Experiment that the job belongs to"},
    {"--tag", "--tag", "KEY=VALUE", "", "Tag the job. Can be repeated", true},
    {"--priority", "--priority", "N", "", "Jobs with a higher number start first (0)"},
    {"-p,--param", "-p", "NAME=VALUE", kData, "Parameter. Can be repeated", true},
    {"-i,--input", "-i", "NAME=PATH[:MODE]", kData, "Data channel. Can be repeated", true},
    {"--metric", "--metric", "NAME=REGEX", kData, "Read a metric from the log. Can be repeated",
     true},
    {"--cpus", "--cpus", "N", kResources, "CPUs to reserve, such as 2 or 0.5"},
    {"--memory", "--memory", "SIZE", kResources, "Memory to reserve, and the limit: 4GB"},
    {"--gpus", "--gpus", "N", kResources,
     "GPUs to reserve. auto (the default): those that no other job reserved. 0: none"},
    {"--nodes", "--nodes", "N|A..B", kResources,
     "Nodes to run on, each with these resources. They start together (1)"},
    {"--processes", "--processes", "N", kResources,
     "Processes to start on each node, with RANK, WORLD_SIZE and the like (1)"},
    {"--type", "--type", "TYPE", kResources,
     "Instance type, such as ml.m5.large. ath types lists them"},
    {"-e,--env", "-e", "NAME=VALUE", kEnvironment, "Environment variable. Can be repeated", true},
    {"-s,--secret", "-s", "NAME", kEnvironment,
     "Give the job a secret that ath secret set stored. Can be repeated", true},
    {"--requirements", "--requirements", "FILE", kEnvironment,
     "Install the packages of this requirements.txt"},
    {"--base", "--base", "BASE", kEnvironment,
     "Python packages to start from: host (your shell's), system or isolated"},
    {"--max-time,--max-runtime", "--max-time", "DURATION", kLimits,
     "Stop the job after this long: 2h"},
    {"--retries", "--retries", "N", kLimits, "Run the job again up to N times if it fails"},
    {"--max-wait", "--max-wait", "DURATION", kSpot,
     "Longest time that a spot job may wait and run, together"},
    {"--preempt-after", "--preempt-after", "DURATION", kSpot,
     "Test: take the machine away once, after this long"},
    {"--preempt-every", "--preempt-every", "DURATION", kSpot,
     "Test: take the machine away again and again: 20s, or 20s±10s"},
    {"--seed", "--seed", "N", kSpot, "Seed for the random times of --preempt-every"},
};

// Help lists commands under headings, the everyday ones first.
struct VerbGroup {
  const char* heading;
  const char* verbs;
};

inline constexpr VerbGroup kVerbGroups[] = {
    {"Everyday commands", "run ps logs why show metrics stop retry cp tune ui"},
    {"More about jobs", "queue wait exec events checkpoints resume interrupt replay diff rm"},
    {"Runs and metrics", "runs compare export import"},
    {"Set up", "init check types secret env token completion schema explain"},
    {"Server and storage", "serve server service du gc fsck uninstall version"}};

}  // namespace athanor
