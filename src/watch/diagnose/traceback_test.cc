#include "watch/diagnose/traceback.h"

#include <gtest/gtest.h>

namespace athanor {
namespace {

TEST(Traceback, IsNotFoundWhereThereIsNone) {
  EXPECT_FALSE(ParseTraceback(""));
  EXPECT_FALSE(ParseTraceback("epoch 1\nINFO: fine\nError: no\n"));
  EXPECT_FALSE(ParseTraceback("Traceback (most recent call last):\n"));
  EXPECT_FALSE(
      ParseTraceback("Traceback (most recent call last):\n  File \"x.py\", line 1, in f\n"));
}

TEST(Traceback, TheLastOneOfSeveralCounts) {
  const auto found = ParseTraceback(
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nValueError: first\n"
      "retrying\n"
      "Traceback (most recent call last):\n  File \"b.py\", line 2, in g\n    h()\n    "
      "^^^\nKeyError: 'second'\n"
      "bye\n");
  ASSERT_TRUE(found);
  ASSERT_EQ(found->chain.size(), 1u);
  EXPECT_EQ(found->last().type, "KeyError");
  EXPECT_EQ(found->last().message, "'second'");
  ASSERT_EQ(found->frames().size(), 1u);
  EXPECT_EQ(found->frames()[0].code, "h()");
  EXPECT_EQ(found->lines_after, 1u);
}

TEST(Traceback, KnowsWhoPrintedIt) {
  const std::string body =
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nValueError: x\n";
  const auto told = [&](const std::string& before) { return ParseTraceback(before + body)->told; };
  EXPECT_EQ(told("epoch 1\n"), Told::kPlain);
  EXPECT_EQ(told("Error in atexit._run_exitfuncs:\n"), Told::kIgnored);
  EXPECT_EQ(told("Exception ignored in: <function f>\n"), Told::kIgnored);
  EXPECT_EQ(told("Exception in thread Thread-1 (work):\n"), Told::kAside);
  EXPECT_EQ(told("Process SpawnProcess-2:\n"), Told::kAside);
  EXPECT_EQ(told("Task exception was never retrieved\nfuture: <Task>\n"), Told::kAside);
  EXPECT_EQ(told("ERROR:root:shard 3 is bad\n"), Told::kLogged);
  EXPECT_EQ(told("2026-01-01 12:00:00 [WARNING] retry\n"), Told::kLogged);
  EXPECT_EQ(ParseTracebacks(body + "again\n" + body).size(), 2u);
}

TEST(Traceback, TheFurtherLinesOfAMessageBelongToIt) {
  const auto found = ParseTraceback(
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n"
      "RuntimeError: Error(s) in loading:\n\tMissing key(s)\n\tsize mismatch for fc\nbye\n");
  ASSERT_TRUE(found);
  EXPECT_NE(found->last().rest.find("size mismatch"), std::string::npos);
  EXPECT_EQ(found->lines_after, 1u);
}

TEST(Traceback, ReadsTheBoxesOfRichAndTheCellsOfNotebooks) {
  auto found = ParseTraceback(
      "╭───── Traceback (most recent call last) ─────╮\n"
      "│ /opt/ml/code/train.py:7 in main             │\n"
      "│ ❱ 7 │   step(x)                             │\n"
      "╰─────────────────────────────────────────────╯\nKeyError: 'lr'\n");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->last().type, "KeyError");
  ASSERT_EQ(found->frames().size(), 1u);
  EXPECT_EQ(found->frames()[0].line, 7);
  found = ParseTraceback(
      "ZeroDivisionError                         Traceback (most recent call last)\n"
      "File /opt/ml/code/m.py:3, in f(x)\n----> 3 1/0\n\nZeroDivisionError: division by zero\n");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->last().message, "division by zero");
  EXPECT_EQ(found->frames()[0].file, "/opt/ml/code/m.py");
}

TEST(Traceback, OtherOutputInBetweenDoesNotHideTheError) {
  const auto found = ParseTraceback(
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n"
      "[INFO] flushing\n2026-01-01 bye\nValueError: x\n");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->last().type, "ValueError");
}

TEST(Traceback, ATailThatBeginsInTheMiddleIsRead) {
  const auto found = ParseTraceback(
      "    step()\n  File \"a.py\", line 7, in step\n    1/0\nZeroDivisionError: z\n");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->frames().back().line, 7);
}

