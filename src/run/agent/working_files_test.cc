#include "run/agent/working_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <map>

#include "base/io/files.h"
#include "base/io/hash.h"
#include "base/io/test_dir.h"
#include "job/manifest.h"
#include "run/job_files_testing.h"

namespace athanor {
namespace {

class WorkingFilesTest : public ::testing::TestWithParam<Reach> {
 protected:
  WorkingFilesTest() {
    EXPECT_TRUE(MakeDirs(dir_ / "code").ok());
    folder_.dir = HeldFolder::At(dir_ / "code").value();
  }
  std::string Path(const std::string& name) const { return dir_ / ("code/" + name); }
  void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(MakeDirs(DirName(Path(name)), 0755).ok());
    ASSERT_TRUE(ReplaceFile(Path(name), text, 0644).ok());
  }
  // Makes what is there now the source.
  void TakeAsSource(const std::map<std::string, std::string>& files) {
    BundleManifest source;
    for (const auto& [name, text] : files) {
      Write(name, text);
      BundleEntry entry;
      entry.path = name;
      entry.size = text.size();
      entry.sha256 = blobs_.Put(text).value().sha256;
      source.entries.push_back(entry);
    }
    folder_.source = blobs_.Put(WriteManifest(source)).value().sha256;
    job_.NameListing(folder_.source);
  }
  std::optional<Output> Keep(const OutputSpec& spec = {}) {
    auto kept = KeepWorkingFiles(folder_, spec, job_.files());
    EXPECT_TRUE(kept) << kept.error().what;
    return kept ? *kept : std::nullopt;
  }
  std::map<std::string, std::string> Files(const std::optional<Output>& output) {
    std::map<std::string, std::string> files;
    if (!output) return files;
    auto text = ReadAll(blobs_.Read(output->blob).value().get(), 1 << 20).value();
    auto listing = ReadManifest(text);
    EXPECT_TRUE(listing) << listing.error().why;
    for (const auto& entry : listing->entries) {
      files[entry.path] = entry.kind == BundleEntry::Kind::kLink
                              ? "-> " + entry.target
                              : ReadAll(blobs_.Read(entry.sha256).value().get(), 1 << 20).value();
    }
    return files;
  }
  std::map<std::string, std::string> Kept(const OutputSpec& spec = {}) { return Files(Keep(spec)); }

  TestDir dir_;
  JobFilesAt job_{GetParam()};
  BlobStore blobs_ = job_.blobs();
  WorkingFolder folder_;
};

using Texts = std::map<std::string, std::string>;

TEST_P(WorkingFilesTest, KeepsWhatIsNewOrChangedAndNothingOfTheSource) {
  TakeAsSource({{"lib/util.py", "u"}, {"notes.txt", "old"}, {"train.py", "print()"}});
  EXPECT_FALSE(Keep()) << "the script left nothing";
  Write("model.pt", "weights");
  Write("runs/a/events", "e");
  Write("notes.txt", "new");
  const auto output = Keep();
  EXPECT_EQ(Files(output),
            (Texts{{"model.pt", "weights"}, {"notes.txt", "new"}, {"runs/a/events", "e"}}));
  EXPECT_EQ(output->name, "files");
  EXPECT_EQ(output->files, 3u);
  EXPECT_EQ(output->bytes, 11u);
  EXPECT_EQ(output->largest, "model.pt");
  EXPECT_EQ(output->left_out.files, 0u);
}

// Times say nothing: a file may be written with the time of the old one.
TEST_P(WorkingFilesTest, AChangeOfTheSameSizeAndTimeIsSeen) {
  TakeAsSource({{"state.bin", "aaaa"}});
  struct stat before {};
  ASSERT_EQ(::stat(Path("state.bin").c_str(), &before), 0);
  Write("state.bin", "bbbb");
  const timespec times[] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, Path("state.bin").c_str(), times, 0), 0);
  EXPECT_EQ(Kept(), (Texts{{"state.bin", "bbbb"}}));
}

