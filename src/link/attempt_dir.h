// The names inside the folder of an attempt's host (job/host_folder.h), which the back end and the
// agent share: locks show who is alive, records show what happened.
#pragma once

namespace athanor::attempt_dir {

inline constexpr char kPlan[] = "plan.json";  // written by the back end
inline constexpr char kHostCount[] =
    "hosts";  // of the attempt; only if there are several, side by side
inline constexpr char kHostNames[] = "etc.hosts";   // what the script sees as /etc/hosts
inline constexpr char kAgentLog[] = "agent.log";    // the agent's own log
inline constexpr char kAgentLock[] = "agent.lock";  // flock held by the agent while it lives
// The agent is about to start the supervisor: a successor waits for its status.
inline constexpr char kLaunching[] = "launching";
// Preparation failed, and why: a successor reports it again instead of preparing again.
inline constexpr char kPrepareFailed[] = "prepare_failed";
inline constexpr char kSupervisorPlan[] = "supervisor.plan";  // without secrets
inline constexpr char kLivePlan[] = "supervisor.live";        // the one with secrets; soon removed
inline constexpr char kSupervisorStatus[] = "supervisor.status";
inline constexpr char kStarted[] = "started";
inline constexpr char kExit[] = "exit";
inline constexpr char kPackages[] = "packages";        // names the blob of what is installed
inline constexpr char kEventIndex[] = "events.index";  // numbers of the script's event files
inline constexpr char kCheckpointPath[] = "checkpoints.path";  // of a folder of the user
inline constexpr char kMl[] = "ml";                            // what the script sees as /opt/ml
inline constexpr char kSpool[] = "spool";
inline constexpr char kMlflow[] = "mlflow";  // calls that the MLflow proxy keeps, and its port
inline constexpr char kAws[] = "aws";        // overlay for AWS clients, if the server is elsewhere
inline constexpr char kServerPort[] = "server.port";  // of run/agent/script_line.h
inline constexpr char kLogs[] = "logs";  // raw streams, 0600, removed once acknowledged

}  // namespace athanor::attempt_dir
