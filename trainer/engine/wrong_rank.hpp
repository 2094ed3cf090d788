// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What a person reads when numbers of a rank turn out to be wrong while it trains: rank, host, device, tensor, and
/// what was at fault.
#pragma once

#include "comm/agreement.hpp"
#include "comm/communicator.hpp"
#include "comm/reduce/sum_check.hpp"
#include "models/arena.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

/// For the message: where this rank trains what.
struct TrainedHere {
  const ParameterLayout& layout;  ///< of what is summed
  const std::string& device;      ///< "cpu (AVX-512)"
};

/// Names the rank whose memory, or the link that changed sums of a step. Collective, of the ranks that threw `error`.
/// @param step  counted from 1
/// @throws WrongRankError  on all of them, with the same text
[[noreturn]] void throw_wrong_sums(Communicator& comm, const SumsDifferError& error, std::int64_t step,
                                   const TrainedHere& here);

/// What turned out to be wrong in a step; the same on all ranks.
struct WrongNumbers {
  std::int64_t step = 0;   ///< counted from 1
  std::string what;        ///< "rank 2 on node3 (cpu) sent other sums of ..."
  std::string help;        ///< what a person can do
  std::vector<int> ranks;  ///< that are named; may be none
  bool may_pass = false;   ///< computed again, the step comes out right, unless the fault lasts
};

/// Its message is a whole one, for runs that stop.
class WrongRankError : public AgreedError {
 public:
  explicit WrongRankError(WrongNumbers numbers);
  const WrongNumbers& numbers() const noexcept { return numbers_; }

 private:
  WrongNumbers numbers_;
};

/// Throws for all what some ranks have found. Collective.
/// @param mine  the same on all ranks that have some; one does at least
/// @throws WrongRankError  on all ranks
[[noreturn]] void throw_on_all(Communicator& comm, const std::optional<WrongNumbers>& mine,
                               std::int64_t step);

/// What `parallel.on_wrong` says of a step with wrong numbers. All ranks make the same calls, and come to the same.
class WrongSteps {
 public:
  explicit WrongSteps(bool goes_on) : goes_on_(goes_on) {}

  bool goes_on() const { return goes_on_; }
  /// Calls `compute`, which may throw WrongRankError.
  /// @returns false: numbers were wrong, and are to be computed again
  /// @throws WrongRankError  the run is to stop: so it is asked to, or what is wrong stays so
  bool is_right(const std::function<void()>& compute);
  /// Number and fault of each step that was computed again since the last call.
  std::vector<std::pair<std::int64_t, std::string>> take_passed() { return std::exchange(passed_, {}); }

 private:
  bool may_have_passed(const WrongNumbers& wrong);

  bool goes_on_;
  std::map<int, int> times_wrong_;  ///< of each rank; -1: of one that cannot be told
  std::vector<std::pair<std::int64_t, std::string>> passed_;
};

// What such messages are made of.

/// "rank 2 on node3 (cpu (AVX-512))", of each rank. Collective.
std::vector<std::string> descriptions(Communicator& comm, const std::string& device);

/// @param tensor  that of the counters is behind the last one
std::string name_of(const ParameterLayout& layout, std::size_t tensor);

}  // namespace lockstep
