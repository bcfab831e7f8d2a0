#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "base/text/format.h"
#include "base/text/text.h"
#include "door/cloudwatch/cloudwatch_testing.h"
#include "door/cloudwatch/log_events.h"

namespace athanor {
namespace {

constexpr char kGroup[] = "/aws/sagemaker/TrainingJobs";
constexpr int64_t kT0 = 1'700'000'001'000;

using Strings = std::vector<std::string>;

class LogsTest : public CloudWatchTest {
 protected:
  CloudWatchReply Call(const char* operation, Json request) const {
    request["logGroupName"] = kGroup;
    return AnswerLogs(Sources(), operation, request);
  }
  Json Events(const std::string& stream, Json request) const {
    request["logStreamName"] = stream;
    return Good(Call("GetLogEvents", std::move(request)));
  }
  static Strings Messages(const Json& answer) {
    Strings messages;
    for (const auto& event : answer["events"]) {
      messages.push_back(event["message"].get<std::string>());
    }
    return messages;
  }
  static Strings Names(const Json& answer) {
    Strings names;
    for (const auto& stream : answer["logStreams"]) {
      names.push_back(stream["logStreamName"].get<std::string>());
    }
    return names;
  }
  // Lines "0" to "`lines` - 1", some in one chunk, each chunk a millisecond later.
  void PrintNumbers(const JobRecord& job, int lines) {
    std::string chunk;
    for (int i = 0; i < lines; ++i) {
      chunk += std::to_string(i) + "\n";
      if (i % 3 != 0) continue;
      Print(job, chunk, kT0 + i);
      chunk.clear();
    }
    if (!chunk.empty()) Print(job, chunk, kT0 + lines);
  }
  static Strings Numbers(int from, int to) {
    Strings numbers;
    for (int i = from; i < to; ++i) numbers.push_back(std::to_string(i));
    return numbers;
  }
};

TEST_F(LogsTest, AStreamIsNamedAsSageMakerNamesItAndIsThereOnceSomethingWasPrinted) {
  const auto job = AddJob("train-a");
  const Json prefix = {{"logStreamNamePrefix", "train-a/"}};
  EXPECT_EQ(Names(Good(Call("DescribeLogStreams", prefix))), Strings{});
  EXPECT_EQ(Bad(Call("GetLogEvents", {{"logStreamName", StreamOf(job)}})).code,
            "ResourceNotFoundException");
  Print(job, "hello\n", kT0);
  Print(job, "world\n", kT0 + 5);
  const auto answer =
      Good(Call("DescribeLogStreams",
                {{"logStreamNamePrefix", "train-a/"}, {"orderBy", "LogStreamName"}, {"limit", 1}}));
  ASSERT_EQ(Names(answer), Strings{StreamOf(job)});
  EXPECT_FALSE(answer.contains("nextToken"));
  EXPECT_EQ(answer["logStreams"][0]["firstEventTimestamp"], kT0);
  EXPECT_EQ(answer["logStreams"][0]["lastEventTimestamp"], kT0 + 5);
  EXPECT_EQ(answer["logStreams"][0]["creationTime"], job.created.ms + 7);
}

TEST_F(LogsTest, AllStreamsAreFoundPageByPageInEitherOrder) {
  Strings names;
  for (int i = 0; i < 7; ++i) {
    const auto job = AddJob("job-" + std::to_string(i));
    Print(job, "x\n", kT0 + i);
    End(job);
    names.push_back(StreamOf(job));
    AddJob("silent-" + std::to_string(i));
  }
  for (const bool descending : {false, true}) {
    for (const char* order : {"LogStreamName", "LastEventTime"}) {
      Strings found;
      Json request = {{"orderBy", order}, {"descending", descending}, {"limit", 3}};
      for (int pages = 1;; ++pages) {
        const auto answer = Good(Call("DescribeLogStreams", request));
        for (const auto& name : Names(answer)) found.push_back(name);
        if (!answer.contains("nextToken")) {
          EXPECT_EQ(pages, 3);
          break;
        }
        ASSERT_LT(pages, 3);
        request["nextToken"] = answer["nextToken"];
      }
      if (descending) std::reverse(found.begin(), found.end());
      EXPECT_EQ(found, names) << order << descending;
    }
  }
}

TEST_F(LogsTest, AJobWhoseNameWasTakenIsThereByItsIdAndByTheStreamFoundBefore) {
  const auto old_job = AddJob("same");
  Print(old_job, "old\n", kT0);
  const auto new_job = AddJob("same");
  Print(new_job, "new\n", kT0);
  EXPECT_EQ(Names(Good(Call("DescribeLogStreams", {{"logStreamNamePrefix", "same/"}}))),
            Strings{StreamOf(new_job)});
  EXPECT_EQ(Good(Call("DescribeLogStreams", {}))["logStreams"].size(), 2u);
  EXPECT_EQ(Messages(Events(StreamOf(old_job), {})), Strings{"old"});
  const std::string by_id = ReplaceAll(StreamOf(old_job), "same/", old_job.id.ToString() + "/");
  EXPECT_EQ(Messages(Events(by_id, {})), Strings{"old"});
}

TEST_F(LogsTest, PartOfAnIdOrAReferenceIsNoName) {
  const auto job = AddJob("a-job");
  Print(job, "x\n", kT0);
  for (const std::string& name :
       {job.id.ToString().substr(0, 10), std::string("@last"), job.id.ToString().substr(10)}) {
    const Json prefix = {{"logStreamNamePrefix", name + "/"}};
    EXPECT_EQ(Names(Good(Call("DescribeLogStreams", prefix))), Strings{});
    const std::string stream = ReplaceAll(StreamOf(job), "a-job/", name + "/");
    EXPECT_EQ(Bad(Call("GetLogEvents", {{"logStreamName", stream}})).code,
              "ResourceNotFoundException");
  }
}

TEST_F(LogsTest, PagesForwardMeetAndEndWithTheTokenThatWasGiven) {
  const auto job = AddJob("pages");
  PrintNumbers(job, 2000);
  Strings found;
  Json request = {{"startFromHead", true}, {"limit", 77}};
  std::string token;
  for (;;) {
    const auto answer = Events(StreamOf(job), request);
    const auto next = answer["nextForwardToken"].get<std::string>();
    for (const auto& message : Messages(answer)) found.push_back(message);
    if (next == token) break;
    ASSERT_LE(found.size(), 2000u);
    request["nextToken"] = token = next;
  }
  EXPECT_EQ(found, Numbers(0, 2000));
  Print(job, "more\n", kT0 + 5000);
  const auto answer = Events(StreamOf(job), request);
  EXPECT_EQ(Messages(answer), Strings{"more"}) << "the last token goes on";
  EXPECT_NE(answer["nextForwardToken"], token);
}

TEST_F(LogsTest, PagesBackwardMeetAndEndWithTheTokenThatWasGiven) {
  const auto job = AddJob("pages");
  PrintNumbers(job, 2000);
  Strings found;
  Json request = {{"limit", 77}};
  std::string token;
  for (;;) {
    const auto answer = Events(StreamOf(job), request);
    const auto next = answer["nextBackwardToken"].get<std::string>();
    auto page = Messages(answer);
    if (token.empty()) {
      EXPECT_EQ(page, Numbers(2000 - 77, 2000)) << "the newest are the default";
    }
    page.insert(page.end(), found.begin(), found.end());
    found = std::move(page);
    if (next == token) break;
    ASSERT_LE(found.size(), 2000u);
    request["nextToken"] = token = next;
  }
  EXPECT_EQ(found, Numbers(0, 2000));
}

TEST_F(LogsTest, TheTwoDirectionsMeetInOnePlace) {
  const auto job = AddJob("both");
  PrintNumbers(job, 1700);
  const auto last = Events(StreamOf(job), {{"limit", 10}});
  const auto before =
      Events(StreamOf(job), {{"limit", 5}, {"nextToken", last["nextBackwardToken"]}});
  EXPECT_EQ(Messages(before), Numbers(1685, 1690));
  const auto again =
      Events(StreamOf(job), {{"limit", 5}, {"nextToken", before["nextForwardToken"]}});
  EXPECT_EQ(Messages(again), Numbers(1690, 1695));
  EXPECT_EQ(Messages(Events(StreamOf(job), {{"nextToken", last["nextForwardToken"]}})), Strings{});
}

// What the SageMaker SDK does at each poll: from the last time it saw, counting what it saw then.
TEST_F(LogsTest, AskingAgainFromATimeGivesTheSameEventsInTheSameOrder) {
  const auto job = AddJob("poll");
  Strings printed;
  Strings seen;
  int64_t time = 0;
  size_t skip = 0;
  std::string open;
  for (int round = 0; round < 1500; ++round) {
    // A line in pieces, others in between, clocks that stop or go back.
    const int64_t wall = kT0 + round / 4 - (round % 97 == 0 ? 3 : 0);
    Print(job, "part " + std::to_string(round) + (round % 3 == 2 ? "\n" : "; "), wall);
    if (round % 5 == 0) Print(job, "err " + std::to_string(round) + "\n", wall, LogStream::kStderr);
    if (round % 7 != 0 && round != 1499) continue;
    if (round == 1499) End(job);
    const auto answer = Events(StreamOf(job), {{"startTime", time}, {"startFromHead", true}});
    ASSERT_GE(answer["events"].size(), skip);
    for (size_t i = skip; i < answer["events"].size(); ++i) {
      const auto& event = answer["events"][i];
      const auto at = event["timestamp"].get<int64_t>();
      ASSERT_GE(at, time);
      skip = at == time ? skip + 1 : 1;
      time = at;
      seen.push_back(event["message"].get<std::string>());
    }
  }
  const auto all = Events(StreamOf(job), {{"startFromHead", true}});
  EXPECT_EQ(seen, Messages(all));
  std::string err;
  for (const auto& message : seen) err += message.substr(0, 3) == "err" ? message + "|" : "";
  EXPECT_EQ(std::count(err.begin(), err.end(), '|'), 300);
}

TEST_F(LogsTest, AnOpenLineIsHeldBackUntilItIsCompleteOrTheJobIsOver) {
  const auto job = AddJob("open");
  Print(job, "done\nopen", kT0);
  const auto first = Events(StreamOf(job), {{"startFromHead", true}});
  EXPECT_EQ(Messages(first), Strings{"done"});
  const Json next = {{"nextToken", first["nextForwardToken"]}};
  EXPECT_EQ(Messages(Events(StreamOf(job), next)), Strings{});
  EXPECT_EQ(Messages(Events(StreamOf(job), {})), Strings{"done"});
  Print(job, "ed\nlast", kT0 + 1);
  EXPECT_EQ(Messages(Events(StreamOf(job), next)), Strings{"opened"});
  const auto second = Events(StreamOf(job), next);
  End(job);
  EXPECT_EQ(Messages(Events(StreamOf(job), {{"nextToken", second["nextForwardToken"]}})),
            Strings{"last"});
  EXPECT_EQ(Messages(Events(StreamOf(job), {})), (Strings{"done", "opened", "last"}));
}

TEST_F(LogsTest, AWindowHasItsStartAndNotItsEnd) {
  const auto job = AddJob("window");
  for (int i = 0; i < 1300; ++i) Print(job, std::to_string(i) + "\n", kT0 + i / 2);
  for (const bool from_head : {true, false}) {
    const auto answer =
        Events(StreamOf(job),
               {{"startTime", kT0 + 5}, {"endTime", kT0 + 8}, {"startFromHead", from_head}});
    EXPECT_EQ(Messages(answer), Numbers(10, 16)) << from_head;
  }
  EXPECT_EQ(Messages(Events(StreamOf(job), {{"endTime", kT0}})), Strings{});
  EXPECT_EQ(Messages(Events(StreamOf(job), {{"startTime", kT0 + 10'000}})), Strings{});
}

TEST_F(LogsTest, AnAnswerIsBoundedAndTheNextGoesOn) {
  const auto job = AddJob("large");
  Strings lines;
  for (int i = 0; i < 40; ++i) {
    lines.push_back(std::string(60'000, 'a' + i % 26));
    Print(job, lines.back() + "\n", kT0 + i);
  }
  Strings forward;
  Json request = {{"startFromHead", true}};
  for (int page = 0; page < 3; ++page) {
    const auto answer = Events(StreamOf(job), request);
    EXPECT_LE(DumpJson(answer).size(), (1u << 20) + 10'000);
    for (auto& message : Messages(answer)) forward.push_back(message);
    request["nextToken"] = answer["nextForwardToken"];
  }
  EXPECT_EQ(forward, lines);
  EXPECT_EQ(Messages(Events(StreamOf(job), {})).back(), lines.back());
  EXPECT_EQ(Messages(Events(StreamOf(job), {})).size(), 17u);
}

TEST_F(LogsTest, BytesThatAreNoTextDoNotBreakTheAnswer) {
  const auto job = AddJob("bytes");
  Print(job, std::string("\xff\x00\xc3\n", 4), kT0);
  const auto answer = Events(StreamOf(job), {});
  ASSERT_EQ(answer["events"].size(), 1u);
  EXPECT_TRUE(ParseJson(DumpJson(answer)));
}

TEST_F(LogsTest, ASearchGoesThroughJobsAndFindsTerms) {
  const auto a = AddJob("a");
  const auto b = AddJob("b");
  Print(a, "INFO fine\nERROR disk\n", kT0);
  Print(b, "ERROR net\nERROR disk full\n", kT0 + 1);
  const auto all = Good(Call("FilterLogEvents", {{"filterPattern", "ERROR -net"}}));
  EXPECT_EQ(Messages(all), (Strings{"ERROR disk", "ERROR disk full"}));
  EXPECT_EQ(all["events"][1]["logStreamName"], StreamOf(b));
  EXPECT_NE(all["events"][0]["eventId"], all["events"][1]["eventId"]);
  EXPECT_FALSE(all.contains("nextToken"));
  EXPECT_EQ(Messages(Good(Call("FilterLogEvents", {{"logStreamNamePrefix", "b/"}}))),
            (Strings{"ERROR net", "ERROR disk full"}));
  EXPECT_EQ(Messages(Good(Call("FilterLogEvents", {{"logStreamNames", {StreamOf(a)}},
                                                   {"filterPattern", "?fine ?nothing"}}))),
            Strings{"INFO fine"});
  EXPECT_EQ(Messages(Good(Call("FilterLogEvents", {{"startTime", kT0 + 1}}))),
            (Strings{"ERROR net", "ERROR disk full"}));
  EXPECT_EQ(Bad(Call("FilterLogEvents", {{"logStreamNames", {"c/algo-1-5"}}})).code,
            "ResourceNotFoundException");
}

TEST_F(LogsTest, ASearchComesInPagesWithoutGapOrDouble) {
  for (int i = 0; i < 5; ++i) PrintNumbers(AddJob("job-" + std::to_string(i)), 700);
  size_t found = 0;
  std::set<std::string> ids;
  Json request = {{"filterPattern", "9"}, {"limit", 33}};
  for (int pages = 0; pages < 100; ++pages) {
    const auto answer = Good(Call("FilterLogEvents", request));
    EXPECT_LE(answer["events"].size(), 33u);
    for (const auto& event : answer["events"]) {
      ++found;
      ids.insert(event["eventId"].get<std::string>());
    }
    if (!answer.contains("nextToken")) break;
    request["nextToken"] = answer["nextToken"];
  }
  size_t nines = 0;
  for (const auto& number : Numbers(0, 700)) nines += number.find('9') != std::string::npos;
  EXPECT_EQ(found, 5 * nines);
  EXPECT_EQ(ids.size(), found);
}

TEST_F(LogsTest, EachHostHasAStreamAndASearchFindsAllOfThem) {
  const auto job = AddJob("gang", 3);
  const auto other = AddJob("other");
  Print(other, "9\n", kT0);
  for (uint32_t host = 0; host < 3; ++host) {
    for (int i = 0; i < 40; ++i) {
      Print(job, fmt::format("{}-{}\n", host, i), kT0 + i, LogStream::kStdout, 1, host);
    }
  }
  const auto named = [&](int host) {
    return fmt::format("gang/algo-{}-{}", host, job.created.ms + 7);
  };
  const auto answer =
      Good(Call("DescribeLogStreams", {{"logStreamNamePrefix", "gang/"}, {"limit", 3}}));
  EXPECT_EQ(Names(answer), (Strings{named(1), named(2), named(3)}));
  EXPECT_EQ(Messages(Events(named(2), {{"startFromHead", true}, {"limit", 2}})),
            (Strings{"1-0", "1-1"}));
  EXPECT_EQ(Bad(Call("GetLogEvents", {{"logStreamName", named(4)}})).code,
            "ResourceNotFoundException");
  // Pages of streams meet, and so do those of a search.
  Json request = {{"limit", 1}};
  Strings all;
  for (int pages = 0; pages < 10; ++pages) {
    const auto page = Good(Call("DescribeLogStreams", request));
    for (const auto& name : Names(page)) all.push_back(name);
    if (!page.contains("nextToken")) break;
    request["nextToken"] = page["nextToken"];
  }
  EXPECT_EQ(all.size(), 4u);
  std::set<std::string> found;
  size_t events = 0;
  request = {{"limit", 7}};
  for (int pages = 0; pages < 100; ++pages) {
    const auto page = Good(Call("FilterLogEvents", request));
    for (const auto& event : page["events"]) {
      ++events;
      found.insert(event["logStreamName"].get<std::string>() + " " +
                   event["message"].get<std::string>());
    }
    if (!page.contains("nextToken")) break;
    request["nextToken"] = page["nextToken"];
  }
  EXPECT_EQ(events, 121u);
  EXPECT_EQ(found.size(), 121u);
}

TEST_F(LogsTest, RefusalsHaveAwssCodes) {
  const auto job = AddJob("job");
  Print(job, "x\n", kT0);
  const struct {
    const char* operation;
    Json request;
    const char* code;
  } kCases[] = {
      {"DescribeLogStreams", {{"limit", 51}}, "InvalidParameterException"},
      {"DescribeLogStreams", {{"limit", "x"}}, "SerializationException"},
      {"DescribeLogStreams", {{"orderBy", "Size"}}, "InvalidParameterException"},
      {"DescribeLogStreams",
       {{"orderBy", "LastEventTime"}, {"logStreamNamePrefix", "a"}},
       "InvalidParameterException"},
      {"DescribeLogStreams", {{"nextToken", "zzz"}}, "InvalidParameterException"},
      {"GetLogEvents", Json::object(), "InvalidParameterException"},
      {"GetLogEvents",
       {{"logStreamName", StreamOf(job)}, {"nextToken", "f/x"}},
       "InvalidParameterException"},
      {"GetLogEvents",
       {{"logStreamName", StreamOf(job)}, {"limit", 0}},
       "InvalidParameterException"},
      {"GetLogEvents",
       {{"logStreamName", StreamOf(job)}, {"startTime", 5}, {"endTime", 4}},
       "InvalidParameterException"},
      {"GetLogEvents",
       {{"logStreamName", "job/algo-2-1700000000008"}},
       "ResourceNotFoundException"},
      {"FilterLogEvents", {{"filterPattern", "{ $.a = 1 }"}}, "InvalidParameterException"},
      {"FilterLogEvents", {{"nextToken", "x"}}, "InvalidParameterException"},
      {"FilterLogEvents",
       {{"logStreamNames", {"a"}}, {"logStreamNamePrefix", "a"}},
       "InvalidParameterException"},
      {"PutLogEvents", Json::object(), "UnknownOperationException"},
  };
  for (const auto& row : kCases) {
    EXPECT_EQ(Bad(Call(row.operation, row.request)).code, row.code)
        << row.operation << DumpJson(row.request);
  }
  EXPECT_EQ(Bad(AnswerLogs(Sources(), "DescribeLogStreams", Json{{"logGroupName", "/other"}})).code,
            "ResourceNotFoundException");
  EXPECT_EQ(Bad(AnswerLogs(Sources(), "DescribeLogStreams", Json::object())).code,
            "InvalidParameterException");
  EXPECT_EQ(Bad(AnswerLogs(Sources(), "DescribeLogGroups", Json::array())).code,
            "SerializationException");
}

TEST_F(LogsTest, TheGroupIsThereByNameAndByArn) {
  const auto group = [&](const Json& request) {
    return Good(AnswerLogs(Sources(), "DescribeLogGroups", request))["logGroups"].size();
  };
  EXPECT_EQ(group(Json::object()), 1u);
  EXPECT_EQ(group({{"logGroupNamePrefix", "/aws/sagemaker"}}), 1u);
  EXPECT_EQ(group({{"logGroupNamePrefix", "/ecs"}}), 0u);
  const auto groups = Good(AnswerLogs(Sources(), "DescribeLogGroups", Json::object()));
  for (const char* form : {"arn", "logGroupArn"}) {
    EXPECT_TRUE(AnswerLogs(Sources(), "DescribeLogStreams",
                           Json{{"logGroupIdentifier", groups["logGroups"][0][form]}}));
  }
}

}  // namespace
}  // namespace athanor
