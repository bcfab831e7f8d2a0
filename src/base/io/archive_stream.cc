#include "base/io/archive_stream.h"

#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/io/files.h"
#include "base/text/text.h"

// libarchive's pax writer calls this one function of an object file that pulls in every format it
// can write, and with them libxml2, liblzma, bzip2 and nettle. It is called for members that are
// not files, folders or links; we write none.
// NOLINTNEXTLINE(bugprone-reserved-identifier): its name is the library's.
extern "C" void __archive_write_entry_filetype_unsupported(archive* writer, archive_entry*,
                                                           const char* format) {
  archive_set_error(writer, EINVAL, "%s: unsupported type of member", format);
}

namespace athanor {
namespace {

constexpr size_t kBufferSize = 256 * 1024;

struct FreeReader {
  void operator()(archive* reader) const { archive_read_free(reader); }
};
struct FreeWriter {
  void operator()(archive* writer) const { archive_write_free(writer); }
};
struct FreeEntry {
  void operator()(archive_entry* entry) const { archive_entry_free(entry); }
};

std::string ErrorTextOf(archive* handle) {
  const char* text = archive_error_string(handle);
  return text == nullptr ? "unknown error" : Printable(std::string_view(text).substr(0, 300));
}

tl::unexpected<Error> OverLimit(std::string_view name, std::string why) {
  return Fail(Error{ErrorCode::kInvalid,
                    "archive refused at member '" + Printable(name.substr(0, 256)) + "'"}
                  .Why(std::move(why)));
}

// "./a/b/" is "a/b"; the caller judges the rest.
std::string TidyName(std::string_view name) {
  while (StartsWith(name, "./")) {
    name.remove_prefix(2);
    while (StartsWith(name, "/")) name.remove_prefix(1);
  }
  while (name.size() > 1 && name.back() == '/') name.remove_suffix(1);
  return name == "." ? "" : std::string(name);
}

// In the C locale names that are not ASCII have no "multibyte" form, only UTF-8.
std::string TextOr(const char* bytes, const char* utf8) {
  if (bytes != nullptr) return bytes;
  return utf8 == nullptr ? "" : utf8;
}

TarMember MemberOf(archive_entry* entry) {
  TarMember member;
  member.name = TidyName(TextOr(archive_entry_pathname(entry), archive_entry_pathname_utf8(entry)));
  member.mode = archive_entry_perm(entry) & 07777;
  member.modified.ms =
      std::clamp<int64_t>(archive_entry_mtime(entry), -(int64_t{1} << 40), int64_t{1} << 40) * 1000;
  const std::string hardlink =
      TextOr(archive_entry_hardlink(entry), archive_entry_hardlink_utf8(entry));
  if (!hardlink.empty()) {
    member.type = TarMember::Type::kHardlink;
    member.target = TidyName(hardlink);
    return member;
  }
  switch (archive_entry_filetype(entry)) {
    case AE_IFREG:
      member.type = TarMember::Type::kFile;
      member.size = static_cast<uint64_t>(std::max<int64_t>(archive_entry_size(entry), 0));
      break;
    case AE_IFDIR:
      member.type = TarMember::Type::kFolder;
      break;
    case AE_IFLNK:
      member.type = TarMember::Type::kSymlink;
      member.target = TextOr(archive_entry_symlink(entry), archive_entry_symlink_utf8(entry));
      break;
    default:
      member.type = TarMember::Type::kOther;
      break;
  }
  return member;
}

Status WriteAt(int fd, std::string_view bytes, uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (wrote < 0) {
      if (errno == EINTR) continue;
      return FailErrno("write", errno);
    }
    bytes.remove_prefix(static_cast<size_t>(wrote));
    offset += static_cast<uint64_t>(wrote);
  }
  return Ok();
}

}  // namespace

struct TarReader::State {
  int fd = -1;
  ExtractLimits limits;
  std::unique_ptr<archive, FreeReader> handle{archive_read_new()};
  std::vector<char> buffer = std::vector<char>(kBufferSize);
  TarMember member;
  uint64_t entries = 0;
  uint64_t bytes = 0;

  static la_ssize_t Read(archive* handle, void* self, const void** bytes) {
    auto* state = static_cast<State*>(self);
    for (;;) {
      const ssize_t got = ::read(state->fd, state->buffer.data(), state->buffer.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) archive_set_error(handle, errno, "read failed");
      *bytes = state->buffer.data();
      return got < 0 ? ARCHIVE_FATAL : got;
    }
  }

