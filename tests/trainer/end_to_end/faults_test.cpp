// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Faults on purpose: refused unless allowed, once in a run, and seen by what is there to see them.
#include "tests/trainer/end_to_end/program.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

namespace lockstep::testing {
namespace {

/// Allows faults for as long as it lives.
class FaultsAllowed {
 public:
  FaultsAllowed() { setenv("LOCKSTEP_ALLOW_INJECT", "1", 1); }
  ~FaultsAllowed() { unsetenv("LOCKSTEP_ALLOW_INJECT"); }
  FaultsAllowed(const FaultsAllowed&) = delete;
  FaultsAllowed& operator=(const FaultsAllowed&) = delete;
};

std::string faulty(const TemporaryDirectory& directory, const std::string& what, int rank = 1) {
  return "train " + write_small_job(directory) + " run.dir=" + directory.path("run") +
         " inject.step=3 inject.rank=" + std::to_string(rank) + " 'inject.what=" + what + "'";
}

TEST(FaultTest, RefusedUnlessTheEnvironmentAllowsIt) {
  const TemporaryDirectory directory;
  const auto outcome = lockstep(faulty(directory, "die"));
  EXPECT_EQ(outcome.exit_code, 2) << outcome.everything();
  EXPECT_NE(outcome.err.find("set LOCKSTEP_ALLOW_INJECT=1"), std::string::npos) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(directory.path("run")));
}

TEST(FaultTest, RankThatIsNotThereIsNamed) {
  const FaultsAllowed allowed;
  const TemporaryDirectory directory;
  const auto outcome = lockstep_on_ranks(2, faulty(directory, "die", 2));
  EXPECT_EQ(outcome.exit_code, 2) << outcome.everything();
  EXPECT_NE(outcome.err.find("there is no rank 2, only 0 to 1"), std::string::npos) << outcome.err;
}

TEST(FaultTest, StrikesOnceInARun) {
  const FaultsAllowed allowed;
  const TemporaryDirectory directory;
  const auto first = lockstep(faulty(directory, "nan", 0));
  EXPECT_EQ(first.exit_code, 70) << first.everything();
  EXPECT_NE(first.err.find("injected on purpose: rank 0, before step 3: nan"), std::string::npos)
      << first.err;
  EXPECT_NE(first.err.find("step 3: "), std::string::npos) << first.err;
  const auto second = lockstep(faulty(directory, "nan", 0));
  EXPECT_EQ(second.exit_code, 0) << second.everything();
  const auto undisturbed =
      lockstep("train " + write_small_job(directory) + " run.dir=" + directory.path("whole"));
  EXPECT_EQ(second.last_line(), undisturbed.last_line());
}

TEST(FaultTest, FlippedBitIsFoundAndItsRankNamed) {
  const FaultsAllowed allowed;
  const TemporaryDirectory directory;
  const auto outcome =
      lockstep_on_ranks(2, faulty(directory, "flip-bit") + " parallel.check_replicas_every_steps=4");
  EXPECT_EQ(outcome.exit_code, 70) << outcome.everything();
  EXPECT_NE(outcome.err.find("at step 4 the ranks' weights are no longer equal: rank 1 on "),
            std::string::npos)
      << outcome.err;
}

TEST(FaultTest, SlowRankIsNamedAndChangesNoBit) {
  const FaultsAllowed allowed;
  const TemporaryDirectory directory;
  const std::string steps = " data.global_batch=128 train.epochs=16 run.checkpoint_every_steps=0";
  const auto slow = lockstep_on_ranks(2, faulty(directory, "slow 100%") + steps);
  const auto undisturbed =
      lockstep("train " + write_small_job(directory) + " run.dir=" + directory.path("whole") + steps);
  EXPECT_EQ(slow.exit_code, 0) << slow.everything();
  EXPECT_EQ(slow.last_line(), undisturbed.last_line());
  EXPECT_NE(slow.err.find("rank 1 ("), std::string::npos) << slow.everything();
  EXPECT_NE(slow.err.find(") arrives last in "), std::string::npos) << slow.everything();
  EXPECT_NE(slow.out.find("named first at step "), std::string::npos) << "not in the summary: " << slow.out;
  const auto metrics = read_metrics(directory.path("run"));
  const auto event = std::ranges::find_if(
      metrics, [](const nlohmann::json& line) { return line.at("event") == "straggler"; });
  ASSERT_NE(event, metrics.end()) << slow.everything();
  EXPECT_EQ(event->at("rank"), 1);
  EXPECT_LE(event->at("first_named_step"), 103) << "a hundred steps after it became slow";
  EXPECT_LT(event->at("score"), 0.8);
}

}  // namespace
}  // namespace lockstep::testing
