#include "record/backup/series_pack.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/io/archive.h"
#include "base/io/archive_stream.h"
#include "base/io/files.h"
#include "record/append_file.h"
#include "record/series/series_file.h"
#include "record/series/series_places.h"

namespace athanor {
namespace {

std::string PackPath(const StoreLayout& layout) { return layout.server() + "/series.tar"; }

}  // namespace

Result<std::unique_ptr<SeriesPack>> SeriesPack::Make(const StoreLayout& to) {
  const std::string path = PackPath(to);
  UniqueFd out(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!out) return FailErrno("create " + path, errno);
  ATHANOR_TRY(auto writer, TarWriter::Open(out.get(), Compression::kNone));
  return std::unique_ptr<SeriesPack>(new SeriesPack(std::move(out), std::move(writer)));
}

SeriesPack::SeriesPack(UniqueFd out, std::unique_ptr<TarWriter> writer)
    : out_(std::move(out)), writer_(std::move(writer)) {}
SeriesPack::~SeriesPack() = default;

Status SeriesPack::Add(const StoreLayout& from, JobId run) {
  // Nearly all are at the newer place: checking where costs more than opening.
  std::string path = SeriesPath(from.series(), run);
  auto in = OpenToRead(path);
  if (!in && in.error().code == ErrorCode::kNotFound) {
    path = OldSeriesPath(from.series(), run);
    in = OpenToRead(path);
  }
  if (!in) return in.error().code == ErrorCode::kNotFound ? Ok() : Status(Fail(in.error()));
  struct stat info {};
  if (::fstat(in->get(), &info) != 0) return FailErrno("stat " + path, errno);
  ATHANOR_TRY(const SeriesScan scan,
              ScanSeries(in->get(), 0, static_cast<uint64_t>(info.st_size), {}));
  TarMember member;
  member.name = SeriesPath(".", run).substr(2);
  member.size = scan.end;
  member.mode = 0600;
  member.modified.ms = int64_t{info.st_mtim.tv_sec} * 1000;
  if (::lseek(in->get(), 0, SEEK_SET) < 0) return FailErrno("read " + path, errno);
  ATHANOR_CHECK_OK(writer_->Add(member, in->get()));
  ++files_;
  bytes_ += member.size;
  return Ok();
}

Status SeriesPack::Close() { return writer_->Close(); }

Status UnpackSeries(const StoreLayout& layout) {
  const std::string path = PackPath(layout);
  const auto in = OpenToRead(path);
  if (!in) return in.error().code == ErrorCode::kNotFound ? Ok() : Status(Fail(in.error()));
  ATHANOR_CHECK_OK(MakeDirs(layout.series()));
  ATHANOR_TRY(const UniqueFd out, OpenDir(layout.series()));
  ExtractLimits limits;
  limits.max_entries = 100'000'000;
  limits.max_bytes = uint64_t{1} << 50;
  ATHANOR_CHECK_OK(ExtractTar(in->get(), out.get(), limits));
  if (::unlink(path.c_str()) != 0) return FailErrno("remove " + path, errno);
  return Ok();
}

}  // namespace athanor
