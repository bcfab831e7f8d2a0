#include "submit/walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <deque>
#include <map>
#include <memory>
#include <system_error>
#include <thread>

#include "base/exec/mutex.h"
#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "submit/errors.h"

namespace athanor {
namespace {

constexpr size_t kSeenLimit = 1'000'000;
constexpr size_t kNoteLimit = 50;
constexpr size_t kFilesForOne = 200;    // from so many on a second thread is worth its start
constexpr size_t kWaitingFolders = 64;  // each holds a descriptor

struct CloseDir {
  void operator()(DIR* dir) const { ::closedir(dir); }
};
using DirHandle = std::unique_ptr<DIR, CloseDir>;

struct Name {
  std::string text;
  unsigned char type;  // of <dirent.h>; a file system may not say
};

// One folder: its names, sorted, and what of it is packaged.
struct Folder {
  std::string path;  // "" or with a '/' at its end
  DirHandle dir;     // open until its files were looked at
  std::vector<Name> names;
  std::vector<Found> found;  // files lack size, mode and stamp until they were looked at
  size_t kept = 0;           // with sub-folders

  int fd() const { return ::dirfd(dir.get()); }
  std::string_view name() const {  // without the '/'
    return std::string_view(path).substr(0, path.empty() ? 0 : path.size() - 1);
  }
  bool Has(std::string_view name) const {
    const auto at =
        std::lower_bound(names.begin(), names.end(), name,
                         [](const Name& a, std::string_view wanted) { return a.text < wanted; });
    return at != names.end() && at->text == name;
  }
};

// False: it is gone again, as if it had never existed.
bool LookAt(int folder_fd, const char* name, Found& found) {
  struct stat info {};
  if (::fstatat(folder_fd, name, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode)) {
    return false;
  }
  found.entry.size = static_cast<uint64_t>(info.st_size);
  found.entry.executable = (info.st_mode & 0100) != 0;
  found.stamp = FileStamp::Of(info);
  return true;
}

void LookAtFiles(Folder& folder) {
  const auto gone = [&](Found& found) {
    return found.entry.kind == BundleEntry::Kind::kFile &&
           !LookAt(folder.fd(), found.entry.path.c_str() + folder.path.size(), found);
  };
  folder.kept -= std::erase_if(folder.found, gone);
  folder.dir.reset();
}

// Folders whose files must be checked, by the first free thread: the one that adds them, and a
// second one once there are many.
class Looks {
 public:
  ~Looks() { Finish(); }

  void Give(Folder& folder) {
    files_ += folder.found.size();
    bool full = false;
    {
      const MutexLock lock(mutex_);
      waiting_.push_back(&folder);
      full = waiting_.size() > kWaitingFolders;
    }
    some_.notify_one();
    if (!helper_.joinable() && files_ >= kFilesForOne) CallHelp();
    if (full) (void)TakeOne();
  }

  // Everything that was added has been checked.
  void Finish() {
    while (TakeOne()) {
    }
    if (!helper_.joinable()) return;
    {
      const MutexLock lock(mutex_);
      ended_ = true;
    }
    some_.notify_one();
    helper_.join();
  }

 private:
  void CallHelp() {
    try {
      helper_ = std::thread([this] { Help(); });
    } catch (const std::system_error&) {
      files_ = 0;  // no thread available: this one does it alone
    }
  }

  bool TakeOne() {
    Folder* folder = nullptr;
    {
      const MutexLock lock(mutex_);
      if (waiting_.empty()) return false;
      folder = waiting_.front();
      waiting_.pop_front();
    }
    LookAtFiles(*folder);
    return true;
  }

  void Help() {
    for (;;) {
      {
        MutexLock lock(mutex_);
        some_.wait(lock, [&]() REQUIRES(mutex_) { return ended_ || !waiting_.empty(); });
        if (waiting_.empty()) return;
      }
      (void)TakeOne();
    }
  }

  size_t files_ = 0;
  Mutex mutex_;
  CondVar some_;
  std::deque<Folder*> waiting_ GUARDED_BY(mutex_);
  bool ended_ GUARDED_BY(mutex_) = false;
  std::thread helper_;
};

class Walk {
 public:
  Walk(int root, const ScanOptions& options, SourceTree& tree)
      : root_(root), options_(options), tree_(tree) {}