TEST(Traceback, FileNamesMayHoldQuotesAndCommas) {
  const auto found = ParseTraceback(
      "Traceback (most recent call last):\n  File \"/tmp/a\", line 1, in b.py\", line 3, in f\nE: "
      "x\nMyError: y\n");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->frames()[0].line, 3);
}

TEST(Traceback, KnowsWhoseFileItIs) {
  EXPECT_TRUE(IsUserFile("/opt/ml/code/train.py"));
  EXPECT_TRUE(IsUserFile("train.py"));
  EXPECT_TRUE(IsUserFile("<string>"));
  EXPECT_TRUE(IsUserFile("/home/a/lib/pythonic/x.py"));
  EXPECT_FALSE(IsUserFile("/usr/lib/python3.11/json/decoder.py"));
  EXPECT_FALSE(IsUserFile("/usr/lib/athanor/python/site/sitecustomize.py"));
  EXPECT_FALSE(IsUserFile("/usr/lib/athanor/python/athanor/__init__.py"));
  EXPECT_FALSE(IsUserFile("/usr/lib/python3/dist-packages/torch/nn/a.py"));
  EXPECT_FALSE(IsUserFile("/x/venv/lib/python3.12/site-packages/torch/a.py"));
  EXPECT_FALSE(IsUserFile("<frozen runpy>"));
}

TEST(Traceback, CrashStacksAreThoseOfTheCurrentThread) {
  const auto stack = ParseCrashStack(
      "Fatal Python error: Segmentation fault\n\n"
      "Thread 0x01 (most recent call first):\n  File \"other.py\", line 1 in wait\n\n"
      "Current thread 0x02 (most recent call first):\n  File \"a.py\", line 3 in g\n  File "
      "\"a.py\", line 9 in "
      "<module>\n\nExtension modules: numpy (total: 1)\n");
  ASSERT_TRUE(stack);
  EXPECT_EQ(stack->what, "Segmentation fault");
  ASSERT_EQ(stack->frames.size(), 2u);
  EXPECT_EQ(stack->frames[0].function, "g");
  EXPECT_EQ(stack->frames[0].line, 3);
}

TEST(Traceback, PlainLinesDropColoursAndWhatABarOverwrote) {
  EXPECT_EQ(PlainLines("a\n\x1b[1;31mb\x1b[0m\r\n1%\r2%\r3%\n\n"),
            (std::vector<std::string>{"a", "b", "3%"}));
  EXPECT_EQ(PlainLines("a\nb\nc\n", 2), (std::vector<std::string>{"b", "c"}));
}

TEST(ThreadStacks, AreReadInTheOrderTheyWereWritten) {
  const auto threads = ParseThreadStacks(
      "Thread 0x00007f8a6a1fe6c0 (most recent call first):\n"
      "  File \"/usr/lib/python3.11/threading.py\", line 320 in wait\n"
      "  File \"/app/train.py\", line 7 in pump\n"
      "\n"
      "Thread 0x00007f8a6a1fe6c1 [loader] (most recent call first):\n"
      "  <no Python frame>\n"
      "\n"
      "Current thread 0x00007f8a6b0d5040 (most recent call first):\n"
      "  File \"/app/train.py\", line 12 in <module>\n"
      "not a frame\n"
      "  File \"/app/later.py\", line 1 in lost\n");
  ASSERT_EQ(threads.size(), 3u);
  EXPECT_FALSE(threads[0].current);
  ASSERT_EQ(threads[0].frames.size(), 2u);
  EXPECT_FALSE(threads[0].frames[0].user);
  EXPECT_TRUE(threads[0].frames[1].user);
  EXPECT_EQ(threads[0].frames[1].function, "pump");
  EXPECT_TRUE(threads[1].frames.empty());
  EXPECT_TRUE(threads[2].current);
  ASSERT_EQ(threads[2].frames.size(), 1u);
  EXPECT_EQ(threads[2].frames[0].line, 12);
  EXPECT_TRUE(ParseThreadStacks("").empty());
  EXPECT_TRUE(ParseThreadStacks("Thread 0x1\n  File \"a.py\", line 1 in b\n").empty());
}

}  // namespace
}  // namespace athanor
