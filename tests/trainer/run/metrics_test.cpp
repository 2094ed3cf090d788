// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// metrics.jsonl holds whole lines only, whatever the disk does, and is on disk before a checkpoint that notes it.
#include "trainer/run/metrics.hpp"

#include "common/error.hpp"
#include "tests/support/small_disk.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"
#include "trainer/run/run_directory.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

namespace {

std::mutex synced_mutex;
std::vector<std::string> synced_names;  ///< last components of the files, in the order of their syncs

int note_sync(int fd, long call) {
  std::error_code ignored;
  const auto path = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), ignored);
  {
    const std::lock_guard lock(synced_mutex);
    synced_names.push_back(path.filename());
  }
  return static_cast<int>(syscall(call, fd));
}

}  // namespace

// In place of the C library's, for the whole of this program.
extern "C" int fsync(int fd) {
  return note_sync(fd, SYS_fsync);
}
extern "C" int fdatasync(int fd) {
  return note_sync(fd, SYS_fdatasync);
}

namespace lockstep {
namespace {

class MetricsTest : public ::testing::Test {
 protected:
  MetricsTest() : path_(::testing::TempDir() + "metrics-XXXXXX") { close(mkstemp(path_.data())); }
  ~MetricsTest() override { unlink(path_.c_str()); }
  std::string text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string path_;
};

TEST_F(MetricsTest, AppendsOneLineForEachEvent) {
  MetricsWriter metrics(Env::posix(), path_);
  metrics.write({{"step", 1}});
  metrics.write({{"step", 2}});
  metrics.sync();
  EXPECT_EQ(text(), "{\"step\":1}\n{\"step\":2}\n");
}

TEST_F(MetricsTest, WhatAFullDiskCutShortIsTakenBackAndWrittenLater) {
  MetricsWriter metrics(Env::posix(), path_);
  metrics.write({{"step", 1}});
  {
    const SmallDisk disk(15);
    EXPECT_THROW(metrics.write({{"step", 2}}), IoError);
    EXPECT_THROW(metrics.write({{"step", 3}}), IoError);
    EXPECT_THROW(metrics.sync(), IoError) << "a checkpoint must not count on these lines";
    EXPECT_FALSE(metrics.is_complete());
    EXPECT_EQ(text(), "{\"step\":1}\n");
  }
  metrics.write({{"step", 4}});
  EXPECT_TRUE(metrics.is_complete());
  EXPECT_EQ(text(), "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n{\"step\":4}\n");
}

TEST_F(MetricsTest, PositionIsThatOfAllLinesHoweverOftenTheRunBegan) {
  {
    MetricsWriter first(Env::posix(), path_);
    first.write({{"step", 1}});
    EXPECT_EQ(first.position().lines, 1);
  }
  MetricsWriter second(Env::posix(), path_);
  second.write({{"step", 2}});
  const std::string all = text();
  EXPECT_EQ(second.position(), (CheckpointMetrics{2, hex(sha256(std::as_bytes(std::span(all))))}));
}

/// A run's directory and what a training run does with it.
class SavingTest : public ::testing::Test {
 protected:
  SavingTest() {
    job_.run.dir = directory_.path() + "/run";
    job_.run.resume = "auto";
    run_.emplace(Env::posix(), job_);
  }
  std::string metrics() const {
    std::ifstream file(job_.run.dir + "/metrics.jsonl");
    return {std::istreambuf_iterator<char>(file), {}};
  }

  TemporaryDirectory directory_;
  Job job_;
  std::optional<RunDirectory> run_;
};

TEST_F(SavingTest, MetricsAndTrailAreSyncedBeforeTheCheckpointThatNotesThem) {
  const TrailHead head{.trained = {{"a", 1}}, .kept = {}, .buffers = {}, .facts = {}};
  run_->open(0, true, std::nullopt);
  run_->open_trail(head, 0, std::nullopt);
  run_->write({{"event", "step"}, {"step", 1}});
  const std::vector<TrailRecord> records = {{.step = 1, .arithmetic = 2, .apart = 0, .fingerprints = {7, 7}}};
  run_->write_trail(records);
  synced_names.clear();
  run_->save(make_state(1));
  run_->finish();
  const auto at = [](const std::string& name) { return std::ranges::find(synced_names, name); };
  ASSERT_NE(at("manifest.json"), synced_names.end());
  EXPECT_LT(at("metrics.jsonl"), at("model.safetensors"));
  EXPECT_LT(at("trail.bin"), at("model.safetensors"));
  EXPECT_LT(at("model.safetensors"), at("manifest.json"));
  const auto facts = load_manifest(Env::posix(), job_.run.dir + "/checkpoints/step-00000001").facts;
  const std::string all = metrics();
  EXPECT_EQ(facts.metrics, (CheckpointMetrics{1, hex(sha256(std::as_bytes(std::span(all))))}));
  EXPECT_EQ(facts.trail->records, 1);
}

TEST_F(SavingTest, TheBestOfAnEarlierStartIsStillTheBest) {
  CheckpointState best = make_state(1);
  best.facts.test_accuracy = 0.75;
  save_checkpoint(Env::posix(), job_.run.dir, best);
  save_checkpoint(Env::posix(), job_.run.dir, make_state(2));
  run_->open(2, true, std::nullopt);
  EXPECT_FALSE(run_->would_be_best(0.75));
  EXPECT_TRUE(run_->would_be_best(0.76));
}

TEST_F(SavingTest, LostMetricsLeaveAnEvent) {
  run_->open(12, true, CheckpointMetrics{30, std::string(64, 'a')});
  EXPECT_EQ(metrics(), "{\"event\":\"lost\",\"step\":12,\"lines_noted\":30}\n");
}

TEST_F(MetricsTest, OtherRanksWriteNothing) {
  MetricsWriter metrics;
  metrics.write({{"step", 1}});
  metrics.sync();
  EXPECT_TRUE(metrics.is_complete());
}

}  // namespace
}  // namespace lockstep
