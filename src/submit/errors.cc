#include "submit/errors.h"

#include "base/text/format.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr SubmitErrorRow kRows[] = {
    {"ATH-S0100", "the job file cannot be read",
     "The file does not exist, or you may not read it. `ath init` writes a job file for the "
     "current "
     "folder; `ath run -- COMMAND` needs none."},
    {"ATH-S0101", "not a text file",
     "A job file is UTF-8 text of at most 1 MiB without control characters. Check that you named "
     "the "
     "right file, and not an archive or a checkpoint."},
    {"ATH-S0102", "not valid YAML",
     "The file is not valid YAML. Most often the indentation is wrong, there is a tab instead of "
     "spaces, or a value with a colon, a bracket or a '#' needs quotes."},
    {"ATH-S0103", "too many levels or values",
     "A job file may have 32 levels and 10,000 values, after aliases are expanded. Put large "
     "tables "
     "into a file in the source folder."},
    {"ATH-S0104", "duplicate key",
     "The same key is given twice, and YAML does not say which one counts. Remove one of them."},
    {"ATH-S0105", "unknown key",
     "A job file has no key of this name. Unknown keys are errors, because a misspelled limit "
     "would "
     "have no effect. `ath schema` prints all keys."},
    {"ATH-S0106", "wrong type of value",
     "The key needs a list, a map or a single value, and the file has something else."},
    {"ATH-S0107", "invalid value",
     "Durations look like 90s, 10m, 1h30m; sizes like 512MB or 1.5GiB; counts are whole numbers. "
     "`nodes` and `processes` are 1 to 1024, with 8,192 ranks at most; a range has the smaller "
     "number first, as in 1..4."},
    {"ATH-S0108", "not available yet",
     "Athanor knows this key or value, but this version does not support it. It is an error and "
     "not "
     "ignored, so that a job never runs differently from its job file."},
    {"ATH-S0109", "invalid name",
     "Names have 1 to 256 characters, no control characters and no marks that change the direction "
     "of text, and do not start with '@' or '-'."},
    {"ATH-S0110", "no command",
     "A job needs a command: `run:` in the job file, or words after `--` on the command line."},
    {"ATH-S0111", "unknown ${name} in the command",
     "${name} is replaced by a parameter, and ${channel.NAME} by the folder of a data channel. "
     "Names "
     "in capitals are left to the shell; write $${name} to leave any other name to the shell."},
    {"ATH-S0112", "invalid pattern of a metric",
     "Patterns follow RE2 (no look-around, no back-references), and group 1 is the value. Each "
     "metric "
     "needs a different name."},
    {"ATH-S0113", "unsupported environment",
     "Some keys of `environment` cannot be combined, and some need a container."},
    {"ATH-S0114", "invalid secret",
     "A secret is given by its name, which is also the name of the environment variable: letters, "
     "digits and '_'. The value comes from the store, a variable, a file or a command; never from "
     "the "
     "job file."},
    {"ATH-S0115", "invalid data channel",
     "A channel has a name and a folder or file of this machine. Its mode is file (copied before "
     "the "
     "job starts) or shared (used in place)."},
    {"ATH-S0116", "invalid flag", "Flags such as -p, -e, -i, --tag and --metric take name=value."},
    {"ATH-S0120", "the source folder cannot be read",
     "The folder that is packaged with the job (source.dir, or the current folder) must exist and "
     "be "
     "readable."},
    {"ATH-S0121", "the source is too large",
     "The source is for code, not data: at most 200 MiB, and 50 MiB per file, unless "
     "source.max_size "
     "says otherwise. List large files in .athanorignore, and pass data as a channel."},
    {"ATH-S0122", "the source has too many files",
     "At most 200,000 files are packaged. Usually the folder contains data or a Python "
     "environment: "
     "list it in .athanorignore."},
    {"ATH-S0123", "a file changed while it was read",
     "All files must stay the same while they are packaged. Submit again when nothing writes to "
     "the "
     "folder, or list the file in .athanorignore."},
    {"ATH-S0124", "the list of source files is damaged",
     "The list of files of the packaged source is not in the expected form, so nothing was "
     "unpacked. "
     "Submit the job again."},
    {"ATH-S0130", "program not found",
     "The first word of the command is neither in PATH nor in the source."},
    {"ATH-S0131", "the script is not in the source",
     "Jobs run in a copy of the source folder. The script is not in that copy: it does not exist, "
     "or "
     "an ignore rule leaves it out."},
    {"ATH-S0132", "a file of the environment is not in the source",
     "environment.requirements and environment.conda name files in the source folder."},
    {"ATH-S0133", "a data channel cannot be read",
     "The folder or file of the channel does not exist, or you may not read it."},
};

}  // namespace

std::span<const SubmitErrorRow> SubmitErrors() { return kRows; }

const SubmitErrorRow* FindSubmitError(std::string_view id) {
  for (const auto& row : kRows) {
    if (row.id == id) return &row;
  }
  return nullptr;
}

tl::unexpected<Error> Refuse(std::string_view id, std::string what, std::string why,
                             std::string hint) {
  return Fail(Error{ErrorCode::kInvalid, std::move(what), std::move(hint)}
                  .Why(std::move(why))
                  .Id(std::string(id)));
}

std::string Quoted(std::string_view text) {
  constexpr size_t kShown = 80;
  if (text.size() <= kShown) return "'" + Printable(text) + "'";
  size_t cut = kShown;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;
  return fmt::format("'{}...' ({} bytes)", Printable(text.substr(0, cut)), text.size());
}

}  // namespace athanor
