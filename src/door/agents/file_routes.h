// The files of agents that work on other machines: which of them a token may reach. What is done
// with them is in link/job_files_service.h.
#pragma once

#include <optional>
#include <vector>

#include "door/doors.h"
#include "link/job_files_service.h"

namespace athanor {

std::vector<DoorRoute> AgentFileRoutes(DoorContext& context);

// Only of these routes.
bool IsAgentFileRoute(std::string_view route);
BodyPolicy AgentFilePolicy(const DoorContext& context, const Router::Match& match,
                           const Request& head, const Caller& caller);

// What the agent of one host of an attempt may reach: its job's own store, and of the blobs those
// that the job names. Nothing once the attempt is over or was replaced: late writes of an older
// attempt would be taken for those of the one that runs.
std::optional<JobFilesGrant> GrantOf(const DoorContext& context, AttemptId attempt, uint32_t host);

}  // namespace athanor
