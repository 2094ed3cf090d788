// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Options for the training of a network, except its data. They come from a job file, whose sections begin with these
/// (trainer/config/job.hpp), or from a program. Names are those of the job file's keys.
#pragma once

#include "comm/reduce/gradient_units.hpp"
#include "common/spelling.hpp"
#include "data/sampler.hpp"
#include "kernels/shapes.hpp"
#include "models/precision.hpp"
#include "trainer/training/optimizers/sections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

/// The samples of a step.
struct BatchOptions {
  static constexpr std::int64_t kLargestBatch = 1'000'000'000;
  std::int64_t global_batch = 128;  ///< samples of a step, all ranks together
  /// Samples of a step on each rank: global_batch becomes so many times the ranks (for_ranks()); 0: not used.
  std::int64_t per_rank_batch = 0;
  std::int64_t micro_batch = 0;  ///< samples that a GPU computes at a time; 0 (auto): all that a rank has
  bool shuffle = true;
  std::int64_t shuffle_window = 0;  ///< an epoch is a windowed_order() of so many; 0: of all
  bool balance_classes = false;     ///< an epoch is a balanced_order()
};

/// Weights of the classes' training samples.
struct ClassWeights {
  bool balanced = false;  ///< by the training set's counts: samples / (classes * samples of the class)
  std::vector<double> numbers = {};  ///< one for each class; empty, unless balanced: all count the same

  bool is_given() const { return balanced || !numbers.empty(); }
  friend bool operator==(const ClassWeights&, const ClassWeights&) = default;
};

struct LossOptions {
  LossKind loss = LossKind::kCrossEntropy;
  double label_smoothing = 0;       ///< the share of a target that goes to all classes alike
  ClassWeights class_weights = {};  ///< for the cross-entropy
  const HostLoss* own = nullptr;    ///< on CPUs, in place of all of this; borrowed. No job file has one
};

/// The mean of the weights at the ends of epochs.
struct SwaSection {
  std::int64_t from_epoch = 0;  ///< the first epoch whose end counts, from 1; 0: no such mean
};

/// How the weights move.
struct UpdateOptions {
  static constexpr std::int64_t kMostEpochs = 1'000'000'000;
  std::int64_t epochs = 10;
  double clip_norm = 0;   ///< the largest norm of the mean gradient, all tensors together; 0: any
  double clip_value = 0;  ///< the largest magnitude of an element of it; 0: any
  std::vector<GroupSection> groups = {};  ///< the first one whose pattern a tensor's name matches counts
  std::vector<std::string> freeze = {};   ///< patterns of the tensors that stay as they are
  double ema = 0;  ///< an exponential moving average of the weights: how much stays at a step; 0: none
  SwaSection swa = {};
  OptimizerSection optimizer = {};
  ScheduleSection schedule = {};
};

using BatchSplit = DistributedSampler::Split;

/// How the ranks compute and sum a step.
struct StepOptions {
  static constexpr int kMostThreads = 1024, kLargestGrain = 4096;
  int threads = 1;  ///< per rank; they share the rank's grains
  Determinism determinism = Determinism::kWorld;
  int grain = 64;
  BatchSplit split = BatchSplit::kEven;  ///< divides a batch among the ranks
  static constexpr std::int64_t kAutoReplays = -1;
  /// Ranks compute each other's shares again; 0: never. trainer/verify/share_replay.hpp says what auto is.
  std::int64_t replay_every_steps = 0;
};

struct TrainingOptions {
  BatchOptions batch;
  LossOptions loss;
  UpdateOptions update;
  StepOptions step;
  std::uint64_t seed = 1234;
  bool recompute = false;     ///< backward makes activations again in place of keeping all of them
  bool mixes = false;         ///< samples are mixed with others, and their labels
  bool fingerprints = false;  ///< each step's are kept, for a trail
};

/// Numbers that an option takes, in a job file as from a program.
struct RealRange {
  double low, high;
  bool open_low = false, open_high = false;  ///< excludes the bound itself

  /// False of a number within the range that as fp32 would be 0 or an excluded bound.
  constexpr bool holds(double number) const {
    if (!(number >= low && number <= high) || (open_low && number == low)) return false;
    const auto used = static_cast<float>(number);
    return (used != 0 || number == 0) && !(open_high && static_cast<double>(used) >= high);
  }
  /// "a number above 0, at most 1e+06"
  std::string describe() const {
    return fmt::format("a number {} {:g}, {} {:g}", open_low ? "above" : "from", low,
                       open_high ? "below" : "at most", high);
  }
};
inline constexpr RealRange kRates{0, 1e6, true};        ///< rates above 0, and what multiplies them
inline constexpr RealRange kDecays{0, 1e6};             ///< weight decay, and rates that may be 0
inline constexpr RealRange kShares{0, 1, false, true};  ///< momentum, betas, smoothing
inline constexpr RealRange kEpsilons{0, 1, true};
inline constexpr RealRange kNorms{0, 1e9};  ///< that clip; 0: any

template <>
inline constexpr Spellings<Determinism> kSpellings<Determinism>{
    {{"world", Determinism::kWorld}, {"off", Determinism::kOff}}};
template <>
inline constexpr Spellings<BatchSplit> kSpellings<BatchSplit>{
    {{"even", BatchSplit::kEven}, {"chunk", BatchSplit::kChunk}}};
template <>
inline constexpr Spellings<LossKind, 3> kSpellings<LossKind>{
    {{"cross_entropy", LossKind::kCrossEntropy},
     {"mse", LossKind::kMeanSquares},
     {"binary_cross_entropy", LossKind::kBinaryCrossEntropy}}};
template <>
inline constexpr Spellings<Precision> kSpellings<Precision>{
    {{"fp32", Precision::kFp32}, {"int16", Precision::kInt16}}};

/// Samples that a GPU computes at a time, if a rank has so many. They are the whole grains within the micro-batch, at
/// least one; all of them where there is no bound (0). A grain is summed in one order, so no bit depends on it.
inline std::int64_t samples_at_a_time(std::int64_t micro_batch, std::int64_t grain, std::int64_t samples) {
  return micro_batch == 0 ? samples : std::min(samples, std::max(grain, micro_batch / grain * grain));
}

}  // namespace lockstep
