#include "link/job_files_service.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>

#include "base/exec/mutex.h"
#include "base/ids.h"
#include "base/io/files.h"
#include "base/io/unnamed_file.h"
#include "base/text/text.h"
#include "job/host.h"
#include "job/manifest.h"
#include "link/job_dir.h"
#include "link/job_files_wire.h"

namespace athanor {
namespace {

namespace wire = files_wire;

constexpr size_t kListings = 64;
constexpr size_t kMostLanes = 10'000;
constexpr size_t kMostPutList = 256u << 20;

constexpr JobFilesService::Row kRows[] = {
    {"POST", "/agent/v1/files/has", "agent.files.has"},
    {"GET", "/agent/v1/files/blobs/{shelf}/{sha256}", "agent.files.blob"},
    {"GET", "/agent/v1/files/uploads/{shelf}/{sha256}", "agent.files.received"},
    {"PUT", "/agent/v1/files/uploads/{shelf}/{sha256}", "agent.files.upload"},
    {"GET", "/agent/v1/files/entries", "agent.files.list"},
    {"GET", "/agent/v1/files/entry", "agent.files.read"},
    {"PUT", "/agent/v1/files/entry", "agent.files.replace"},
    {"POST", "/agent/v1/files/entry", "agent.files.append"},
    {"DELETE", "/agent/v1/files/entry", "agent.files.remove"},
    {"GET", "/agent/v1/files/checkpoints", "agent.files.steps"},
    {"POST", "/agent/v1/files/checkpoints", "agent.files.commit"},
    {"POST", "/agent/v1/files/care", "agent.files.care"},
};

Result<uint64_t> Number(const Request& request, const char* name) {
  const std::string text = request.Query(name).value_or("");
  uint64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || failed != std::errc() || end != text.data() + text.size() ||
      value > wire::kMostBytes) {
    return Fail(ErrorCode::kInvalid, std::string("'") + name +
                                         "' must be a number of bytes, up to " +
                                         std::to_string(wire::kMostBytes));
  }
  return value;
}

Status CheckSha256(const std::string& sha256) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (sha256.size() == 64 && std::all_of(sha256.begin(), sha256.end(), is_digit)) return Ok();
  return Fail(ErrorCode::kInvalid, "a blob is named by the 64 hex digits of its sha256");
}

// What a call about one blob is about.
struct Named {
  Shelf shelf = Shelf::kBlobs;
  std::string sha256;
};

Result<Named> NamedIn(const Captures& captures) {
  const auto shelf = wire::ShelfNamed(captures["shelf"]);
  if (!shelf) return Fail(ErrorCode::kInvalid, "no shelf of that name");
  ATHANOR_CHECK_OK(CheckSha256(captures["sha256"]));
  return Named{*shelf, captures["sha256"]};
}

Result<std::string> FolderOf(const JobFilesGrant& grant, Shelf shelf) {
  switch (shelf) {
    case Shelf::kBlobs:
      return grant.files.blob_dir;
    case Shelf::kParts:
      return JoinPath(grant.files.job_dir, job_dir::kParts);
    case Shelf::kEarlierParts:
      break;
  }
  return Fail(ErrorCode::kDenied, "the checkpoints of another job are read only");
}

// Where what has come of an upload is: each job has its own, since bytes that are not whole yet may
// be anything.
Result<std::string> UploadPath(const JobFilesGrant& grant, const Named& named) {
  ATHANOR_TRY(const auto folder, FolderOf(grant, named.shelf));
  return folder + "/tmp/upload-" + grant.job + "-" + named.sha256;
}

uint64_t SizeOf(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
}

Response Bytes() {
  Response head;
  head.headers.Add("Content-Type", "application/octet-stream");
  return head;
}

Response Text(std::string json) { return Response::Json(200, std::move(json)); }

// The whole body, wherever it was put.
Result<std::string> BodyOf(const Request& request) {
  if (!request.body_file) return request.body;
  if (::lseek(request.body_file->get(), 0, SEEK_SET) < 0) return FailErrno("seek", errno);
  return ReadAll(request.body_file->get());
}

