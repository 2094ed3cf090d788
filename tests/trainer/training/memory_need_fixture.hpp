// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A job whose memory is counted.
#pragma once
#include "tests/support/prelude.hpp"
#include "trainer/config/job.hpp"

namespace lockstep::memory_need_test {

inline Job small_job(const std::string& device) {
  Job job;
  job.data.set = "synthetic";
  job.data.global_batch = 64;
  job.data.train_samples = 128;
  job.data.test_samples = 64;
  job.parallel.device = device;
  job.parallel.grain = 32;
  job.parallel.threads = 2;
  job.parallel.bucket_bytes = 1 << 20;
  return job;
}

}  // namespace lockstep::memory_need_test