TEST_P(WorkingFilesTest, PassesOverCachesEnvironmentsAndWhatHoldsNothing) {
  for (const char* name : {"__pycache__/a.pyc", "lib/__pycache__/b.pyc", ".git/HEAD", "venv/bin/x",
                           "my-env/pyvenv.cfg", "my-env/lib/big.py", ".pytest_cache/v"}) {
    Write(name, "x");
  }
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  const int sock = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  // A test's folder may have a name too long for a socket's address.
  ASSERT_EQ(::chdir(Path("").c_str()), 0);
  std::snprintf(at.sun_path, sizeof at.sun_path, "sock");
  ASSERT_EQ(::bind(sock, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  ASSERT_EQ(::chdir("/"), 0);
  ::close(sock);
  EXPECT_FALSE(Keep());
  // What trackers write is a result, although the source leaves it out.
  Write("lightning_logs/version_0/last.ckpt", "w");
  Write("mlruns/0/meta.yaml", "m");
  EXPECT_EQ(Kept().size(), 2u);
}

TEST_P(WorkingFilesTest, LinksStayLinksAndThoseThatLeadOutAreTold) {
  Write("epoch-3.ckpt", "w");
  Write("secret", "s");
  ASSERT_EQ(::rename(Path("secret").c_str(), (dir_ / "secret").c_str()), 0);
  ASSERT_EQ(::symlink("epoch-3.ckpt", Path("last.ckpt").c_str()), 0);
  ASSERT_EQ(::symlink("../secret", Path("up").c_str()), 0);
  ASSERT_EQ(::symlink("/etc", Path("etc").c_str()), 0);
  const auto output = Keep();
  EXPECT_EQ(Files(output), (Texts{{"epoch-3.ckpt", "w"}, {"last.ckpt", "-> epoch-3.ckpt"}}));
  ASSERT_EQ(output->left_out.files, 2u);
  EXPECT_NE(output->left_out.largest[0].why.find("leads out"), std::string::npos);
}

TEST_P(WorkingFilesTest, ALinkInPlaceOfTheFolderIsToldAndNotFollowed) {
  ASSERT_EQ(::rmdir(Path("").c_str()), 0);
  ASSERT_TRUE(MakeDirs(dir_ / "elsewhere").ok());
  ASSERT_TRUE(ReplaceFile(dir_ / "elsewhere/x", "x").ok());
  ASSERT_EQ(::symlink((dir_ / "elsewhere").c_str(), (dir_ / "code").c_str()), 0);
  const auto output = Keep();
  ASSERT_TRUE(output);
  EXPECT_TRUE(Files(output).empty());
  EXPECT_EQ(output->left_out.files, 1u);
}

// Planted bug: taking the largest first, or whatever the folder lists first.
TEST_P(WorkingFilesTest, OverTheLimitTheTopOfTheFolderComesFirstAndTheRestIsTold) {
  Write("model.pt", std::string(600, 'm'));
  Write("huge.bin", std::string(5'000, 'h'));
  for (int i = 0; i < 8; ++i) Write("data/" + std::to_string(i), std::string(100, 'd'));
  OutputSpec spec;
  spec.limit = 1'000;
  const auto output = Keep(spec);
  const auto files = Files(output);
  EXPECT_TRUE(files.contains("model.pt"));
  EXPECT_EQ(files.size(), 5u);
  EXPECT_EQ(output->bytes, 1'000u);
  EXPECT_EQ(output->left_out.files, 5u);
  EXPECT_EQ(output->left_out.bytes, 5'400u);
  EXPECT_EQ(output->left_out.largest[0].name, "huge.bin");
  EXPECT_EQ(output->left_out.largest[0].bytes, 5'000u);
  EXPECT_NE(output->left_out.largest[0].why.find("limit"), std::string::npos);
}

TEST_P(WorkingFilesTest, AHugeSparseFileIsNotRead) {
  Write("small", "s");
  Write("huge", "");
  ASSERT_EQ(::truncate(Path("huge").c_str(), off_t{1} << 42), 0);
  const auto output = Keep();
  EXPECT_EQ(Files(output), (Texts{{"small", "s"}}));
  ASSERT_EQ(output->left_out.files, 1u);
  EXPECT_EQ(output->left_out.bytes, uint64_t{1} << 42);
}

TEST_P(WorkingFilesTest, PatternsChooseAndTheLastThatMatchesDecides) {
  for (const char* name : {"a.pt", "b.log", "runs/x.pt", "runs/cache/y.pt", "runs/z", "other/w"}) {
    Write(name, name);
  }
  const auto names = [&](std::vector<std::string> patterns) {
    OutputSpec spec;
    spec.files = std::move(patterns);
    std::vector<std::string> found;
    for (const auto& [name, text] : Kept(spec)) found.push_back(name);
    return found;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names({"*.pt"}), (Names{"a.pt", "runs/cache/y.pt", "runs/x.pt"}));
  EXPECT_EQ(names({"/*.pt"}), (Names{"a.pt"}));
  EXPECT_EQ(names({"runs/**", "!runs/cache/"}), (Names{"runs/x.pt", "runs/z"}));
  EXPECT_EQ(names({"./b.log", "runs/"}),
            (Names{"b.log", "runs/cache/y.pt", "runs/x.pt", "runs/z"}));
  EXPECT_EQ(names({"!runs/", "!*.log"}), (Names{"a.pt", "other/w"}));
  EXPECT_EQ(names({"nothing"}), (Names{}));
  OutputSpec off;
  off.keep = false;
  EXPECT_FALSE(Keep(off));
}

TEST_P(WorkingFilesTest, NamesOfAnyBytesComeBack) {
  const std::string odd = "m\xff\xfe\n\t%41 \x01.pt";
  Write(odd, "w");
  Write(
      "gl\xc3\xbc"
      "ck.pt",
      "u");
  const auto output = Keep();
  EXPECT_EQ(Files(output), (Texts{{odd, "w"},
                                  {"gl\xc3\xbc"
                                   "ck.pt",
                                   "u"}}));
  EXPECT_EQ(output->largest,
            "gl\xc3\xbc"
            "ck.pt");
  // A manifest cannot have a backslash: reported, not silently lost.
  Write("a\\b", "x");
  const auto told = Keep();
  ASSERT_EQ(told->left_out.files, 1u);
  EXPECT_EQ(told->left_out.bytes, 1u);
}

TEST_P(WorkingFilesTest, AFileThatCannotBeReadIsToldAndTheOthersAreKept) {
  if (::geteuid() == 0) GTEST_SKIP() << "root reads everything";
  Write("model.pt", "w");
  Write("locked", "no");
  Write("shut/x", "x");
  ASSERT_EQ(::chmod(Path("locked").c_str(), 0), 0);
  ASSERT_EQ(::chmod(Path("shut").c_str(), 0), 0);
  const auto output = Keep();
  ::chmod(Path("shut").c_str(), 0700);
  EXPECT_EQ(Files(output), (Texts{{"model.pt", "w"}}));
  ASSERT_EQ(output->left_out.files, 2u);
  EXPECT_EQ(output->left_out.largest[0].why, "it cannot be read: Permission denied");
}

TEST_P(WorkingFilesTest, ALaterAttemptReplacesFilesOfTheSameNameAndKeepsTheOthers) {
  Write("model.pt", "first");
  Write("epoch-1.txt", "1");
  Write("runs", "a file");
  folder_.kept = Keep()->blob;
  ASSERT_TRUE(RemoveTree(dir_ / "code").ok());
  Write("model.pt", "second");
  Write("runs/x", "a folder");
  const auto output = Keep();
  EXPECT_EQ(Files(output),
            (Texts{{"epoch-1.txt", "1"}, {"model.pt", "second"}, {"runs/x", "a folder"}}));
  EXPECT_EQ(output->bytes, 15u);
  // An attempt that left nothing changes nothing.
  folder_.kept = output->blob;
  ASSERT_TRUE(RemoveTree(dir_ / "code").ok());
  EXPECT_EQ(Keep()->blob, output->blob);
}

TEST_P(WorkingFilesTest, WhatIsKeptElsewhereIsNotKeptTwice) {
  Write("ckpt/step-1", "s");
  Write("model.pt", "w");
  folder_.skip = {"ckpt"};
  EXPECT_EQ(Kept(), (Texts{{"model.pt", "w"}}));
}

// The agent may be killed at any moment: its successor keeps the same.
TEST_P(WorkingFilesTest, KeepingTwiceGivesTheSameListing) {
  Write("model.pt", "w");
  Write("a/b", "x");
  const auto first = Keep();
  EXPECT_EQ(Keep(), first);
}

// Planted bug: naming a file of an earlier attempt whose bytes are gone.
TEST_P(WorkingFilesTest, AFileOfAnEarlierAttemptThatIsGoneIsNotNamed) {
  Write("a", "first");
  Write("b", "second");
  folder_.kept = Keep()->blob;
  ASSERT_TRUE(RemoveTree(dir_ / "code").ok());
  ASSERT_TRUE(blobs_.Remove(Sha256Hex("first")).ok());
  Write("c", "third");
  EXPECT_EQ(Kept(), (Texts{{"b", "second"}, {"c", "third"}}));
}

INSTANTIATE_TEST_SUITE_P(Files, WorkingFilesTest, ::testing::Values(Reach::kHere, Reach::kServer),
                         NameOfReach);

}  // namespace
}  // namespace athanor
