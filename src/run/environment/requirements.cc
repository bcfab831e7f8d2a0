#include "run/environment/requirements.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "base/io/files.h"
#include "base/io/hash.h"
#include "base/text/format.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr size_t kFileLimit = 1u << 20;
constexpr size_t kMaxFiles = 64;

struct Line {
  size_t number = 0;
  std::string text;
};

std::vector<Line> LogicalLines(std::string_view text) {
  std::vector<Line> lines;
  bool continued = false;
  size_t number = 0;
  for (const auto& raw : Split(text, '\n')) {
    ++number;
    std::string_view piece = Trim(raw);
    // As the installer reads it: a comment starts a line or follows white space.
    for (size_t hash = piece.find('#'); hash != std::string_view::npos;
         hash = piece.find('#', hash + 1)) {
      if (hash == 0 || piece[hash - 1] == ' ' || piece[hash - 1] == '\t') {
        piece = Trim(piece.substr(0, hash));
        break;
      }
    }
    const bool goes_on = !piece.empty() && piece.back() == '\\';
    if (goes_on) piece = Trim(piece.substr(0, piece.size() - 1));
    if (continued) {
      lines.back().text += ' ';
      lines.back().text += piece;
    } else if (!piece.empty() || goes_on) {
      lines.push_back({number, std::string(piece)});
    }
    continued = goes_on && !lines.empty();
  }
  return lines;
}

// The argument of an option in any of its spellings: "-r x", "-rx", "--requirement=x".
std::optional<std::string> ArgumentOf(std::string_view line, std::string_view brief,
                                      std::string_view full) {
  std::string_view rest;
  if (StartsWith(line, full)) {
    rest = line.substr(full.size());
    if (rest.empty() || (rest[0] != ' ' && rest[0] != '\t' && rest[0] != '=')) return std::nullopt;
    if (rest[0] == '=') rest.remove_prefix(1);
  } else if (StartsWith(line, brief) && !StartsWith(line, "--")) {
    rest = line.substr(brief.size());
  } else {
    return std::nullopt;
  }
  rest = Trim(rest);
  if (rest.size() >= 2 && (rest.front() == '"' || rest.front() == '\'') &&
      rest.back() == rest.front()) {
    rest = rest.substr(1, rest.size() - 2);
  }
  return std::string(rest);
}

// `name` as seen from the folder `dir` of the source, without "." and "..";
// nothing when it leaves the source.
std::optional<std::string> Within(std::string_view dir, std::string_view name) {
  if (StartsWith(name, "/")) return std::nullopt;
  std::vector<std::string> parts;
  for (const auto& part : Split(fmt::format("{}/{}", dir, name), '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      parts.push_back(part);
    } else if (parts.empty()) {
      return std::nullopt;
    } else {
      parts.pop_back();
    }
  }
  return Join(parts, "/");
}

bool IsUrl(std::string_view text) { return text.find("://") != std::string_view::npos; }

bool IsLocal(std::string_view requirement) {
  if (StartsWith(requirement, "file:") || requirement.find("@ file:") != std::string_view::npos) {
    return true;
  }
  if (IsUrl(requirement)) return false;
  if (StartsWith(requirement, ".") || StartsWith(requirement, "/")) return true;
  const auto word = requirement.substr(0, requirement.find_first_of(" ;["));
  for (const std::string_view end : {".whl", ".tar.gz", ".zip", ".tar.bz2", ".tar.xz"}) {
    if (EndsWith(word, end)) return true;
  }
  return word.find('/') != std::string_view::npos;
}

class Reader {
 public:
  explicit Reader(int source) : source_(source) {}

  Status Add(const std::string& file, const std::string& named_at) {
    if (!seen_.insert(file).second) return Ok();
    if (seen_.size() > kMaxFiles) {
      return Wrong(named_at, "too many requirements files",
                   fmt::format("more than {} name each other", kMaxFiles), "join some of them");
    }
    ATHANOR_TRY(const auto text, Read(file, named_at));
    out_.text += "file " + file + "\n";
    for (const auto& line : LogicalLines(text)) {
      ATHANOR_CHECK_OK(AddLine(line, file));
    }
    out_.text += "end\n";
    return Ok();
  }

