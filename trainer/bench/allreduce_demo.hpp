// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// `lockstep bench allreduce --demo`: what data-parallel training does with numbers, shown on a handful of them.
#pragma once

#include "comm/communicator.hpp"
#include "kernels/device/device.hpp"
#include "trainer/bench/allreduce_bench.hpp"

namespace lockstep::bench {

/// The explicit steps of "Dive into Deep Learning", section 13.5, on the ranks of this job. Parameters made on rank 0
/// are copied to all (get_params), ones times (rank + 1) are summed (allreduce), and the 20 numbers of a 4 x 5 matrix are
/// scattered over the ranks by rows (split_batch), squared where they are (parallel_apply) and gathered again. Rank 0
/// prints what every rank has, before and after. Collective.
/// @param options  of which device and backend count: where the numbers are, and what carries them
/// @throws AgreedError, PeerLostError  as bench_allreduce()
void show_allreduce(Communicator& comm, const AllreduceOptions& options,
                    const Platform& gpus = cuda::platform());

}  // namespace lockstep::bench