  Result<std::vector<Found>> Run() {
    std::vector<std::string> todo{""};
    while (!todo.empty()) {
      Folder& folder = folders_.emplace_back();
      folder.path = std::move(todo.back());
      todo.pop_back();
      ATHANOR_CHECK_OK(ReadFolder(folder, todo));
    }
    looks_.Finish();
    if (unlisted_notes_ > 0) {
      tree_.notes.push_back(fmt::format("{} more entries were left out", unlisted_notes_));
    }
    return Gathered();
  }

 private:
  void Note(std::string note) {
    if (tree_.notes.size() < kNoteLimit) {
      tree_.notes.push_back(std::move(note));
    } else {
      ++unlisted_notes_;
    }
  }

  // The names of a folder; none when it is gone again.
  Status List(Folder& folder) {
    const bool top = folder.path.empty();
    const std::string path(folder.name());
    const std::string shown = top ? "the source folder" : Printable(path);
    auto opened = top ? OpenDir(tree_.dir) : OpenBeneath(root_, path, O_RDONLY | O_DIRECTORY);
    if (!opened && !top && opened.error().code == ErrorCode::kNotFound) return Ok();
    if (!opened) return Fail(Unreadable(opened.error(), "/" + folder.path));
    folder.dir.reset(::fdopendir(opened->get()));
    if (!folder.dir) return FailErrno("open " + shown, errno);
    (void)opened->release();
    for (;;) {
      errno = 0;
      const dirent* entry = ::readdir(folder.dir.get());
      if (entry == nullptr) break;
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") folder.names.push_back({std::string(name), entry->d_type});
    }
    if (errno != 0) return FailErrno("list " + shown, errno);
    std::sort(folder.names.begin(), folder.names.end(),
              [](const Name& a, const Name& b) { return a.text < b.text; });
    return Ok();
  }

