// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The ranks of a host share one copy of a set in memory. Its files are read by the first, and where that is
/// not possible, by each.
#include "tests/data/idx_fixture.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/end_to_end/program.hpp"

namespace lockstep::testing {
namespace {

class HostDataTest : public JobTest {
 protected:
  HostDataTest() {
    test::write_image_set(path("set"), 60, 10);
    write_job(
        "model: linear\n"
        "data: {set: mnist, global_batch: 16, root: set, validation: 10}\n"
        "train: {epochs: 2, optimizer: {lr: 0.3, momentum: 0}}\n"
        "parallel: {device: cpu, grain: 4}\n"
        "run: {report: false, log_every_steps: 1}\n");
    metrics_ = metrics_of("alone");
  }
  std::string arguments(const std::string& run) const { return path("job.yaml") + " run.dir=" + path(run); }
  /// On three ranks, of which all but the first cannot open what has this in its path.
  static Outcome on_ranks(const std::string& closed, const std::string& arguments) {
    return run_shell(fmt::format(
        "mpirun --bind-to none -np 3 sh -c 'test $OMPI_COMM_WORLD_RANK = 0 || export READ_FAULTS_OPENS=1 "
        "READ_FAULTS_AT=1 READ_FAULTS_PATH={}; exec $LOCKSTEP_PROGRAM {}'",
        closed, arguments));
  }
  void expect_same_run(const std::string& run, const std::string& closed) const {
    expect_says(on_ranks(closed, "train " + arguments(run)), 0);
    EXPECT_EQ(comparable_metrics(path(run)), metrics_) << run;
  }

  std::vector<nlohmann::json> metrics_;
};

TEST_F(HostDataTest, OneRankReadsTheFilesForAll) {
  expect_same_run("one", "-ubyte");
  expect_says(on_ranks("-ubyte", "prove " + path("one")), 0);
}

TEST_F(HostDataTest, RanksThatCannotReachItsMemoryReadTheFilesThemselves) {
  expect_same_run("each", "/fd/");
}

TEST_F(HostDataTest, ADamagedFileIsNamedOnceAndEndsAllRanks) {
  const std::string file = path("set/train-labels-idx1-ubyte");
  write_text(file, read_text(file) + "x");
  for (const char* closed : {"-ubyte", "/fd/"}) {
    const Outcome outcome = on_ranks(closed, "train " + arguments("damaged"));
    expect_says(outcome, 65, {"train-labels-idx1-ubyte: offset 68: trailing bytes"});
    EXPECT_EQ(count_of("trailing bytes", outcome.err), 1) << outcome.err;
  }
}

TEST_F(HostDataTest, AFaultInTheDataOfARankIsItsOwn) {
  expect_says(run_shell("LOCKSTEP_ALLOW_INJECT=1 " + mpirun_command(2, "train " + arguments("fault") +
                                                                           " inject.step=3 inject.rank=1 "
                                                                           "'inject.what=flip-bit data'")),
              0);
  EXPECT_NE(comparable_metrics(path("fault")), metrics_);
}

}  // namespace
}  // namespace lockstep::testing