  Status CheckRatio() const {
    const auto unpacked =
        static_cast<uint64_t>(std::max<la_int64_t>(archive_filter_bytes(handle.get(), 0), 0));
    const auto packed =
        static_cast<uint64_t>(std::max<la_int64_t>(archive_filter_bytes(handle.get(), -1), 1));
    if (unpacked < limits.ratio_from || unpacked / packed < limits.max_ratio) return Ok();
    return OverLimit(member.name, "it unpacks to more than " + std::to_string(limits.max_ratio) +
                                      " times its size");
  }

  tl::unexpected<Error> Damaged() const {
    return Fail(Error{ErrorCode::kCorrupt,
                      member.name.empty()
                          ? "the archive cannot be read"
                          : "archive damaged at or after member '" +
                                Printable(std::string_view(member.name).substr(0, 256)) + "'"}
                    .Why(ErrorTextOf(handle.get())));
  }

  // Calls `put(bytes, offset)` for each piece of the current file.
  template <class Put>
  Status ForEachPiece(const Put& put) {
    for (;;) {
      const void* piece = nullptr;
      size_t size = 0;
      la_int64_t offset = 0;
      const int got = archive_read_data_block(handle.get(), &piece, &size, &offset);
      if (got == ARCHIVE_EOF) return Ok();
      if (got != ARCHIVE_OK) return Damaged();
      ATHANOR_CHECK_OK(CheckRatio());
      if (size == 0) continue;
      // The limits were applied to the size in the header: no byte may be beyond it.
      const auto start = static_cast<uint64_t>(std::max<la_int64_t>(offset, 0));
      if (start > member.size || size > member.size - start) {
        return OverLimit(member.name, "it holds more than its header says");
      }
      ATHANOR_CHECK_OK(put(std::string_view(static_cast<const char*>(piece), size), start));
    }
  }
};

TarReader::TarReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
TarReader::~TarReader() = default;

Result<std::unique_ptr<TarReader>> TarReader::Open(int in_fd, const ExtractLimits& limits) {
  auto state = std::make_unique<State>();
  state->fd = in_fd;
  state->limits = limits;
  archive* handle = state->handle.get();
  if (handle == nullptr) return FailErrno("open archive", ENOMEM);
  archive_read_support_format_tar(handle);
  archive_read_support_filter_gzip(handle);
  archive_read_support_filter_zstd(handle);
  if (archive_read_open(handle, state.get(), nullptr, &State::Read, nullptr) != ARCHIVE_OK) {
    return state->Damaged();
  }
  return std::unique_ptr<TarReader>(new TarReader(std::move(state)));
}

Result<bool> TarReader::Next() {
  State& state = *state_;
  archive_entry* entry = nullptr;
  const int got = archive_read_next_header(state.handle.get(), &entry);
  if (got == ARCHIVE_EOF) return false;
  // A warning means a name or an attribute outside the locale; the bytes are there.
  if (got != ARCHIVE_OK && got != ARCHIVE_WARN) return state.Damaged();
  state.member = MemberOf(entry);
  if (++state.entries > state.limits.max_entries) {
    return OverLimit(state.member.name,
                     "it has more than " + std::to_string(state.limits.max_entries) + " members");
  }
  if (state.member.size > state.limits.max_bytes - state.bytes) {
    return OverLimit(state.member.name,
                     "it unpacks to more than " + HumanBytes(state.limits.max_bytes));
  }
  state.bytes += state.member.size;
  ATHANOR_CHECK_OK(state.CheckRatio());
  return true;
}

const TarMember& TarReader::member() const { return state_->member; }

Status TarReader::CopyToFile(int fd) {
  ATHANOR_CHECK_OK(state_->ForEachPiece(
      [fd](std::string_view bytes, uint64_t offset) { return WriteAt(fd, bytes, offset); }));
  // A hole at the end has no piece.
  if (::ftruncate(fd, static_cast<off_t>(state_->member.size)) != 0) {
    return FailErrno("set size", errno);
  }
  return Ok();
}

Status TarReader::CopyToStream(int fd) {
  uint64_t at = 0;
  const std::string zeros(64 * 1024, '\0');
  const auto fill_to = [&](uint64_t offset) -> Status {
    while (at < offset) {
      const auto count = std::min<uint64_t>(zeros.size(), offset - at);
      ATHANOR_CHECK_OK(WriteAll(fd, std::string_view(zeros).substr(0, count)));
      at += count;
    }
    return Ok();
  };
  ATHANOR_CHECK_OK(state_->ForEachPiece([&](std::string_view bytes, uint64_t offset) -> Status {
    if (offset < at) return state_->Damaged();
    ATHANOR_CHECK_OK(fill_to(offset));
    at += bytes.size();
    return WriteAll(fd, bytes);
  }));
  return fill_to(state_->member.size);
}

