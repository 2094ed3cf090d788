// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Checkpoints: of a Trainer, and of programs with weights of their own.
#include "common/env.hpp"
#include "common/error.hpp"
#include "common/printable.hpp"
#include "common/safetensors.hpp"
#include "common/text_layout.hpp"
#include "kernels/numerics/sums.hpp"
#include "trainer/checkpoint/checkpoint.hpp"
#include "trainer/library/saved_state.hpp"
#include "trainer/training/training_loss.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <lockstep/checkpoint.hpp>

#include <algorithm>
#include <set>
#include <string_view>
#include <system_error>

namespace lockstep::v0 {
namespace {

std::map<std::string, std::string> describe_model(const TrainingSetup& setup, const Dataset::Inside& train) {
  auto model = describe_network(setup.network);
  if (train.name.empty()) return model;
  model["set"] = train.name;
  model["mean"] = channels_text(train.normalisation.mean);
  model["std"] = channels_text(train.normalisation.std);
  return model;
}

/// Tensors of the same names and shapes may be of other layers. One of weights alone has no network.
void require_same_network(const CheckpointFacts& facts, const lockstep::Network& network,
                          const std::string& checkpoint) {
  const ParameterLayout& layout = network.parameters();
  if (facts.parameters != described(layout.parameters) || facts.kept != described(layout.kept))
    throw ConfigError(
        fmt::format("{}: its tensors are not those of network {}; load it into the network that it "
                    "was saved of",
                    checkpoint, network.name()));
  if (facts.model.contains("precision"))
    throw ConfigError(fmt::format(
        "{}: was trained in 16-bit integers, and a Trainer computes in fp32; go on with lockstep train",
        checkpoint));
  for (const auto& [key, value] : describe_network(network)) {
    const auto found = facts.model.find(key);
    if (found != facts.model.end() && found->second != value)
      throw ConfigError(
          fmt::format("{}: is of another network than {}, by its {}; load it into the network that it "
                      "was saved of",
                      checkpoint, network.name(), key));
  }
}

}  // namespace

CheckpointState state_to_save(const RunState& at, const TrainingSetup& setup, const Dataset::Inside& train,
                              int ranks, const TrainedState& trained) {
  const TrainingOptions& options = setup.options;
  CheckpointState state{.facts = {}, .weights = {trained.weights.begin(), trained.weights.end()}};
  CheckpointFacts& facts = state.facts;
  static_cast<RunState&>(facts) = at;
  facts.seed = options.seed;
  facts.epoch_loss_sum = at.epoch_loss();
  facts.gradient_units = {{trained.units.exponents().begin(), trained.units.exponents().end()},
                          trained.units.changed_at()};
  facts.arithmetic.version = arithmetic_version(options.loss, setup.network.classes());
  facts.unprinted.reset();
  facts.unlogged = {};
  facts.patience.reset();
  facts.job = {{"data.global_batch", std::to_string(options.batch.global_batch)},
               {"parallel.grain", std::to_string(options.step.grain)},
               {"train.loss", std::string(spelt(options.loss.loss))}};
  facts.model = describe_model(setup, train);
  facts.world = {{"ranks", std::to_string(ranks)}, {"library", "lockstep " LOCKSTEP_VERSION}};
  facts.bucket_plan = setup.plan.describe();
  facts.parameters = described(setup.network.parameters().parameters);
  facts.kept = described(setup.network.parameters().kept);
  for (const OptimizerBufferView& buffer : trained.optimizer)
    state.optimizer.push_back({buffer.name, {buffer.values.begin(), buffer.values.end()}});
  return state;
}

RunState restore_state(const std::string& checkpoint, const TrainingSetup& setup,
                       std::int64_t steps_per_epoch, const TrainedState& trained) {
  const CheckpointState state = load_checkpoint(Env::posix(), checkpoint);
  const CheckpointFacts& facts = state.facts;
  require_same_network(facts, setup.network, checkpoint);
  const auto name_of = [](const auto& buffer) { return buffer.name; };
  if (!std::ranges::equal(state.optimizer, trained.optimizer, {}, name_of, name_of))
    throw ConfigError(fmt::format(
        "{}: was saved with another optimizer, which remembers other things; use that", checkpoint));
  const bool is_possible = facts.seed == setup.options.seed && facts.epoch <= UpdateOptions::kMostEpochs &&
                           facts.step_in_epoch >= 0 && facts.step_in_epoch <= steps_per_epoch &&
                           facts.step == facts.epoch * steps_per_epoch + facts.step_in_epoch &&
                           facts.epoch_samples <= setup.data->train.size() &&
                           facts.epoch_correct <= facts.epoch_samples;
  if (!is_possible)
    throw ConfigError(
        fmt::format("{}: seed {}, epoch {}, step {} cannot be of this training, whose seed is {} and "
                    "whose epochs have {}; give it the options and the data that it was saved with",
                    checkpoint, facts.seed, facts.epoch, facts.step, setup.options.seed,
                    counted(steps_per_epoch, "step")));
  std::ranges::copy(state.weights, trained.weights.begin());
  for (std::size_t i = 0; i < trained.optimizer.size(); ++i)
    std::ranges::copy(state.optimizer[i].values, trained.optimizer[i].values.begin());
  trained.units.restore(facts.gradient_units.exponents, facts.gradient_units.changed_at);
  RunState at = facts;
  if (at.arithmetic.version != arithmetic_version(setup.options.loss, setup.network.classes()))
    at.arithmetic.since = facts.step;
  at.unprinted.emplace();
  at.unlogged = {};
  return at;
}

std::string save_below(const std::string& folder, const CheckpointState& state) {
  if (const std::string wrong = unusable_weights(state.facts.tensors(), state.weights); !wrong.empty())
    throw InternalError(
        fmt::format("{}: nothing is saved, for {}; go on from an earlier checkpoint", folder, wrong));
  if (const std::error_code trouble = make_directory_and_parents(Env::posix(), folder))
    throw IoError(fmt::format("{}: cannot be made: {}", folder, trouble.message()));
  return lockstep::save_checkpoint(Env::posix(), folder, state);
}

// Programs with weights of their own.

namespace {

/// The key of CheckpointFacts::world with the steps of the reducer, where they are others than the checkpoint's.
constexpr const char* kReducerSteps = "reducer_steps";

/// Refuses what load_checkpoint() would refuse, beside unusable weights.
void require_readable(const Checkpoint& checkpoint) {
  const auto require = [](bool holds, const std::string& cause) {
    if (!holds) throw ConfigError("a checkpoint: " + cause);
  };
  std::set<std::string_view> names{"__metadata__"};  // the file's own
  for (const CheckpointTensor& tensor : checkpoint.tensors) {
    require(names.insert(tensor.name).second,
            fmt::format("the name {} is taken; give each tensor its own", quoted_text(tensor.name)));
    require(tensor.shape.size() <= kMaxSafetensorsRank && safetensors_tensor_bytes("F32", tensor.shape),
            fmt::format("tensor {} has a shape that no file can have", quoted_text(tensor.name)));
  }
  std::vector<std::string> buffers;
  for (const auto& [name, values] : checkpoint.optimizer) buffers.push_back(name);
  require(are_buffers(buffers),
          fmt::format("buffers of the optimizer are called {}; expected at most 16 names of small letters, "
                      "digits and '_'",
                      fmt::join(buffers, ", ")));
  require(std::ranges::all_of(checkpoint.units.exponents, is_exact_exponent) &&
              checkpoint.units.changed_at >= 0 && checkpoint.units.steps >= 0,
          "its units are none; give those of GradientReducer::units()");
}

}  // namespace

std::string save_checkpoint(const std::string& folder, const Checkpoint& checkpoint) {
  require_readable(checkpoint);
  CheckpointState state{.facts = {}, .weights = checkpoint.weights};
  CheckpointFacts& facts = state.facts;
  facts.step = checkpoint.step;
  facts.seed = checkpoint.seed;
  facts.unprinted.reset();
  facts.patience.reset();
  facts.world = {{"library", "lockstep " LOCKSTEP_VERSION}};
  if (checkpoint.units.steps != checkpoint.step)
    facts.world[kReducerSteps] = std::to_string(checkpoint.units.steps);
  for (const CheckpointTensor& tensor : checkpoint.tensors)
    facts.parameters.push_back({tensor.name, tensor.shape});
  facts.gradient_units = {checkpoint.units.exponents, checkpoint.units.changed_at};
  const std::size_t numbers = arena_size(facts.parameters);
  bool fits = checkpoint.weights.size() == numbers &&
              checkpoint.units.exponents.size() == checkpoint.tensors.size() && checkpoint.step >= 0;
  for (const auto& [name, values] : checkpoint.optimizer) {
    fits = fits && values.size() == numbers;
    state.optimizer.push_back({name, values});
  }
  if (!fits)
    throw ShapeError(
        fmt::format("a checkpoint of {} has {} weights and {}; its tensors have {} numbers, and weights "
                    "and each buffer of the optimizer need as many",
                    counted(checkpoint.tensors.size(), "tensor"), checkpoint.weights.size(),
                    counted(checkpoint.units.exponents.size(), "unit"), numbers));
  return save_below(folder, state);
}

Checkpoint load_checkpoint(const std::string& directory) {
  CheckpointState state = lockstep::load_checkpoint(Env::posix(), directory);
  const CheckpointFacts& facts = state.facts;
  const auto steps = facts.world.find(kReducerSteps);
  const auto of_reducer = steps == facts.world.end() ? facts.step : parse_whole<std::int64_t>(steps->second);
  if (!of_reducer || *of_reducer < 0)
    throw DataError(fmt::format("{}: world.{} is not a number of steps", directory, kReducerSteps));
  Checkpoint checkpoint{
      .step = facts.step,
      .seed = facts.seed,
      .units = {facts.gradient_units.exponents, facts.gradient_units.changed_at, *of_reducer}};
  for (const CheckpointParameter& tensor : facts.tensors())
    checkpoint.tensors.push_back({tensor.name, tensor.shape});
  checkpoint.weights = std::move(state.weights);
  for (OptimizerBuffer& buffer : state.optimizer)
    checkpoint.optimizer[buffer.name] = std::move(buffer.values);
  return checkpoint;
}

}  // namespace lockstep::v0
