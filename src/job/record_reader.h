// The stored form of a record (job/record_text.h) read back, straight into its fields: a server
// that starts with a hundred thousand waiting jobs reads as many records.
#pragma once

#include <string_view>

#include "job/record.h"

namespace athanor {

// Makes of a new `record` what RecordFromJson gives for this text. False: it is not written as
// RecordText writes, by another version or because it is damaged; RecordFromJson is to say what it
// is, and what became of `record` is of no use.
bool ReadRecordText(std::string_view text, JobRecord& record);

}  // namespace athanor
