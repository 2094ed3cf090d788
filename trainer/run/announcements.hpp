// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What a run says once: at its start, of its batches, of its memory, and where it has nothing left to do.
#pragma once

#include "comm/communicator.hpp"
#include "common/env.hpp"
#include "data/sampler.hpp"
#include "models/network.hpp"
#include "trainer/config/job.hpp"
#include "trainer/engine/job_setup.hpp"
#include "trainer/engine/step_engine.hpp"
#include "trainer/ranks/device_choice.hpp"
#include "trainer/strategies/strategy.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

// What rank 0 says and records when a run starts.

/// A few lines for people: model, data, ranks and devices, batch and buckets, optimiser and schedule.
std::vector<std::string> announcement(const Job& job, const JobSetup& setup, const ParallelStrategy& strategy,
                                      const Communicator& comm, int hosts);

/// The "start" event of metrics.jsonl.
nlohmann::ordered_json start_event(const Job& job, const JobSetup& setup, const ParallelStrategy& strategy,
                                   const Communicator& comm, int hosts);

// Starting a job again that has nothing left to do: known before anything in its directory is touched.

/// How far a job wants to go, and how far its run has come.
struct RunLength {
  std::int64_t steps_per_epoch = 1;
  std::int64_t asked = 0;  ///< steps, by train.epochs and train.max_steps
  std::int64_t taken = 0;  ///< by the checkpoint that the job would go on from
};

/// Steps that the job asks for in all.
std::int64_t steps_asked(const Job& job, std::int64_t steps_per_epoch);

/// The weights_sha256 that the last line of RUN/metrics.jsonl gives, if that line is the end of a run of so
/// many steps. @throws IoError
std::optional<std::string> recorded_end(Env& env, const std::string& run_dir, std::int64_t steps);

/// True if nothing is left to do: more steps were taken than the job asks for; or as many, and the end of the
/// run is on disk with the weights of this digest. (A run that was killed between its last checkpoint and its
/// end is still brought to its end.)
bool nothing_left(Env& env, const std::string& run_dir, const RunLength& length, const std::string& digest);

/// What to say then, and what to change.
std::string nothing_left_text(const Job& job, const RunLength& length);

// How much memory a run took.

/// "memory: at most 61 MiB resident, on rank 1; 115 MiB on all 2 ranks". Ranks that are threads share a process and its
/// memory. On a device also a line of its memory: what is allocated, what was at most, and what is no longer free,
/// as DeviceMemoryUse has it. Collective.
std::vector<std::string> memory_summary(Communicator& comm, const DeviceChoice& device);

// The sizes of each batch, on the ranks and as a whole, in the words of PyTorch's DataParallel tutorial.

class BatchShapes {
 public:
  /// Collective. Borrows both.
  BatchShapes(const Network& network, const DeviceChoice& device, Communicator& comm);

  /// "Let's use 2 GPUs! 0: cuda:0 NVIDIA H100, 1: ..."; empty of one rank, as in the tutorial.
  std::string devices_line() const;

  /// A line for each rank that has samples of this step, which says on which device it has them, and one for
  /// all together. Collective: every rank says how many samples it computes; rank 0 gets the lines, the others
  /// none.
  std::vector<std::string> lines(const DistributedSampler& sampler, std::int64_t step_in_epoch) const;

 private:
  const Network& network_;
  Communicator& comm_;
  std::string kind_;
  std::vector<std::string> devices_;  ///< of the ranks
};

}  // namespace lockstep