// What an agent may change: that of the first host everything of its job, those of the others what
// has their host's name (job/host.h), so that no host can undo what another one stored.
Status MayChange(const JobFilesGrant& grant, std::string_view row, const std::string& name) {
  if (grant.host == 0) return Ok();
  const std::string own = HostNameOf(grant.host);
  const std::string events = JoinPath(job_dir::kEvents, own);
  const bool entry =
      row == "agent.files.replace" || row == "agent.files.append" || row == "agent.files.remove";
  const bool allowed = name == events || StartsWith(name, events + "/") ||
                       name == std::string(job_dir::kCapture) + "." + own ||
                       StartsWith(name, std::string(job_dir::kCapture) + "." + own + "/") ||
                       StartsWith(name, std::string(job_dir::kMembers) + "/");
  if (entry && allowed) return Ok();
  return Fail(ErrorCode::kDenied,
              own + " may not change " + (entry ? Printable(name) : "the checkpoints of its job"));
}

// Whether nobody else has the file open: then nobody can change it any more, since its name is only
// known here. Should somebody open it meanwhile, the kernel's signal is one that nobody minds.
bool IsOursAlone(int fd) {
  (void)::fcntl(fd, F_SETSIG, SIGURG);
  if (::fcntl(fd, F_SETLEASE, F_WRLCK) != 0) return false;
  (void)::fcntl(fd, F_SETLEASE, F_UNLCK);
  return true;
}

Result<BlobRef> CopyIn(const BlobStore& store, int fd, const std::string& sha256) {
  ATHANOR_TRY(auto writer, store.NewBlob());
  std::string buffer(1 << 20, '\0');
  for (off_t at = 0;;) {
    const ssize_t got = ::pread(fd, buffer.data(), buffer.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FailErrno("read an upload", errno);
    if (got == 0) return writer.Commit(sha256);
    ATHANOR_CHECK_OK(writer.Write({buffer.data(), static_cast<size_t>(got)}));
    at += got;
  }
}

// All its bytes are there. Another connection of the same agent, one that the network has cut, may
// still have the file open.
Result<BlobRef> TakeIn(const BlobStore& store, const std::string& upload,
                       const std::string& sha256) {
  const std::string whole = upload + "." + NewUlid().ToString();
  if (::rename(upload.c_str(), whole.c_str()) != 0) return FailErrno("take in an upload", errno);
  ATHANOR_TRY(auto writer, store.Continue(whole));
  if (IsOursAlone(writer.fd())) return writer.Commit(sha256);
  return CopyIn(store, writer.fd(), sha256);
}

}  // namespace

struct JobFilesService::Call {
  std::string_view row;
  Request request;
  Captures captures;
  JobFilesGrant grant;
  Responder responder;
  std::unique_ptr<LocalJobFiles> files;
};

std::span<const JobFilesService::Row> JobFilesService::Rows() { return kRows; }

