#include <sys/eventfd.h>
#include <sys/stat.h>

#include "base/io/unnamed_file.h"
#include "job/manifest.h"
#include "link/job_checkpoints_conformance.h"
#include "link/job_files_conformance.h"
#include "link/job_files_wire.h"
#include "net/http/http_client.h"
#include "record/fault_testing.h"

namespace athanor {
namespace {

struct Local {
  std::unique_ptr<JobFiles> Open(uint32_t attempt) {
    return LocalJobFiles::Open(folders.options(attempt)).value();
  }
  JobFolders folders;
};

// Of one server, the attempt whose files were opened last is the one that may.
struct Remote {
  std::unique_ptr<JobFiles> Open(uint32_t attempt) {
    server.ChangeGrant([&](JobFilesGrant& grant) { grant.files = folders.options(attempt); });
    return RemoteJobFiles::Open(server.Plain()).value();
  }
  JobFolders folders;
  FilesServer server{folders.options()};
};

struct RemoteOverTls : Remote {
  std::unique_ptr<JobFiles> Open(uint32_t attempt) {
    (void)Remote::Open(attempt);
    return RemoteJobFiles::Open(server.Tls()).value();
  }
};

// Not one of its calls with a large body gets through at the first try.
struct RemoteOverABreakingLine : Remote {
  std::unique_ptr<JobFiles> Open(uint32_t attempt) {
    (void)Remote::Open(attempt);
    return RemoteJobFiles::Open(server.At("https://127.0.0.1", line.port())).value();
  }
  BreakingLine line{server.tls_port(), 5'000, 7'001};
};

using Makers = ::testing::Types<Local, Remote, RemoteOverTls, RemoteOverABreakingLine>;
INSTANTIATE_TYPED_TEST_SUITE_P(Every, JobFilesConformance, Makers);
INSTANTIATE_TYPED_TEST_SUITE_P(Every, JobCheckpointsConformance, Makers);

// Archives of outputs are made like this: gigabytes need not be copied.
TEST(LocalFiles, AFileWithoutANameIsTakenAsItIs) {
  const JobFolders folders;
  const auto files = LocalJobFiles::Open(folders.options()).value();
  const auto fd = UnnamedFile(folders.root).value();
  ASSERT_TRUE(WriteAll(fd.get(), "an archive"));
  const auto put = files->Put(Shelf::kBlobs, fd.get(), 0, 10, {});
  ASSERT_TRUE(put) << put.error().what;
  EXPECT_EQ(put->sha256, Sha256Hex("an archive"));
  struct stat made {};
  struct stat stored {};
  ASSERT_EQ(::fstat(fd.get(), &made), 0);
  ASSERT_EQ(::fstat(files->Get(Shelf::kBlobs, put->sha256)->get(), &stored), 0);
  EXPECT_EQ(made.st_ino, stored.st_ino);
  EXPECT_EQ(stored.st_mode & 0777, 0600u);
}

TEST(LocalFiles, AnEntryIsMadeOfAFileWithoutANameAsItIs) {
  const JobFolders folders;
  const auto files = LocalJobFiles::Open(folders.options()).value();
  const auto fd = UnnamedFile(folders.root).value();
  ASSERT_TRUE(WriteAll(fd.get(), "a table"));
  ASSERT_TRUE(files->Replace("events/table.tsv", fd.get()));
  struct stat made {};
  struct stat stored {};
  ASSERT_EQ(::fstat(fd.get(), &made), 0);
  ASSERT_EQ(::stat((folders.options().job_dir + "/events/table.tsv").c_str(), &stored), 0);
  EXPECT_EQ(made.st_ino, stored.st_ino);
  EXPECT_EQ(stored.st_mode & 0777, 0644u);
  EXPECT_EQ(ReadText(*files, "events/table.tsv", 100).value(), "a table");
}

class RemoteFiles : public ::testing::Test {
 protected:
  std::unique_ptr<RemoteJobFiles> Open() { return RemoteJobFiles::Open(server_.Tls()).value(); }
  BlobStore Blobs() { return BlobStore::Open(folders_.options().blob_dir).value(); }
  Result<BlobRef> Put(JobFiles& files, const std::string& bytes, Shelf shelf = Shelf::kBlobs) {
    const auto fd = FileOf(dir_, bytes);
    return files.Put(shelf, fd.get(), 0, bytes.size(), {});
  }
  std::string Content(Result<UniqueFd> fd) {
    return fd ? ReadAll(fd->get()).value() : "error: " + std::string(RowOf(fd.error().code).name);
  }

