// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// NumPy's .npz: `lockstep export --npz`, read by numpy.load().
#pragma once

#include "common/safetensors/safetensors.hpp"
#include "trainer/checkpoint/state.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// A zip archive, stored without compression, of one .npy file (version 1.0, C order) a tensor.
/// @throws UsageError if it would not fit into a zip archive (4 GiB, 65,535 tensors), or for a dtype NumPy
/// lacks
std::vector<std::byte> write_npz(std::span<const TensorView> tensors);

/// The weights of a checkpoint under their names, and what the optimiser remembers under "momentum.NAME"
/// and the like.
std::vector<std::byte> export_npz(const CheckpointState& state);

}  // namespace lockstep
