// The code that reading and writing share is in archive_stream; this file decides what may be done
// with a member.
#include "base/io/archive.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "base/exec/serving_thread.h"
#include "base/io/archive_stream.h"
#include "base/io/files.h"
#include "base/text/text.h"

namespace athanor {
namespace {

tl::unexpected<Error> RefuseMember(std::string_view name, std::string why) {
  return Fail(Error{ErrorCode::kInvalid,
                    "archive member '" + Printable(name.substr(0, 256)) + "' is refused"}
                  .Why(std::move(why)));
}

tl::unexpected<Error> InMember(std::string_view name, Error error) {
  error.what = "archive member '" + Printable(name.substr(0, 256)) + "': " + error.what;
  return Fail(std::move(error));
}

// The parent folder of a checked name, for calls that work on the last part.
Result<UniqueFd> OpenParent(int dir_fd, const std::string& name) {
  if (name.find('/') != std::string::npos) {
    return OpenBeneath(dir_fd, DirName(name), O_PATH | O_DIRECTORY);
  }
  UniqueFd parent(::openat(dir_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!parent) return FailErrno("open folder", errno);
  return parent;
}

class Extractor {
 public:
  Extractor(TarReader& reader, int dir_fd) : reader_(reader), dir_fd_(dir_fd) {}

  Status Run() {
    for (;;) {
      ATHANOR_TRY(const bool more, reader_.Next());
      if (!more) return Ok();
      const TarMember& member = reader_.member();
      // "./" itself: the folder we were given.
      if (member.name.empty() && member.type == TarMember::Type::kFolder) continue;
      if (auto name_ok = CheckRelativeName(member.name); !name_ok.ok()) {
        return RefuseMember(member.name, name_ok.error().why);
      }
      if (auto done = Place(member); !done.ok()) {
        // Refusals already name the member; errors of the system do not.
        if (StartsWith(done.error().what, "archive")) return done;
        return InMember(member.name, std::move(done).error());
      }
    }
  }

 private:
  Status Place(const TarMember& member) {
    switch (member.type) {
      case TarMember::Type::kFile:
        return PlaceFile(member);
      case TarMember::Type::kFolder:
        return PlaceFolder(member);
      case TarMember::Type::kSymlink:
        return PlaceSymlink(member);
      case TarMember::Type::kHardlink:
        return PlaceHardlink(member);
      case TarMember::Type::kOther:
        break;
    }
    return RefuseMember(member.name, "it is a device, a FIFO or another special file");
  }

  // The parent of a member. Only a folder may be left at the member's path.
  Result<UniqueFd> MakeRoom(const TarMember& member) {
    ATHANOR_CHECK_OK(MakeParentsBeneath(dir_fd_, member.name, 0755));
    ATHANOR_TRY(UniqueFd parent, OpenParent(dir_fd_, member.name));
    if (::unlinkat(parent.get(), BaseName(member.name).c_str(), 0) != 0 && errno != ENOENT) {
      return FailErrno("replace", errno, ErrorCode::kConflict);
    }
    return parent;
  }

  Status PlaceFile(const TarMember& member) {
    ATHANOR_TRY(const UniqueFd parent, MakeRoom(member));
    // O_EXCL: we write to a file that we created, never to one reached through a link.
    ATHANOR_TRY(const UniqueFd file, OpenBeneath(parent.get(), BaseName(member.name),
                                                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW));
    ATHANOR_CHECK_OK(reader_.CopyToFile(file.get()));
    const timespec times[2] = {{member.modified.ms / 1000, 0}, {member.modified.ms / 1000, 0}};
    struct stat info {};
    if (::fchmod(file.get(), (member.mode & 0777) | 0600) != 0 || ::fstat(file.get(), &info) != 0) {
      return FailErrno("set mode", errno);
    }
    // If the file system cannot store a time, that is no reason to fail.
    (void)::futimens(file.get(), times);
    files_.emplace(info.st_dev, info.st_ino);
    return Ok();
  }

  Status PlaceFolder(const TarMember& member) {
    ATHANOR_CHECK_OK(MakeParentsBeneath(dir_fd_, member.name, 0755));
    ATHANOR_TRY(const UniqueFd parent, OpenParent(dir_fd_, member.name));
    const std::string last = BaseName(member.name);
    if (::mkdirat(parent.get(), last.c_str(), 0700) != 0 && errno != EEXIST) {
      return FailErrno("make folder", errno);
    }
    ATHANOR_TRY(const UniqueFd folder, OpenBeneath(parent.get(), last, O_RDONLY | O_DIRECTORY));
    if (::fchmod(folder.get(), (member.mode & 0777) | 0700) != 0) {
      return FailErrno("set mode", errno);
    }
    return Ok();
  }

  Status PlaceSymlink(const TarMember& member) {
    if (!LinkStaysBeneath(member.name, member.target)) {
      return RefuseMember(member.name, "it is a link that leads out, to '" +
                                           Printable(member.target.substr(0, 256)) + "'");
    }
    ATHANOR_TRY(const UniqueFd parent, MakeRoom(member));
    if (::symlinkat(member.target.c_str(), parent.get(), BaseName(member.name).c_str()) != 0) {
      return FailErrno("make link", errno);
    }
    return Ok();
  }

  Status PlaceHardlink(const TarMember& member) {
    const auto refuse = [&] {
      return RefuseMember(member.name, "it is a hard link to '" +
                                           Printable(member.target.substr(0, 256)) +
                                           "', which is no earlier file of this archive");
    };
    const std::string& target = member.target;
    if (!CheckRelativeName(target).ok()) return refuse();
    auto target_parent = OpenParent(dir_fd_, target);
    if (!target_parent) return refuse();
    struct stat info {};
    const std::string last = BaseName(target);
    if (::fstatat(target_parent->get(), last.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(info.st_mode) || !files_.contains({info.st_dev, info.st_ino})) {
      return refuse();
    }
    // A link to itself would first remove its target.
    if (target == member.name) return Ok();
    ATHANOR_TRY(const UniqueFd parent, MakeRoom(member));
    if (::linkat(target_parent->get(), last.c_str(), parent.get(), BaseName(member.name).c_str(),
                 0) != 0) {
      return FailErrno("make link", errno);
    }
    return Ok();
  }

  TarReader& reader_;
  int dir_fd_;
  // By inode rather than by name: 10^6 long names would be gigabytes.
  std::set<std::pair<dev_t, ino_t>> files_;
};

class Packer {
 public:
  Packer(int dir_fd, TarWriter& writer, std::vector<std::string>* left_out,
         std::vector<TarMember>* members)
      : dir_fd_(dir_fd), writer_(writer), left_out_(left_out), members_(members) {}

  Status Add(const std::string& name) {
    auto added = AddMember(name);
    if (added.ok()) return added;
    if (left_out_ != nullptr && added.error().code == ErrorCode::kInvalid) {
      left_out_->push_back(name);
      return Ok();
    }
    // Only the lookup of a member can return this, and it comes before the header is written.
    if (added.error().code == ErrorCode::kNotFound) return Ok();
    if (StartsWith(added.error().what, "archive")) return added;
    return InMember(name, std::move(added).error());
  }

  uint64_t bytes() const { return bytes_; }

 private:
  Status AddMember(const std::string& name) {
    if (auto name_ok = CheckRelativeName(name); !name_ok.ok()) {
      return RefuseMember(name, name_ok.error().why);
    }
    ATHANOR_TRY(const UniqueFd parent, OpenParent(dir_fd_, name));
    const std::string last = BaseName(name);
    struct stat info {};
    if (::fstatat(parent.get(), last.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
      return FailErrno("look at", errno);
    }
    TarMember member;
    member.name = name;
    if (S_ISLNK(info.st_mode)) {
      ATHANOR_TRY(member.target, ReadLink(parent.get(), last));
      if (!LinkStaysBeneath(name, member.target)) {
        return RefuseMember(name, "it is a link that leads out, to '" +
                                      Printable(member.target.substr(0, 256)) + "'");
      }
      member.type = TarMember::Type::kSymlink;
      Describe(info, member);
      member.mode = 0777;
      return Write(std::move(member), -1);
    }
    if (S_ISDIR(info.st_mode)) {
      member.type = TarMember::Type::kFolder;
      Describe(info, member);
      return Write(std::move(member), -1);
    }
    if (!S_ISREG(info.st_mode)) return RefuseMember(name, "it is a special file");
    // O_NONBLOCK: if a FIFO replaced the file, opening it must not hang.
    ATHANOR_TRY(const UniqueFd file, OpenBeneath(parent.get(), last, O_RDONLY | O_NONBLOCK));
    if (::fstat(file.get(), &info) != 0) return FailErrno("look at", errno);
    if (!S_ISREG(info.st_mode)) return RefuseMember(name, "it is a special file");
    Describe(info, member);
    member.size = static_cast<uint64_t>(info.st_size);
    return Write(std::move(member), file.get());
  }

  Status Write(TarMember member, int file) {
    ATHANOR_CHECK_OK(writer_.Add(member, file));
    bytes_ += member.size;
    if (members_) members_->push_back(std::move(member));
    return Ok();
  }

  static void Describe(const struct stat& info, TarMember& member) {
    member.mode = info.st_mode & 0777;
    member.modified.ms = int64_t{info.st_mtim.tv_sec} * 1000;
  }

  static Result<std::string> ReadLink(int parent, const std::string& last) {
    std::string target(4096, '\0');
    const ssize_t got = ::readlinkat(parent, last.c_str(), target.data(), target.size());
    if (got < 0) return FailErrno("read link", errno);
    target.resize(static_cast<size_t>(got));
    return target;
  }

  int dir_fd_;
  TarWriter& writer_;
  std::vector<std::string>* left_out_;
  std::vector<TarMember>* members_;
  uint64_t bytes_ = 0;
};

Result<uint64_t> Pack(int dir_fd, std::vector<std::string> names, int out_fd,
                      Compression compression, std::vector<std::string>* left_out,
                      std::vector<TarMember>* members) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  ATHANOR_TRY(auto writer, TarWriter::Open(out_fd, compression));
  Packer packer(dir_fd, *writer, left_out, members);
  for (const auto& name : names) ATHANOR_CHECK_OK(packer.Add(name));
  ATHANOR_CHECK_OK(writer->Close());
  return packer.bytes();
}

}  // namespace

Result<std::vector<std::string>> NamesBelow(int dir_fd) {
  std::vector<std::string> names;
  std::vector<std::string> folders = {""};
  while (!folders.empty()) {
    const std::string folder = std::move(folders.back());
    folders.pop_back();
    UniqueFd opened;
    if (!folder.empty()) {
      auto found = OpenBeneath(dir_fd, folder, O_RDONLY | O_DIRECTORY);
      if (!found && found.error().code == ErrorCode::kNotFound) continue;
      ATHANOR_TRY(opened, std::move(found));
    }
    const int at = folder.empty() ? dir_fd : opened.get();
    ATHANOR_TRY(const auto entries, ListDirAt(at));
    for (const auto& entry : entries) {
      std::string name = JoinPath(folder, entry);
      struct stat info {};
      // What was removed since the listing is treated as if it had never been there.
      if (::fstatat(at, entry.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
      if (S_ISDIR(info.st_mode) && CheckRelativeName(name).ok()) folders.push_back(name);
      names.push_back(std::move(name));
    }
  }
  return names;
}

bool LinkStaysBeneath(std::string_view name, std::string_view target) {
  if (target.empty() || target.front() == '/' || target.size() > 4095) return false;
  auto folders = std::count(name.begin(), name.end(), '/');
  bool went_down = false;
  for (const auto& part : Split(target, '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      went_down = true;
      continue;
    }
    // After a step down, ".." may start from wherever another link led.
    if (went_down || folders == 0) return false;
    --folders;
  }
  return true;
}

Result<uint64_t> PackTree(const std::string& dir, int out_fd, Compression compression,
                          std::vector<std::string>* left_out, std::vector<TarMember>* members) {
  ATHANOR_TRY(const UniqueFd dir_fd, OpenDir(dir));
  return PackTree(dir_fd.get(), out_fd, compression, left_out, members);
}

Result<uint64_t> PackTree(int dir_fd, int out_fd, Compression compression,
                          std::vector<std::string>* left_out, std::vector<TarMember>* members) {
  ATHANOR_TRY(auto names, NamesBelow(dir_fd));
  return Pack(dir_fd, std::move(names), out_fd, compression, left_out, members);
}

Status ExtractTar(int in_fd, int dir_fd, const ExtractLimits& limits) {
  ATHANOR_TRY(auto reader, TarReader::Open(in_fd, limits));
  return Extractor(*reader, dir_fd).Run();
}

Result<std::vector<TarMember>> ListTar(int in_fd, const ExtractLimits& limits) {
  NoteRead(UINT64_MAX);  // all of it
  ATHANOR_TRY(auto reader, TarReader::Open(in_fd, limits));
  std::vector<TarMember> members;
  for (;;) {
    ATHANOR_TRY(const bool more, reader->Next());
    if (!more) return members;
    if (!reader->member().name.empty()) members.push_back(reader->member());
  }
}

Result<uint64_t> ExtractOne(int in_fd, std::string_view member, int out_fd,
                            const ExtractLimits& limits) {
  ATHANOR_TRY(auto reader, TarReader::Open(in_fd, limits));
  for (;;) {
    ATHANOR_TRY(const bool more, reader->Next());
    if (!more) {
      return Fail(ErrorCode::kNotFound,
                  "the archive has no file '" + Printable(member.substr(0, 256)) + "'");
    }
    const TarMember& at = reader->member();
    if (at.type != TarMember::Type::kFile || at.name != member) continue;
    ATHANOR_CHECK_OK(reader->CopyToStream(out_fd));
    return at.size;
  }
}

}  // namespace athanor
