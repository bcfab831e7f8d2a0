#include "submit/errors.h"

#include "base/format.h"
#include "base/text.h"

namespace athanor {
namespace {

constexpr SubmitErrorRow kRows[] = {
    {"ATH-S0100", "the job file cannot be read",
     "There is no such file, or this user may not read it. `ath init` writes one from what is in "
     "the folder; `ath run -- COMMAND` needs none."},
    {"ATH-S0101", "not a text file",
     "A job file is UTF-8 text of at most 1 MiB without control characters. Usually another file "
     "was named by mistake, such as an archive or a checkpoint."},
    {"ATH-S0102", "not valid YAML",
     "The file could not be read as YAML. Most often the indentation is off, a tab stands where "
     "spaces are needed, or a value with a colon, a bracket or a '#' needs quotes."},
    {"ATH-S0103", "too deep or too many values",
     "Job files are limited to 32 levels and 10,000 values, counted after aliases are expanded, so "
     "that a small file cannot unfold into a huge one. Large tables belong in a file of the "
     "source."},
    {"ATH-S0104", "a key is given twice",
     "YAML leaves open which of two equal keys counts, so neither is taken."},
    {"ATH-S0105", "unknown key",
     "No key of a job file has this name. Unknown keys are never ignored, because a misspelt limit "
     "is no limit. `ath schema` prints all keys."},
    {"ATH-S0106", "the wrong kind of value",
     "A list, a map or a single value was expected and another was found."},
    {"ATH-S0107", "a value out of range or badly formed",
     "Durations look like 90s, 10m, 1h30m; sizes like 512MB or 1.5GiB; counts are whole numbers."},
    {"ATH-S0108", "not available yet",
     "The key or value has a meaning in Athanor, but this version cannot do it. It is refused "
     "rather than ignored, so that a job never runs other than it was written."},
    {"ATH-S0109", "a bad name",
     "Names have 1 to 256 characters, no control characters and no marks that change the direction "
     "of writing, and start with neither '@' nor '-'."},
    {"ATH-S0110", "no command",
     "A job needs a command: `run:` in the job file, or words after `--` on the command line."},
    {"ATH-S0111", "unknown ${name} in the command",
     "${name} stands for a parameter and ${channel.NAME} for the folder of a data channel. Names "
     "in "
     "capitals are left to the shell; write $${name} to leave any other to it."},
    {"ATH-S0112", "a metric's pattern cannot be used",
     "Patterns follow RE2 (no look-around, no back-references); group 1 is the value. Each metric "
     "has a name of its own."},
    {"ATH-S0113", "the environment cannot be built as asked",
     "Some parts of `environment` exclude each other, and some need a container."},
    {"ATH-S0114", "a bad secret reference",
     "Secrets are given by name, and the name is also the environment variable: letters, digits "
     "and "
     "'_'. The value comes from the store, a variable, a file or a command; never from the job "
     "file."},
    {"ATH-S0115", "a bad data channel",
     "A channel has a name and a folder or file of this machine; its mode is file (copied before "
     "the start) or shared (used in place)."},
    {"ATH-S0116", "a flag has the wrong form",
     "Flags such as -p, -e, -i, --tag and --metric take name=value."},
    {"ATH-S0120", "the source folder cannot be read",
     "The folder that is packaged with the job (source.dir, or the current one) must exist and be "
     "readable."},
    {"ATH-S0121", "the source is too large",
     "The source holds code, not data: 200 MiB and 50 MiB a file unless source.max_size says "
     "otherwise. List large files in .athanorignore, and give data as a channel."},
    {"ATH-S0122", "the source has too many files",
     "At most 200,000 files are packaged. Usually a data folder or an environment is inside."},
    {"ATH-S0123", "a file changed while it was read",
     "The bundle is what the folder held at one moment. Submit again when nothing writes to it, or "
     "list the file in .athanorignore."},
    {"ATH-S0124", "the bundle's listing is damaged",
     "The listing of a bundle is written in one canonical form; anything else is refused before a "
     "file is laid out."},
    {"ATH-S0130", "the program is not there",
     "The first word of the command is neither in PATH nor in the source."},
    {"ATH-S0131", "the script is not in the source",
     "Jobs run in a copy of the source folder. The script is not part of that copy: it does not "
     "exist there, or an ignore rule leaves it out."},
    {"ATH-S0132", "a file named by the environment is not in the source",
     "requirements and conda name files inside the source folder."},
    {"ATH-S0133", "a data channel cannot be read",
     "The folder or file of the channel does not exist or may not be read by you."},
};

}  // namespace

std::span<const SubmitErrorRow> SubmitErrors() {
  return kRows;
}

const SubmitErrorRow* FindSubmitError(std::string_view id) {
  for (const auto& row : kRows) {
    if (row.id == id) return &row;
  }
  return nullptr;
}

tl::unexpected<Error> Refuse(std::string_view id, std::string what, std::string why,
                             std::string hint) {
  Error error;
  error.code = ErrorCode::kInvalid;
  error.id = id;
  error.what = std::move(what);
  error.why = std::move(why);
  error.hint = std::move(hint);
  return Fail(std::move(error));
}

std::string Quoted(std::string_view text) {
  constexpr size_t kShown = 80;
  if (text.size() <= kShown) return "'" + Printable(text) + "'";
  size_t cut = kShown;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;
  return fmt::format("'{}...' ({} bytes)", Printable(text.substr(0, cut)), text.size());
}

}  // namespace athanor
