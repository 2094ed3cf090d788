// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Do all ranks still hold the same weights?
#pragma once

#include "comm/communicator.hpp"
#include "models/arena.hpp"

#include <cstdint>
#include <span>

namespace lockstep {

/// Compares the digest of every tensor over all ranks. Collective.
/// @throws AgreedError (ExitCode::kInternal) that names the ranks that differ, their hosts, the step and the
/// tensor
void expect_equal_replicas(Communicator& comm, const ParameterLayout& layout, std::span<const float> weights,
                           std::int64_t step);

}  // namespace lockstep
