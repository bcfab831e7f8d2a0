// What the native routes share for reading requests and answering them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/io/fd.h"
#include "base/result.h"
#include "door/doors.h"
#include "record/runs/run_rows.h"
#include "track/run_entry.h"

namespace athanor {

// A whole number from 0 up; none if it is not given. kInvalid for anything else.
Result<std::optional<uint64_t>> WholeNumber(const Request& request, const char* name);

// Runs `work`, which answers, on a thread that may wait; answers itself if the server stops.
void OnReader(DoorContext& context, const Call& call, std::function<void()> work);

// The same for what takes seconds, so that others do not wait for their pages.
void OnDisk(DoorContext& context, const Call& call, std::function<void()> work);

// "bytes=5-9" of a file of `size` as offset and length; none if there is no such header or it
// cannot be satisfied.
std::optional<std::pair<uint64_t, uint64_t>> ByteRange(std::string_view header, uint64_t size);

// A file of a user, complete or the requested range. It never runs in the browser: no sniffing, a
// sandbox without rights, and, unless `shown`, a download by `name`.
void SendUserBytes(const Call& call, const std::string& type, bool shown, Result<UniqueFd> file,
                   const std::string& name = {});

// The type of a picture by its name, if it is of a kind that can contain only pixels.
std::optional<std::string> RasterTypeOf(std::string_view path);

// When a run was made; a job's id tells. And when it began: of a job, when its script first ran;
// none if it never did.
int64_t CreatedMs(const RunEntry& run);
std::optional<int64_t> BeganMs(const RunEntry& run);

// Appends the changes of runs in `more` to those in `all`, to be stored together.
void Append(RunBatch& all, RunBatch more);

}  // namespace athanor
