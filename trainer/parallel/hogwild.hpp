// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The strategy `hogwild`. The ranks of one host move one set of weights, each on its own, without waiting for
/// each other (Niu, Recht, Re, Wright, 2011; PyTorch's share_memory()).
///
/// Each rank takes its share of a global batch, as in data parallel training. It makes of it an update of its
/// own: the mean gradient over this share, from the weights as they are at that moment. What an optimiser
/// remembers is each rank's own; rank 0's is saved, and all start from it after a resume. Results depend on
/// who was faster, so no two runs are alike.
#pragma once

#include "comm/communicator.hpp"
#include "trainer/training/setup.hpp"
#include "trainer/training/strategy.hpp"

#include <memory>

namespace lockstep {

/// Collective. Borrows all references.
std::unique_ptr<ParallelStrategy> make_hogwild(const TrainingSetup& setup, Communicator& comm);

}  // namespace lockstep