BodyPolicy JobFilesService::PolicyFor(std::string_view row, const Captures& captures,
                                      const Request& head, const JobFilesGrant& grant) const {
  BodyPolicy policy;
  const auto refuse = [&policy](const Error& error) -> BodyPolicy {
    policy.refuse = ErrorResponse(error);
    return std::move(policy);
  };
  if (row == "agent.files.upload") {
    const auto named = NamedIn(captures);
    if (!named) return refuse(named.error());
    if (named->shelf == Shelf::kParts) {
      if (const auto may = MayChange(grant, row, ""); !may) return refuse(may.error());
    }
    const auto bytes = Number(head, "bytes");
    const auto from = Number(head, "from");
    if (!bytes) return refuse(bytes.error());
    if (!from) return refuse(from.error());
    const auto path = UploadPath(grant, *named);
    if (!path) return refuse(path.error());
    if (auto made = MakeDirs(DirName(*path)); !made) return refuse(made.error());
    UniqueFd fd(::open(path->c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    struct stat info {};
    if (!fd || ::fstat(fd.get(), &info) != 0) {
      return refuse(FailErrno("receive a blob", errno).value());
    }
    const auto received = static_cast<uint64_t>(info.st_size);
    if (*from > *bytes || *from > received ||
        ::lseek(fd.get(), static_cast<off_t>(*from), SEEK_SET) < 0) {
      policy.refuse = Response::Json(409, wire::Encode(wire::UploadState{false, received}));
      return policy;
    }
    policy.max_bytes = *bytes - *from;
    policy.spool = std::move(fd);
    return policy;
  }
  policy.max_bytes = row == "agent.files.has"       ? wire::kMostQuestion
                     : row == "agent.files.append"  ? wire::kMostAppended
                     : row == "agent.files.commit"  ? wire::kMostManifest
                     : row == "agent.files.care"    ? wire::kMostCare
                     : row == "agent.files.replace" ? wire::kMostBytes
                                                    : 0;
  if (policy.max_bytes <= wire::kMostQuestion) return policy;
  if (auto made = MakeDirs(grant.files.job_dir); !made) return refuse(made.error());
  auto file = UnnamedFile(grant.files.job_dir);
  if (!file) return refuse(file.error());
  policy.spool = std::move(*file);
  return policy;
}

void JobFilesService::Handle(std::string_view row, Request request, Captures captures,
                             JobFilesGrant grant, Responder responder) {
  const auto known = std::find_if(std::begin(kRows), std::end(kRows),
                                  [&](const Row& one) { return one.name == row; });
  if (known == std::end(kRows)) {
    return responder.Send(ErrorResponse(Error{ErrorCode::kBug, "no such call"}));
  }
  auto call = std::make_shared<Call>(Call{known->name, std::move(request), std::move(captures),
                                          std::move(grant), responder, nullptr});
  const bool taken = workers_.Submit([this, call] {
    auto answer = Answer(*call);
    if (!answer) return call->responder.Send(ErrorResponse(answer.error()));
    if (!call->responder.answered()) call->responder.Send(std::move(*answer));
  });
  if (!taken) {
    responder.Send(ErrorResponse(Error{ErrorCode::kUnavailable, "the server is stopping"}));
  }
}

Result<Response> JobFilesService::Answer(Call& call) {
  ATHANOR_TRY(call.files, LocalJobFiles::Open(call.grant.files));
  auto& files = *call.files;
  const auto& request = call.request;
  if (call.row == "agent.files.has") return Has(call);
  if (call.row == "agent.files.received") return UploadNow(call);
  if (call.row == "agent.files.upload") return Upload(call);
  if (call.row == "agent.files.blob") {
    ATHANOR_CHECK_OK(SendBlob(call));
    return Response{};
  }
  if (call.row == "agent.files.list") {
    ATHANOR_TRY(const auto entries, files.List(request.Query("folder").value_or("")));
    return Text(wire::EncodeEntries(entries));
  }
  if (call.row == "agent.files.read") {
    ATHANOR_TRY(auto fd, files.Read(request.Query("name").value_or("")));
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0) return FailErrno("stat", errno);
    call.responder.SendFile(Bytes(), std::move(fd), 0, static_cast<uint64_t>(info.st_size));
    return Response{};
  }
  if (call.row == "agent.files.steps") {
    ATHANOR_TRY(const auto store, files.Checkpoints());
    ATHANOR_TRY(const auto listing, store.List());
    return Text(wire::EncodeSteps(listing.checkpoints));
  }
  ATHANOR_CHECK_OK(MayChange(call.grant, call.row, request.Query("name").value_or("")));
  const auto number = request.headers.Get(wire::kCallHeader);
  if (number.empty()) return Change(call);  // an agent of an older version
  uint64_t asked = 0;
  std::from_chars(number.data(), number.data() + number.size(), asked);
  const auto lane = LaneOf(call);
  const MutexLock lock(lane->mutex);
  // One that is still wanted is asked again, with a higher number.
  if (asked <= lane->last)
    return Fail(ErrorCode::kUnavailable, "a later call came before this one");
  lane->last = asked;
  return Change(call);
}

std::shared_ptr<JobFilesService::Lane> JobFilesService::LaneOf(const Call& call) {
  const bool entry = call.request.Query("name").has_value();
  const std::string key = call.grant.job + "/" + std::to_string(call.grant.files.attempt) + "/" +
                          std::to_string(call.grant.host) + "/" +
                          (entry ? "entry/" + *call.request.Query("name") : "checkpoints");
  const MutexLock lock(mutex_);
  if (lanes_.size() >= kMostLanes) {
    std::erase_if(lanes_, [](const auto& lane) { return lane.second.use_count() == 1; });
  }
  auto& lane = lanes_[key];
  if (!lane) lane = std::make_shared<Lane>();
  return lane;
}

Result<Response> JobFilesService::Change(Call& call) {
  auto& files = *call.files;
  const auto& request = call.request;
  const std::string name = request.Query("name").value_or("");
  if (call.row == "agent.files.care") return Tend(call);
  if (call.row == "agent.files.remove") {
    ATHANOR_CHECK_OK(files.Remove(name));
    return Text("{}");
  }
  if (call.row == "agent.files.commit") {
    ATHANOR_TRY(const std::string text, BodyOf(request));
    ATHANOR_TRY(const auto manifest, ParseManifest(text));
    ATHANOR_TRY(const auto info, files.Commit(manifest));
    return Text(wire::EncodeCheckpoint(info));
  }
  if (call.grant.on_events && job_dir::IsEvents(name)) call.grant.on_events();
  if (call.row == "agent.files.replace") {
    if (!request.body_file) return Fail(ErrorCode::kBug, "a body that was not put in a file");
    ATHANOR_CHECK_OK(files.Replace(name, request.body_file->get()));
    return Text("{}");
  }
  ATHANOR_TRY(const uint64_t at, Number(request, "at"));
  ATHANOR_TRY(const std::string bytes, BodyOf(request));
  ATHANOR_TRY(const uint64_t size, files.Append(name, at, bytes));
  return Text(wire::Encode(wire::UploadState{true, size}));
}

Result<Response> JobFilesService::Has(Call& call) {
  ATHANOR_TRY(const auto question, wire::DecodeQuestion(call.request.body));
  ATHANOR_TRY(auto there, call.files->Has(question.shelf, question.blobs));
  if (question.shelf == Shelf::kBlobs) {
    for (size_t i = 0; i < there.size(); ++i) {
      there[i] = there[i] && MayRead(call.grant, question.blobs[i].sha256);
    }
  }
  return Text(wire::EncodeThere(there));
}

Result<Response> JobFilesService::UploadNow(Call& call) {
  ATHANOR_TRY(const auto named, NamedIn(call.captures));
  ATHANOR_TRY(const uint64_t bytes, Number(call.request, "bytes"));
  ATHANOR_TRY(const auto path, UploadPath(call.grant, named));
  ATHANOR_TRY(const auto there, call.files->Has(named.shelf, {{named.sha256, bytes}}));
  const bool stored =
      there.front() && (named.shelf != Shelf::kBlobs || MayRead(call.grant, named.sha256));
  return Text(wire::Encode(wire::UploadState{stored, stored ? bytes : SizeOf(path)}));
}

Result<Response> JobFilesService::Upload(Call& call) {
  ATHANOR_TRY(const auto named, NamedIn(call.captures));
  if (named.shelf == Shelf::kParts) ATHANOR_CHECK_OK(MayChange(call.grant, call.row, ""));
  ATHANOR_TRY(const uint64_t bytes, Number(call.request, "bytes"));
  ATHANOR_TRY(const auto path, UploadPath(call.grant, named));
  if (call.request.body_file) call.request.body_file->reset();
  const uint64_t received = SizeOf(path);
  if (received < bytes || !Exists(path)) {
    return Text(wire::Encode(wire::UploadState{false, received}));
  }
  ATHANOR_TRY(const auto store, call.files->StoreOf(named.shelf, true));
  auto taken = TakeIn(store, path, named.sha256);
  // Another connection was faster: one that the agent took for dead, or that of another host with
  // the same bytes. It may not have stored them yet.
  if (!taken && taken.error().code == ErrorCode::kNotFound) {
    if (!store.Has(named.sha256)) return Text(wire::Encode(wire::UploadState{false, 0}));
    taken = BlobRef{named.sha256, bytes};
  }
  ATHANOR_TRY(const auto ref, std::move(taken));
  if (named.shelf == Shelf::kBlobs) {
    ATHANOR_CHECK_OK(MakeDirs(call.grant.files.job_dir));
    const std::string list = JoinPath(call.grant.files.job_dir, job_dir::kPutBlobs);
    const UniqueFd fd(::open(list.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (!fd) return FailErrno("write " + list, errno);
    ATHANOR_CHECK_OK(WriteAll(fd.get(), ref.sha256 + "\n"));
  }
  return Text(wire::Encode(wire::UploadState{true, ref.bytes}));
}

Status JobFilesService::SendBlob(Call& call) {
  ATHANOR_TRY(const auto named, NamedIn(call.captures));
  if (named.shelf == Shelf::kBlobs && !MayRead(call.grant, named.sha256)) {
    return Fail(ErrorCode::kNotFound, "the job names no blob " + named.sha256);
  }
  ATHANOR_TRY(auto fd, call.files->Get(named.shelf, named.sha256));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return FailErrno("stat", errno);
  const auto size = static_cast<uint64_t>(info.st_size);
  uint64_t from = 0;
  if (call.request.Query("from")) {
    ATHANOR_TRY(from, Number(call.request, "from"));
  }
  if (from > size) return Fail(ErrorCode::kInvalid, "the blob is shorter than that");
  call.responder.SendFile(Bytes(), std::move(fd), from, size - from);
  return Ok();
}

Result<Response> JobFilesService::Tend(Call& call) {
  ATHANOR_TRY(const std::string text, BodyOf(call.request));
  ATHANOR_TRY(auto asked, wire::DecodeCare(text));
  CheckpointCare care;
  if (asked.keep) care.keep = &*asked.keep;
  std::map<int64_t, double> values(asked.values.begin(), asked.values.end());
  care.value_of = [&values](int64_t step) -> std::optional<double> {
    const auto known = values.find(step);
    return known == values.end() ? std::nullopt : std::optional(known->second);
  };
  care.needed = std::move(asked.needed);
  ATHANOR_CHECK_OK(call.files->Tend(care));
  return Text("{}");
}

bool JobFilesService::MayRead(const JobFilesGrant& grant, const std::string& sha256) {
  for (const auto* names : {&grant.blobs, &grant.listings}) {
    if (std::find(names->begin(), names->end(), sha256) != names->end()) return true;
  }
  for (const auto& listing : grant.listings) {
    const auto named = NamedBy(grant, listing);
    if (named && (*named)->contains(sha256)) return true;
  }
  const auto put = ReadFile(JoinPath(grant.files.job_dir, job_dir::kPutBlobs), kMostPutList);
  return put && CheckSha256(sha256).ok() && put->find(sha256 + "\n") != std::string::npos;
}

Result<std::shared_ptr<const std::unordered_set<std::string>>> JobFilesService::NamedBy(
    const JobFilesGrant& grant, const std::string& listing) {
  {
    const MutexLock lock(mutex_);
    if (const auto known = listings_.find(listing); known != listings_.end()) return known->second;
  }
  ATHANOR_TRY(const auto blobs, BlobStore::Open(grant.files.blob_dir));
  ATHANOR_TRY(const auto fd, blobs.Read(listing));
  ATHANOR_TRY(const auto text, ReadAll(fd.get(), kManifestTextLimit));
  ATHANOR_TRY(const auto manifest, ReadManifest(text));
  auto named = std::make_shared<std::unordered_set<std::string>>();
  for (const auto& entry : manifest.entries) {
    if (entry.kind == BundleEntry::Kind::kFile) named->insert(entry.sha256);
  }
  const MutexLock lock(mutex_);
  if (listings_.size() >= kListings) listings_.erase(listings_.begin());
  listings_[listing] = named;
  return std::shared_ptr<const std::unordered_set<std::string>>(named);
}

}  // namespace athanor
