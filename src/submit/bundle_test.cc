#include "submit/bundle.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/exec/process.h"
#include "base/ids.h"
#include "base/io/files.h"
#include "base/io/hash.h"
#include "base/text/text.h"
#include "submit/check.h"
#include "submit/git.h"

namespace athanor {
namespace {

class Source : public testing::Test {
 protected:
  Source() : top_(testing::TempDir() + "athanor-source-" + RandomHex(6)), dir_(top_ + "/src") {
    EXPECT_TRUE(MakeDirs(dir_).ok());
    const Result<std::string> real = RealPath(dir_);
    dir_ = *real;
  }
  ~Source() override {
    RunCommand({"chmod", "-R", "u+rwX", top_});
    (void)RemoveTree(top_).ok();
  }

  static Result<std::string> RealPath(const std::string& path) {
    char* real = ::realpath(path.c_str(), nullptr);
    std::string text = real;
    std::free(real);
    return text;
  }
  void Write(const std::string& name, const std::string& text, mode_t mode = 0644) {
    ASSERT_TRUE(MakeDirs(DirName(dir_ + "/" + name)).ok());
    ASSERT_TRUE(ReplaceFile(dir_ + "/" + name, text, mode).ok());
  }
  // A file of that size without its bytes.
  void Sparse(const std::string& name, off_t size) {
    Write(name, "");
    ASSERT_EQ(::truncate((dir_ + "/" + name).c_str(), size), 0);
  }
  SourceTree Scan(const ScanOptions& options = {}) {
    auto tree = ScanSource(dir_, options);
    EXPECT_TRUE(tree.has_value()) << (tree ? "" : tree.error().what + tree.error().why);
    return tree ? std::move(*tree) : SourceTree{};
  }
  static std::vector<std::string> Paths(const SourceTree& tree) {
    std::vector<std::string> paths;
    for (const auto& entry : tree.manifest.entries) paths.push_back(entry.path);
    return paths;
  }

