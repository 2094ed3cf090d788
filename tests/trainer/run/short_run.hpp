// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Runs of a few steps in this process.
#pragma once

#include "tests/support/prelude.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"
#include "trainer/config/job.hpp"
#include "trainer/run/training_run.hpp"

namespace lockstep {

using Json = nlohmann::ordered_json;

inline WideSum units_of(double loss) {
  return {{static_cast<std::int64_t>(loss * kLossScale)}};
}

class RunOfAFewSteps : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return directory_.path(name); }
  Job job_of(const std::string& run, const std::string& yaml,
             const std::vector<std::string>& overrides = {}) const {
    std::ofstream(path("job.yaml")) << yaml << "run: {dir: " << path(run) << ", report: false}\n";
    return load_job(path("job.yaml"), overrides);
  }
  /// Trains; @returns the exit code and standard error.
  static std::pair<int, std::string> outcome_of(const Job& job) {
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int code = train(job);
    ::testing::internal::GetCapturedStdout();
    return {code, ::testing::internal::GetCapturedStderr()};
  }
  CheckpointState saved(const std::string& run, std::int64_t step) const {
    return load_checkpoint(Env::posix(), path(run) + "/checkpoints/" + checkpoint_name(step));
  }

  TemporaryDirectory directory_;
};

}  // namespace lockstep
