// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Weights for other programs, in files that are there whole or not at all.
#pragma once

#include "common/env.hpp"
#include "common/safetensors.hpp"
#include "trainer/checkpoint/state.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

// NumPy's .npz: `lockstep export --npz`, read by numpy.load().

/// A zip archive, stored without compression, of one .npy file (version 1.0, C order) a tensor.
/// @throws UsageError if it would not fit into a zip archive (4 GiB, 65,535 tensors), or for a dtype NumPy
/// lacks
std::vector<std::byte> write_npz(std::span<const TensorView> tensors);

/// The weights of a checkpoint under their names, and what the optimiser remembers under "momentum.NAME"
/// and the like.
std::vector<std::byte> export_npz(const CheckpointState& state);

// Writing a file that a user has named, and nothing else that may be there.

/// Writes beside `path` and gives the file its name when it is whole and synced. What is there already stays,
/// unless `replace` is set, and then only a regular file goes: never a directory, a device, a FIFO or a
/// symbolic link.
/// @throws UsageError that says what is in the way and what to do; IoError
void write_output_file(Env& env, const std::string& path, std::span<const std::byte> bytes, bool replace);

}  // namespace lockstep