  std::string top_;
  std::string dir_;
};

using Names = std::vector<std::string>;

TEST_F(Source, ListsFilesLinksAndEmptyFoldersInOneOrder) {
  Write("train.py", "print()");
  Write("pkg/run.sh", "#!/bin/sh\n", 0755);
  ASSERT_TRUE(MakeDirs(dir_ + "/logs").ok());
  ASSERT_EQ(::symlink("pkg/run.sh", (dir_ + "/go").c_str()), 0);
  const SourceTree tree = Scan();
  EXPECT_EQ(Paths(tree), (Names{"go", "logs", "pkg/run.sh", "train.py"}));
  EXPECT_TRUE(tree.manifest.Find("pkg/run.sh")->executable);
  EXPECT_EQ(tree.manifest.Find("train.py")->sha256, Sha256Hex("print()"));
  EXPECT_EQ(tree.manifest.bytes, 17u);
  const auto read = ReadManifest(WriteManifest(tree.manifest));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(*read, tree.manifest);
}

TEST_F(Source, LeavesOutWhatTheRulesAndDefaultsSay) {
  Write(".gitignore", "*.log\n");
  Write(".athanorignore", "big/\n!keep.log\n");
  Write("a.log", "");
  Write("keep.log", "");
  Write("big/x", "");
  Write("sub/.gitignore", "/y\n");
  Write("sub/y", "");
  Write("sub/z/y", "");
  Write("__pycache__/t.pyc", "");
  Write(".git/HEAD", "");
  Write("myenv/pyvenv.cfg", "");
  Write("note.ipynb", "");
  ScanOptions options;
  options.ignore = {"*.ipynb"};
  const SourceTree tree = Scan(options);
  EXPECT_EQ(Paths(tree),
            (Names{".athanorignore", ".gitignore", "keep.log", "sub/.gitignore", "sub/z/y"}));
  ASSERT_EQ(tree.notes.size(), 1u);
  EXPECT_NE(tree.notes[0].find("myenv/ was left out: it is a virtual environment"),
            std::string::npos);
}

TEST_F(Source, LeavesOutLinksThatLeadOutAndThingsThatAreNoFiles) {
  Write("a/x", "");
  ASSERT_EQ(::symlink("/etc/passwd", (dir_ + "/abs").c_str()), 0);
  ASSERT_EQ(::symlink("../../x", (dir_ + "/a/up").c_str()), 0);
  ASSERT_EQ(::symlink("../a", (dir_ + "/a/ok").c_str()), 0);
  ASSERT_EQ(::mkfifo((dir_ + "/pipe").c_str(), 0600), 0);
  Write("back\\slash", "");
  const SourceTree tree = Scan();
  EXPECT_EQ(Paths(tree), (Names{"a/ok", "a/x"}));
  EXPECT_EQ(tree.notes.size(), 4u);
}

TEST_F(Source, NamesTheLargestPartsWhenItIsTooLarge) {
  Write("train.py", "x");
  for (int i = 0; i < 8; ++i) Sparse("out/data/part" + std::to_string(i), 40 << 20);
  Sparse("m.bin", 30 << 20);
  const auto tree = ScanSource(dir_, {});
  ASSERT_FALSE(tree.has_value());
  const Error& error = tree.error();
  EXPECT_EQ(error.id, "ATH-S0121");
  EXPECT_NE(error.why.find("350 MiB in 10 files; the limit is 200 MiB. Largest: out/data/ 320 MiB, "
                           "m.bin 30 MiB, train.py 1 B"),
            std::string::npos)
      << error.why;
  EXPECT_TRUE(StartsWith(error.hint, "echo /out/data/ >> .athanorignore")) << error.hint;
  ScanOptions options;
  options.ignore = {"/out/data/"};
  EXPECT_EQ(Scan(options).manifest.bytes, (30u << 20) + 1);
}

TEST_F(Source, RefusesOneHugeFileUnlessTheLimitWasRaised) {
  Sparse("model.pt", 60 << 20);
  const auto tree = ScanSource(dir_, {});
  ASSERT_FALSE(tree.has_value());
  EXPECT_NE(tree.error().why.find("model.pt 60 MiB"), std::string::npos) << tree.error().why;
  ScanOptions options;
  options.max_size = 100'000'000;
  EXPECT_EQ(Scan(options).manifest.bytes, 60u << 20);
}

TEST_F(Source, RefusesTooManyFilesAndSaysWhere) {
  for (int i = 0; i < 12; ++i) Write("data/" + std::to_string(i), "");
  ScanOptions options;
  options.max_files = 10;
  const auto tree = ScanSource(dir_, options);
  ASSERT_FALSE(tree.has_value());
  EXPECT_EQ(tree.error().id, "ATH-S0122");
  EXPECT_EQ(tree.error().hint, "echo /data/ >> .athanorignore");
}

TEST_F(Source, ReadsUnchangedFilesOnce) {
  Write("a", "1");
  Write("b", "2");
  ScanOptions options;
  options.cache_file = top_ + "/cache/hashes";
  // Long after the files were written, as far as the cache knows.
  options.now = SystemClock().Wall();
  options.now.ms += 60'000;
  const SourceTree first = Scan(options);
  EXPECT_EQ(first.files_read, 2u);
  const SourceTree second = Scan(options);
  EXPECT_EQ(second.files_read, 0u);
  EXPECT_EQ(second.manifest, first.manifest);
  Write("b", "3");
  const SourceTree third = Scan(options);
  EXPECT_EQ(third.files_read, 1u);
  EXPECT_EQ(third.manifest.Find("b")->sha256, Sha256Hex("3"));
  ASSERT_TRUE(ReplaceFile(options.cache_file, "garbage\n").ok());
  EXPECT_EQ(Scan(options).files_read, 2u);
}

// From some hundred files on two threads look at them; more folders than may wait at once.
TEST_F(Source, FindsEachOfManyFilesOnce) {
  for (int folder = 0; folder < 150; ++folder) {
    for (int file = 0; file < 4; ++file) {
      const std::string name = "f" + std::to_string(folder) + "/" + std::to_string(file);
      Write(name, std::string(static_cast<size_t>(folder * 4 + file), 'x'),
            file == 0 ? 0755 : 0644);
    }
  }
  ASSERT_TRUE(MakeDirs(dir_ + "/f7/empty").ok());
  Write("new\nline", "1");
  Write("f7/.gitignore", "3\n");
  ScanOptions options;
  options.cache_file = top_ + "/hashes";
  options.now = SystemClock().Wall();
  options.now.ms += 60'000;
  const SourceTree tree = Scan(options);
  EXPECT_EQ(tree.manifest.entries.size(), 150u * 4 - 1 + 3);
  for (int folder = 0; folder < 150; ++folder) {
    for (int file = 0; file < 4; ++file) {
      const auto* entry =
          tree.manifest.Find("f" + std::to_string(folder) + "/" + std::to_string(file));
      ASSERT_EQ(entry == nullptr, folder == 7 && file == 3) << folder << " " << file;
      if (entry == nullptr) continue;
      EXPECT_EQ(entry->size, static_cast<uint64_t>(folder * 4 + file));
      EXPECT_EQ(entry->executable, file == 0);
    }
  }
  EXPECT_EQ(tree.manifest.Find("f7/empty")->kind, BundleEntry::Kind::kFolder);
  const SourceTree again = Scan(options);
  EXPECT_EQ(again.files_read, 0u);
  EXPECT_EQ(again.manifest, tree.manifest);
}

TEST_F(Source, DoesNotTrustTheTimesOfAFileJustWritten) {
  Write("a", "1");
  ScanOptions options;
  options.cache_file = top_ + "/hashes";
  options.now = SystemClock().Wall();
  EXPECT_EQ(Scan(options).files_read, 1u);
  EXPECT_EQ(Scan(options).files_read, 1u);
}

TEST_F(Source, RefusesAFolderThatIsNotThere) {
  const auto tree = ScanSource(dir_ + "/nope", {});
  ASSERT_FALSE(tree.has_value());
  EXPECT_EQ(tree.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(tree.error().id, "ATH-S0120");
  Write("file", "");
  EXPECT_FALSE(ScanSource(dir_ + "/file", {}).has_value());
}

TEST_F(Source, OpensItsFilesForSending) {
  Write("a/b", "content");
  const SourceTree tree = Scan();
  const auto file = OpenSourceFile(tree, *tree.manifest.Find("a/b"));
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(*ReadAll(file->get()), "content");
}

TEST_F(Source, TellsGitsCommitBranchAndChanges) {
  if (!RunCommand({"git", "--version"})) GTEST_SKIP() << "no git";
  EXPECT_EQ(ReadGitFacts(top_).commit, "");
  CommandOptions options;
  options.cwd = dir_;
  const auto git = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"git", "-c", "user.name=n", "-c", "user.email=e@x"});
    const auto result = RunCommand(words, options);
    ASSERT_TRUE(result && result->ok()) << result->output;
  };
  git({"init", "-q", "-b", "work"});
  EXPECT_NE(ReadGitFacts(dir_).note, "");  // nothing is committed yet
  Write("sub/a.py", "one\n");
  git({"add", "."});
  git({"commit", "-q", "-m", "first"});
  const GitFacts clean = ReadGitFacts(dir_ + "/sub");
  EXPECT_EQ(clean.commit.size(), 40u);
  EXPECT_EQ(clean.branch, "work");
  EXPECT_FALSE(clean.dirty);
  EXPECT_EQ(clean.diff, "");
  // A repository's own settings must not make us run programs.
  git({"config", "diff.external", "touch " + top_ + "/ran"});
  git({"config", "core.fsmonitor", "touch " + top_ + "/ran"});
  Write("sub/a.py", "two\n");
  const GitFacts dirty = ReadGitFacts(dir_ + "/sub");
  EXPECT_TRUE(dirty.dirty);
  EXPECT_NE(dirty.diff.find("+two"), std::string::npos);
  EXPECT_FALSE(Exists(top_ + "/ran"));
  Write("sub/a.py", std::string(6'000'000, 'x'));
  const GitFacts large = ReadGitFacts(dir_ + "/sub");
  EXPECT_TRUE(large.dirty);
  EXPECT_EQ(large.diff, "");
  EXPECT_NE(large.note.find("more than 5 MiB"), std::string::npos);
}

