// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Meaning of some keys' values: names of faults and strategies, and paths below the home directory.
#pragma once

#include "trainer/device/device_name.hpp"
#include "trainer/training/optimizers/sections.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// The faults that a job can ask for, as inject.what names them.

/// Deliberate fault of one rank, to show how a job reacts.
struct Fault {
  enum class Kind {
    kDie,           ///< SIGKILL to itself
    kStop,          ///< SIGSTOP to itself
    kDelay,         ///< sleeps once
    kSlow,          ///< every step from then on takes longer: it sleeps
    kBusy,          ///< every step from then on takes longer: it computes
    kDropNetwork,   ///< neither hears nor says anything any more
    kFlipBit,       ///< bits of memory, by pattern and target
    kStale,         ///< sums arrive as they did in the step before
    kSwapped,       ///< the halves of the sums that arrive have changed places
    kWrongForward,  ///< the outputs of a forward pass are those of other classes
    kWrongLane,     ///< an output of one lane is wrong
    kNan,           ///< one weight is not a number
    kDesync,        ///< waits where the others do not
  };
  /// Target of kFlipBit.
  enum class Target {
    kWeights,
    kOptimizer,   ///< the optimiser's state, one buffer after the other
    kStatistics,  ///< running statistics
    kGradient,    ///< the sums of the step, once they are complete and compared
    kData,        ///< a sample of the step
    kSums,        ///< this rank's own sums, before they leave
    kLink,        ///< the sums over all ranks, as they arrive
    kMessage,     ///< activations or gradients, as they arrive from another stage
  };
  /// Bits to change.
  enum class Pattern {
    kOne,
    kSeveral,  ///< the bit, and those 1, 3 and 7 above it, in one word
    kStuck,    ///< the bit of every 32nd word becomes 1
  };
  Kind kind = Kind::kDie;
  double amount = 0;  ///< kDelay: seconds; kSlow, kBusy: the share of a step that is added
  Target target = Target::kWeights;
  Pattern pattern = Pattern::kOne;
  /// Word (of kData: byte) and bit to change, both modulo their number; nothing: the lowest bit in the middle.
  std::optional<std::uint64_t> element = {};
  unsigned bit = 0;

  friend bool operator==(const Fault&, const Fault&) = default;
};

inline constexpr std::string_view kNoFault = "none";

/// Parses a fault; nothing if it is unknown, or `none`. "die", "delay 3s", "delay 500ms", "slow 10%", "busy
/// 10%", "flip-bit", "flip-bit gradient", "flip-bit data 300:7", "flip-bits sums", "stuck-bit link".
std::optional<Fault> parse_fault(std::string_view name);

/// Examples of all, and kNoFault.
std::vector<std::string_view> fault_names();

// "~" in paths of a job file, as a shell reads it. In key=~/path no shell does.

/// Expands "~" and "~/..." to $HOME (or the home that the system knows), "~name" to that user's. Other text
/// stays as it is. nullopt if there is no such user or home. Reads the environment.
std::optional<std::string> expand_home(const std::string& path);

// Parallel strategies by name, as a job file knows them: their promises and their keys. Their work is in
// trainer/setup/strategies.cpp.

struct StrategyKind {
  std::string_view name;
  /// True if it ends in the weights of one rank, bit for bit, under `determinism: world`.
  bool same_bits = true;
  bool one_thread = false;  ///< each rank computes with one
  /// Each rank has samples of its own, so a batch may be given for each and cut in different ways.
  bool shares_batches = true;
  bool any_ranks = true;           ///< a run goes on on any number of ranks, not only on some
  bool one_host = false;           ///< all ranks are on one
  bool sums_whole_batches = true;  ///< weights move by the gradient of a global batch
  /// Keys of the section `parallel` that only this strategy has.
  std::vector<MemberKey> keys = {};
};

/// All that there are.
const std::vector<StrategyKind>& strategy_kinds();

/// @throws InternalError  there is none of that name
const StrategyKind& find_strategy_kind(std::string_view name);

}  // namespace lockstep
