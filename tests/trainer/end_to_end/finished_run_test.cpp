// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Starting a job again after its end.
#include "tests/trainer/end_to_end/program.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

/// Contents and time of last change of every file but the lock.
std::map<std::string, std::pair<std::string, fs::file_time_type>> look_at(const std::string& directory) {
  std::map<std::string, std::pair<std::string, fs::file_time_type>> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.path().filename() == "lock") continue;
    files[entry.path()] = {entry.is_directory() ? "" : read_text(entry.path()),
                           fs::last_write_time(entry.path())};
  }
  return files;
}

/// A small job that has come to its end: 2 epochs of 3 steps.
class FinishedRunTest : public ::testing::Test {
 protected:
  FinishedRunTest() : first_(train()) { EXPECT_EQ(first_.exit_code, 0) << first_.everything(); }

  Outcome train(const std::string& overrides = "") const {
    return lockstep("train " + write_small_job(directory_) + " parallel.backend=thread " + overrides);
  }
  std::string run() const { return directory_.path("run"); }
  void expect_untouched(const std::string& overrides, std::initializer_list<const char*> mentions) const {
    const auto before = look_at(run());
    const Outcome again = train(overrides);
    EXPECT_EQ(again.exit_code, 0) << again.everything();
    EXPECT_EQ(again.last_line(), first_.last_line());
    EXPECT_EQ(again.out.find("done"), std::string::npos) << again.out;
    for (const char* text : mentions) EXPECT_NE(again.out.find(text), std::string::npos) << again.out;
    EXPECT_TRUE(look_at(run()) == before) << overrides << ": something was written";
  }

  TemporaryDirectory directory_;
  Outcome first_;
};

TEST_F(FinishedRunTest, AgainItSaysSoAndTouchesNothing) {
  expect_untouched("", {"already finished", "all 6 steps", "train.epochs=3 or more", "run.resume=never"});
  const std::string again = "lockstep train " + run() + "/job.yaml train.epochs=3;";
  expect_untouched("parallel.ranks=3", {"already finished", again.c_str()});
  expect_untouched("train.epochs=9 train.max_steps=6", {"already finished", "train.max_steps=7 or more"});
}

TEST_F(FinishedRunTest, AskedForLessThanWasDoneItSaysHowMuchThatIs) {
  expect_untouched("train.epochs=1", {"already finished", "6 steps, more than the 3 asked for"});
  expect_untouched("train.max_steps=4",
                   {"already finished", "6 steps, more than the 4 asked for", "train.max_steps=7"});
}

TEST_F(FinishedRunTest, ARunThatWasKilledBeforeItsLastLineIsBroughtToItsEnd) {
  const auto metrics = comparable_metrics(run());
  std::string text = read_text(run() + "/metrics.jsonl");
  text.resize(text.rfind('\n', text.size() - 2) + 1);
  write_text(run() + "/metrics.jsonl", text);
  const Outcome again = train();
  EXPECT_EQ(again.last_line(), first_.last_line()) << again.everything();
  EXPECT_EQ(comparable_metrics(run()), metrics);
}

TEST_F(FinishedRunTest, MoreEpochsGoOnAsIfTheyHadBeenAskedForAtOnce) {
  const Outcome longer = train("train.epochs=4");
  const Outcome at_once = train("train.epochs=4 run.dir=" + directory_.path("at-once"));
  EXPECT_EQ(longer.last_line(), at_once.last_line()) << longer.everything();
  EXPECT_EQ(comparable_metrics(run()), comparable_metrics(directory_.path("at-once")));
}

}  // namespace
}  // namespace lockstep::testing
