// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Files of others in a run's directory stay as they are, and so do targets of links.
#include "common/digest.hpp"
#include "common/error.hpp"
#include "common/output_file.hpp"
#include "tests/common/memory_env.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"
#include "trainer/checkpoint/checkpoint.hpp"
#include "trainer/checkpoint/directory.hpp"
#include "trainer/checkpoint/inspect.hpp"
#include "trainer/checkpoint/metrics_reader.hpp"

#include <sys/stat.h>

namespace lockstep {

namespace {

namespace fs = std::filesystem;

class OwnershipTest : public ::testing::Test {
 protected:
  OwnershipTest() {
    fs::create_directory(victim_);
    for (const char* name : {"precious", "model.safetensors", "manifest.json"})
      write(victim_ + "/" + name, "mine");
    for (const std::int64_t step : {100, 200, 300}) save_checkpoint(env_, run_, make_state(step));
  }

  static void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }
  static std::string read(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  void expect_victim_untouched() const {
    for (const char* name : {"precious", "model.safetensors", "manifest.json"})
      EXPECT_EQ(read(victim_ + "/" + name), "mine") << name;
  }

  /// Does the work of a start in the directory.
  void clean_up() { remove_leftovers(env_, run_), prune_checkpoints(env_, run_, {.last = 1, .best = false}); }

  Env& env_ = Env::posix();
  TemporaryDirectory place_;
  std::string victim_ = place_.path() + "/victim", run_ = place_.path() + "/run",
              checkpoints_ = run_ + "/checkpoints";
  const bool made_ = fs::create_directory(run_);
};

TEST_F(OwnershipTest, CleaningUpFollowsNoLink) {
  for (const char* name : {".tmp-evil", ".tmp-step-00000400", ".tmp-removed-step-00000050"})
    fs::create_directory_symlink(victim_, checkpoints_ + "/" + name);
  clean_up();
  save_checkpoint(env_, run_, make_state(400));
  expect_victim_untouched();
  EXPECT_EQ(load_checkpoint(env_, checkpoints_ + "/step-00000400").facts.step, 400);
}

TEST_F(OwnershipTest, CheckpointLinkedInFromAnotherRunStaysThereAndHere) {
  const std::string other = save_checkpoint(env_, victim_, make_state(50));
  fs::create_directory_symlink(other, checkpoints_ + "/step-00000050");
  clean_up();
  remove_checkpoints(env_, run_, {checkpoints_ + "/step-00000050"});
  EXPECT_TRUE(verify_checkpoint(env_, other).empty());
}

TEST_F(OwnershipTest, TemporaryNamesOfOthersAreLeftAlone) {
  write(checkpoints_ + "/.tmp-file", "mine");
  write(checkpoints_ + "/.tmp-step-00000400", "mine");
  fs::create_directories(checkpoints_ + "/.tmp-notes/folder");
  fs::create_directories(checkpoints_ + "/.tmp-step-00000500/folder");
  ASSERT_EQ(::mkfifo((checkpoints_ + "/.tmp-fifo").c_str(), 0600), 0);
  for (const std::int64_t step : {400, 500}) {
    clean_up();
    save_checkpoint(env_, run_, make_state(step));
  }
  EXPECT_EQ(read(checkpoints_ + "/.tmp-file"), "mine");
  EXPECT_EQ(read(checkpoints_ + "/.tmp-step-00000400"), "mine");
  for (const char* name : {".tmp-notes/folder", ".tmp-step-00000500/folder", ".tmp-fifo"})
    EXPECT_TRUE(fs::exists(checkpoints_ + "/" + name)) << name;
  EXPECT_EQ(find_latest(env_, run_, [](const std::string&) {})->state.facts.step, 500);
}

TEST_F(OwnershipTest, CheckpointThatHoldsSomebodysNotesIsNotPruned) {
  write(checkpoints_ + "/step-00000100/notes.txt", "mine");
  clean_up();
  EXPECT_EQ(read(checkpoints_ + "/step-00000100/notes.txt"), "mine");
  EXPECT_TRUE(verify_checkpoint(env_, checkpoints_ + "/step-00000100").empty() == false ||
              fs::exists(checkpoints_ + "/step-00000100/manifest.json"));
  EXPECT_FALSE(fs::exists(checkpoints_ + "/step-00000200")) << "the others are";
}

TEST_F(OwnershipTest, RemovedCheckpointKeepsWhatIsNotOfACheckpoint) {
  write(checkpoints_ + "/step-00000100/notes.txt", "mine");
  remove_checkpoints(env_, run_, {checkpoints_ + "/step-00000100"});
  EXPECT_EQ(read(checkpoints_ + "/.tmp-removed-step-00000100/notes.txt"), "mine");
}

TEST_F(OwnershipTest, LinkInPlaceOfTheCheckpointsIsRefused) {
  fs::rename(checkpoints_, place_.path() + "/elsewhere");
  fs::create_directory_symlink(place_.path() + "/elsewhere", checkpoints_);
  EXPECT_THROW(save_checkpoint(env_, run_, make_state(400)), IoError);
  EXPECT_EQ(list_checkpoints(env_, place_.path()).size(), 0U);
}

TEST_F(OwnershipTest, LockIsNotWrittenThroughLinksOrIntoFilesOfOthers) {
  const std::string lock = run_ + "/lock";
  fs::create_symlink(victim_ + "/precious", lock);
  EXPECT_THROW(env_.claim(lock), IoError);
  fs::remove(lock);
  fs::create_hard_link(victim_ + "/precious", lock);
  EXPECT_THROW(env_.claim(lock), IoError);
  fs::remove(lock);
  ASSERT_EQ(::mkfifo(lock.c_str(), 0600), 0);
  EXPECT_THROW(env_.claim(lock), IoError);
  expect_victim_untouched();
}

TEST_F(OwnershipTest, FileThatIsAlsoElsewhereIsReplacedByACopy) {
  fs::create_hard_link(victim_ + "/precious", run_ + "/metrics.jsonl");
  make_own(env_, run_ + "/metrics.jsonl");
  write(run_ + "/metrics.jsonl", "other");
  expect_victim_untouched();
}

TEST_F(OwnershipTest, OutputReplacesNothingUnlessTold) {
  const std::string target = victim_ + "/precious";
  EXPECT_THROW(write_output_file(env_, target, {}, false), UsageError);
  expect_victim_untouched();
  EXPECT_NO_THROW(write_output_file(env_, target, {}, true));
  EXPECT_EQ(read(target), "");
  EXPECT_NO_THROW(write_output_file(env_, victim_ + "/new", {}, false));
  EXPECT_EQ(env_.list(victim_).size(), 4U) << "and nothing else is left there";
}

TEST_F(OwnershipTest, OutputReplacesOnlyRegularFilesEvenIfTold) {
  fs::create_symlink(victim_ + "/precious", place_.path() + "/link");
  ASSERT_EQ(::mkfifo((place_.path() + "/fifo").c_str(), 0600), 0);
  for (const std::string& path : {place_.path() + "/link", place_.path() + "/fifo", victim_,
                                  victim_ + "/new/", std::string("/dev/null"), std::string()}) {
    EXPECT_THROW(write_output_file(env_, path, {}, true), UsageError) << path;
  }
  EXPECT_TRUE(fs::is_fifo(place_.path() + "/fifo"));
  expect_victim_untouched();
}

TEST_F(OwnershipTest, OutputThatIsGivenUpLeavesNothing) {
  const auto names = env_.list(victim_);
  {
    OutputFile file(env_, victim_ + "/new", false), other(env_, victim_ + "/new", false);
    file.write(std::as_bytes(std::span("half")));
    EXPECT_EQ(env_.list(victim_).size(), names.size() + 2);
  }
  EXPECT_EQ(env_.list(victim_), names);
}

TEST_F(OwnershipTest, OutputDoesNotReplaceWhatCameMeanwhile) {
  const std::string path = place_.path() + "/out";
  for (const bool replace : {true, false}) {
    OutputFile file(env_, path, replace);
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    EXPECT_THROW(file.publish(), UsageError);
    EXPECT_TRUE(fs::is_fifo(path));
    fs::remove(path);
  }
  OutputFile file(env_, path, false);
  write(path, "mine");
  EXPECT_THROW(file.publish(), UsageError);
  EXPECT_EQ(read(path), "mine");
}

// Cutting metrics.jsonl back.

const std::string kStart = R"({"event":"start","world":2})"
                           "\n";
const std::string kStep100 = R"({"event":"step","epoch":1,"step":100,"loss":0.5})"
                             "\n";
const std::string kEpoch100 = R"({"event":"epoch","epoch":1,"step":100})"
                              "\n";
const std::string kStep200 = R"({"event":"step","epoch":2,"step":200,"loss":0.25})"
                             "\n";
const std::string kEnd = R"({"event":"end","seconds":3})"
                         "\n";

class MetricsCutTest : public ::testing::Test {
 protected:
  std::string cut(const std::string& text, std::int64_t step, bool epoch_line_written = true) {
    env_.remove_file("m");
    write_synced(env_, "m", std::as_bytes(std::span(text)));
    env_.start_trace();
    truncate_metrics(env_, "m", step, epoch_line_written);
    const auto& bytes = env_.file("m");
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  MemoryEnv env_;
};

TEST_F(MetricsCutTest, LaterStepsGo) {
  EXPECT_EQ(cut(kStart + kStep100 + kStep200 + kEnd, 150), kStart + kStep100);
}

TEST_F(MetricsCutTest, StepOfTheCheckpointStays) {
  EXPECT_EQ(cut(kStart + kStep100 + kStep200, 200), kStart + kStep100 + kStep200);
  EXPECT_TRUE(env_.trace().empty()) << "a file that is right is not rewritten";
}

TEST_F(MetricsCutTest, EndGoesForTheRunGoesOn) {
  EXPECT_EQ(cut(kStep200 + kEnd, 200), kStep200);
}

TEST_F(MetricsCutTest, EpochLineStaysOnlyIfItsEvaluationWasDone) {
  EXPECT_EQ(cut(kStep100 + kEpoch100 + kStep200, 100, true), kStep100 + kEpoch100);
  EXPECT_EQ(cut(kStep100 + kEpoch100 + kStep200, 100, false), kStep100);
}

TEST_F(MetricsCutTest, TornLastLineGoes) {
  EXPECT_EQ(cut(kStep100 + R"({"event":"step","st)", 500), kStep100);
  EXPECT_EQ(cut(kStep100 + std::string(64, '\0'), 500), kStep100);
}

TEST_F(MetricsCutTest, WholeLineWithoutItsNewlineGoesToo) {
  EXPECT_EQ(cut(kStep100 + R"({"event":"step","step":150})", 500), kStep100);
}

TEST_F(MetricsCutTest, StartAloneStays) {
  EXPECT_EQ(cut(kStart + kStep100, 0), kStart);
  EXPECT_EQ(cut("", 0), "");
}

TEST_F(MetricsCutTest, MissingFileIsAnEmptyOne) {
  EXPECT_NO_THROW(truncate_metrics(env_, "nowhere", 5));
}

/// Note of a checkpoint of step 100, against a file.
class LostMetricsTest : public MetricsCutTest {
 protected:
  std::string lost(const std::string& text) {
    env_.remove_file("m");
    write_synced(env_, "m", std::as_bytes(std::span(text)));
    return look();
  }
  std::string look() { return lost_metrics(env_, "m", 100, noted_).value_or("nothing"); }

  std::string noted_text_ = kStart + kStep100;
  CheckpointMetrics noted_{2, hex(sha256(std::as_bytes(std::span(noted_text_))))};
};

TEST_F(LostMetricsTest, LaterLinesAndATornEndAreNoLoss) {
  EXPECT_EQ(lost(noted_text_), "nothing");
  EXPECT_EQ(lost(noted_text_ + kEpoch100 + kStep200 + "{\"ev"), "nothing");
}

TEST_F(LostMetricsTest, FileThatIsGoneIsTold) {
  EXPECT_EQ(look(),
            "m is gone: its 2 lines up to step 100 are lost; the run goes on, and its metrics with the steps "
            "after 100");
}

TEST_F(LostMetricsTest, LinesThatAreCutOffAreCounted) {
  EXPECT_TRUE(
      lost(kStart + kStep100.substr(0, 9)).starts_with("m was cut off: 1 of its 2 lines up to step 100"));
  EXPECT_TRUE(lost("").starts_with("m was cut off: 2 of its 2 lines"));
}

TEST_F(LostMetricsTest, ChangedLinesAreKeptAside) {
  const std::string changed = R"({"event":"start","world":3})"
                              "\n" +
                              kStep100;
  EXPECT_NE(lost(changed).find("are not those that were written; kept as m.damaged; "), std::string::npos);
  const auto& kept = env_.file("m.damaged");
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(kept.data()), kept.size()), changed);
}

TEST_F(LostMetricsTest, WhatAnEarlierStartHasToldIsNotToldAgain) {
  EXPECT_EQ(lost(R"({"event":"lost","step":100,"lines_noted":2})"
                 "\n"),
            "nothing");
  EXPECT_NE(lost(R"({"event":"lost","step":50,"lines_noted":2})"
                 "\n"),
            "nothing")
      << "that was another loss";
}

}  // namespace

}  // namespace lockstep
