// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The faults that a job can ask for, as inject.what names them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace lockstep {

/// What one rank does on purpose, so that people see what a job does then.
struct Fault {
  enum class Kind {
    kDie,          ///< SIGKILL to itself
    kStop,         ///< SIGSTOP to itself
    kDelay,        ///< sleeps once
    kSlow,         ///< every step from then on takes longer: it sleeps
    kBusy,         ///< the same: it computes
    kDropNetwork,  ///< neither hears nor says anything any more
    kFlipBit,      ///< one bit of one weight
    kNan,          ///< one weight is no number
    kDesync,       ///< waits where the others do not
  };
  /// What kFlipBit changes.
  enum class Target {
    kWeights,
    kOptimizer,  ///< the first of what the optimiser remembers
    kGradient,   ///< the sums of the step, once they are complete
    kData,       ///< a sample of the step
  };
  Kind kind = Kind::kDie;
  double amount = 0;  ///< kDelay: seconds; kSlow, kBusy: the share of a step that is added
  Target target = Target::kWeights;
  /// Which word (of kData: byte) and bit of it, both modulo what there is; nothing: the lowest bit in the middle.
  std::optional<std::uint64_t> element = {};
  unsigned bit = 0;

  friend bool operator==(const Fault&, const Fault&) = default;
};

inline constexpr std::string_view kNoFault = "none";

/// "die", "delay 3s", "delay 500ms", "slow 10%", "busy 10%", "flip-bit", "flip-bit gradient", "flip-bit data 300:7";
/// nothing if it is none of them, or `none`.
std::optional<Fault> parse_fault(std::string_view name);

/// Examples of all, and kNoFault.
std::vector<std::string_view> fault_names();

}  // namespace lockstep
