// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Content of a checkpoint: a position in a deterministic run, and the numbers at that position.
#pragma once

#include "trainer/checkpoint/run_numbers.hpp"
#include "trainer/checkpoint/tensors.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

class Network;

/// The units of the gradients' exact sums (comm/reduce/gradient_units.hpp), which decide the bits of what follows.
struct CheckpointUnits {
  std::vector<std::int16_t> exponents;  ///< one a tensor, in arena order
  std::int64_t changed_at = 0;          ///< the step at which one of them last changed
  friend bool operator==(const CheckpointUnits&, const CheckpointUnits&) = default;
};

/// Position in a file of the run. Of its trail (trail.hpp): records, and what the last of them ends with. Of
/// metrics.jsonl: lines, and the SHA-256 of their bytes.
struct CheckpointPosition {
  std::int64_t count = 0;
  std::string sha256;  ///< 64 hexadecimal digits
  friend bool operator==(const CheckpointPosition&, const CheckpointPosition&) = default;
};

/// Everything but the tensors. Valid for any number of ranks.
struct CheckpointFacts : RunState {
  std::uint64_t seed = 0;
  double epoch_loss_sum = 0;  ///< epoch_loss() as a number, for people
  CheckpointUnits gradient_units;
  std::optional<CheckpointPosition> trail;    ///< nothing where the run leaves none
  std::optional<CheckpointPosition> metrics;  ///< nothing where no run wrote it

  std::map<std::string, std::string> job;    ///< the job's keys that determine the weights, with their values
  std::map<std::string, std::string> model;  ///< facts to build the network from: YAML, input, classes
  std::map<std::string, std::string> data;   ///< the set that the run is trained on
  std::map<std::string, std::string> world;  ///< ranks, device, backend, ...: for people, never compared
  /// Name of the average these weights are ("ema", "swa"); empty for trained weights. Not stored.
  std::string average;
  std::string bucket_plan;  ///< for people
  /// Parameters in each bucket of that plan, in the order in which they leave; empty: not known.
  std::vector<std::size_t> bucket_sizes;
  std::vector<CheckpointParameter> parameters;
  /// Further tensors of the model, such as running statistics; the optimiser does not change them.
  std::vector<CheckpointParameter> kept;

  /// All tensors of the model file: parameters, then the kept ones.
  std::vector<CheckpointParameter> tensors() const {
    std::vector<CheckpointParameter> all = parameters;
    all.insert(all.end(), kept.begin(), kept.end());
    return all;
  }
  friend bool operator==(const CheckpointFacts&, const CheckpointFacts&) = default;
};

/// CheckpointFacts::model, as far as a network tells it. Its mean and std are as channels_text() has them: a number
/// for all channels, or a list of one for each.
std::map<std::string, std::string> describe_network(const Network& network);
std::string channels_text(const std::vector<double>& numbers);

/// The key of CheckpointFacts::data with the number of test samples that were taken; absent: the whole half.
inline constexpr const char* kTestSubset = "test_subset";
/// How many test samples a checkpoint's test_accuracy is of; -1: it does not say.
std::int64_t evaluated_test_samples(const CheckpointFacts& facts);

/// An accuracy by which checkpoints of a run are compared. Those of other test sets (data.test_samples) are not.
struct JudgedAccuracy {
  std::optional<double> value;     ///< nothing: it was not evaluated
  std::int64_t test_samples = -1;  ///< that it is of; -1: of held-out samples, or not known
};
JudgedAccuracy judged_accuracy(const CheckpointFacts& facts);

/// A complete checkpoint. Weights are in arena order, too, kept tensors after the parameters.
struct CheckpointState {
  CheckpointFacts facts;
  std::vector<float> weights;
  std::vector<OptimizerBuffer> optimizer = {};

  /// All tensors; those of the optimiser are called "momentum.NAME" and the like. Bytes are borrowed.
  std::vector<TensorView> tensors() const {
    std::vector<TensorView> all = tensors_of(facts.tensors(), weights, "");
    for (const OptimizerBuffer& buffer : optimizer)
      std::ranges::move(tensors_of(facts.parameters, buffer), std::back_inserter(all));
    return all;
  }
};

}  // namespace lockstep
