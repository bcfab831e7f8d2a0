#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <cmath>
#include <limits>

#include "base/io/crc32c.h"
#include "base/io/files.h"
#include "base/io/test_dir.h"
#include "eventfile/event.h"
#include "eventfile/event_reader.h"
#include "eventfile/event_writer.h"
#include "eventfile/plugins.h"
#include "eventfile/run_loader.h"
#include "eventfile/tfrecord.h"

namespace athanor {
namespace {

struct Seen {
  std::vector<std::string> records;
  std::vector<EventDamage> damage;
  uint64_t offset = 0;
  uint64_t tail = 0;
};

Seen ReadBytes(const TestDir& dir, const std::string& bytes) {
  EXPECT_TRUE(ReplaceFile(dir / "file", bytes).ok());
  EventReader reader{UniqueFd(::open((dir / "file").c_str(), O_RDONLY | O_CLOEXEC))};
  Seen seen;
  EXPECT_TRUE(
      reader.Poll([&](uint64_t, std::string_view payload) { seen.records.emplace_back(payload); })
          .has_value());
  seen.damage = reader.damage();
  seen.offset = reader.offset();
  seen.tail = reader.tail();
  return seen;
}

std::string Records(const std::vector<std::string>& payloads) {
  std::string out;
  for (const auto& payload : payloads) AppendTfRecord(out, payload);
  return out;
}

// One value of the file that `write` makes.
template <class Write, class Use>
void RoundTrip(Write write, Use use) {
  TestDir dir;
  auto writer = EventWriter::Create(dir.path(), 1.7e9, "test");
  ASSERT_TRUE(writer.has_value());
  ASSERT_TRUE(write(*writer).ok());
  ASSERT_TRUE(writer->Flush().ok());
  EventReader reader{UniqueFd(::open(writer->path().c_str(), O_RDONLY | O_CLOEXEC))};
  int values = 0;
  ASSERT_TRUE(reader
                  .Poll([&](uint64_t, std::string_view payload) {
                    EventView event;
                    ASSERT_TRUE(ReadEvent(payload, event));
                    if (event.kind != EventView::Kind::kSummary) return;
                    SummaryValue value;
                    TagKinds kinds;
                    while (TakeValue(event.body, value)) {
                      ++values;
                      use(event, value, kinds.KindOf(value));
                    }
                  })
                  .has_value());
  EXPECT_EQ(values, 1);
  EXPECT_EQ(reader.tail(), 0u);
}

TEST(TfRecord, HasTheChecksumsOfTheFormat) {
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(MaskedCrc32c("\x1a\x11"
                         "CRC test, one two"),
            0x5794d08au);
  const auto bytes = Records({"hello"});
  ASSERT_EQ(bytes.size(), 12u + 5u + 4u);
  const auto record = ReadTfRecord(bytes);
  EXPECT_EQ(record.state, TfRecord::State::kWhole);
  EXPECT_EQ(record.payload, "hello");
}

TEST(EventReader, StopsAtATornTailAndGoesOnWhenItIsWritten) {
  TestDir dir;
  const auto bytes = Records({"one", std::string(600'000, 'x'), "three"});
  for (const size_t cut : {size_t{0}, size_t{5}, size_t{12}, size_t{19}, size_t{30},
                           size_t{300'000}, bytes.size() - 1}) {
    EXPECT_TRUE(ReplaceFile(dir / "file", bytes.substr(0, cut)).ok());
    EventReader reader{UniqueFd(::open((dir / "file").c_str(), O_RDWR | O_CLOEXEC))};
    std::vector<size_t> sizes;
    const auto take = [&](uint64_t, std::string_view payload) { sizes.push_back(payload.size()); };
    ASSERT_TRUE(reader.Poll(take).has_value());
    EXPECT_EQ(reader.offset() + reader.tail(), cut);
    ASSERT_EQ(
        ::pwrite(reader.fd(), bytes.data() + cut, bytes.size() - cut, static_cast<off_t>(cut)),
        static_cast<ssize_t>(bytes.size() - cut));
    ASSERT_TRUE(reader.Poll(take).has_value());
    EXPECT_EQ(sizes, (std::vector<size_t>{3, 600'000, 5})) << cut;
    EXPECT_TRUE(reader.damage().empty());
    EXPECT_EQ(reader.tail(), 0u);
  }
}

TEST(EventReader, TellsWhereTheDamageIsAndReadsWhatIsBehindIt) {
  TestDir dir;
  const auto good = Records({"one", "two", "three"});
  for (size_t at = 0; at < good.size(); ++at) {
    auto bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    const auto seen = ReadBytes(dir, bytes);
    // Only the record of that byte is lost: 19 bytes each for the first two.
    const size_t hit = at < 19 ? 0 : at < 38 ? 1 : 2;
    std::vector<std::string> left = {"one", "two", "three"};
    left.erase(left.begin() + static_cast<ptrdiff_t>(hit));
    EXPECT_EQ(seen.records, left) << at;
    if (hit == 2) continue;  // at the end it may be a torn tail as well
    ASSERT_EQ(seen.damage.size(), 1u) << at;
    EXPECT_EQ(seen.damage[0].offset, hit * 19);
    EXPECT_EQ(seen.damage[0].bytes, 19u);
  }
}

TEST(EventReader, PassesOverALongStretchOfNonsense) {
  TestDir dir;
  const auto first = Records({"one"});
  const auto last = Records({"two"});
  const auto seen = ReadBytes(dir, first + std::string(3'000'000, 'z') + last);
  EXPECT_EQ(seen.records, (std::vector<std::string>{"one", "two"}));
  ASSERT_EQ(seen.damage.size(), 1u);
  EXPECT_EQ(seen.damage[0].offset, first.size());
  EXPECT_EQ(seen.damage[0].bytes, 3'000'000u);
}

TEST(EventReader, StepsOverARecordThatIsTooLongToBeHeld) {
  TestDir dir;
  const auto bytes = Records({"one", std::string(900'000, 'x'), "three"});
  ASSERT_TRUE(ReplaceFile(dir / "file", bytes).ok());
  EventReader reader(UniqueFd(::open((dir / "file").c_str(), O_RDONLY | O_CLOEXEC)), 500'000);
  std::vector<std::string> seen;
  ASSERT_TRUE(reader.Poll([&](uint64_t, std::string_view payload) { seen.emplace_back(payload); })
                  .has_value());
  EXPECT_EQ(seen, (std::vector<std::string>{"one", "three"}));
  EXPECT_EQ(reader.offset(), bytes.size());
}

TEST(EventReader, TakesZerosAtTheEndForBytesThatAreNotWrittenYet) {
  TestDir dir;
  const auto bytes = Records({"one"});
  const auto seen = ReadBytes(dir, bytes + std::string(5000, '\0'));
  EXPECT_EQ(seen.records, std::vector<std::string>{"one"});
  EXPECT_TRUE(seen.damage.empty());
  EXPECT_EQ(seen.tail, 5000u);
}

TEST(EventWriter, ScalarsKeepNaNInfinityAndLargeSteps) {
  for (const double number : {0.25, -0.0, std::numeric_limits<double>::infinity(), -1e30}) {
    RoundTrip([&](EventWriter& w) { return w.Scalar("a/b", int64_t{1} << 40, 12.5, number); },
              [&](const EventView& event, const SummaryValue& value, std::string_view kind) {
                EXPECT_EQ(kind, "scalars");
                EXPECT_EQ(value.tag, "a/b");
                EXPECT_EQ(event.step, int64_t{1} << 40);
                EXPECT_EQ(event.wall_time, 12.5);
                EXPECT_EQ(ScalarOf(value), static_cast<float>(number));
              });
  }
  RoundTrip([](EventWriter& w) { return w.Scalar("n", -3, 0, std::nan("")); },
            [](const EventView& event, const SummaryValue& value, std::string_view) {
              EXPECT_EQ(event.step, -3);
              ASSERT_TRUE(ScalarOf(value).has_value());
              EXPECT_TRUE(std::isnan(*ScalarOf(value)));
            });
}

TEST(EventWriter, EveryPluginsValuesComeBack) {
  RoundTrip(
      [](EventWriter& w) {
        return w.Histogram("h", 1, 0, {{{0, 1, 5}, {1, 2, 7}}});
      },
      [](const EventView&, const SummaryValue& value, std::string_view kind) {
        EXPECT_EQ(kind, "histograms");
        const auto read = ReadHistogram(value);
        ASSERT_TRUE(read.has_value());
        ASSERT_EQ(read->buckets.size(), 2u);
        EXPECT_EQ(read->buckets[1].right, 2);
        EXPECT_EQ(read->buckets[1].count, 7);
      });
  RoundTrip(
      [](EventWriter& w) {
        return w.Image("i", 1, 0, {4, 3, {"png"}});
      },
      [](const EventView&, const SummaryValue& value, std::string_view kind) {
        EXPECT_EQ(kind, "images");
        const auto read = ReadImage(value);
        ASSERT_TRUE(read.has_value());
        EXPECT_EQ(read->width, 4);
        EXPECT_EQ(read->height, 3);
        EXPECT_EQ(read->encoded, std::vector<std::string>{"png"});
      });
  RoundTrip(
      [](EventWriter& w) {
        return w.Audio("s", 1, 0, {0, "", {"wav"}});
      },
      [](const EventView&, const SummaryValue& value, std::string_view kind) {
        EXPECT_EQ(kind, "audio");
        EXPECT_EQ(ReadAudio(value)->encoded, std::vector<std::string>{"wav"});
      });
  RoundTrip(
      [](EventWriter& w) {
        return w.Text("t", 1, 0, {{"# title", "second"}});
      },
      [](const EventView&, const SummaryValue& value, std::string_view kind) {
        EXPECT_EQ(kind, "text");
        EXPECT_EQ(ReadText(value)->texts, (std::vector<std::string>{"# title", "second"}));
      });
  RoundTrip(
      [](EventWriter& w) {
        return w.PrCurve("p", 1, 0, {{3, 2}, {1, 0}, {0, 1}, {0, 1}, {0.75, 1}, {1, 0.5}});
      },
      [](const EventView&, const SummaryValue& value, std::string_view kind) {
        EXPECT_EQ(kind, "pr_curves");
        const auto read = ReadPrCurve(value);
        ASSERT_TRUE(read.has_value());
        EXPECT_EQ(read->precision, (std::vector<double>{0.75, 1}));
        EXPECT_EQ(read->recall, (std::vector<double>{1, 0.5}));
      });
  RoundTrip(
      [](EventWriter& w) {
        HParamsValue start;
        start.params = {{"lr", 0.1}, {"opt", std::string("adam")}, {"amp", true}};
        return w.HParams(0, start);
      },
      [](const EventView&, const SummaryValue& value, std::string_view kind) {
        EXPECT_EQ(kind, "hparams");
        const auto read = ReadHParams(value);
        ASSERT_TRUE(read.has_value());
        ASSERT_EQ(read->params.size(), 3u);
        EXPECT_EQ(read->params[0].second, HParam(0.1));
        EXPECT_EQ(read->params[1].second, HParam(std::string("adam")));
        EXPECT_EQ(read->params[2].second, HParam(true));
      });
}

TEST(Plugins, AnOldHistogramLosesItsEmptyEndsAndGetsItsOwnRange) {
  std::string histogram;
  proto::PutDouble(histogram, 1, -0.5);
  proto::PutDouble(histogram, 2, 2.5);
  for (const double limit : {-1e30, 0.0, 1.0, 1e30}) proto::PutDouble(histogram, 6, limit);
  for (const double count : {0.0, 2.0, 3.0, 0.0}) proto::PutDouble(histogram, 7, count);
  SummaryValue value;
  value.form = SummaryValue::Form::kHistogram;
  value.bytes = histogram;
  const auto read = ReadHistogram(value);
  ASSERT_TRUE(read.has_value());
  ASSERT_EQ(read->buckets.size(), 2u);
  EXPECT_EQ(read->buckets[0].left, -0.5);
  EXPECT_EQ(read->buckets[0].right, 0);
  EXPECT_EQ(read->buckets[1].right, 2.5);
}

TEST(Plugins, ATinyMessageCannotAskForAHugeTensor) {
  Tensor tensor{TensorType::kFloat, {1 << 20, 1 << 20}, {1.0}, {}};
  EXPECT_FALSE(ReadTensor(WriteTensor(tensor)).has_value());
  tensor.shape = {int64_t{1} << 62, 4};
  EXPECT_FALSE(ReadTensor(WriteTensor(tensor)).has_value());
  tensor.shape = {3};
  EXPECT_EQ(ReadTensor(WriteTensor(tensor))->numbers, (std::vector<double>{1, 1, 1}));
}

TEST(RunLoader, KeepsEveryPointOfEveryRun) {
  TestDir dir;
  for (const auto* run : {"a", "b/c"}) {
    for (int file = 0; file < 2; ++file) {
      auto writer = EventWriter::Create(dir / run, 1000 + file, "x").value();
      for (int step = 0; step < 2000; ++step) {
        ASSERT_TRUE(writer.Scalar("loss", 2000 * file + step, step, step).ok());
        if (step % 10 != 0) continue;
        ASSERT_TRUE(writer.Scalar("acc", 2000 * file + step, step, 1).ok());
      }
      ASSERT_TRUE(writer.Text("note", 0, 0, {{"x"}}).ok());
      ASSERT_TRUE(writer.Flush().ok());
    }
  }
  for (const unsigned threads : {1u, 4u}) {
    const auto runs = LoadRuns(dir.path(), threads);
    ASSERT_TRUE(runs.has_value());
    ASSERT_EQ(runs->size(), 2u);
    EXPECT_EQ((*runs)[1].name, "b/c");
    for (const auto& run : *runs) {
      ASSERT_EQ(run.scalars.size(), 2u);
      EXPECT_EQ(run.scalars[0].tag, "loss");
      EXPECT_EQ(run.scalars[0].size(), 4000u);
      EXPECT_TRUE(run.scalars[0].in_order);
      EXPECT_EQ(run.scalars[1].size(), 400u);
      EXPECT_EQ(run.others.at("text"), 2u);
      EXPECT_EQ(run.files.size(), 2u);
    }
  }
  EXPECT_EQ(LoadRuns(dir / "absent").error().code, ErrorCode::kNotFound);
}

TEST(RunLoader, AStepThatGoesBackTakesWhatWasBehindItWithIt) {
  ScalarColumn column;
  column.steps = {0, 1, 2, 3, 2, 3, 4, 4};
  column.values = {0, 1, 2, 3, 20, 30, 40, 41};
  std::vector<double> values;
  for (const size_t i : PointsThatCount(column)) values.push_back(column.values[i]);
  EXPECT_EQ(values, (std::vector<double>{0, 1, 20, 30, 41}));
}

}  // namespace
}  // namespace athanor
