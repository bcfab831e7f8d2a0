#include "job/manifest.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <unordered_set>

#include "base/io/files.h"
#include "base/io/hash.h"
#include "base/text/format.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr std::string_view kHeader = "athanor-bundle 1\n";

tl::unexpected<Error> Damaged(size_t line, std::string why) {
  return Fail(
      Error{ErrorCode::kCorrupt, "the bundle's listing cannot be used", "submit the job again"}
          .Why(fmt::format("line {}: {}", line, why))
          .Id("ATH-S0124"));
}

bool NeedsEscape(unsigned char c) { return c < 0x20 || c == 0x7f || c == '%'; }

void AppendEscaped(std::string& out, std::string_view name) {
  const auto needs_escape = [](char c) { return NeedsEscape(static_cast<unsigned char>(c)); };
  if (std::none_of(name.begin(), name.end(), needs_escape)) {
    out += name;
    return;
  }
  for (const char c : name) {
    if (needs_escape(c)) {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
}

// Only what AppendEscaped writes, so that each name has one form.
std::optional<std::string> Unescaped(std::string_view text) {
  auto name = UrlDecode(text);
  if (!name) return std::nullopt;
  std::string again;
  AppendEscaped(again, *name);
  if (again != text) return std::nullopt;
  return name;
}

bool IsSha256(std::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::optional<uint64_t> ParseSize(std::string_view text) {
  uint64_t size = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (text.size() > 1 && text.front() == '0') return std::nullopt;
  return size;
}

Result<BundleEntry> ParseLine(std::string_view line, size_t number) {
  const auto fields = Split(line, '\t');
  BundleEntry entry;
  std::optional<std::string> path;
  const std::string& kind = fields[0];
  if ((kind == "f" || kind == "x") && fields.size() == 4) {
    entry.executable = kind == "x";
    const auto size = ParseSize(fields[1]);
    if (!size || !IsSha256(fields[2])) return Damaged(number, "a bad size or hash");
    entry.size = *size;
    entry.sha256 = fields[2];
    path = Unescaped(fields[3]);
  } else if (kind == "l" && fields.size() == 3) {
    entry.kind = BundleEntry::Kind::kLink;
    path = Unescaped(fields[1]);
    auto target = Unescaped(fields[2]);
    if (!target) return Damaged(number, "a bad link");
    entry.target = std::move(*target);
  } else if (kind == "d" && fields.size() == 2) {
    entry.kind = BundleEntry::Kind::kFolder;
    path = Unescaped(fields[1]);
  } else {
    return Damaged(number, "an unknown kind of entry");
  }
  if (!path) return Damaged(number, "a badly written name");
  entry.path = std::move(*path);
  if (const auto named = CheckRelativeName(entry.path); !named.ok()) {
    return Damaged(number, named.error().what);
  }
  if (entry.kind == BundleEntry::Kind::kLink) {
    if (const auto target = CheckLinkTarget(entry.path, entry.target); !target.ok()) {
      return Damaged(number, target.error().what);
    }
  }
  return entry;
}

// An entry must not be inside another entry, because that one is a file, a link or empty.
Status CheckNesting(const std::vector<BundleEntry>& entries) {
  std::unordered_set<std::string_view> paths;
  for (const auto& entry : entries) paths.insert(entry.path);
  for (size_t i = 0; i < entries.size(); ++i) {
    const std::string_view path = entries[i].path;
    for (size_t slash = path.find('/'); slash != std::string_view::npos;
         slash = path.find('/', slash + 1)) {
      if (paths.contains(path.substr(0, slash))) {
        return Damaged(i + 2, "an entry lies inside one that is no folder");
      }
    }
  }
  return Ok();
}

Status LayOutFile(const BundleEntry& entry, int dir_fd, const OpenBlob& open_blob) {
  ATHANOR_TRY(const UniqueFd blob, open_blob(entry.sha256));
  ATHANOR_TRY(const UniqueFd file,
              OpenBeneath(dir_fd, entry.path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
                          entry.executable ? 0755 : 0644));
  Sha256 hash;
  uint64_t copied = 0;
  std::string buffer(256u << 10, '\0');
  for (;;) {
    const ssize_t got = ::read(blob.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FailErrno("read the blob of " + Printable(entry.path), errno);
    if (got == 0) break;
    const std::string_view bytes(buffer.data(), static_cast<size_t>(got));
    copied += bytes.size();
    if (copied > entry.size) break;
    hash.Update(bytes);
    ATHANOR_CHECK_OK(WriteAll(file.get(), bytes));
  }
  if (copied == entry.size && hash.HexDigest() == entry.sha256) return Ok();
  return Fail(Error{ErrorCode::kCorrupt,
                    fmt::format("the stored copy of {} is damaged", Printable(entry.path)),
                    "submit the job again"}
                  .Why(fmt::format("it is not the {} bytes of {}", entry.size, entry.sha256)));
}

Status LayOutLink(const BundleEntry& entry, int dir_fd) {
  const std::string folder = DirName(entry.path);
  UniqueFd parent;
  if (entry.path.find('/') != std::string::npos) {
    ATHANOR_TRY(parent, OpenBeneath(dir_fd, folder, O_RDONLY | O_DIRECTORY));
  }
  const int at = parent ? parent.get() : dir_fd;
  if (::symlinkat(entry.target.c_str(), at, BaseName(entry.path).c_str()) != 0) {
    return FailErrno("link " + Printable(entry.path), errno);
  }
  return Ok();
}

}  // namespace

const BundleEntry* BundleManifest::Find(std::string_view path) const {
  const auto at = std::lower_bound(
      entries.begin(), entries.end(), path,
      [](const BundleEntry& entry, std::string_view wanted) { return entry.path < wanted; });
  return at != entries.end() && at->path == path ? &*at : nullptr;
}

std::string WriteManifest(const BundleManifest& manifest) {
  std::string text(kHeader);
  for (const auto& entry : manifest.entries) {
    switch (entry.kind) {
      case BundleEntry::Kind::kFile:
        fmt::format_to(std::back_inserter(text), "{}\t{}\t{}\t", entry.executable ? 'x' : 'f',
                       entry.size, entry.sha256);
        AppendEscaped(text, entry.path);
        break;
      case BundleEntry::Kind::kLink:
        text += "l\t";
        AppendEscaped(text, entry.path);
        text += '\t';
        AppendEscaped(text, entry.target);
        break;
      case BundleEntry::Kind::kFolder:
        text += "d\t";
        AppendEscaped(text, entry.path);
        break;
    }
    text += '\n';
  }
  return text;
}

Result<BundleManifest> ReadManifest(std::string_view text) {
  if (text.size() > kManifestTextLimit) return Damaged(1, "it is too long");
  if (!StartsWith(text, kHeader)) return Damaged(1, "it does not begin as a bundle does");
  text.remove_prefix(kHeader.size());
  BundleManifest manifest;
  for (size_t number = 2; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return Damaged(number, "the last line is cut");
    if (manifest.entries.size() == kBundleEntryLimit) {
      return Damaged(number, fmt::format("more than {} entries", kBundleEntryLimit));
    }
    ATHANOR_TRY(auto entry, ParseLine(text.substr(0, end), number));
    text.remove_prefix(end + 1);
    if (!manifest.entries.empty() && manifest.entries.back().path >= entry.path) {
      return Damaged(number, "entries are not in order");
    }
    if (entry.size > kBundleByteLimit || manifest.bytes + entry.size > kBundleByteLimit) {
      return Damaged(number, "the files are too large");
    }
    manifest.bytes += entry.size;
    manifest.entries.push_back(std::move(entry));
  }
  ATHANOR_CHECK_OK(CheckNesting(manifest.entries));
  return manifest;
}

Status CheckLinkTarget(std::string_view path, std::string_view target) {
  const auto refuse = [&](std::string_view why) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("link {} -> {} {}", Printable(path.substr(0, 200)),
                            Printable(target.substr(0, 200)), why),
                "list it in .athanorignore, or copy what it points to");
  };
  if (target.empty() || target.size() > 4095 || target.find('\0') != std::string_view::npos) {
    return refuse("has no usable target");
  }
  if (target.front() == '/') return refuse("is absolute");
  auto depth = std::count(path.begin(), path.end(), '/');
  bool named = false;
  for (const auto& part : Split(target, '/')) {
    if (part != "..") {
      // "a//b", "./a" and "a/" are allowed: they lead to the same place.
      named = named || (!part.empty() && part != ".");
      continue;
    }
    if (named) return refuse("goes up after going down");
    if (--depth < 0) return refuse("leaves the source");
  }
  return Ok();
}

Status LayOut(const BundleManifest& manifest, int dir_fd, const OpenBlob& open_blob) {
  std::unordered_set<std::string> made;
  for (const auto& entry : manifest.entries) {
    if (entry.path.find('/') != std::string::npos && made.insert(DirName(entry.path)).second) {
      ATHANOR_CHECK_OK(MakeParentsBeneath(dir_fd, entry.path, 0755));
    }
    switch (entry.kind) {
      case BundleEntry::Kind::kFile:
        ATHANOR_CHECK_OK(LayOutFile(entry, dir_fd, open_blob));
        break;
      case BundleEntry::Kind::kLink:
        ATHANOR_CHECK_OK(LayOutLink(entry, dir_fd));
        break;
      case BundleEntry::Kind::kFolder:
        // As the parent of a name that is not made.
        ATHANOR_CHECK_OK(MakeParentsBeneath(dir_fd, entry.path + "/x", 0755));
        break;
    }
  }
  return Ok();
}

}  // namespace athanor
