#include "run/agent/outputs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "base/io/archive.h"
#include "base/io/files.h"
#include "base/io/unnamed_file.h"
#include "link/job_dir.h"
#include "record/objects/member_list.h"

namespace athanor {
namespace {

Result<std::optional<KeptOutput>> KeepFolder(const HeldFolder& folder, const std::string& name,
                                             JobFiles& files, const std::string& scratch_dir) {
  const auto dir = folder.Open();
  if (!dir && dir.error().code == ErrorCode::kNotFound) return std::optional<KeptOutput>();
  if (!dir) {
    Error error = dir.error();
    error.hint = "let the script write into the folder itself: what lies elsewhere is not kept";
    return Fail(std::move(error));
  }
  ATHANOR_TRY(const auto entries, ListDirAt(dir->get()));
  if (entries.empty()) return std::optional<KeptOutput>();
  ATHANOR_TRY(auto archive, UnnamedFile(scratch_dir));
  std::vector<std::string> left_out;
  std::vector<TarMember> members;
  ATHANOR_TRY([[maybe_unused]] auto bytes,
              PackTree(dir->get(), archive.get(), Compression::kGzip, &left_out, &members));
  struct stat packed {};
  if (::fstat(archive.get(), &packed) != 0) return FailErrno("stat " + name, errno);
  ATHANOR_TRY(const auto ref, files.Put(Shelf::kBlobs, archive.get(), 0,
                                        static_cast<uint64_t>(packed.st_size), {}));
  // Without it the first who looks inside waits until the archive is read.
  (void)ReplaceWith(files, JoinPath(job_dir::kMembers, MembersName(ref.sha256)),
                    MembersText(members))
      .ok();
  KeptOutput kept{Output{name, ref.sha256, ref.bytes, entries.size()}, std::move(archive)};
  return std::optional(std::move(kept));
}

}  // namespace

Result<std::vector<KeptOutput>> KeepOutputs(const HeldFolder& ml, JobFiles& files,
                                            const std::string& scratch_dir) {
  std::vector<KeptOutput> outputs;
  for (auto [folder, name] :
       {std::pair{"model", "model.tar.gz"}, {"output/data", "output.tar.gz"}}) {
    ATHANOR_TRY(auto kept, KeepFolder(ml / folder, name, files, scratch_dir));
    if (kept) outputs.push_back(std::move(*kept));
  }
  return outputs;
}

std::string FailureText(const HeldFolder& ml) {
  auto dir = ml.Open();
  if (!dir) return {};
  // The script may have made it a link to anything; only a file beneath counts.
  auto fd = OpenBeneath(dir->get(), "output/failure", O_RDONLY | O_NONBLOCK);
  if (!fd) return {};
  std::string text(kFailureBytes, '\0');
  ssize_t n = ::read(fd->get(), text.data(), text.size());
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return text;
}

}  // namespace athanor
