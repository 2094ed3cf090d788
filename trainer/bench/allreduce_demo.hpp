// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// `lockstep bench allreduce --demo`: what data-parallel training does with numbers, shown on a handful of them.
#pragma once

#include "comm/communicator.hpp"

namespace lockstep::bench {

/// The explicit steps of "Dive into Deep Learning", section 13.5, on the ranks of this job. Parameters made on rank 0
/// are copied to all (get_params), ones times (rank + 1) are summed (allreduce), and the 20 numbers of a 4 x 5 matrix are
/// scattered over the ranks by rows (split_batch). Rank 0 prints what every rank has, before and after. Collective.
void show_allreduce(Communicator& comm);

}  // namespace lockstep::bench
