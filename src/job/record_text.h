// The stored form of a record and of its spec: the text that DumpJson(ToJson(...)) gives, written
// directly from the field table. Building the tree first costs ten times as much, and a busy server
// writes records more often than anything else.
#pragma once

#include <string>

#include "job/record.h"

namespace athanor {

std::string RecordText(const JobRecord& record);
std::string SpecText(const JobSpec& spec);
// What SameRunHash (job/codec.h) is the hash of: command, params, bundle, data.
std::string SameRunText(const JobSpec& spec);

}  // namespace athanor
