// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What people are told about checkpoints: diff, inspect, verify.
#include "trainer/checkpoint/diff.hpp"

#include "common/error.hpp"
#include "tests/common/files/memory_env.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"
#include "trainer/checkpoint/inspect.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace lockstep {
namespace {

TEST(DiffTest, EqualCheckpointsDoNotDiffer) {
  CheckpointState other = make_state(100);
  other.facts.world["ranks"] = "4";
  const auto difference = diff_checkpoints(make_state(100), other);
  EXPECT_TRUE(difference.empty());
  EXPECT_EQ(to_text(difference), "no difference: the same bits\n");
}

TEST(DiffTest, FirstAndLargestDifferenceAreFound) {
  const CheckpointState a = make_state(100);
  CheckpointState b = a;
  b.weights[1] += 0.25F;                                     // fc.weight[0,1]
  b.weights[5] += 0.5F;                                      // fc.weight[1,2]
  b.optimizer[0].values[7] = -b.optimizer[0].values[7] - 1;  // momentum.fc.bias[1]
  const auto difference = diff_checkpoints(a, b);
  ASSERT_EQ(difference.tensors.size(), 2U);
  const TensorDifference& weight = difference.tensors[0];
  EXPECT_EQ(weight.tensor, "fc.weight");
  EXPECT_EQ(weight.different, 2U);
  EXPECT_EQ(weight.first_index, (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(weight.first_a, a.weights[1]);
  EXPECT_EQ(weight.largest_index, (std::vector<std::size_t>{1, 2}));
  EXPECT_NEAR(weight.largest, 0.5, 1e-6);
  EXPECT_EQ(difference.tensors[1].tensor, "momentum.fc.bias");
  EXPECT_EQ(difference.tensors[1].first_index, (std::vector<std::size_t>{1}));
  EXPECT_NE(to_text(difference).find("2 of 6"), std::string::npos) << to_text(difference);
}

TEST(DiffTest, SignOfZeroAndNotANumberAreDifferences) {
  CheckpointState a = make_state(100), b = a;
  a.weights[0] = 0.0F;
  b.weights[0] = -0.0F;
  b.weights[6] = std::numeric_limits<float>::quiet_NaN();
  const auto difference = diff_checkpoints(a, b);
  ASSERT_EQ(difference.tensors.size(), 2U);
  EXPECT_EQ(difference.tensors[0].largest, 0);
  EXPECT_EQ(difference.tensors[1].largest, std::numeric_limits<double>::infinity());
}

TEST(DiffTest, BuffersThatOnlyOneHasAreNamed) {
  CheckpointState a = make_state(100), b = a;
  a.optimizer.push_back({"exp_avg", a.weights});
  b.optimizer[0].name = "square_avg";
  EXPECT_EQ(diff_checkpoints(a, b).facts,
            (std::vector<std::string>{"momentum: only in A", "exp_avg: only in A", "square_avg: only in B"}));
}

TEST(DiffTest, FactsAndOtherModelsAreTold) {
  CheckpointState other = make_state(100, 4);
  other.facts.step = 101;
  other.facts.job["model"] = "lenet";
  const auto difference = diff_checkpoints(make_state(100), other);
  ASSERT_EQ(difference.facts.size(), 3U);
  EXPECT_EQ(difference.facts[0], "step: 100 in A, 101 in B");
  EXPECT_EQ(difference.facts[1], "model: net in A, lenet in B");
  EXPECT_NE(difference.facts[2].find("different models"), std::string::npos);
}

TEST(InspectTest, TableNamesEveryTensorAndTheHash) {
  MemoryEnv env;
  env.make_directory("run");
  const CheckpointState state = make_state(100);
  const std::string path = save_checkpoint(env, "run", state);
  const std::string text = inspect_checkpoint(path, load_checkpoint(env, path));
  for (const char* part : {"fc.weight", "fc.bias", "momentum.fc.bias", "[2, 3]", "1234", "step"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " is missing in\n" << text;
  EXPECT_NE(text.find("weights sha256 " + weights_sha256(state.weights)), std::string::npos);
}

TEST(VerifyReportTest, GoodAndDamagedAreTold) {
  MemoryEnv env;
  env.make_directory("run");
  const std::string path = save_checkpoint(env, "run", make_state(100));
  EXPECT_EQ(verify(env, path).report, path + ": good: 3 files, 11 checksums\n");
  env.file(path + "/model.safetensors").back() ^= std::byte{1};
  const std::string report = verify(env, path).report;
  EXPECT_TRUE(report.starts_with(path + "/model.safetensors: tensor 'scale': ")) << report;
}

}  // namespace
}  // namespace lockstep
