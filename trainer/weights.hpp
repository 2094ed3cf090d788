// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What the trainer does with all weights at once: name them by a hash, compare them over ranks.
#pragma once

#include "comm/communicator.hpp"
#include "models/arena.hpp"

#include <cstdint>
#include <span>
#include <string>

namespace lockstep {

/// SHA-256 over all parameters in arena order, little-endian fp32, as 64 hexadecimal digits.
std::string weights_sha256(std::span<const float> weights);

/// Compares the digest of every tensor over all ranks. Collective.
/// @throws AgreedError (ExitCode::kInternal) that names the ranks that differ, their hosts, the step and the
/// tensor
void expect_equal_replicas(Communicator& comm, const ParameterLayout& layout, std::span<const float> weights,
                           std::int64_t step);

}  // namespace lockstep