class Checks : public Source {
 protected:
  Checks() {
    Write("bin/python3", "#!/bin/sh\n", 0755);
    Write("bin/torchrun", "#!/bin/sh\n", 0755);
    Write("train.py", "");
    Write("pkg/main.py", "");
    Write("run.sh", "");
    Write("go.sh", "", 0755);
    Write("requirements.txt", "");
    Write(".gitignore", "secret.py\n");
    Write("secret.py", "");
    path_ = dir_ + "/bin";
  }
  // The ids found wrong with the command, and all texts.
  std::string Wrong(JobSpec spec) {
    std::string all;
    for (const auto& error : CheckBeforeSubmit(spec, Scan(), path_)) {
      EXPECT_FALSE(error.hint.empty()) << error.what;
      all += error.id + " " + error.what + "; " + error.why + "; " + error.hint + "\n";
    }
    return all;
  }
  std::string Wrong(std::vector<std::string> command) {
    JobSpec spec;
    spec.command = std::move(command);
    return Wrong(spec);
  }
  static JobSpec Shell(std::string text) {
    JobSpec spec;
    spec.command = {std::move(text)};
    spec.shell = true;
    return spec;
  }
  std::string path_;
};

TEST_F(Checks, PassesWhatWouldRun) {
  const Names good[] = {{"python3", "train.py"},
                        {"python3", "-u", "-X", "dev", "./train.py", "missing.py"},
                        {"python3", "-c", "missing.py"},
                        {"python3", "-m", "nowhere"},
                        {"torchrun", "--nproc", "2", "train.py"},
                        {"./go.sh"},
                        {"/bin/sh", "run.sh"},
                        {"/bin/sh", "-euc", "missing.sh"}};
  for (const auto& command : good) EXPECT_EQ(Wrong(command), "") << Join(command, " ");
  EXPECT_EQ(Wrong(Shell("cd pkg && python3 nope.py")), "");
  EXPECT_EQ(Wrong(Shell("A=1 python3 train.py --x 'y'")), "");
  EXPECT_EQ(Wrong(Shell("A=1 python3 train.py")), "");
}