  TestDir dir_;
  JobFolders folders_;
  FilesServer server_{folders_.options()};
};

TEST_F(RemoteFiles, OfTheSharedBlobsOnlyThoseThatTheJobNamesOrStoredAreSeen) {
  const auto bundle = Blobs().Put("print(1)").value();
  const auto foreign = Blobs().Put("another job's weights").value();
  BundleManifest listing;
  listing.entries.push_back({});
  listing.entries[0].path = "train.py";
  listing.entries[0].sha256 = bundle.sha256;
  listing.entries[0].size = bundle.bytes;
  listing.bytes = bundle.bytes;
  const auto named = Blobs().Put(WriteManifest(listing)).value();
  auto files = Open();
  EXPECT_EQ(Content(files->Get(Shelf::kBlobs, bundle.sha256)), "error: not_found");
  server_.ChangeGrant([&](JobFilesGrant& grant) { grant.listings = {named.sha256}; });
  EXPECT_EQ(Content(files->Get(Shelf::kBlobs, bundle.sha256)), "print(1)");
  EXPECT_EQ(Content(files->Get(Shelf::kBlobs, named.sha256)), WriteManifest(listing));
  EXPECT_EQ(files->Has(Shelf::kBlobs, {bundle, foreign, named}).value(),
            (std::vector<bool>{true, false, true}));
  EXPECT_EQ(Content(files->Get(Shelf::kBlobs, foreign.sha256)), "error: not_found");
  // Whoever can send the bytes may see them.
  ASSERT_TRUE(Put(*files, "another job's weights"));
  EXPECT_EQ(Content(files->Get(Shelf::kBlobs, foreign.sha256)), "another job's weights");
  EXPECT_TRUE(files->Has(Shelf::kBlobs, {foreign})->front());
}

TEST_F(RemoteFiles, OnlyWhatIsMissingTravels) {
  BreakingLine line(server_.tls_port(), SIZE_MAX / 2, 0);
  auto files = RemoteJobFiles::Open(server_.At("https://127.0.0.1", line.port())).value();
  const std::string bytes = SomeBytes(5'000'000);
  ASSERT_TRUE(Put(*files, bytes, Shelf::kParts));
  const uint64_t once = line.passed();
  ASSERT_TRUE(Put(*files, bytes, Shelf::kParts));
  EXPECT_LT(line.passed() - once, 10'000u);
}

TEST_F(RemoteFiles, WhatWasCutOffGoesOnWhereItStopped) {
  const std::string bytes = SomeBytes(20'000'000);
  BreakingLine line(server_.tls_port(), 3'000'000, 0);
  auto files = RemoteJobFiles::Open(server_.At("https://127.0.0.1", line.port())).value();
  const auto put = Put(*files, bytes, Shelf::kParts);
  ASSERT_TRUE(put) << put.error().what;
  // What was under way when a connection broke is lost, and no more.
  EXPECT_LT(line.passed(), 2 * bytes.size());
  const uint64_t up = line.passed();
  EXPECT_TRUE(Content(files->Get(Shelf::kParts, put->sha256)) == bytes);
  EXPECT_LT(line.passed() - up, 2 * bytes.size());
}

// Planted bug: taking an upload that another connection is just storing for one that is not there.
TEST_F(RemoteFiles, TheSameBytesMayComeFromSeveralAtOnce) {
  const std::string bytes(200'000, 'x');
  for (int round = 0; round < 20; ++round) {
    const std::string text = bytes + std::to_string(round);
    std::vector<std::unique_ptr<RemoteJobFiles>> hosts;
    for (int i = 0; i < 3; ++i) hosts.push_back(Open());
    std::vector<std::thread> threads;
    for (int i = 0; i < 6; ++i) {
      threads.emplace_back([&, i] {
        const auto put = PutText(*hosts[static_cast<size_t>(i % 3)], Shelf::kParts, text);
        EXPECT_TRUE(put) << put.error().what;
      });
    }
    for (auto& thread : threads) thread.join();
    const auto there = hosts[0]->Get(Shelf::kParts, Sha256Hex(text));
    ASSERT_TRUE(there) << there.error().what;
    EXPECT_EQ(ReadAll(there->get()).value(), text);
  }
}

TEST_F(RemoteFiles, WrongBytesAreNotStoredUnderAName) {
  HttpClient client(Endpoint::Parse(server_.Plain().server).value());
  const auto send = [&](const std::string& query, const std::string& body) {
    HttpCall call;
    call.method = "PUT";
    call.target = "/agent/v1/files/uploads/parts/" + Sha256Hex("right") + query;
    call.headers.Add("Authorization", "Bearer token");
    call.body = body;
    return client.Do(call)->status;
  };
  EXPECT_EQ(send("?bytes=5&from=0", "wrong"), 500);
  EXPECT_EQ(send("?bytes=5&from=2", "ght"), 409);  // what was there is gone
  EXPECT_EQ(send("?bytes=5&from=0", "right and more"), 413);
  EXPECT_EQ(send("?bytes=5&from=6", "x"), 409);
  EXPECT_EQ(send("?bytes=-1&from=0", "right"), 400);
  EXPECT_EQ(send("?bytes=5", "right"), 400);
  EXPECT_EQ(send("?bytes=99999999999999&from=0", "right"), 400);
  auto files = Open();
  EXPECT_FALSE(files->Has(Shelf::kParts, {{Sha256Hex("right"), 5}})->front());
  EXPECT_EQ(send("?bytes=5&from=0", "ri"), 200);
  EXPECT_EQ(send("?bytes=5&from=2", "ght"), 200);
  EXPECT_EQ(Content(files->Get(Shelf::kParts, Sha256Hex("right"))), "right");
}

// A cut connection that the server still believes in must not change bytes that have a name.
TEST_F(RemoteFiles, AConnectionThatWasLeftBehindCannotChangeWhatIsStored) {
  const std::string bytes = SomeBytes(100'000);
  const std::string target =
      "/agent/v1/files/uploads/parts/" + Sha256Hex(bytes) + "?bytes=100000&from=0";
  auto behind = testing::RawClient::Tcp(Endpoint::Parse(server_.Plain().server)->port);
  ASSERT_TRUE(behind.Send("PUT " + target +
                          " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer token\r\n"
                          "Content-Length: 100000\r\nExpect: 100-continue\r\n\r\n"));
  behind.ReadUntil("100 Continue\r\n\r\n");
  auto files = Open();
  ASSERT_TRUE(Put(*files, bytes, Shelf::kParts));
  ASSERT_TRUE(behind.Send(std::string(100'000, 'x')));
  behind.ReadResponse();
  EXPECT_TRUE(Content(files->Get(Shelf::kParts, Sha256Hex(bytes))) == bytes);
}

TEST_F(RemoteFiles, AServerOfAnotherKeyIsRefusedAndHearsNothing) {
  const FilesServer other(folders_.options());
  auto options = server_.Tls();
  options.server = other.Tls().server;
  const auto files = RemoteJobFiles::Open(options).value();
  const auto list = files->List("events");
  ASSERT_FALSE(list);
  EXPECT_EQ(list.error().code, ErrorCode::kDenied);
  EXPECT_EQ(Put(*files, "secret").error().code, ErrorCode::kDenied);
  EXPECT_EQ(other.requests(), 0);
}

TEST_F(RemoteFiles, AnAttemptThatIsOverOrAnotherOnesTokenIsRefused) {
  auto options = server_.Tls();
  options.token = "another";
  EXPECT_EQ(RemoteJobFiles::Open(options).value()->List("events").error().code, ErrorCode::kDenied);
  server_.EndAttempt();
  EXPECT_EQ(Open()->List("events").error().code, ErrorCode::kConflict);
  EXPECT_EQ(Put(*Open(), SomeBytes(100'000)).error().code, ErrorCode::kConflict);
}

TEST_F(RemoteFiles, ATokenIsNotSentInTheOpen) {
  auto options = server_.Plain();
  options.server = "http://192.0.2.1:7070";
  EXPECT_EQ(RemoteJobFiles::Open(options).error().code, ErrorCode::kInvalid);
}

TEST_F(RemoteFiles, AServerThatIsAwayIsAskedUntilItIsBack) {
  auto options = server_.Tls();
  const uint16_t port = server_.tls_port();
  int pauses = 0;
  Millis longest{0};
  options.pause = [&](Millis pause) {
    longest = std::max(longest, pause);
    if (++pauses == 30) server_.Start(port);
    return true;
  };
  const auto files = RemoteJobFiles::Open(options).value();
  ASSERT_TRUE(ReplaceWith(*files, "values", "before"));
  server_.Stop();
  const auto put = Put(*files, SomeBytes(1'000'000), Shelf::kParts);
  ASSERT_TRUE(put) << put.error().what;
  EXPECT_GE(pauses, 30);
  EXPECT_GE(longest, Millis(10'000));
  EXPECT_LE(longest, Millis(20'000));
  EXPECT_TRUE(ReplaceWith(*files, "values", "after"));
}

// So that a server can show them. Planted bug: only when a file begins.
TEST_F(RemoteFiles, WhoeverAnswersHearsOfEventFiles) {
  std::atomic<int> heard = 0;
  server_.ChangeGrant([&](JobFilesGrant& grant) { grant.on_events = [&] { ++heard; }; });
  auto files = Open();
  ASSERT_TRUE(ReplaceWith(*files, "values", "1"));
  ASSERT_TRUE(ReplaceWith(*files, "capture/events/x", "1"));
  ASSERT_TRUE(files->List("events"));
  EXPECT_EQ(heard, 0);
  ASSERT_TRUE(files->Append("events/train/x.tfevents", 0, "abc"));
  EXPECT_EQ(heard, 1);
  ASSERT_TRUE(files->Append("events/train/x.tfevents", 3, "def"));
  ASSERT_TRUE(ReplaceWith(*files, "events/table.tsv", "1"));
  EXPECT_EQ(heard, 3);
}

// Planted bug: carry out calls as they come. One that was given up on a line that fell silent may
// come minutes later, and would undo what came since.
TEST_F(RemoteFiles, ACallThatComesLateUndoesNothing) {
  auto files = Open();
  ASSERT_TRUE(files->Append("events/x", 0, "one"));
  ASSERT_TRUE(files->Append("events/x", 3, "two"));
  auto endpoint = Endpoint::Parse(server_.Plain().server).value();
  HttpClient late(endpoint);
  HttpCall call;
  call.method = "POST";
  call.target = "/agent/v1/files/entry?name=events/x&at=0";
  call.body = "one";
  call.headers.Set("Authorization", "Bearer token");
  call.headers.Set(files_wire::kCallHeader, "1");
  const auto reply = late.Do(call);
  ASSERT_TRUE(reply) << reply.error().what;
  EXPECT_EQ(reply->status, 503);
  EXPECT_EQ(ReadText(*files, "events/x", 100).value(), "onetwo");
  // Another name has an order of its own.
  call.target = "/agent/v1/files/entry?name=events/y&at=0";
  EXPECT_EQ(late.Do(call)->status, 200);
}

// Planted bug: ask for the attempt only. A host could then undo what another one stored.
TEST_F(RemoteFiles, AHostChangesWhatHasItsNameAndNoCheckpoints) {
  auto files = Open();
  ASSERT_TRUE(ReplaceWith(*files, "events/x", "the first host's"));
  ASSERT_TRUE(Put(*files, "a part", Shelf::kParts));
  server_.ChangeGrant([](JobFilesGrant& grant) { grant.host = 1; });
  const auto denied = [](const auto& done) {
    return !done && done.error().code == ErrorCode::kDenied;
  };
  EXPECT_TRUE(denied(ReplaceWith(*files, "events/x", "")));
  EXPECT_TRUE(denied(files->Append("events/algo-3/x", 0, "a")));
  EXPECT_TRUE(denied(files->Append("events/algo-20/x", 0, "a")));
  EXPECT_TRUE(denied(files->Remove("capture")));
  EXPECT_TRUE(denied(files->Remove("events")));
  EXPECT_TRUE(denied(Put(*files, "another part", Shelf::kParts)));
  EXPECT_TRUE(denied(files->Commit(CheckpointManifest{})));
  EXPECT_TRUE(denied(files->Tend({})));
  EXPECT_TRUE(files->Append("events/algo-2/x", 0, "a"));
  EXPECT_TRUE(ReplaceWith(*files, "capture.algo-2/step", "1"));
  EXPECT_TRUE(files->Remove("capture.algo-2"));
  EXPECT_TRUE(ReplaceWith(*files, "members/a", "1"));
  EXPECT_TRUE(Put(*files, "an output"));
  EXPECT_EQ(ReadText(*files, "events/x", 100).value(), "the first host's");
}

TEST_F(RemoteFiles, ABusyServerIsAskedAgain) {
  auto files = Open();
  server_.AnswerBusy(1, 408);
  EXPECT_TRUE(Put(*files, SomeBytes(100'000), Shelf::kParts));
  server_.AnswerBusy(3);
  EXPECT_TRUE(ReplaceWith(*files, "values", "1"));
  server_.AnswerBusy(3);
  EXPECT_TRUE(Put(*files, SomeBytes(200'000), Shelf::kParts));
  server_.AnswerBusy(3);
  EXPECT_TRUE(files->Get(Shelf::kParts, Sha256Hex(SomeBytes(200'000))));
}

TEST_F(RemoteFiles, GivesUpWhenItIsToldOrItsPatienceIsOver) {
  auto options = server_.Tls();
  server_.Stop();
  int tries = 0;
  options.pause = [&](Millis) { return ++tries < 3; };
  EXPECT_EQ(RemoteJobFiles::Open(options).value()->List("events").error().code,
            ErrorCode::kCancelled);
  EXPECT_EQ(tries, 3);
  const UniqueFd cancel(::eventfd(1, EFD_CLOEXEC));
  options.pause = {};
  options.cancel_fd = cancel.get();
  EXPECT_EQ(RemoteJobFiles::Open(options).value()->List("events").error().code,
            ErrorCode::kCancelled);
  options.cancel_fd = -1;
  options.patience = Millis(1);
  EXPECT_EQ(RemoteJobFiles::Open(options).value()->List("events").error().code,
            ErrorCode::kUnavailable);
}

// Planted bugs: Until listens only to the new descriptor, or only to the old one.
TEST_F(RemoteFiles, WhoeverMayStopATaskEndsItsWaits) {
  server_.Stop();
  const UniqueFd all(::eventfd(0, EFD_CLOEXEC));
  const UniqueFd one(::eventfd(0, EFD_CLOEXEC));
  auto options = server_.Tls();
  options.cancel_fd = all.get();
  const auto files = RemoteJobFiles::Open(options).value()->Until(one.get(), Millis(0));
  for (const UniqueFd* stop : {&one, &all}) {
    ASSERT_EQ(::eventfd_write(stop->get(), 1), 0);
    EXPECT_EQ(files->List("events").error().code, ErrorCode::kCancelled);
    eventfd_t told = 0;
    ASSERT_EQ(::eventfd_read(stop->get(), &told), 0);
  }
  const auto hasty = files->Until(one.get(), Millis(1));
  EXPECT_EQ(hasty->List("events").error().code, ErrorCode::kUnavailable);
}

TEST(RemoteFilesOnAFullDisk, IsSaidAndPassesWhenThereIsRoomAgain) {
  SmallDisk disk("8m");
  if (!disk.why_not().empty()) GTEST_SKIP() << disk.why_not();
  const JobFolders folders(disk.path());
  const TestDir elsewhere;
  FilesServer server(folders.options());
  const auto files = RemoteJobFiles::Open(server.Tls()).value();
  ASSERT_TRUE(files->Tend({}));
  ASSERT_NO_FATAL_FAILURE(disk.Fill(20));
  const std::string bytes = SomeBytes(400'000);
  const auto fd = FileOf(elsewhere, bytes);
  EXPECT_EQ(files->Put(Shelf::kParts, fd.get(), 0, bytes.size(), {}).error().code,
            ErrorCode::kExhausted);
  EXPECT_EQ(files->Replace("capture/x", fd.get()).error().code, ErrorCode::kExhausted);
  EXPECT_TRUE(files->List("capture").value().empty());
  disk.Free();
  const auto put = files->Put(Shelf::kParts, fd.get(), 0, bytes.size(), {});
  ASSERT_TRUE(put) << put.error().what;
  EXPECT_TRUE(ReadAll(files->Get(Shelf::kParts, put->sha256)->get()).value() == bytes);
}

}  // namespace
}  // namespace athanor
