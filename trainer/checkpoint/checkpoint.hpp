// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Saving, loading and verifying one checkpoint: RUN/checkpoints/step-00001180/ with model.safetensors,
/// optimizer.safetensors and manifest.json.
#pragma once

#include "common/files/env.hpp"
#include "trainer/checkpoint/checksums.hpp"
#include "trainer/checkpoint/manifest.hpp"
#include "trainer/checkpoint/state.hpp"

#include <string>
#include <vector>

namespace lockstep {

/// Writes a checkpoint below `run_dir` (which must exist) and returns its directory. When this returns, the
/// checkpoint survives a power loss. When it throws, or the power fails meanwhile, earlier checkpoints are
/// untouched; one of the same step is replaced only by a complete new one. Temporary directory, fsync of each
/// file, fsync of the directory, rename, fsync of the parent.
/// @throws IoError
std::string save_checkpoint(Env& env, const std::string& run_dir, const CheckpointState& state);

/// Reads a checkpoint's directory; nothing is used before everything is verified.
/// @throws DataError naming file and tensor; MissingDataError if there is no such directory; IoError
CheckpointState load_checkpoint(Env& env, const std::string& path, Weights accepted = Weights::kUsable);

/// Only the manifest, for commands that do not need the tensors.
Manifest load_manifest(Env& env, const std::string& path);

/// Every checksum and every weight, and every damage rather than the first. Empty: the checkpoint is good.
/// @throws MissingDataError if there is no such directory; IoError
std::vector<Damage> verify_checkpoint(Env& env, const std::string& path);

}  // namespace lockstep
