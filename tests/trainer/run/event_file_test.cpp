// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Records as TensorBoard's reader has them, names in the order of starts, and what of an event becomes a scalar.
#include "trainer/run/event_file.hpp"

#include "common/digest.hpp"
#include "event_schema.pb.h"
#include "tests/support/prelude.hpp"
#include "tests/support/small_disk.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// The two records are what tensorboard 2.20 makes of these bytes.
TEST(EventRecordTest, LengthAndBytesHaveMaskedChecksums) {
  const auto hex_of = [](const std::string& bytes) { return hex(std::as_bytes(std::span(bytes))); };
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(hex_of(event_record("")), "000000000000000029039807d8ea82a2");
  EXPECT_EQ(hex_of(event_record("lockstep")), "0800000000000000ff86240f6c6f636b73746570d7adff72");
}

TEST(EventRecordTest, ANewFileIsReadBehindAllOthers) {
  RunEnv env;
  const std::string first = next_event_file(env, "run");
  EXPECT_TRUE(is_event_file(first.substr(4))) << first;
  EXPECT_FALSE(is_event_file("events.out.tfevents.1.other"));
  for (const char* name : {"events.out.tfevents.9000000000.lockstep", "events.out.tfevents.x.lockstep"})
    write_synced(env, std::string("run/") + name, {});
  EXPECT_EQ(next_event_file(env, "run"), "run/events.out.tfevents.9000000001.lockstep");
  EXPECT_FALSE(is_event_file("x.events.out.tfevents.1.lockstep"));
  write_synced(env, "run/events.out.tfevents.9999999998.lockstep", {});
  EXPECT_EQ(next_event_file(env, "run"), "run/events.out.tfevents.9999999999.lockstep");
  write_synced(env, "run/events.out.tfevents.9999999999.lockstep", {});
  EXPECT_EQ(next_event_file(env, "run"), "run/events.out.tfevents.9999999999.lockstep") << "ten digits";
}

/// The payloads of a file's records. Each must be whole.
std::vector<std::string> records_of(const std::string& path) {
  const std::string bytes = text_of(path);
  std::vector<std::string> records;
  for (std::size_t at = 0; at < bytes.size();) {
    std::uint64_t size = 0;
    bytes.copy(reinterpret_cast<char*>(&size), sizeof size, at);
    records.push_back(bytes.substr(at + 12, size));
    EXPECT_EQ(bytes.substr(at, size + 16), event_record(records.back()));
    at += size + 16;
  }
  return records;
}

tensorboard::Event event_of(const std::string& record) {
  tensorboard::Event event;
  EXPECT_TRUE(event.ParseFromString(record));
  return event;
}

class EventFileTest : public ::testing::Test {
 protected:
  /// Path of the event file that is read last.
  std::string newest() const {
    std::string last;
    for (const std::string& name : Env::posix().list(folder_))
      if (is_event_file(name)) last = std::max(last, name);
    return folder_ + "/" + last;
  }

  TemporaryDirectory directory_;
  std::string folder_ = directory_.path();
};

TEST_F(EventFileTest, NumbersOfStepsEpochsAndEvaluationsAreScalarsAndPlacesAreNot) {
  {
    EventFile file(Env::posix(), folder_);
    file.add_line({{"event", "start"}, {"step", 0}, {"parameters", 5}});
    file.add_line(
        {{"event", "step"}, {"epoch", 1}, {"step", 3}, {"loss", 0.5}, {"time", "2026-11-23T16:07:41.250Z"}});
    file.add_line({{"event", "epoch"}, {"step", "3"}, {"loss", 0.5}});
    file.add_line({{"event", "evaluation"}, {"epoch", 1}, {"step", 3}, {"validation_accuracy", 0.5}});
    file.add_line({{"event", "loss"},
                   {"step", 4},
                   {"too_large", -1e39},
                   {"not_finite", std::nan("")},
                   {"mean_loss", 0.5},
                   {"largest", std::numeric_limits<float>::max()}});
    file.add_line(nlohmann::ordered_json::array());
  }
  const auto records = records_of(fs::directory_iterator(folder_)->path());
  ASSERT_EQ(records.size(), 4U);
  EXPECT_NE(records[0].find("brain.Event:2"), std::string::npos);
  EXPECT_EQ(event_of(records[0]).step(), 0);
  EXPECT_NE(records[1].find("step/loss"), std::string::npos);
  EXPECT_EQ(records[1].find("step/epoch"), std::string::npos);
  EXPECT_EQ(event_of(records[1]).step(), 3);
  EXPECT_EQ(event_of(records[1]).summary().value(0).simple_value(), 0.5F);
  double wall_time = 0;
  std::memcpy(&wall_time, records[1].data() + 1, sizeof wall_time);
  EXPECT_EQ(wall_time, 1795450061.25);
  EXPECT_NE(records[2].find("evaluation/validation_accuracy"), std::string::npos);
  EXPECT_NE(records[3].find("loss/mean_loss"), std::string::npos);
  EXPECT_NE(records[3].find("loss/largest"), std::string::npos);
  EXPECT_EQ(records[3].find("too_large"), std::string::npos) << "no float is";
  EXPECT_EQ(records[3].find("not_finite"), std::string::npos) << "null in metrics.jsonl";
}

