#include "tune/journal_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "base/text/text.h"

namespace athanor::tune {
namespace {

Result<std::string> ReadWhole(int fd, const std::string& path) {
  std::string text;
  char block[65536];
  for (;;) {
    const ssize_t got = ::pread(fd, block, sizeof block, static_cast<off_t>(text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FailErrno("read " + Printable(path), errno);
    if (got == 0) return text;
    text.append(block, static_cast<size_t>(got));
  }
}

}  // namespace

Result<std::unique_ptr<JournalFile>> JournalFile::Open(const std::string& path) {
  auto file = std::make_unique<JournalFile>();
  file->fd_ = UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!file->fd_) return FailErrno("open " + Printable(path), errno);
  if (::flock(file->fd_.get(), LOCK_EX | LOCK_NB) != 0) {
    return Fail(Error{ErrorCode::kConflict, Printable(path) + " is in use",
                      "end the other search, or take another file"}
                    .Why("another process writes this journal")
                    .Id("ATH-T0007"));
  }
  ATHANOR_TRY(auto bytes, ReadWhole(file->fd_.get(), path));
  auto text = ReadJournal(bytes);
  if (!text) {
    text.error().where = path;
    return Fail(std::move(text.error()));
  }
  if (text->whole < bytes.size() &&
      ::ftruncate(file->fd_.get(), static_cast<off_t>(text->whole)) != 0) {
    return FailErrno("cut the torn end of " + Printable(path), errno);
  }
  file->size_ = static_cast<off_t>(text->whole);
  file->text_ = std::move(*text);
  return file;
}

Status JournalFile::Append(std::string_view line) {
  const size_t whole = line.size();
  while (!line.empty()) {
    const ssize_t written = ::write(fd_.get(), line.data(), line.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int why = errno;
      // Otherwise half a line would be before the next one.
      if (::ftruncate(fd_.get(), size_) != 0) return FailErrno("cut the journal back", errno);
      return FailErrno("write the journal", why);
    }
    line.remove_prefix(static_cast<size_t>(written));
  }
  size_ += static_cast<off_t>(whole);
  return Ok();
}

Result<std::unique_ptr<StdioProtocol>> ProtocolOver(JournalFile* file) {
  if (!file) return std::make_unique<StdioProtocol>();
  const Session::Sink sink = [file](std::string_view line) { return file->Append(line); };
  std::unique_ptr<Session> session;
  if (!file->text().events.empty()) {
    ATHANOR_TRY(session, Session::Replay(file->text(), sink));
  }
  return std::make_unique<StdioProtocol>(sink, std::move(session));
}

}  // namespace athanor::tune
