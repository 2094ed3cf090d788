// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What is inside a checkpoint, for people: `lockstep inspect` and `lockstep verify`.
#pragma once

#include "trainer/checkpoint/checksums.hpp"
#include "trainer/checkpoint/env.hpp"

#include <string>
#include <vector>

namespace lockstep {

/// Facts and a table of tensors with shape, smallest, largest and mean value, and the weights' SHA-256.
/// Verifies first.
/// @throws DataError, MissingDataError, IoError
std::string inspect_checkpoint(Env& env, const std::string& path);

/// "PATH: good: 2 files, 31 checksums", or one line for each damage.
std::string verify_report(Env& env, const std::string& path, const std::vector<Damage>& damages);

}  // namespace lockstep