/// Two starts: lines before the second are in the first file alone, and that declares its end.
TEST_F(EventFileTest, ASecondStartWritesTheLinesFromItsStepOn) {
  const auto line = [](int step) {
    return nlohmann::ordered_json{{"event", "step"}, {"step", step}, {"loss", 0.5}};
  };
  {
    std::ofstream metrics(folder_ + "/metrics.jsonl");
    for (const int step : {1, 2, 3}) metrics << line(step).dump() << "\n";
    metrics << "{\"event\":\"step\",\"step\":3,\"loss\":1e999}\n";  // no number of JSON's reader
  }
  const auto counts = [&] {
    std::vector<std::size_t> found;
    for (const std::string& name : Env::posix().list(folder_)) {
      if (!is_event_file(name)) continue;
      found.push_back(records_of(folder_ + "/" + name).size());
    }
    return found;
  };
  { TensorBoard(Env::posix(), folder_, 3).add_line(line(4)); }
  EXPECT_EQ(counts(), std::vector<std::size_t>{5}) << "the head, and all lines";
  { TensorBoard(Env::posix(), folder_, 2).add_line(line(4)); }
  EXPECT_EQ(counts(), (std::vector<std::size_t>{5, 5})) << "the head, the start, two lines and one";
  const tensorboard::Event start = event_of(records_of(newest()).at(1));
  EXPECT_EQ(start.step(), 2);
  EXPECT_TRUE(start.has_session_log());
}

/// The first start's file ends with a whole record, then with a torn one, then it is empty. The second has no file.
TEST_F(EventFileTest, AThirdStartWritesTheLinesThatTheSecondHasNot) {
  const auto line = [](int step) {
    return nlohmann::ordered_json{{"event", "step"}, {"step", step}, {"loss", 0.5}};
  };
  std::ofstream(folder_ + "/metrics.jsonl").close();
  {
    TensorBoard first(Env::posix(), folder_, 0);
    for (const int step : {1, 2}) first.add_line(line(step));
  }
  const std::string first = newest();
  std::ofstream metrics(folder_ + "/metrics.jsonl");
  for (const int step : {1, 2, 3, 4}) metrics << line(step).dump() << "\n";
  metrics.close();
  const auto steps_of_third = [&] {
    TensorBoard(Env::posix(), folder_, 4).add_line(line(5));
    const std::string third = newest();
    std::vector<std::int64_t> steps;
    for (const std::string& record : records_of(third)) steps.push_back(event_of(record).step());
    fs::remove(third);
    return steps;
  };
  EXPECT_EQ(steps_of_third(), (std::vector<std::int64_t>{0, 2, 2, 3, 4, 5})) << "the head, the start, lines";
  fs::resize_file(first, fs::file_size(first) - 1);
  EXPECT_EQ(steps_of_third(), (std::vector<std::int64_t>{0, 1, 1, 2, 3, 4, 5}));
  fs::resize_file(first, 0);
  EXPECT_EQ(steps_of_third(), (std::vector<std::int64_t>{0, 0, 1, 2, 3, 4, 5}));
}

TEST_F(EventFileTest, WhereTheFileCannotBeWrittenARunGoesOn) {
  const nlohmann::ordered_json line = {{"event", "step"}, {"step", 1}, {std::string(2000, 'x'), 0.5}};
  std::ofstream(folder_ + "/metrics.jsonl").close();
  for (const bool is_there : {false, true}) {
    ::testing::internal::CaptureStderr();
    TensorBoard board(Env::posix(), folder_ + (is_there ? "" : "/none"), 0);
    {
      const SmallDisk disk(1000);  // for what is said, and not for the line
      for (int time = 0; time < 2; ++time) board.add_line(line);
    }
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_TRUE(said.starts_with("lockstep: warning: ")) << said;
    EXPECT_TRUE(said.ends_with("; the run goes on without TensorBoard's event file\n")) << said;
    EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
    EXPECT_EQ(said.find(".lockstep: cannot be written: File too large") != said.npos, is_there) << said;
  }
}

}  // namespace
}  // namespace lockstep
