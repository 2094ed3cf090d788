// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What values of some keys mean: names of devices, faults and strategies, and paths below the home directory.
#pragma once

#include "trainer/training/optimizers/sections.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// The values of parallel.device.

enum class DeviceKind { kAuto, kCpu, kCuda, kEmulated };

struct DeviceName {
  DeviceKind kind = DeviceKind::kAuto;
  std::optional<int> index;  ///< of cuda:N
};

/// What all of them look like, for messages.
inline constexpr std::string_view kDeviceNames = "auto, cpu, cuda, cuda:N or emulated";

/// nullopt if the text is none of them.
std::optional<DeviceName> parse_device_name(std::string_view text);

/// " (did you mean 'cuda:1'?)" for "gpu:1" and the like, or a misspelt name; "" for others.
std::string device_hint(const std::string& text);

// The faults that a job can ask for, as inject.what names them.

/// What one rank does on purpose, so that people see what a job does then.
struct Fault {
  enum class Kind {
    kDie,           ///< SIGKILL to itself
    kStop,          ///< SIGSTOP to itself
    kDelay,         ///< sleeps once
    kSlow,          ///< every step from then on takes longer: it sleeps
    kBusy,          ///< the same: it computes
    kDropNetwork,   ///< neither hears nor says anything any more
    kFlipBit,       ///< bits of memory, by pattern and target
    kStale,         ///< sums arrive as they did in the step before
    kSwapped,       ///< the halves of the sums that arrive have changed places
    kWrongForward,  ///< the outputs of a forward pass are those of other classes
    kWrongLane,     ///< an output of one lane is wrong
    kNan,           ///< one weight is no number
    kDesync,        ///< waits where the others do not
  };
  /// What kFlipBit changes.
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
  /// Which bits of it.
  enum class Pattern {
    kOne,
    kSeveral,  ///< of one word: the bit, and those 1, 3 and 7 above it
    kStuck,    ///< of every 32nd word: it becomes 1
  };
  Kind kind = Kind::kDie;
  double amount = 0;  ///< kDelay: seconds; kSlow, kBusy: the share of a step that is added
  Target target = Target::kWeights;
  Pattern pattern = Pattern::kOne;
  /// Which word (of kData: byte) and bit of it, both modulo what there is; nothing: the lowest bit in the middle.
  std::optional<std::uint64_t> element = {};
  unsigned bit = 0;

  friend bool operator==(const Fault&, const Fault&) = default;
};

inline constexpr std::string_view kNoFault = "none";

/// "die", "delay 3s", "delay 500ms", "slow 10%", "busy 10%", "flip-bit", "flip-bit gradient", "flip-bit data 300:7",
/// "flip-bits sums", "stuck-bit link"; nothing if it is none of them, or `none`.
std::optional<Fault> parse_fault(std::string_view name);

/// Examples of all, and kNoFault.
std::vector<std::string_view> fault_names();

// "~" in paths of a job file, as a shell reads it. In key=~/path no shell does.

/// "~" and "~/..." begin with $HOME (or the home that the system knows), "~name" with that user's home; any
/// other text stays as it is. nullopt if there is no such user or home. Reads the environment.
std::optional<std::string> expand_home(const std::string& path);

// The parallel strategies by name, as far as a job file knows them: what they promise and which keys are
// theirs. What they do is in trainer/setup/strategies.cpp.

struct StrategyKind {
  std::string_view name;
  /// Whether it ends in the weights of one rank, bit for bit, under `determinism: world`.
  bool same_bits = true;
  bool one_thread = false;  ///< each rank computes with one
  /// Each rank has samples of its own, so a batch may be given for each and cut in different ways.
  bool shares_batches = true;
  bool any_ranks = true;           ///< a run goes on on any number of ranks, not only on some
  bool one_host = false;           ///< all ranks are on one
  bool sums_whole_batches = true;  ///< what moves the weights is the gradient of a global batch
  /// Keys of the section `parallel` that only this strategy has.
  std::vector<MemberKey> keys = {};
};

/// All that there are: a new one is a row here, and one in trainer/training/data_parallel.cpp.
const std::vector<StrategyKind>& strategy_kinds();

/// @throws InternalError  there is none of that name
const StrategyKind& find_strategy_kind(std::string_view name);

}  // namespace lockstep
