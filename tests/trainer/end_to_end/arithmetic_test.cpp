// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The weights that short runs end in are known, and the same on a CPU and on the GPU's kernels (docs/arithmetic.md). Who
/// changes the order of a sum or the place of a cut on purpose changes the hashes here, kArithmeticVersion, and writes why
/// in docs/decisions.md.
#include "tests/trainer/end_to_end/program.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::testing {
namespace {

struct Known {
  const char* model;
  int samples;  ///< few where the emulator takes long
  const char* sha256;
};

// Three steps, the last one of half a batch; of LeNet two.
const Known kKnown[] = {
    {"net", 40, "82917a223be4420ab916550cc8f3b771e19889c943f5662657d91479dae15b17"},
    {"lenet", 20, "ee9bb7b51cf4a6b8d693144b42552082fe3746613aa9fabccf705865cab87b0f"},
    {"mlp", 40, "d1390fe4f289c140bdde97cc26f0d0358176eb254c132169be8b8b5cae35905a"},
    {"linear", 40, "c10bfc9e622571a2a886b4479b6bee706d43d9107a45b6adf5b7a6c207dafaa9"},
};

std::string job_of(const TemporaryDirectory& directory, const Known& known) {
  const auto path = directory.path(std::string(known.model) + ".yaml");
  write_text(path, std::string("model: ") + known.model +
                       "\ndata: {set: synthetic, test_samples: 9, global_batch: 16, train_samples: " +
                       std::to_string(known.samples) +
                       "}\n"
                       "train: {epochs: 1, seed: 7, optimizer: {kind: sgd, lr: 0.05, momentum: 0.5}}\n"
                       "parallel: {grain: 4}\n"
                       "run: {dir: unused, checkpoint_every_steps: 0, log_every_steps: 1}\n");
  return path;
}

/// The last line and the metrics, as text.
std::string train(const TemporaryDirectory& directory, const Known& known, int ranks,
                  const std::string& overrides) {
  static int runs = 0;
  const auto run_dir = directory.path("run-" + std::to_string(++runs));
  const auto arguments = "train " + job_of(directory, known) + " run.dir=" + run_dir + " " + overrides;
  const Outcome outcome = ranks == 1 ? lockstep(arguments) : lockstep_on_ranks(ranks, arguments);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.everything();
  EXPECT_EQ(outcome.last_line(), std::string("weights sha256 ") + known.sha256)
      << known.model << " with " << ranks << " ranks, " << overrides << "\n"
      << outcome.everything();
  std::string metrics;
  for (const auto& line : comparable_metrics(run_dir)) metrics += line.dump() + "\n";
  return metrics;
}

TEST(ArithmeticTest, EndsInTheKnownWeightsOnCpus) {
  const TemporaryDirectory directory;
  for (const Known& known : kKnown) {
    const std::string alone = train(directory, known, 1, "parallel.device=cpu");
    EXPECT_EQ(train(directory, known, 2, "parallel.device=cpu parallel.threads=2"), alone) << known.model;
    EXPECT_EQ(train(directory, known, 3, "parallel.device=cpu"), alone) << known.model;
  }
}

TEST(ArithmeticTest, EndsInTheKnownWeightsOnTheEmulatedGpu) {
  const TemporaryDirectory directory;
  for (const Known& known : kKnown) {
    const std::string cpu = train(directory, known, 1, "parallel.device=cpu");
    EXPECT_EQ(train(directory, known, 2, "parallel.device=emulated"), cpu) << known.model;
    if (known.samples < 40) continue;
    EXPECT_EQ(train(directory, known, 1, "parallel.device=emulated parallel.graph=off"), cpu) << known.model;
    EXPECT_EQ(train(directory, known, 3, "parallel.device=emulated"), cpu) << known.model;
  }
}

/// Batch normalisation, branches, curves and dropout.
TEST(ArithmeticTest, EveryLayerGivesTheSameWeightsOnBothDevices) {
  const TemporaryDirectory directory;
  const auto path = directory.path("all.yaml");
  write_text(directory.path("model.yaml"),
             "layers:\n"
             "  - conv2d: {out: 6, kernel: 3, stride: 2, padding: 1}\n  - batch_norm\n  - gelu\n"
             "  - conv2d: {name: inner, out: 6, kernel: 3, padding: 1}\n  - tanh\n  - add: gelu1\n"
             "  - max_pool: {kernel: 3, stride: 2, padding: 1}\n  - sigmoid\n  - dropout2d: 0.3\n"
             "  - avg_pool: {kernel: 3, stride: 2}\n  - conv2d: {out: 7, kernel: [1, 2]}\n  - flatten\n"
             "  - linear: 33\n  - relu\n  - dropout: 0.4\n  - dropout: 0.1\n  - linear: classes\n");
  write_text(
      path, "model: " + directory.path("model.yaml") +
                "\ndata: {set: synthetic, train_samples: 70, test_samples: 9, global_batch: 40}\n"
                "train: {epochs: 1, seed: 3, optimizer: {kind: adam, lr: 0.01}}\n"
                "parallel: {grain: 20}\nrun: {dir: unused, checkpoint_every_steps: 0, log_every_steps: 1}\n");
  const Outcome cpu = lockstep("train " + path + " parallel.device=cpu run.dir=" + directory.path("cpu"));
  const Outcome emulated =
      lockstep("train " + path + " parallel.device=emulated run.dir=" + directory.path("emulated"));
  EXPECT_EQ(cpu.last_line().substr(0, 15), "weights sha256 ") << cpu.everything();
  EXPECT_EQ(emulated.last_line(), cpu.last_line()) << emulated.everything();
  EXPECT_EQ(comparable_metrics(directory.path("emulated")), comparable_metrics(directory.path("cpu")));
}

}  // namespace
}  // namespace lockstep::testing
