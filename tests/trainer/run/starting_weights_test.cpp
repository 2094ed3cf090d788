// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Starting from a state_dict of PyTorch: tests/golden/make_state_dict_golden.py made the files.
#include "trainer/run/starting_weights.hpp"

#include "common/aligned_buffer.hpp"
#include "common/error.hpp"
#include "common/safetensors/safetensors.hpp"
#include "kernels/cpu/cpu_ops.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace lockstep {
namespace {

constexpr int kSamples = 16, kClasses = 5;
constexpr ImageShape kImage{2, 9, 12};

std::string network_with(const std::string& conv1) {
  return "layers:\n  - conv2d: {out: 4, kernel: 3, padding: 1" + conv1 +
         "}\n  - batch_norm\n  - relu\n  - max_pool: 2\n  - conv2d: {out: 6, kernel: [2, 3], stride: 2}\n"
         "  - tanh\n  - linear: 8\n  - relu\n  - linear: {out: classes, bias: false}\n";
}

std::string golden(const std::string& name) {
  return std::string(std::getenv("LOCKSTEP_SOURCE_DIR")) + "/tests/golden/" + name;
}

AlignedBuffer<float> weights_from_pytorch(const Network& network) {
  Job job;
  job.train.initial_weights = golden("torch_state_dict.safetensors");
  AlignedBuffer<float> weights(network.parameters().weights_size());
  initialise_weights(job, network, weights.span());
  return weights;
}

template <typename T>
std::vector<T> numbers_of(const TensorView& tensor) {
  std::vector<T> numbers(tensor.bytes.size() / sizeof(T));
  std::memcpy(numbers.data(), tensor.bytes.data(), tensor.bytes.size());
  return numbers;
}

TEST(StartingWeightsTest, StateDictOfPyTorchGivesItsLogits) {
  const Network network = Network::parse(network_with(", bias: false"), "torch.yaml", kImage, kClasses);
  const auto weights = weights_from_pytorch(network);
  const auto answers = SafetensorsFile::read(golden("torch_answers.safetensors"));
  const auto images = numbers_of<float>(answers.require("images", "F32", {kSamples, 2, 9, 12}));
  const auto logits = numbers_of<double>(answers.require("logits", "F64", {kSamples, kClasses}));
  const auto ops = cpu::make_ops();
  Execution execution(network, *ops, kSamples);
  const auto features = static_cast<std::size_t>(kImage.features());
  for (std::size_t f = 0; f < features; ++f)
    for (std::size_t n = 0; n < kSamples; ++n) execution.input()[f * kSamples + n] = images[n * features + f];
  const float* computed = execution.forward_evaluation(weights.data(), kSamples);
  for (std::size_t n = 0; n < kSamples; ++n)
    for (std::size_t c = 0; c < kClasses; ++c)
      EXPECT_NEAR(computed[c * kSamples + n], logits[n * kClasses + c], 1e-5)
          << "sample " << n << " class " << c;
}

void expect_refusal(const std::string& conv1, const std::string& words) {
  const Network network = Network::parse(network_with(conv1), "torch.yaml", kImage, kClasses);
  try {
    weights_from_pytorch(network);
    FAIL() << "no error";
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

TEST(StartingWeightsTest, WhatTheFileLacksIsNamed) {
  expect_refusal(", bias: true", "conv1.bias");
  expect_refusal(", name: first", "first.weight");
}

TEST(StartingWeightsTest, WeightsThatAreNotFiniteAreNamed) {
  const Network network = Network::parse("layers:\n  - linear: classes\n", "one.yaml", {1, 1, 2}, 2);
  const std::vector<float> weight = {1, std::numeric_limits<float>::quiet_NaN(), 2, 3}, bias = {0, 0};
  const std::vector<TensorView> tensors = {{"fc1.weight", "F32", {2, 2}, std::as_bytes(std::span(weight))},
                                           {"fc1.bias", "F32", {2}, std::as_bytes(std::span(bias))}};
  Job job;
  job.train.initial_weights = ::testing::TempDir() + "/not_finite.safetensors";
  const auto bytes = write_safetensors(tensors, {});
  std::ofstream(job.train.initial_weights, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  std::vector<float> weights(network.parameters().weights_size());
  try {
    initialise_weights(job, network, weights);
    FAIL() << "no error";
  } catch (const DataError& error) {
    EXPECT_EQ(error.what(),
              job.train.initial_weights +
                  ": 1 of 4 numbers of fc1.weight is NaN or infinite; give a file of finite weights");
  }
  std::filesystem::remove(job.train.initial_weights);
}

TEST(StartingWeightsTest, NothingOfALayerIsLeftOut) {
  const std::string yaml =
      "layers:\n  - conv2d: {out: 4, kernel: 3, padding: 1, bias: false}\n  - batch_norm: {affine: false}\n"
      "  - linear: classes\n";
  const Network network = Network::parse(yaml, "torch.yaml", kImage, kClasses);
  try {
    weights_from_pytorch(network);
    FAIL() << "no error";
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("'bn1.bias', but the model's bn1 has none"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace lockstep