  Status AddConda(const std::string& file) {
    ATHANOR_TRY(const auto text, Read(file, ""));
    out_.text += ReplaceAll(text, "\r\n", "\n");
    for (const auto& line : LogicalLines(text)) {
      std::string_view item = line.text;
      if (!StartsWith(item, "- ")) continue;
      item = Trim(item.substr(2));
      if (StartsWith(item, "-") || IsLocal(item)) {
        ATHANOR_CHECK_OK(AddLine({line.number, std::string(item)}, file));
      }
    }
    return Ok();
  }

  Requirements Take() { return std::move(out_); }

 private:
  static tl::unexpected<Error> Wrong(std::string where, std::string what, std::string why,
                                     std::string hint) {
    return Fail(Error{ErrorCode::kInvalid, std::move(what), std::move(hint)}
                    .Why(std::move(why))
                    .Where(std::move(where)));
  }

  Result<std::string> Read(const std::string& file, const std::string& named_at) {
    auto fd = OpenBeneath(source_, file, O_RDONLY | O_NONBLOCK);
    struct stat there {};
    if (fd && (::fstat(fd->get(), &there) != 0 || !S_ISREG(there.st_mode))) {
      return Wrong(named_at, Printable(file) + " is no file", "it is a folder or a device",
                   "name a file of the source");
    }
    auto text = fd ? ReadAll(fd->get(), kFileLimit) : Result<std::string>(Fail(fd.error()));
    if (text) return text;
    Error error = text.error();
    error.why = error.what;
    error.what = "the requirements file " + Printable(file) + " cannot be read";
    error.hint = "check that it is in the source, a file and not a link, and not ignored";
    error.where = named_at;
    return Fail(std::move(error));
  }

  Status AddLine(const Line& line, const std::string& file) {
    const auto where = fmt::format("{}:{}", file, line.number);
    const std::string_view text = line.text;
    auto nested = ArgumentOf(text, "-r", "--requirement");
    if (!nested) nested = ArgumentOf(text, "-c", "--constraint");
    if (nested && !IsUrl(*nested)) {
      const auto slash = file.rfind('/');
      const auto name = Within(slash == std::string::npos ? "" : file.substr(0, slash), *nested);
      if (!name || name->empty()) {
        return Wrong(where, "a requirements file must be in the source",
                     "got " + Printable(*nested), "copy it into the source and name it there");
      }
      // A constraint is not a requirement: the kind is part of the text.
      out_.text += StartsWith(text, "-r") || StartsWith(text, "--r") ? "-r " : "-c ";
      out_.text += *name + "\n";
      return Add(*name, where);
    }
    if (const auto editable = ArgumentOf(text, "-e", "--editable");
        editable && (!IsUrl(*editable) || StartsWith(*editable, "file:"))) {
      return Wrong(where, "a package cannot be installed in place",
                   "got " + Printable(text.substr(0, 200)) +
                       "; the environment is shared by jobs and outlives this one's source",
                   "write the path without -e, or leave it out: the script starts in the source");
    }
    const auto links = ArgumentOf(text, "-f", "--find-links");
    if (links && !IsUrl(*links)) out_.whole_source = true;
    if (!StartsWith(text, "-") && IsLocal(text)) AddLocal(text);
    out_.text += text;
    out_.text += '\n';
    return Ok();
  }

  // A single file counts by its content, so that editing the script builds nothing.
  void AddLocal(std::string_view requirement) {
    const auto name = Within("", requirement.substr(0, requirement.find_first_of(" ;[")));
    auto fd = name && !name->empty()
                  ? OpenBeneath(source_, *name, O_RDONLY | O_NONBLOCK)
                  : Result<UniqueFd>(Fail(ErrorCode::kInvalid, "not of the source"));
    struct stat there {};
    if (fd && ::fstat(fd->get(), &there) == 0 && S_ISREG(there.st_mode)) {
      if (const auto digest = Sha256File(fd->get())) {
        out_.text += "sha256 " + *digest + "\n";
        return;
      }
    }
    out_.whole_source = true;
  }

  const int source_;
  std::set<std::string> seen_;
  Requirements out_;
};

}  // namespace

Result<Requirements> ReadRequirements(int source_dir_fd, const std::string& file) {
  Reader reader(source_dir_fd);
  ATHANOR_CHECK_OK(reader.Add(file, ""));
  return reader.Take();
}

Result<Requirements> ReadCondaFile(int source_dir_fd, const std::string& file) {
  Reader reader(source_dir_fd);
  ATHANOR_CHECK_OK(reader.AddConda(file));
  return reader.Take();
}

}  // namespace athanor
