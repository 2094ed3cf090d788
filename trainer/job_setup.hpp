// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From a job file to everything that its steps need, on every rank: data, device, network, bucket plan.
#pragma once

#include "comm/bucket_plan.hpp"
#include "comm/communicator.hpp"
#include "data/dataset.hpp"
#include "models/network.hpp"
#include "trainer/config/job.hpp"
#include "trainer/device/device_choice.hpp"

#include <future>
#include <memory>

namespace lockstep {

/// A data set on its way into memory; the ranks of one process share it.
using DataInAdvance = std::shared_future<std::shared_ptr<const TrainTestData>>;

/// Starts loading the job's data set on a thread of its own, so that it is there when MPI is up.
DataInAdvance load_in_advance(const Job& job);

struct JobSetup {
  std::shared_ptr<const TrainTestData> data;
  DeviceChoice device;
  Network network;
  BucketPlan plan;
};

/// Gets everything ready and checks that it fits together, so that a rank that cannot go on stops all of them
/// in good order. Collective.
/// @throws AgreedError  any error of any rank
JobSetup set_up(const Job& job, Communicator& comm, const DataInAdvance& data);

}  // namespace lockstep
