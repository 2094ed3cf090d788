// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The weights that a run starts from.
#pragma once

#include "models/network.hpp"
#include "trainer/config/job.hpp"

#include <span>

namespace lockstep {

/// From train.initial_weights, a safetensors file with every parameter of the network by name (what belongs to no layer of
/// it is ignored), a checkpoint, or a run whose newest good checkpoint is meant; or, where the job names none, the
/// network's own initialisation from the seed.
/// @throws MissingDataError, DataError, IoError
void initialise_weights(const Job& job, const Network& network, std::span<float> weights);

}  // namespace lockstep
