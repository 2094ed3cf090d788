// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Faults on purpose: refused unless allowed, once in a run, and seen by what is there to see them.
#include "tests/trainer/end_to_end/program.hpp"

#include <gtest/gtest.h>

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

TEST(FaultTest, SlownessChangesNoBit) {
  const FaultsAllowed allowed;
  const TemporaryDirectory directory;
  const auto slow = lockstep_on_ranks(2, faulty(directory, "slow 50%"));
  const auto undisturbed =
      lockstep("train " + write_small_job(directory) + " run.dir=" + directory.path("whole"));
  EXPECT_EQ(slow.exit_code, 0) << slow.everything();
  EXPECT_EQ(slow.last_line(), undisturbed.last_line());
}

}  // namespace
}  // namespace lockstep::testing
