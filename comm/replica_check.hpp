// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Are all ranks' weights still the same? A rank whose memory or arithmetic went wrong is found and named.
#pragma once

#include "comm/communicator.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace lockstep {

using Digest = std::array<std::byte, 32>;  ///< SHA-256 of one tensor

/// Compares the digests over all ranks; a collective call, and every rank comes to the same verdict.
///
/// @param digests  one for each tensor, in arena order
/// @param names    of the tensors, for the message
/// @throws InternalError  on every rank; names step, the ranks and hosts that differ from the majority (from
///                        rank 0, if there is none) and the first tensor in which they do
void check_replicas(Communicator& comm, std::span<const Digest> digests, std::span<const std::string> names,
                    std::int64_t step);

}  // namespace lockstep
