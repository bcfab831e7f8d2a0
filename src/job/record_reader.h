// The stored form of a record (job/record_text.h) read directly into its fields: a server that
// starts with a hundred thousand waiting jobs reads as many records.
#pragma once

#include <string_view>

#include "job/record.h"

namespace athanor {

// Fills a new `record` with what RecordFromJson gives for this text. False: the text is not in the
// form that RecordText writes (another version, or damage). Then use RecordFromJson to find out
// what it is; the content of `record` is undefined.
bool ReadRecordText(std::string_view text, JobRecord& record);

}  // namespace athanor
