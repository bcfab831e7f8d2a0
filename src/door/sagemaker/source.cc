#include "door/sagemaker/source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/io/archive.h"
#include "base/io/files.h"
#include "base/io/unnamed_file.h"
#include "base/text/text.h"
#include "job/manifest.h"

namespace athanor::sagemaker {
namespace {

// The whole object as one descriptor, at its beginning.
Result<UniqueFd> AsOneFile(ObjectReader& reader, const std::string& scratch) {
  ATHANOR_TRY(auto file, UnnamedFile(scratch));
  ATHANOR_CHECK_OK(reader.Seek(0, reader.info().size));
  std::string buffer(1 << 20, '\0');
  for (;;) {
    ATHANOR_TRY(auto piece, reader.Next());
    if (!piece) break;
    for (uint64_t done = 0; done < piece->length;) {
      const auto want = std::min<uint64_t>(buffer.size(), piece->length - done);
      const ssize_t n =
          ::pread(piece->fd.get(), buffer.data(), want, static_cast<off_t>(piece->offset + done));
      if (n <= 0) return FailErrno("read an object", n < 0 ? errno : EIO);
      ATHANOR_CHECK_OK(WriteAll(file.get(), {buffer.data(), static_cast<size_t>(n)}));
      done += static_cast<uint64_t>(n);
    }
  }
  if (::lseek(file.get(), 0, SEEK_SET) != 0) return FailErrno("seek", errno);
  return file;
}

Result<BundleEntry> Keep(const std::filesystem::directory_entry& found, const std::string& name,
                         const BlobStore& blobs) {
  BundleEntry entry;
  entry.path = name;
  if (found.is_symlink()) {
    entry.kind = BundleEntry::Kind::kLink;
    entry.target = std::filesystem::read_symlink(found.path()).string();
    ATHANOR_CHECK_OK(CheckLinkTarget(name, entry.target));
  } else if (found.is_directory()) {
    entry.kind = BundleEntry::Kind::kFolder;
  } else {
    UniqueFd file(::open(found.path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    struct stat info {};
    if (!file || ::fstat(file.get(), &info) != 0) return FailErrno("open " + name, errno);
    ATHANOR_TRY(const auto blob, blobs.PutFd(file.get()));
    entry.executable = (info.st_mode & 0100) != 0;
    entry.size = blob.bytes;
    entry.sha256 = blob.sha256;
  }
  return entry;
}

Result<BundleManifest> KeepFolder(const std::string& dir, const BlobStore& blobs) {
  BundleManifest manifest;
  std::error_code failed;
  using std::filesystem::recursive_directory_iterator;
  for (recursive_directory_iterator at(dir, failed), end; !failed && at != end;
       at.increment(failed)) {
    const bool folder = at->is_directory() && !at->is_symlink();
    if (folder && !std::filesystem::is_empty(at->path(), failed)) continue;
    if (manifest.entries.size() >= kBundleEntryLimit) {
      return Fail(ErrorCode::kInvalid, "the source has too many files");
    }
    const auto name = at->path().lexically_relative(dir).string();
    ATHANOR_TRY(auto entry, Keep(*at, name, blobs));
    manifest.bytes += entry.size;
    manifest.entries.push_back(std::move(entry));
  }
  if (failed) return Fail(ErrorCode::kUnavailable, "read the unpacked source: " + failed.message());
  std::sort(manifest.entries.begin(), manifest.entries.end(),
            [](const auto& a, const auto& b) { return a.path < b.path; });
  return manifest;
}

}  // namespace

Result<UnpackedSource> UnpackSource(ObjectStore& objects, const BlobStore& blobs,
                                    const ObjectUri& archive, const std::string& program,
                                    const std::string& scratch) {
  ATHANOR_TRY(auto reader, objects.Open(archive.bucket, archive.key));
  ATHANOR_CHECK_OK(MakeDirs(scratch));
  ATHANOR_TRY(const auto file, AsOneFile(*reader, scratch));
  std::string dir = JoinPath(scratch, "source-XXXXXX");
  if (!::mkdtemp(dir.data())) return FailErrno("make a folder in " + scratch, errno);
  auto unpack = [&]() -> Result<UnpackedSource> {
    ATHANOR_TRY(const auto root, OpenDir(dir));
    ATHANOR_CHECK_OK(ExtractTar(file.get(), root.get()));
    ATHANOR_TRY(const auto manifest, KeepFolder(dir, blobs));
    ATHANOR_TRY(const auto bundle, blobs.Put(WriteManifest(manifest)));
    UnpackedSource unpacked;
    unpacked.source.dir = archive.ToString();
    unpacked.source.bundle = bundle.sha256;
    unpacked.source.files = manifest.entries.size();
    unpacked.source.bytes = manifest.bytes;
    unpacked.has_requirements = manifest.Find("requirements.txt") != nullptr;
    unpacked.has_program = manifest.Find(program) != nullptr;
    return unpacked;
  };
  auto unpacked = unpack();
  (void)RemoveTree(dir).ok();
  return unpacked;
}

}  // namespace athanor::sagemaker
