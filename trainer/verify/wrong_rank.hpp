// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Messages for a person when numbers of a rank turn out to be wrong while it trains. They name rank, host, device,
/// tensor, and what was at fault.
#pragma once

#include "comm/agreement.hpp"
#include "comm/communicator.hpp"
#include "comm/reduce/sum_check.hpp"
#include "models/arena.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

/// Names the rank whose memory, or the link that changed sums of a step. Collective, of the ranks that threw `error`.
/// @param step    counted from 1
/// @param layout  of what is summed
/// @param device  this rank's: "cpu (AVX-512)"
/// @throws WrongRankError  on all of them, with the same text
[[noreturn]] void throw_wrong_sums(Communicator& comm, const SumsDifferError& error, std::int64_t step,
                                   const ParameterLayout& layout, const std::string& device);

/// Earlier steps that may be wrong, too, where a step is.
enum class Doubt {
  kNone,         ///< it was found in its own step, or by copies, which are compared before each save
  kSinceReplay,  ///< those since the last replay in which all shares were right
  kSinceStart,   ///< those since the data were loaded
};

/// Facts about wrong numbers in a step; the same on all ranks.
struct WrongNumbers {
  std::int64_t step = 0;        ///< counted from 1
  std::string what;             ///< "rank 2 on node3 (cpu) sent other sums of ..."
  std::string help;             ///< advice for a person
  std::vector<int> ranks = {};  ///< that are named, of the whole (Communicator::rank_in_whole()); may be none
  Doubt doubt = Doubt::kNone;
};

/// Its message says all but how the run may go on.
class WrongRankError : public AgreedError {
 public:
  explicit WrongRankError(WrongNumbers numbers);
  const WrongNumbers& numbers() const noexcept { return numbers_; }

 private:
  WrongNumbers numbers_;
};

/// Texts of several ranks as one: each once, in their order. Empty ones are of ranks that have nothing to say.
std::string all_said(const std::vector<std::string>& texts);

/// Throws for all what some ranks have found. Collective, of the whole or a part of it.
/// @param mine  the same on ranks that have found it together; one has some at least
/// @throws WrongRankError  on all ranks: says what each of them has found
[[noreturn]] void throw_on_all(Communicator& comm, const std::optional<WrongNumbers>& mine,
                               std::int64_t step);

/// "rank 2 on node3 (cpu (AVX-512))", of each rank, for such messages. Collective.
std::vector<std::string> descriptions(Communicator& comm, const std::string& device);

}  // namespace lockstep
