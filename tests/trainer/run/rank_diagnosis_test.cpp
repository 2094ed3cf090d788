// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Ranks of one process: their views of each other, and whether they are alike.
#include "trainer/run/rank_diagnosis.hpp"

#include "comm/thread/thread_ranks.hpp"
#include "common/env.hpp"
#include "tests/support/forwarding_communicator.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/set_variable.hpp"
#include "tests/support/temporary_directory.hpp"

#include <unistd.h>

namespace lockstep {
namespace {

/// Rank 1 goes on from the gathering of rank 0's mark when that rank is in the next collective.
class SlowReader final : public test::ForwardingCommunicator {
 public:
  SlowReader(Communicator& comm, const RankActivity& rank_0)
      : ForwardingCommunicator(comm), rank_0_(rank_0) {}
  std::vector<std::byte> all_gather(std::span<const std::byte> mine) override {
    std::vector<std::byte> all = comm_.all_gather(mine);
    const std::uint64_t begun = comm_.activity().status().collective;
    if (as_text(all).find("clock_seconds") != std::string_view::npos) barriers_before_clocks_ = barriers_;
    const bool is_slow = rank() == 1 && as_text(all).find("/.lockstep-doctor-") != std::string_view::npos;
    while (is_slow && rank_0_.status().collective == begun) std::this_thread::yield();
    return all;
  }
  void barrier() override {
    ++barriers_;
    comm_.barrier();
  }
  int barriers_before_clocks() const { return barriers_before_clocks_; }

 private:
  const RankActivity& rank_0_;
  int barriers_ = 0, barriers_before_clocks_ = 0;
};

class RankDiagnosisTest : public ::testing::Test {
 protected:
  /// As rank 0 has it.
  /// @param more_samples  of each rank than of the one before
  Diagnosis diagnosis_of(int ranks, bool data_too, int more_samples = 0) const {
    Diagnosis diagnosis;
    const RankActivity* rank_0 = nullptr;
    run_thread_ranks(ranks, [&](Communicator& group) {
      if (group.rank() == 0) rank_0 = &group.activity();
      group.barrier();
      SlowReader comm(group, *rank_0);
      Job job = parse_job(
          "{model: net, data: {set: synthetic, test_samples: 10, mean: [0.5], std: [0.5]}, "
          "parallel: {device: cpu, threads: 1}}",
          "job.yaml");
      job.data.train_samples = 10 + comm.rank() * more_samples;
      job.run.dir = directory_.path();
      auto mine = diagnose(comm, job, data_too);
      EXPECT_EQ(comm.barriers_before_clocks(), 2) << "when all have looked for the mark, and to read clocks";
      if (comm.rank() == 0) diagnosis = std::move(mine);
    });
    return diagnosis;
  }

  const testing::TemporaryDirectory directory_;
};

std::vector<std::string> found_by(const std::string& id, const Diagnosis& diagnosis) {
  std::vector<std::string> found;
  for (const CheckResult& result : diagnosis.results)
    if (result.id == id)
      for (const Finding& finding : result.findings) found.push_back(finding.what);
  return found;
}

TEST_F(RankDiagnosisTest, AViewHasWhatTheCommunicatorAndTheJobSay) {
  const test::SetVariable launched("OMPI_COMM_WORLD_SIZE", "2");
  const Diagnosis diagnosis = diagnosis_of(3, false);
  ASSERT_EQ(diagnosis.ranks.size(), 3U);
  const RankView& last = diagnosis.ranks.back();
  EXPECT_EQ(last.rank, 2);
  EXPECT_EQ(last.local_rank, 2);
  EXPECT_EQ(last.local_size, 3);
  EXPECT_EQ(last.world_size, 3);
  EXPECT_EQ(last.threads, 1);
  EXPECT_EQ(last.launcher, "") << "its ranks are threads";
  EXPECT_EQ(last.pid, getpid());
  EXPECT_EQ(last.versions.at("lockstep"), LOCKSTEP_VERSION);
  EXPECT_EQ(last.device.kind, "cpu");
  EXPECT_GT(last.disk_free_bytes, 0U);
  EXPECT_GT(last.clock_seconds, 1e9);
  EXPECT_EQ(found_by("world-size", diagnosis), std::vector<std::string>{});
  EXPECT_TRUE(std::ranges::none_of(diagnosis.results, [](const auto& r) { return r.id == "equal-data"; }));
}

/// The mark stays until the slowest rank has looked.
TEST_F(RankDiagnosisTest, EveryRankSeesARunDirectoryThatAllShare) {
  const Diagnosis diagnosis = diagnosis_of(2, false);
  ASSERT_EQ(diagnosis.ranks.size(), 2U);
  for (const RankView& rank : diagnosis.ranks) EXPECT_TRUE(rank.sees_run_directory) << rank.rank;
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path())) << "the mark is gone";
}

TEST_F(RankDiagnosisTest, JobsAndDataOfRanksAreCompared) {
  const Diagnosis diagnosis = diagnosis_of(2, true, 1);
  EXPECT_FALSE(diagnosis.healthy());
  const auto jobs = found_by("equal-ranks", diagnosis), data = found_by("equal-data", diagnosis);
  ASSERT_EQ(jobs.size(), 1U);
  test::expect_words(jobs[0], {"data.train_samples is 10 on rank 0, but 11 on rank 1"});
  ASSERT_EQ(data.size(), 1U);
  test::expect_words(data[0], {"the number of synthetic train samples is 10 (made in memory) on rank 0, but "
                               "11 (made in memory) on rank 1"});
}

}  // namespace
}  // namespace lockstep
