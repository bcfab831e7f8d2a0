// The stored form of a record: the text DumpJson(ToJson(record)) gives, written
// straight from the field table. Building the tree first costs ten times as much,
// and a busy server writes records more often than anything else.
#pragma once

#include <string>

#include "job/record.h"

namespace athanor {

std::string RecordText(const JobRecord& record);

}  // namespace athanor
