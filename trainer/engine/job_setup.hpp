// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From a job file to everything that its steps need, on every rank: data, device, network, bucket plan.
#pragma once

#include "comm/bucket_plan.hpp"
#include "comm/communicator.hpp"
#include "data/dataset.hpp"
#include "models/network.hpp"
#include "trainer/config/job.hpp"
#include "trainer/ranks/device_choice.hpp"

#include <functional>
#include <future>
#include <memory>
#include <string>

namespace lockstep {

struct LoadedData {
  std::shared_ptr<const TrainTestData> sets;
  std::shared_ptr<LazyFingerprints> fingerprints;
};

/// A data set on its way into memory; the ranks of one process share it.
using DatasetFuture = std::shared_future<LoadedData>;

/// Starts loading the job's data set on a thread of its own, so that it is there when MPI is up.
/// @param remembered  where data.root=auto looks first, because the run had its data there; or empty. If not,
///                    rank 0 will compare them, and its fingerprints are begun, too
DatasetFuture load_in_advance(const Job& job, const std::string& remembered = "");

struct JobSetup {
  std::shared_ptr<const TrainTestData> data;
  DeviceChoice device;
  Network network;
  BucketPlan plan;
  std::shared_ptr<LazyFingerprints> fingerprints = {};  ///< of the data; rank 0 asks for them
};

/// How a parallel strategy gets ready, beyond what all do.
struct StrategySetup {
  /// Whether job, network, data and ranks fit together and into memory. Each rank asks, and all agree.
  void (*check)(const Job& job, const Network& network, const TrainTestData& data, const DeviceChoice& device,
                const Communicator& comm);
  /// In which pieces gradients are summed. Collective.
  BucketPlan (*plan)(const Job& job, const Network& network, const DeviceChoice& device, Communicator& comm);
};

/// Every rank has the whole network and a share of each batch.
extern const StrategySetup kDataParallelSetup;

/// Makes the network for a data set; empty: the job names it.
using NetworkMaker = std::function<Network(const Dataset& train)>;

/// Gets everything ready and checks that it fits together, so that a rank that cannot go on stops all of them
/// in good order; and that all ranks got the same network and data. Collective: the ranks' jobs are equal.
/// @throws AgreedError  any error of any rank, any difference between them
JobSetup set_up(const Job& job, Communicator& comm, const DatasetFuture& data,
                const StrategySetup& strategy = kDataParallelSetup, const NetworkMaker& make_network = {});

}  // namespace lockstep
