// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How much memory a training takes: from sizes alone, before anything is allocated.
#pragma once

#include "comm/communicator.hpp"
#include "common/buffers.hpp"
#include "data/dataset.hpp"
#include "models/network.hpp"
#include "trainer/config/job.hpp"
#include "trainer/parallel/stage_plan.hpp"
#include "trainer/ranks/device_choice.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

/// Bytes; kTooLarge (common/buffers.hpp) where 64 bits do not hold them.
struct MemoryNeed {
  std::uint64_t parameters = 0;   ///< weights, what the optimiser remembers, gradients, exact sums, and of
                                  ///< rank 0 a checkpoint
  std::uint64_t activations = 0;  ///< for all threads, with their gradients and what kernels keep
  std::uint64_t data = 0;         ///< the data set

  std::uint64_t total() const { return checked_sum(parameters, activations, data); }
};

struct TrainingMemory {
  MemoryNeed host;    ///< one rank's; threads that are ranks share the data set
  MemoryNeed device;  ///< the rank's GPU's; nothing on a CPU
};

/// Bytes of an element: of weights and their like, and of exact sums.
inline constexpr std::uint64_t kFp32 = sizeof(float), kExact = sizeof(std::int64_t);

/// Bytes of a parameter: weights and optimiser state.
std::uint64_t state_bytes(const Job& job);
/// Bytes of a parameter for its gradients' sums on a CPU: this rank's, those of others, and of replays.
/// @param teams  that sum them: ranks, or pipelines
std::uint64_t sum_bytes(const Job& job, int teams);
/// Bytes of a parameter on a device: state, sums, their units, and its range in the update.
std::uint64_t device_bytes(const Job& job, const Network& network, int teams);
/// Bytes of the activations with which a device evaluates a set of so many samples.
std::uint64_t evaluation_bytes(const Job& job, const Network& network, std::int64_t samples);
/// Bytes of a parameter for checkpoints, which are rank 0's. One that is written has a copy of the state; of one that is
/// read there are its file and its numbers.
std::uint64_t checkpoint_bytes(const Job& job, int rank);
/// Bytes that the fingerprints of so many steps take of a device, where the job keeps a trail.
std::uint64_t trail_bytes(const Job& job, const Network& network, std::int64_t steps);

/// How large a data set is, known before it is there.
struct DataSizes {
  std::int64_t train_samples = 0, test_samples = 0;
  std::uint64_t sample_bytes;           ///< with its label
  std::int64_t validation_samples = 0;  ///< not among train_samples
  bool on_disk = false;                 ///< the host's memory has the labels alone, and `kept_bytes`
  bool streams = false;                 ///< a device has the labels, and samples of a few steps alone
  std::uint64_t kept_bytes = 0;         ///< for pictures that were decoded

  std::uint64_t samples() const { return checked_sum(train_samples, test_samples, validation_samples); }
  std::uint64_t bytes() const { return checked_product(samples(), sample_bytes); }
  std::uint64_t host_bytes() const {
    return on_disk ? checked_sum(checked_product(samples(), sizeof(std::int32_t)), kept_bytes) : bytes();
  }
};
DataSizes sizes_of(const TrainTestData& data);

/// @param on_gpu  or on the emulated one
/// @param ranks   in the whole job
/// @param rank    whose; the first takes most, the others are alike
TrainingMemory training_memory(const Job& job, const Network& network, const DataSizes& data, bool on_gpu,
                               int ranks, int rank = 0);

/// A pipeline's, of one rank. The data set on the host is no part of it.
/// @param gpu  of this rank, whose like all have; null: they compute on CPUs
TrainingMemory pipeline_memory(const Job& job, const Network& network, const DataSizes& data,
                               const StagePlan& plan, const Gpu* gpu, int rank);

/// With the job's strategy, of the rank that takes most, before there are any.
/// @param ranks  in the whole job; 0: not known, and a pipeline has one for each of its stages
/// @throws OptionError  the strategy cannot cut the network so, or into a part for each rank
TrainingMemory foreseen_memory(const Job& job, const Network& network, const DataSizes& data, bool on_gpu,
                               int ranks);

/// "about 61 MiB (parameters 0.7 MiB, activations 5.1 MiB, data 55 MiB)"
std::string to_string(const MemoryNeed& need);

/// @throws DeviceError  the device has less room: how much, how much there is, and `help`
void require_device_memory(const Network& network, const MemoryNeed& need, const DeviceProperties& device,
                           std::string_view help);

/// Bytes that stream past a device, on it and once more in pinned memory. @param columns  of a step that one rank has
std::uint64_t ring_bytes(const Job& job, const DataSizes& data, std::int64_t columns,
                         std::int64_t spare_columns, std::int64_t evaluated_at_once);

/// True if the set is to stream past this device, as data.on_device says. With auto it does where the rest would not
/// leave a tenth of what is free. @param with_all_data  of the device, if it has the whole set
bool must_stream(const Job& job, const MemoryNeed& with_all_data, const DeviceProperties& device);

/// For GPUs, which go through a rank's samples at once, or through micro-batches from one end to the other.
/// @throws OptionError  data.micro_batch is given, and a layer looks at the whole global batch
void require_no_cuts_in_micro_batches(const Job& job, const Network& network);

/// Asks whether what is still to be allocated fits. It counts on the host for all ranks there, on the GPU for this
/// one. Ranks call it before any of them allocates. The data set is there already.
/// @returns must_stream(); false on a CPU
/// @throws MemoryError, DeviceError  it does not: how much, how much there is, what helps
/// @throws ShapeError                the network is larger than GPU kernels can number
bool require_training_memory(const Job& job, const Network& network, const TrainTestData& data,
                             const DeviceChoice& device, const Communicator& comm);

}  // namespace lockstep
