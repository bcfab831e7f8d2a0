#include "run/agent/outputs.h"

#include <fcntl.h>
#include <unistd.h>

#include <optional>

#include "base/io/archive.h"
#include "base/io/files.h"
#include "record/objects/member_list.h"

namespace athanor {
namespace {

Result<std::optional<Output>> KeepFolder(const HeldFolder& folder, const std::string& name,
                                         const BlobStore& blobs, const std::string& members_dir) {
  const auto dir = folder.Open();
  if (!dir && dir.error().code == ErrorCode::kNotFound) return std::optional<Output>();
  if (!dir) {
    Error error = dir.error();
    error.hint = "let the script write into the folder itself: what lies elsewhere is not kept";
    return Fail(std::move(error));
  }
  ATHANOR_TRY(const auto entries, ListDirAt(dir->get()));
  if (entries.empty()) return std::optional<Output>();
  ATHANOR_TRY(auto writer, blobs.NewBlob());
  std::vector<std::string> left_out;
  std::vector<TarMember> members;
  ATHANOR_TRY([[maybe_unused]] auto bytes,
              PackTree(dir->get(), writer.fd(), Compression::kGzip, &left_out, &members));
  ATHANOR_TRY(auto ref, writer.Commit());
  // Without it the first who looks inside waits until the archive is read.
  (void)KeepMembers(members_dir, ref.sha256, members).ok();
  Output output{name, ref.sha256, ref.bytes, entries.size()};
  return std::optional(output);
}

}  // namespace

Result<std::vector<Output>> KeepOutputs(const HeldFolder& ml, const BlobStore& blobs,
                                        const std::string& members_dir) {
  std::vector<Output> outputs;
  for (auto [folder, name] :
       {std::pair{"model", "model.tar.gz"}, {"output/data", "output.tar.gz"}}) {
    ATHANOR_TRY(auto kept, KeepFolder(ml / folder, name, blobs, members_dir));
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
