// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Small jobs, and what the checks of their strategies say of them.
#pragma once
#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "tests/support/forwarding_communicator.hpp"
#include "tests/support/prelude.hpp"
#include "trainer/setup/job_setup.hpp"
#include "trainer/setup/strategies.hpp"

namespace lockstep::setup_test {

inline constexpr ImageShape kInput{1, 28, 28};

inline Network network_of(const std::string& layers) {
  return Network::parse("name: cut\nlayers:\n" + layers, "cut.yaml", kInput, 10);
}

inline Network six_layers() {
  return network_of(
      "  - conv2d: {out: 3, kernel: 3}\n  - max_pool: 2\n  - relu\n  - linear: 20\n  - relu\n"
      "  - linear: classes\n");
}

inline Job job_of(const std::string& strategy, std::vector<std::vector<std::string>> stages = {}) {
  Job job;
  job.data.set = "synthetic";
  job.data.global_batch = 64;
  job.data.train_samples = 128;
  job.data.test_samples = 64;
  job.parallel.device = "cpu";
  job.parallel.grain = 16;
  job.parallel.strategy = strategy;
  job.parallel.stages.layers = std::move(stages);
  return job;
}

inline Job pipeline_job() {
  return job_of("pipeline", {{"conv1"}, {"pool1", "relu1", "fc1"}, {"relu2", "fc2"}});
}

inline DeviceChoice emulated_gpu() {
  DeviceChoice device;
  device.description = "Emulated GPU";
  device.gpu = std::make_shared<Gpu>();
  device.gpu->device = emulated::platform().make_device(0);
  return device;
}

inline TrainTestData samples_of(const Network& network, std::int64_t samples) {
  TrainTestData data;
  data.train.shape = data.test.shape = network.input_shape();
  data.train.labels.resize(static_cast<std::size_t>(samples));
  data.test.labels.resize(10);
  return data;
}

/// A rank of several that is alone on its host.
class LonelyRank final : public test::ForwardingCommunicator {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;
  int local_rank() const override { return 0; }
  int local_size() const override { return 1; }
};

struct Verdict {
  bool streams = false;
  std::string refusal;
};

/// The strategy's check, as rank 0 of so many gets it.
inline Verdict check_of(const Job& job, const Network& network, int ranks, const DeviceChoice& device = {},
                        std::int64_t samples = 128) {
  Verdict check;
  run_thread_ranks(ranks, [&](Communicator& comm) {
    if (comm.rank() != 0) return;
    try {
      check.streams =
          find_strategy(job).setup.check(job, network, samples_of(network, samples), device, comm);
    } catch (const Error& error) {
      check.refusal = error.what();
    }
  });
  return check;
}

inline std::string refusal_of(const Job& job, int ranks, const DeviceChoice& device = {}) {
  return check_of(job, six_layers(), ranks, device).refusal;
}

}  // namespace lockstep::setup_test
