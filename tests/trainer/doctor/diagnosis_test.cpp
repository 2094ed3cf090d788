// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The doctor on ranks that are threads of this process: what it sees there, and what it prints.
#include "comm/thread/thread_ranks.hpp"
#include "trainer/tools/doctor_report.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>

namespace lockstep {
namespace {

Job small_job() {
  Job job;
  job.model = "net";
  job.data.set = "synthetic";
  job.data.train_samples = job.data.test_samples = 10;
  job.data.mean = job.data.std = {0.5};
  job.parallel.device = "cpu";
  job.run.dir = ::testing::TempDir();
  return job;
}

Diagnosis diagnosis_of(int ranks, const Job& job, const Surroundings& world = Surroundings::real()) {
  Diagnosis diagnosis;
  run_thread_ranks(
      ranks,
      [&](Communicator& comm) {
        auto mine = diagnose(comm, job, true, world);
        if (comm.rank() == 0) diagnosis = std::move(mine);
      },
      std::chrono::seconds(60));
  return diagnosis;
}

const CheckResult& result_of(const Diagnosis& diagnosis, const std::string& id) {
  for (const CheckResult& result : diagnosis.results)
    if (result.id == id) return result;
  throw std::runtime_error("no check " + id);
}

TEST(DiagnosisTest, RanksOfOneProcessAreWell) {
  const Diagnosis diagnosis = diagnosis_of(3, small_job());
  ASSERT_EQ(diagnosis.ranks.size(), 3U);
  EXPECT_EQ(diagnosis.ranks[2].rank, 2);
  EXPECT_FALSE(diagnosis.all_reduce.empty());
  EXPECT_TRUE(result_of(diagnosis, "equal-data").findings.empty());
  EXPECT_TRUE(result_of(diagnosis, "process-vm-readv").findings.empty());
  const std::string text = to_text(diagnosis, false);
  EXPECT_NE(text.find("ok launcher and MPI count the same ranks"), std::string::npos) << text;
  EXPECT_NE(text.find("not looked into, for want of it: srun, GPUs, several hosts\n"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("GPUs reach"), std::string::npos) << "nothing is well of what is not there";
  for (const char c : text) EXPECT_TRUE(c == '\n' || (c >= ' ' && c <= '~'));
}

TEST(DiagnosisTest, ForbiddenReadsAreFoundAndShownWithTheirFix) {
  Surroundings world = Surroundings::real();
  world.read_memory_of = [](int, std::uint64_t) { return "Operation not permitted"; };
  const Diagnosis diagnosis = diagnosis_of(2, small_job(), world);
  if (setting(diagnosis.ranks[0], "OMPI_MCA_btl_vader_single_copy_mechanism").empty()) {
    EXPECT_FALSE(diagnosis.healthy());
    EXPECT_NE(to_text(diagnosis, true).find("\u2717 rank 0"), std::string::npos);
  }
  EXPECT_EQ(diagnosis.ranks[1].neighbour_read_error, "Operation not permitted");
}

TEST(DiagnosisTest, DataThatAreNotThereAreAFindingAndNotTheEnd) {
  Job job = small_job();
  job.data.set = "mnist";
  job.data.root = "/nowhere";
  const Diagnosis diagnosis = diagnosis_of(2, job);
  ASSERT_EQ(result_of(diagnosis, "equal-data").findings.size(), 1U);
  EXPECT_NE(result_of(diagnosis, "equal-data").findings[0].what.find("/nowhere"), std::string::npos);
  const auto json = to_json(diagnosis);
  EXPECT_EQ(json.at("format"), kDoctorFormat);
  EXPECT_EQ(json.at("ok"), false);
  EXPECT_EQ(json.at("ranks").size(), 2U);
}

}  // namespace
}  // namespace lockstep
