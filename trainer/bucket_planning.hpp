// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Brings the model and the communicator together: how this job's gradient is cut into buckets on this
/// machine.
#pragma once

#include "comm/bucket_plan.hpp"
#include "comm/communicator.hpp"
#include "models/network.hpp"
#include "trainer/config/job.hpp"

namespace lockstep {

/// The plan for `parallel.bucket_bytes`. With auto, rank 0's arithmetic speed and the group's all-reduce
/// latency are measured (some ten milliseconds) and shared, so that all ranks plan alike. Collective.
BucketPlan plan_buckets(const Job& job, const Network& network, Communicator& comm);

}  // namespace lockstep
