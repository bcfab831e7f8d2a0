#include "base/io/archive.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "base/exec/process.h"
#include "base/io/files.h"
#include "base/io/test_dir.h"
#include "base/text/text.h"

namespace athanor {
namespace {

UniqueFd MemoryFile(std::string_view bytes = {}) {
  UniqueFd fd(memfd_create("test", MFD_CLOEXEC));
  EXPECT_TRUE(WriteAll(fd.get(), bytes).ok());
  lseek(fd.get(), 0, SEEK_SET);
  return fd;
}

std::string BytesOf(const UniqueFd& fd) {
  lseek(fd.get(), 0, SEEK_SET);
  return *ReadAll(fd.get());
}

// One hand-made ustar member, so that archives no tool would write can be tried.
std::string Member(const std::string& name, char type, const std::string& content = {},
                   const std::string& link = {}, unsigned mode = 0644) {
  std::string header(512, '\0');
  const auto put = [&](size_t at, const std::string& text) {
    std::memcpy(header.data() + at, text.data(), text.size());
  };
  const auto octal = [](uint64_t value, int width) {
    char text[24];
    std::snprintf(text, sizeof(text), "%0*lo", width, static_cast<unsigned long>(value));
    return std::string(text);
  };
  put(0, name.substr(0, 100));
  put(100, octal(mode, 7));
  put(108, octal(0, 7));
  put(116, octal(0, 7));
  put(124, octal(content.size(), 11));
  put(136, octal(1'600'000'000, 11));
  put(148, "        ");
  header[156] = type;
  put(157, link.substr(0, 100));
  put(257, std::string("ustar\0", 6) + "00");
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(148, octal(sum, 6) + std::string("\0 ", 2));
  std::string padded = content;
  padded.resize((content.size() + 511) / 512 * 512);
  return header + padded;
}

std::string Tar(const std::string& members) { return members + std::string(1024, '\0'); }

Status Extract(std::string_view bytes, const std::string& into, const ExtractLimits& limits = {}) {
  const auto dir = OpenDir(into);
  return ExtractTar(MemoryFile(bytes).get(), dir->get(), limits);
}

unsigned ModeOf(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(lstat(path.c_str(), &info), 0) << path;
  return info.st_mode & 07777;
}

class PackAndExtract : public testing::TestWithParam<Compression> {};

TEST_P(PackAndExtract, GivesTheTreeBack) {
  const TestDir from;
  const std::string large(3'000'000, 'x');
  ASSERT_TRUE(MakeDirs(from / "a/empty").ok());
  ASSERT_TRUE(ReplaceFile(from / "a/run.sh", "#!/bin/sh\n", 0755).ok());
  ASSERT_TRUE(ReplaceFile(from / "large", large).ok());
  ASSERT_TRUE(ReplaceFile(from / "nothing", "").ok());
  ASSERT_TRUE(ReplaceFile(from / "ü 日本", "utf-8").ok());
  ASSERT_TRUE(ReplaceFile(from / "raw\xff", "bytes").ok());
  const std::string long_name = std::string(120, 'n') + "/" + std::string(200, 'm');
  ASSERT_TRUE(MakeDirs(from / std::string(120, 'n')).ok());
  ASSERT_TRUE(ReplaceFile(from / long_name, "long").ok());
  ASSERT_EQ(symlink("../large", (from / "a/link").c_str()), 0);
  ASSERT_EQ(symlink("ü 日本", (from / "ü-link").c_str()), 0);

  const UniqueFd tar = MemoryFile();
  const auto packed = PackTree(from.path(), tar.get(), GetParam());
  ASSERT_TRUE(packed) << packed.error().what << ": " << packed.error().why;
  EXPECT_EQ(*packed, large.size() + 10 + 5 + 5 + 4);

  const TestDir to;
  const auto extracted = Extract(BytesOf(tar), to.path());
  ASSERT_TRUE(extracted.ok()) << extracted.error().what << ": " << extracted.error().why;
  const auto same = RunCommand({"diff", "-r", "--no-dereference", from.path(), to.path()});
  EXPECT_TRUE(same->ok()) << same->output;
  EXPECT_EQ(ModeOf(to / "a/run.sh"), 0755u);
  struct stat before {};
  struct stat after {};
  ASSERT_EQ(stat((from / "large").c_str(), &before), 0);
  ASSERT_EQ(stat((to / "large").c_str(), &after), 0);
  EXPECT_EQ(before.st_mtim.tv_sec, after.st_mtim.tv_sec);

  // GNU tar, the other program that reads our archives, sees the same tree.
  const TestDir by_tar;
  ASSERT_TRUE(ReplaceFile(by_tar / "t", BytesOf(tar)).ok());
  ASSERT_TRUE(MakeDirs(by_tar / "x").ok());
  const auto other = RunCommand({"tar", "-xf", by_tar / "t", "-C", by_tar / "x"});
  EXPECT_TRUE(other->ok()) << other->output;
  EXPECT_TRUE(RunCommand({"diff", "-r", "--no-dereference", from.path(), by_tar / "x"})->ok());
}

TEST_P(PackAndExtract, SameContentGivesTheSameBytes) {
  const auto pack = [](bool reversed) {
    const TestDir dir;
    for (int i = 0; i < 20; ++i) {
      const std::string name = "f" + std::to_string(reversed ? 19 - i : i);
      EXPECT_TRUE(ReplaceFile(dir / name, name).ok());
      const timespec times[2] = {{1'600'000'000, 1}, {1'600'000'000, i}};
      EXPECT_EQ(utimensat(AT_FDCWD, (dir / name).c_str(), times, 0), 0);
    }
    const UniqueFd tar = MemoryFile();
    EXPECT_TRUE(PackTree(dir.path(), tar.get(), GetParam()));
    return BytesOf(tar);
  };
  EXPECT_EQ(pack(false), pack(true));
}

TEST_P(PackAndExtract, OneMemberComesOutAlone) {
  const TestDir dir;
  ASSERT_TRUE(MakeDirs(dir / "d").ok());
  ASSERT_TRUE(ReplaceFile(dir / "d/f", "wanted").ok());
  ASSERT_TRUE(ReplaceFile(dir / "g", "other").ok());
  const UniqueFd tar = MemoryFile();
  ASSERT_TRUE(PackTree(dir.path(), tar.get(), GetParam()));
  const std::string bytes = BytesOf(tar);
  const UniqueFd out = MemoryFile();
  EXPECT_EQ(ExtractOne(MemoryFile(bytes).get(), "d/f", out.get()), 6u);
  EXPECT_EQ(BytesOf(out), "wanted");
  EXPECT_EQ(ExtractOne(MemoryFile(bytes).get(), "d/x", out.get()).error().code,
            ErrorCode::kNotFound);
  EXPECT_EQ(ExtractOne(MemoryFile(bytes).get(), "d", out.get()).error().code, ErrorCode::kNotFound);
  const auto members = ListTar(MemoryFile(bytes).get());
  ASSERT_TRUE(members);
  ASSERT_EQ(members->size(), 3u);
  EXPECT_EQ((*members)[0].name, "d");
  EXPECT_EQ((*members)[0].type, TarMember::Type::kFolder);
  EXPECT_EQ((*members)[1].name, "d/f");
  EXPECT_EQ((*members)[1].size, 6u);
}

TEST_P(PackAndExtract, AnArchiveCutShortIsCorrupt) {
  const TestDir dir;
  ASSERT_TRUE(
      RunCommand({"dd", "if=/dev/urandom", "of=" + (dir / "f"), "bs=1k", "count=300"})->ok());
  const UniqueFd tar = MemoryFile();
  ASSERT_TRUE(PackTree(dir.path(), tar.get(), GetParam()));
  const std::string bytes = BytesOf(tar);
  const TestDir to;
  for (const size_t size : {bytes.size() / 2, bytes.size() / 3}) {
    const auto cut = Extract(bytes.substr(0, size), to.path());
    ASSERT_FALSE(cut.ok());
    EXPECT_EQ(cut.error().code, ErrorCode::kCorrupt) << cut.error().what;
  }
}

INSTANTIATE_TEST_SUITE_P(All, PackAndExtract,
                         testing::Values(Compression::kNone, Compression::kGzip,
                                         Compression::kZstd));

TEST(PackTar, TakesOnlyTheNamesAskedFor) {
  const TestDir dir;
  ASSERT_TRUE(MakeDirs(dir / "d").ok());
  for (const char* name : {"a", "b", "d/c"}) ASSERT_TRUE(ReplaceFile(dir / name, name).ok());
  const auto root = OpenDir(dir.path());
  const UniqueFd tar = MemoryFile();
  EXPECT_EQ(PackTar(root->get(), {"d/c", "a", "a"}, tar.get(), Compression::kNone), 4u);
  const auto members = ListTar(MemoryFile(BytesOf(tar)).get());
  ASSERT_EQ(members->size(), 2u);
  EXPECT_EQ((*members)[0].name, "a");
  EXPECT_EQ((*members)[1].name, "d/c");
  EXPECT_EQ(PackTar(root->get(), {"none"}, tar.get(), Compression::kNone).error().code,
            ErrorCode::kNotFound);
  EXPECT_FALSE(PackTar(root->get(), {"../x"}, tar.get(), Compression::kNone));
}

TEST(PackTree, RefusesWhatCannotTravelOrListsIt) {
  const TestDir dir;
  ASSERT_TRUE(ReplaceFile(dir / "good", "1").ok());
  ASSERT_EQ(symlink("/etc/passwd", (dir / "out").c_str()), 0);
  ASSERT_EQ(mkfifo((dir / "pipe").c_str(), 0600), 0);
  const UniqueFd tar = MemoryFile();
  const auto refused = PackTree(dir.path(), tar.get(), Compression::kNone);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  EXPECT_NE(refused.error().what.find("'out'"), std::string::npos);
  EXPECT_FALSE(ListTar(MemoryFile(BytesOf(tar)).get())) << "half an archive must not look whole";
  std::vector<std::string> left_out;
  const UniqueFd second = MemoryFile();
  EXPECT_EQ(PackTree(dir.path(), second.get(), Compression::kNone, &left_out), 1u);
  EXPECT_EQ(left_out, (std::vector<std::string>{"out", "pipe"}));
  EXPECT_EQ(ListTar(MemoryFile(BytesOf(second)).get())->size(), 1u);
}

TEST(PackTree, ReportsAFullDisk) {
  const TestDir dir;
  ASSERT_TRUE(ReplaceFile(dir / "f", std::string(1 << 20, 'x')).ok());
  const UniqueFd full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  const auto packed = PackTree(dir.path(), full.get(), Compression::kNone);
  ASSERT_FALSE(packed);
  EXPECT_EQ(packed.error().code, ErrorCode::kExhausted) << packed.error().what;
}

TEST(ExtractTar, RefusesEveryMemberThatLeadsOut) {
  const std::pair<const char*, std::string> cases[] = {
      {"absolute", Member("/tmp/evil", '0', "x")},
      {"dotdot", Member("../evil", '0', "x")},
      {"inner dotdot", Member("a/../../evil", '0', "x")},
      {"absolute link", Member("l", '2', "", "/etc/passwd")},
      {"link up", Member("l", '2', "", "../x")},
      {"link up in folder", Member("d/l", '2', "", "../../x")},
      {"link down and up", Member("l", '2', "", "a/../../x")},
      {"empty link", Member("l", '2')},
      {"hard link out", Member("h", '1', "", "/etc/passwd")},
      {"hard link up", Member("h", '1', "", "../x")},
      {"hard link to nothing", Member("h", '1', "", "later") + Member("later", '0', "x")},
      {"hard link through a link",
       Member("l", '2', "", ".") + Member("f", '0', "x") + Member("h", '1', "", "l/f")},
      {"hard link to a link", Member("l", '2', "", "f") + Member("h", '1', "", "l")},
      {"character device", Member("c", '3')},
      {"block device", Member("b", '4')},
      {"fifo", Member("p", '6')},
      {"file through a link", Member("d", '2', "", "e") + Member("d/f", '0', "x")},
      {"backslash", Member("a\\b", '0', "x")},
  };
  for (const auto& [what, members] : cases) {
    const TestDir dir;
    ASSERT_TRUE(MakeDirs(dir / "root").ok());
    ASSERT_TRUE(ReplaceFile(dir / "x", "outside").ok());
    const auto extracted = Extract(Tar(members), dir / "root");
    EXPECT_FALSE(extracted.ok()) << what;
    EXPECT_NE(extracted.error().what.find("'"), std::string::npos) << what;
    EXPECT_EQ(ListDir(dir.path()), (std::vector<std::string>{"root", "x"})) << what;
    EXPECT_EQ(ReadFile(dir / "x"), "outside") << what;
  }
}

TEST(ExtractTar, DropsSetUidAndKeepsFoldersOpen) {
  const TestDir dir;
  const auto extracted =
      Extract(Tar(Member("./", '5', "", "", 0) + Member("./d/", '5', "", "", 0555) +
                  Member("./d/f", '0', "x", "", 06755) + Member("d/s", '0', "x", "", 01000)),
              dir.path());
  ASSERT_TRUE(extracted.ok()) << extracted.error().what;
  EXPECT_EQ(ModeOf(dir / "d"), 0755u);
  EXPECT_EQ(ModeOf(dir / "d/f"), 0755u);
  EXPECT_EQ(ModeOf(dir / "d/s"), 0600u);
  EXPECT_NE(ModeOf(dir.path()), 0u);
}

TEST(ExtractTar, LinksWithinTheTreeWork) {
  const TestDir dir;
  const auto extracted = Extract(Tar(Member("d/f", '0', "text") + Member("h", '1', "", "./d/f") +
                                     Member("e/l", '2', "", "../d/f") + Member("h2", '1', "", "h")),
                                 dir.path());
  ASSERT_TRUE(extracted.ok()) << extracted.error().what << extracted.error().why;
  for (const char* name : {"h", "e/l", "h2"}) EXPECT_EQ(ReadFile(dir / name), "text");
}

TEST(ExtractTar, ASecondTimeOverAHalfDoneOneIsRight) {
  const TestDir outside;
  ASSERT_TRUE(ReplaceFile(outside / "kept", "kept").ok());
  const TestDir dir;
  ASSERT_TRUE(ReplaceFile(dir / "f", "ol").ok());
  ASSERT_EQ(symlink((outside / "kept").c_str(), (dir / "g").c_str()), 0);
  const std::string tar = Tar(Member("f", '0', "first") + Member("g", '0', "new") +
                              Member("f", '0', "last") + Member("l", '2', "", "f"));
  ASSERT_TRUE(Extract(tar, dir.path()).ok());
  ASSERT_TRUE(Extract(tar, dir.path()).ok());
  EXPECT_EQ(ReadFile(dir / "f"), "last");
  EXPECT_EQ(ReadFile(dir / "g"), "new");
  EXPECT_EQ(ReadFile(outside / "kept"), "kept");
}

TEST(ExtractTar, KeepsToItsLimits) {
  const TestDir dir;
  ExtractLimits limits;
  limits.max_entries = 3;
  std::string many;
  for (int i = 0; i < 4; ++i) many += Member("f" + std::to_string(i), '0', "x");
  const auto entries = Extract(Tar(many), dir.path(), limits);
  ASSERT_FALSE(entries.ok());
  EXPECT_NE(entries.error().what.find("f3"), std::string::npos) << entries.error().what;

  limits = {};
  limits.max_bytes = 10;
  EXPECT_TRUE(
      Extract(Tar(Member("a", '0', "12345") + Member("b", '0', "12345")), dir.path(), limits).ok());
  EXPECT_FALSE(
      Extract(Tar(Member("a", '0', "12345") + Member("b", '0', "123456")), dir.path(), limits)
          .ok());
}

TEST(ExtractTar, RefusesABomb) {
  const TestDir dir;
  ASSERT_TRUE(MakeDirs(dir / "in").ok());
  ASSERT_TRUE(ReplaceFile(dir / "in/zeros", std::string(8 << 20, '\0')).ok());
  const UniqueFd tar = MemoryFile();
  ASSERT_TRUE(PackTree(dir / "in", tar.get(), Compression::kZstd));
  ASSERT_TRUE(MakeDirs(dir / "out").ok());
  ExtractLimits limits;
  limits.ratio_from = 1 << 20;
  const auto bomb = Extract(BytesOf(tar), dir / "out", limits);
  ASSERT_FALSE(bomb.ok());
  EXPECT_EQ(bomb.error().code, ErrorCode::kInvalid);
  EXPECT_NE(bomb.error().why.find("250 times"), std::string::npos) << bomb.error().why;
  limits.max_ratio = 1'000'000;
  EXPECT_TRUE(Extract(BytesOf(tar), dir / "out", limits).ok());
}

TEST(ExtractTar, ReadsWhatGnuTarWritesWithHoles) {
  const TestDir dir;
  ASSERT_TRUE(MakeDirs(dir / "in").ok());
  ASSERT_TRUE(MakeDirs(dir / "out").ok());
  {
    const UniqueFd file(open((dir / "in/sparse").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_EQ(pwrite(file.get(), "middle", 6, 1 << 20), 6);
    ASSERT_EQ(ftruncate(file.get(), 3 << 20), 0);
  }
  ASSERT_EQ(link((dir / "in/sparse").c_str(), (dir / "in/twin").c_str()), 0);
  for (const char* format : {"--format=gnu", "--format=posix"}) {
    const auto packed =
        RunCommand({"tar", "-S", format, "-C", dir / "in", "-cf", dir / "t.tar", "."});
    ASSERT_TRUE(packed->ok()) << packed->output;
    const std::string bytes = *ReadFile(dir / "t.tar");
    ASSERT_LT(bytes.size(), 1u << 20);
    const auto extracted = Extract(bytes, dir / "out");
    ASSERT_TRUE(extracted.ok()) << extracted.error().what << extracted.error().why;
    EXPECT_EQ(ReadFile(dir / "out/sparse"), *ReadFile(dir / "in/sparse"));
    EXPECT_EQ(ReadFile(dir / "out/twin"), *ReadFile(dir / "in/sparse"));
    const auto first = ListTar(MemoryFile(bytes).get());
    ASSERT_TRUE(first);
    const UniqueFd out = MemoryFile();
    const bool twin_is_link = (*first)[1].name == "twin" || (*first)[0].name == "sparse";
    EXPECT_EQ(ExtractOne(MemoryFile(bytes).get(), twin_is_link ? "sparse" : "twin", out.get()),
              uint64_t{3} << 20);
    EXPECT_EQ(BytesOf(out), *ReadFile(dir / "in/sparse"));
  }
}

TEST(ExtractTar, SaysThatBytesAreNoArchive) {
  const TestDir dir;
  for (const std::string& bytes : {std::string("not a tar"), std::string(5000, 'x')}) {
    const auto extracted = Extract(bytes, dir.path());
    ASSERT_FALSE(extracted.ok());
    EXPECT_EQ(extracted.error().code, ErrorCode::kCorrupt);
  }
  EXPECT_TRUE(Extract(Tar(""), dir.path()).ok());
}

TEST(LinkStaysBeneath, AllowsUpOnlyAtTheFrontAndOnlySoFar) {
  EXPECT_TRUE(LinkStaysBeneath("l", "a/b"));
  EXPECT_TRUE(LinkStaysBeneath("d/e/l", "../../x"));
  EXPECT_TRUE(LinkStaysBeneath("d/l", "./.././x"));
  EXPECT_TRUE(LinkStaysBeneath("d/l", ".."));
  EXPECT_FALSE(LinkStaysBeneath("l", ".."));
  EXPECT_FALSE(LinkStaysBeneath("d/l", "../.."));
  EXPECT_FALSE(LinkStaysBeneath("d/l", "a/../b"));
  EXPECT_FALSE(LinkStaysBeneath("l", "/a"));
  EXPECT_FALSE(LinkStaysBeneath("l", ""));
}

}  // namespace
}  // namespace athanor
