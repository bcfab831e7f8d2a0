#include "cli/fetch.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "base/io/files.h"
#include "base/io/unnamed_file.h"
#include "job/manifest.h"

namespace athanor {

Scratch::Scratch(const char* purpose) {
  const char* below = std::getenv("TMPDIR");
  std::string name =
      JoinPath(below && *below ? below : "/tmp", std::string("ath-") + purpose + "-XXXXXX");
  if (::mkdtemp(name.data())) path_ = name;
}

Scratch::~Scratch() {
  if (!path_.empty()) (void)RemoveTree(path_).ok();
}

Result<UniqueFd> FetchBlob(Client& client, const std::string& sha256, const std::string& dir) {
  ATHANOR_TRY(auto file, UnnamedFile(dir));
  HttpCall call;
  call.target = "/api/v1/blobs/" + sha256;
  call.body_to_fd = file.get();
  ATHANOR_TRY([[maybe_unused]] auto reply, client.Do(std::move(call)));
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

Status FetchSource(Client& client, const std::string& bundle, const std::string& dir) {
  ATHANOR_TRY(auto text, client.GetText("/api/v1/blobs/" + bundle));
  ATHANOR_TRY(auto manifest, ReadManifest(text));
  ATHANOR_CHECK_OK(MakeDirs(dir));
  ATHANOR_TRY(auto folder, OpenDir(dir));
  return LayOut(manifest, folder.get(),
                [&](const std::string& sha) { return FetchBlob(client, sha, dir); });
}

Status FetchFile(Client& client, const std::string& target, const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return FailErrno("write " + path, errno);
  HttpCall call;
  call.target = target;
  call.body_to_fd = file.get();
  ATHANOR_TRY([[maybe_unused]] auto reply, client.Do(std::move(call)));
  return Ok();
}

}  // namespace athanor