  void AddRules(const Folder& folder) {
    constexpr std::pair<std::string_view, IgnoreRules::Layer> kFiles[] = {
        {".gitignore", IgnoreRules::Layer::kGit}, {".athanorignore", IgnoreRules::Layer::kAthanor}};
    for (const auto& [name, layer] : kFiles) {
      if (!folder.Has(name)) continue;
      // Git does not follow a link here either; O_NONBLOCK: it may be a pipe.
      const auto file = OpenBeneath(folder.fd(), std::string(name), O_RDONLY | O_NONBLOCK);
      struct stat info {};
      if (!file || ::fstat(file->get(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
      const std::string source = folder.path + std::string(name);
      const auto text = ReadAll(file->get(), kIgnoreFileLimit);
      if (!text) {
        Note(fmt::format("{} could not be read", Printable(source)));
        continue;
      }
      std::string where = tree_.rules.prefix();
      if (!where.empty() && !folder.path.empty()) where += '/';
      where += folder.name();
      tree_.rules.Add(layer, where, *text, source);
    }
  }

  Status ReadFolder(Folder& folder, std::vector<std::string>& todo) {
    ATHANOR_CHECK_OK(List(folder));
    if (!folder.dir) return Ok();
    AddRules(folder);
    const auto rules = tree_.rules.For(folder.name());
    for (const auto& name : folder.names) {
      ATHANOR_CHECK_OK(ReadEntry(folder, name, rules, todo));
    }
    folder.names = {};
    taken_ += folder.found.size();
    looks_.Give(folder);
    return Ok();
  }

  // The kind of an entry comes with its name, so only files that are packaged are checked.
  Status ReadEntry(Folder& folder, const Name& name, const IgnoreRules::InFolder& rules,
                   std::vector<std::string>& todo) {
    if (++seen_ > kSeenLimit) return Fail(TooMany());
    const auto type = TypeOf(folder, name);
    if (rules.Ignores(name.text, type == DT_DIR)) return Ok();
    std::string path = folder.path + name.text;
    if (!CheckRelativeName(path).ok()) {
      Note(fmt::format("{} was left out: its name cannot be packaged", Printable(path)));
      return Ok();
    }
    if (type == DT_DIR) {
      if (::faccessat(folder.fd(), (name.text + "/pyvenv.cfg").c_str(), F_OK,
                      AT_SYMLINK_NOFOLLOW) == 0) {
        Note(fmt::format("{}/ was left out: it is a virtual environment", Printable(path)));
        return Ok();
      }
      ++folder.kept;
      todo.push_back(std::move(path += '/'));
      return Ok();
    }
    Found found;
    found.entry.path = std::move(path);
    if (type == DT_LNK) {
      if (!ReadLink(folder.fd(), name.text, found.entry)) return Ok();
    } else if (type != DT_REG) {
      if (type != DT_UNKNOWN) {
        Note(fmt::format("{} was left out: it is no file, folder or link",
                         Printable(found.entry.path)));
      }
      return Ok();
    }
    if (taken_ + folder.found.size() >= options_.max_files) return Fail(TooMany());
    ++folder.kept;
    folder.found.push_back(std::move(found));
    return Ok();
  }

  // DT_UNKNOWN: it is gone again, as if it had never existed.
  static unsigned char TypeOf(const Folder& folder, const Name& name) {
    struct stat info {};
    if (name.type != DT_UNKNOWN) return name.type;
    if (::fstatat(folder.fd(), name.text.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
      return DT_UNKNOWN;
    return IFTODT(info.st_mode);
  }

  bool ReadLink(int folder_fd, const std::string& name, BundleEntry& entry) {
    char target[PATH_MAX];
    const ssize_t length = ::readlinkat(folder_fd, name.c_str(), target, sizeof target);
    if (length < 0) return false;
    entry.kind = BundleEntry::Kind::kLink;
    entry.target.assign(target, static_cast<size_t>(length));
    const Status inside = CheckLinkTarget(entry.path, entry.target);
    if (!inside.ok()) {
      Note(fmt::format("{}, so it was left out; give the data as a channel: -i NAME=PATH",
                       inside.error().what));
    }
    return inside.ok();
  }

  // What was found, by path; a folder of which nothing is packaged is listed itself.
  Result<std::vector<Found>> Gathered() {
    std::vector<Found*> order;
    order.reserve(taken_ + folders_.size());
    for (auto& folder : folders_) {
      if (folder.kept == 0 && !folder.path.empty()) {
        Found& empty = folder.found.emplace_back();
        empty.entry.path = folder.name();
        empty.entry.kind = BundleEntry::Kind::kFolder;
      }
      for (auto& found : folder.found) order.push_back(&found);
    }
    if (order.size() > options_.max_files) return Fail(TooMany());
    std::sort(order.begin(), order.end(),
              [](const Found* a, const Found* b) { return a->entry.path < b->entry.path; });
    std::vector<Found> all;
    all.reserve(order.size());
    for (Found* found : order) all.push_back(std::move(*found));
    return all;
  }

  Error TooMany() {
    looks_.Finish();
    // Which top folder they are in; the walk has not seen the rest, so the text says "so far".
    std::map<std::string, size_t> tops;
    for (const auto& folder : folders_) {
      const size_t slash = folder.path.find('/');
      if (slash != std::string::npos) tops[folder.path.substr(0, slash + 1)] += folder.found.size();
    }
    const auto most = std::max_element(tops.begin(), tops.end(),
                                       [](auto& a, auto& b) { return a.second < b.second; });
    auto error = Error{ErrorCode::kInvalid, "the source has too many files",
                       "run in the folder of the script alone"}
                     .Why(fmt::format("more than {}", options_.max_files))
                     .Id("ATH-S0122");
    if (most != tops.end()) {
      error.why += fmt::format("; {} so far in {}", most->second, Printable(most->first));
      error.hint = fmt::format("echo {} >> .athanorignore", ShellQuote("/" + most->first));
    }
    return error;
  }

  const int root_;
  const ScanOptions& options_;
  SourceTree& tree_;
  std::deque<Folder> folders_;
  size_t taken_ = 0;  // by folders read to their end
  size_t seen_ = 0;
  size_t unlisted_notes_ = 0;
  Looks looks_;  // after the folders, which it points to
};

}  // namespace

Result<std::vector<Found>> WalkSource(int root, const ScanOptions& options, SourceTree& tree) {
  return Walk(root, options, tree).Run();
}

Error Unreadable(Error error, const std::string& rule) {
  error.id = "ATH-S0120";
  if (error.hint.empty()) {
    error.hint = fmt::format("make it readable, or: echo {} >> .athanorignore", ShellQuote(rule));
  }
  return error;
}

}  // namespace athanor