struct TarWriter::State {
  int fd = -1;
  std::unique_ptr<archive, FreeWriter> handle{archive_write_new()};
  std::unique_ptr<archive_entry, FreeEntry> entry{archive_entry_new()};
  std::vector<char> buffer = std::vector<char>(kBufferSize);
  int write_errno = 0;
  bool abandoned = false;

  static la_ssize_t Write(archive* handle, void* self, const void* bytes, size_t size) {
    auto* state = static_cast<State*>(self);
    if (state->abandoned) return -1;
    for (;;) {
      const ssize_t wrote = ::write(state->fd, bytes, size);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) {
        state->write_errno = errno;
        archive_set_error(handle, errno, "write failed");
      }
      return wrote;
    }
  }

  tl::unexpected<Error> Failed() const {
    if (write_errno != 0) return FailErrno("write archive", write_errno);
    return Fail(ErrorCode::kBug, "write archive: " + ErrorTextOf(handle.get()));
  }

  Status CopyFrom(int file_fd, uint64_t size) {
    while (size > 0) {
      const size_t want = std::min<uint64_t>(buffer.size(), size);
      const ssize_t got = ::read(file_fd, buffer.data(), want);
      if (got < 0) {
        if (errno == EINTR) continue;
        return FailErrno("read", errno);
      }
      if (got == 0) return Fail(ErrorCode::kConflict, "the file shrank while it was packed");
      const auto count = static_cast<size_t>(got);
      if (archive_write_data(handle.get(), buffer.data(), count) !=
          static_cast<la_ssize_t>(count)) {
        return Failed();
      }
      size -= count;
    }
    return Ok();
  }
};

TarWriter::TarWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
TarWriter::~TarWriter() {
  // Freeing an open writer ends the archive as if it were complete; none of that may reach the
  // file. (archive_write_fail would work, but leaks the buffer.)
  state_->abandoned = true;
  state_->handle.reset();
}

Result<std::unique_ptr<TarWriter>> TarWriter::Open(int out_fd, Compression compression) {
  auto state = std::make_unique<State>();
  state->fd = out_fd;
  archive* handle = state->handle.get();
  if (handle == nullptr || state->entry == nullptr) return FailErrno("open archive", ENOMEM);
  archive_write_set_format_pax_restricted(handle);
  switch (compression) {
    case Compression::kNone:
      break;
    case Compression::kGzip:
      archive_write_add_filter_gzip(handle);
      // The time of packing would make every archive different.
      archive_write_set_filter_option(handle, "gzip", "timestamp", nullptr);
      break;
    case Compression::kZstd:
      archive_write_add_filter_zstd(handle);
      break;
  }
  archive_write_set_bytes_in_last_block(handle, 1);
  if (archive_write_open(handle, state.get(), nullptr, &State::Write, nullptr) != ARCHIVE_OK) {
    return state->Failed();
  }
  return std::unique_ptr<TarWriter>(new TarWriter(std::move(state)));
}

Status TarWriter::Add(const TarMember& member, int file_fd) {
  archive_entry* entry = archive_entry_clear(state_->entry.get());
  archive_entry_copy_pathname(entry, member.name.c_str());
  archive_entry_set_perm(entry, static_cast<mode_t>(member.mode));
  archive_entry_set_mtime(entry, static_cast<time_t>(member.modified.ms / 1000), 0);
  archive_entry_set_size(entry, static_cast<la_int64_t>(member.size));
  switch (member.type) {
    case TarMember::Type::kFile:
      archive_entry_set_filetype(entry, AE_IFREG);
      break;
    case TarMember::Type::kFolder:
      archive_entry_set_filetype(entry, AE_IFDIR);
      break;
    case TarMember::Type::kSymlink:
      archive_entry_set_filetype(entry, AE_IFLNK);
      archive_entry_copy_symlink(entry, member.target.c_str());
      break;
    case TarMember::Type::kHardlink:
    case TarMember::Type::kOther:
      return Fail(ErrorCode::kBug, "archive: a member that cannot be written");
  }
  const int wrote = archive_write_header(state_->handle.get(), entry);
  // A warning: the name is not text of the locale, so it is stored as bytes.
  if (wrote != ARCHIVE_OK && wrote != ARCHIVE_WARN) return state_->Failed();
  if (file_fd < 0) return Ok();
  return state_->CopyFrom(file_fd, member.size);
}

Status TarWriter::Close() {
  if (archive_write_close(state_->handle.get()) != ARCHIVE_OK) return state_->Failed();
  return Ok();
}

}  // namespace athanor
