// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What a network takes on a CPU, before anything is allocated there.
#pragma once

#include "models/network.hpp"

#include <cstdint>

namespace lockstep {

/// Bytes that one Execution of so many columns takes, and at most what the kernels of its thread keep for
/// their own use: the padded image and the rearranged weights of the largest layer.
std::uint64_t execution_bytes(const Network& network, int columns);
std::uint64_t kernel_scratch_bytes(const Network& network, int columns);

}  // namespace lockstep
