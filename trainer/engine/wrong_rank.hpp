// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What a person reads when numbers of a rank turn out to be wrong while it trains: rank, host, device, tensor, and
/// what was at fault.
#pragma once

#include "comm/communicator.hpp"
#include "comm/reduce/sum_check.hpp"
#include "models/arena.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

/// For the message: where this rank trains what.
struct TrainedHere {
  const ParameterLayout& layout;  ///< of what is summed
  const std::string& device;      ///< "cpu (AVX-512)"
};

/// Names the rank whose memory, or the link that changed sums of a step. Collective, of the ranks that threw `error`.
/// @param step  counted from 1
/// @throws AgreedError  on all of them, with ExitCode::kWrongRank and the same text
[[noreturn]] void throw_wrong_sums(Communicator& comm, const SumsDifferError& error, std::int64_t step,
                                   const TrainedHere& here);

// What such messages are made of.

/// "rank 2 on node3 (cpu (AVX-512))", of each rank. Collective.
std::vector<std::string> descriptions(Communicator& comm, const std::string& device);

/// @param tensor  that of the counters is behind the last one
std::string name_of(const ParameterLayout& layout, std::size_t tensor);

/// On all ranks, with the same text. @throws AgreedError
[[noreturn]] void throw_wrong_rank(std::int64_t step, const std::string& what, const std::string& help);

}  // namespace lockstep