TEST_F(Checks, SaysWhatIsMissingAndWhatToTypeInstead) {
  const std::pair<Names, const char*> bad[] = {
      {{"python", "train.py"}, "PATH has python3 but no python; write python3 in its place"},
      {{"torchrum", "train.py"}, "did you mean torchrun?"},
      {{"train.py"}, "ath run -- python3 train.py"},
      {{"python3", "trian.py"}, "did you mean train.py?"},
      {{"python3", "main.py"}, "did you mean pkg/main.py?"},
      {{"python3", "secret.py"},
       "it is ignored by .gitignore line 1: 'secret.py'; echo '!/secret.py'"},
      {{"python3", "pkg"}, "it is a folder"},
      {{"python3", "../train.py"}, "set source.dir"},
      {{"python3", "/nope/train.py"}, "no such file on this machine"},
      {{"./run.sh"}, "chmod +x run.sh"},
      {{"./nope.sh"}, "ATH-S0131"},
      {{"/nope/bin/x"}, "no such file"},
      {{"torchrun", "nope.py"}, "ATH-S0131"},
      {{"python3", "train.py", "${lr}"}, "ATH-S0111"},
      {{}, "ATH-S0110"},
  };
  for (const auto& [command, part] : bad) {
    const std::string wrong = Wrong(command);
    EXPECT_NE(wrong.find(part), std::string::npos) << Join(command, " ") << " gave " << wrong;
  }
}

TEST_F(Checks, AVenvBringsItsOwnPrograms) {
  JobSpec spec = Shell("python train.py");
  spec.environment.requirements = "requirements.txt";
  EXPECT_EQ(Wrong(spec), "");
  spec.environment.requirements = "requirement.txt";
  EXPECT_NE(Wrong(spec).find("ATH-S0132"), std::string::npos);
  EXPECT_NE(Wrong(spec).find("did you mean requirements.txt?"), std::string::npos);
}

TEST_F(Checks, DataMustExistAndBeReadable) {
  JobSpec spec = Shell("python3 train.py");
  spec.data = {{"train", dir_ + "/pkg", "shared"}, {"val", dir_ + "/nope", "file"}};
  const std::string wrong = Wrong(spec);
  EXPECT_EQ(wrong.find("'train'"), std::string::npos);
  EXPECT_NE(wrong.find("ATH-S0133 data channel 'val' cannot be read"), std::string::npos) << wrong;
  EXPECT_NE(wrong.find("No such file or directory"), std::string::npos);
}

TEST_F(Checks, FindsTheEntryInsideTheSource) {
  const SourceTree tree = Scan();
  EXPECT_EQ(FindEntry(Shell("python3 -u ./train.py --lr ${lr}"), tree), "train.py");
  EXPECT_EQ(FindEntry(Shell("python3 -m pkg.main"), tree), "pkg/main.py");
  EXPECT_EQ(FindEntry(Shell("torchrun --x 1 pkg/main.py"), tree), "pkg/main.py");
  EXPECT_EQ(FindEntry(Shell("./go.sh"), tree), "go.sh");
  EXPECT_EQ(FindEntry(Shell("python3 nope.py"), tree), "");
  EXPECT_EQ(FindEntry(Shell("cd x; python3 train.py"), tree), "");
}

}  // namespace
}  // namespace athanor
