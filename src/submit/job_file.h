// A job file, or the same by flags, to a JobSpec. Both go through one key table (job_keys.h), so a
// flag gives exactly what the key gives. Paths are used as written: the caller resolves source.dir
// and data.*.from against the folder of the file or of the shell, and fills in `inherited` and the
// bundle.
//
// Errors are kInvalid with id (ATH-S01xx, see errors.h), why, hint, and where:
// "job.yaml:22:10", or the flag.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/text/json.h"
#include "job/spec.h"

namespace athanor {

// `file` is its name in messages. Each part is checked as it is read; a command may still be
// missing (it can come after `--`), so call CheckSpec at the end.
Result<JobSpec> ParseJobFile(std::string_view text, const std::string& file);

// The `tune` section of a job file as JSON (study/spec.h says what it holds); null: there is none.
Result<Json> TuneSection(std::string_view text, const std::string& file);
// The position of one of its keys, as "job.yaml:22:10" for "budget.money"; or, if it is missing, of
// the key above it. A list of maps is searched by their names.
std::string PlaceInTuneSection(std::string_view text, const std::string& file,
                               std::string_view key);

// `flag` as typed, "--memory" or "-p"; or a dotted key ("limits.stop_grace") of any row with a
// single value. A later value replaces an earlier one:
//   --name N  --experiment N  --run-name N  --type T  --cpus C  --memory M  --gpus G
//   --nodes N|A..B  --processes N  --max-time D  --priority P  --requirements F  -p name=value
//   --pass flags  -e NAME=value
//   --tag key=value  -i name=path[:mode]  --metric name=regex  -s NAME[=env:VAR]
Status ApplyFlag(JobSpec& spec, std::string_view flag, std::string_view value);

// JSON Schema (2020-12) of a job file, for editors.
Json JobFileSchema();
// The reference page, in Markdown.
std::string JobFileReference();

}  // namespace athanor
