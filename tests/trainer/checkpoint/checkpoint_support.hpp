// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Small checkpoints and a directory of one's own, for the tests of this folder.
#pragma once

#include "kernels/numerics/random.hpp"
#include "tests/common/memory_env.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/temporary_directory.hpp"
#include "trainer/checkpoint/checkpoint.hpp"

namespace lockstep {

inline const std::string kRun = "run";

/// A checkpoint of a tiny model whose every number depends on the step.
inline CheckpointState make_state(std::int64_t step, std::size_t width = 3) {
  CheckpointState state;
  state.facts.step = step;
  state.facts.epoch = step / 100;
  state.facts.step_in_epoch = step % 100;
  state.facts.seed = 1234;
  state.facts.epoch_samples = step * 64;
  state.facts.epoch_loss_sum = static_cast<double>(step) * 1000003 / 7;
  state.facts.epoch_loss_units = {{step % 1000, 4294967295, 2, 0, 0, -1}};
  state.facts.unprinted = {3, 192, 0, {{7, 0, 4294967295, 0, 0, -1}}};
  state.facts.unlogged = {2, 128, 100, {}};
  state.facts.patience.reset();
  state.facts.gradient_units = {{-40, -149, 77}, step / 2};
  state.facts.model = {{"yaml", "layers:\n  - relu\n"}, {"classes", "10"}};
  state.facts.job = {{"model", "net"}, {"train.seed", "1234"}};
  state.facts.world = {{"ranks", "2"}};
  state.facts.bucket_plan = "1 bucket";
  state.facts.bucket_sizes = {9};
  state.facts.metrics = {7, std::string(64, 'a')};
  state.facts.parameters = {{"fc.weight", {2, width}}, {"fc.bias", {2}}, {"scale", {}}};
  OptimizerBuffer momentum{"momentum", {}};
  for (std::uint32_t i = 0; i < arena_size(state.facts.parameters); ++i) {
    const Philox4 random = philox(static_cast<std::uint64_t>(step), {{i, 0, 0, 0}});
    state.weights.push_back(uniform01(random.value[0]) - 0.5F);
    momentum.values.push_back(uniform01(random.value[1]));
  }
  state.optimizer.push_back(std::move(momentum));
  return state;
}

inline bool same(const CheckpointState& a, const CheckpointState& b) {
  return a.facts == b.facts && a.weights == b.weights && a.optimizer == b.optimizer;
}

/// By a process that knows nothing of the checkpoints.
inline std::size_t prune_checkpoints(Env& env, const std::string& run_dir, const KeepPolicy& policy) {
  KnownCheckpoints nothing;
  return prune_checkpoints(env, run_dir, policy, nothing);
}

/// A disk in memory with the directory of a run.
class RunEnv final : public MemoryEnv {
 public:
  RunEnv() { make_directory("run"); }
};

/// A whole file.
inline std::string text_of(const std::string& path, Env& env = Env::posix()) {
  return std::string(as_text(env.read(path)));
}

using testing::TemporaryDirectory;

}  // namespace lockstep
