// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From a job file to everything that its steps need, on every rank: data, device, network, bucket plan.
#pragma once

#include "comm/backend.hpp"
#include "comm/communicator.hpp"
#include "comm/reduce/bucket_plan.hpp"
#include "data/augmentation.hpp"
#include "data/dataset.hpp"
#include "data/sampler.hpp"
#include "data/set_fingerprints.hpp"
#include "kernels/sum_cuts.hpp"
#include "models/network.hpp"
#include "trainer/config/job.hpp"
#include "trainer/device/gpu.hpp"
#include "trainer/ranks/device_choice.hpp"
#include "trainer/setup/data_loading.hpp"
#include "trainer/training/setup.hpp"

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>

namespace lockstep {

/// data.augment for images of this set. @throws ConfigError  they cannot be changed so
std::optional<AugmentPlan> augment_plan_of(const Job& job, const Dataset& train);

/// The job's options for its steps.
TrainingOptions training_options(const Job& job);

/// Makes a ConfigError with the place in the job.
ConfigError with_place(const Job& job, const OptionError& error);

/// Calls it; an option that does not fit is named with its place in the job.
/// @throws ConfigError  "mnist.yaml:7:3: train.class_weights: 2 numbers for ..."
template <class Action>
auto with_places(const Job& job, const Action& action) {
  try {
    return action();
  } catch (const DatasetOptionError& error) {
    throw key_error(job, "data." + error.option(), error.cause());
  } catch (const OptionError& error) {
    throw with_place(job, error);
  }
}

struct JobSetup : TrainingSetup {
  DeviceChoice device;
  bool streams = false;  ///< the set comes to the ranks' devices step by step, and is not copied there
  GraphUse graph = GraphUse::kOn;
  std::optional<GradientPath> path = {};  ///< as DeviceSetup has it
  PipelineOptions pipeline = {};
  std::shared_ptr<LazyFingerprints> fingerprints = {};  ///< the data's; rank 0 asks for them
  /// The run's has_light_background() (trainer/run/data_record.hpp), which reads images; they are looked at once.
  std::shared_future<bool> light_background = {};

  DeviceSetup on_device() const {
    return {.gpu = device.gpu, .streams = streams, .graph = graph, .path = path};
  }
};

/// From parts that fit together: images stay as they are, and nothing streams.
JobSetup make_setup(const Job& job, std::shared_ptr<const TrainTestData> data, DeviceChoice device,
                    Network network, BucketPlan plan);

/// @throws OptionError  the job asks for train.recompute, and its ranks have GPUs
void check_recompute(const Job& job, bool on_gpu);

/// @throws ConfigError  a sampler cannot do that, the job's warm-up is too long for it, or it names tensors that the
///                      network does not have
void check_sampling(const Job& job, const Network& network, const DistributedSampler::Options& sampling);

/// How a parallel strategy gets ready, beyond what all do.
struct StrategySetup {
  /// Checks that job, network, data and ranks fit together and into memory. Each rank asks, and all agree.
  /// @returns true if the set must stream past the rank's device
  bool (*check)(const Job& job, const Network& network, const TrainTestData& data, const DeviceChoice& device,
                const Communicator& comm);
  /// In which pieces gradients are summed. Collective.
  BucketPlan (*plan)(const Job& job, const Network& network, const DeviceChoice& device, Communicator& comm);
};

/// Every rank has the whole network and a share of each batch.
extern const StrategySetup kDataParallelSetup;

/// Makes the network for a data set; empty: the job names it.
using NetworkMaker = std::function<Network(const Dataset& train)>;

/// Gets everything ready and checks that it fits together. So a rank that cannot go on stops all of them
/// in good order. It also checks that all ranks got the same network and data. Collective: the ranks' jobs are equal.
/// @throws AgreedError  any error of any rank, any difference between them
JobSetup set_up(const Job& job, Communicator& comm, const DatasetFuture& data,
                const StrategySetup& strategy = kDataParallelSetup, const NetworkMaker& make_network = {});

// Brings the model and the communicator together: how this job's gradient is cut into buckets on this
// machine.

/// The plan for `parallel.bucket_bytes`. With auto, rank 0's arithmetic speed and the group's all-reduce
/// latency are measured (some ten milliseconds) and shared, so that all ranks plan alike. On GPUs, buckets of
/// 25 MiB: an all-reduce of a small network is all latency (8 us in one bucket, 61 us in four, on 8 GPUs), one of
/// ResNet-50 is 204 MB, which backward hides. One bucket where the host takes part: it sends after backward. Collective.
BucketPlan plan_buckets(const Job& job, const Network& network, const DeviceChoice& device,
                        Communicator& comm);

// Arithmetics of a run's steps: steps of one can be proved by the same one alone. The numbers are in
// trails and keep their meaning; a new order of sums or new cuts get a new number.

enum class Arithmetic : std::uint32_t {
  kVendor = 0,                      ///< that of cuDNN and cuBLAS
  kCanonical = kArithmeticVersion,  ///< the one of every device (docs/arithmetic.md)
  kSmoothedPair = kSmoothedPairArithmetic,
};

/// With the kernels of this program.
/// @param classes  of the job's network
Arithmetic arithmetic_of(const Job& job, int classes);
/// With the kernels that the job takes on this device.
Arithmetic arithmetic_of(const Job& job, int classes, const DeviceChoice& device);

/// "version 2"; of a number that this program does not know, that.
std::string describe(Arithmetic arithmetic);
/// Advice to a command that takes --device and --kernels, and has `here`.
std::string how_to_have(Arithmetic arithmetic, Arithmetic here);

}  // namespace lockstep
