// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Brings the model and the communicator together: how this job's gradient is cut into buckets on this
/// machine.
#pragma once

#include "comm/bucket_plan.hpp"
#include "comm/communicator.hpp"
#include "models/network.hpp"
#include "trainer/config/job.hpp"
#include "trainer/ranks/device_choice.hpp"

namespace lockstep {

/// The plan for `parallel.bucket_bytes`. With auto, rank 0's arithmetic speed and the group's all-reduce
/// latency are measured (some ten milliseconds) and shared, so that all ranks plan alike. On GPUs, one
/// bucket: there an all-reduce of these sizes is all latency (8 us in one bucket, 61 us in four, on 8 GPUs),
/// and where the host takes part it begins after backward anyway. Collective.
BucketPlan plan_buckets(const Job& job, const Network& network, const DeviceChoice& device,
                        Communicator& comm);

}  // namespace lockstep
