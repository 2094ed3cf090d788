// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What is inside a checkpoint, for people: `lockstep inspect` and `lockstep verify`.
#pragma once

#include "common/files/env.hpp"
#include "trainer/checkpoint/state.hpp"

#include <string>

namespace lockstep {

/// Facts and a table of tensors with shape, smallest, largest and mean value, and the weights' SHA-256.
std::string inspect_checkpoint(const std::string& path, const CheckpointState& state);

struct Verification {
  bool good = false;
  std::string report;  ///< "PATH: good: 3 files, 31 checksums", or one line for each damage
};

/// Every checksum of one checkpoint.
/// @throws MissingDataError if there is no such directory; IoError
Verification verify(Env& env, const std::string& path);

}  // namespace lockstep
