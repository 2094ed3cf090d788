// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Small layouts, jobs for them, and what PyTorch makes of them in double (tests/golden/make_golden.py).
#pragma once
#include "common/safetensors.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/test_settings.hpp"
#include "trainer/setup/job_setup.hpp"
#include "trainer/training/weight_update.hpp"

namespace lockstep::weight_update_test {

inline constexpr std::size_t kSteps = 100;
inline constexpr std::int64_t kStepsPerEpoch = 5, kEpochs = 20;

inline ParameterLayout layout() {
  return {.parameters = {{.name = "weight", .shape = {5, 7}, .offset = 0, .size = 35},
                         {.name = "bias", .shape = {5}, .offset = 35, .size = 5}},
          .size = 40,
          .kept = {}};
}

inline ParameterLayout layout_of_two_layers() {
  return {.parameters = {{.name = "conv.weight", .shape = {4, 3, 2, 2}, .offset = 0, .size = 48},
                         {.name = "conv.bias", .shape = {4}, .offset = 48, .size = 4},
                         {.name = "fc.weight", .shape = {5, 7}, .offset = 52, .size = 35},
                         {.name = "fc.bias", .shape = {5}, .offset = 87, .size = 5}},
          .size = 92,
          .kept = {}};
}

/// Result of PyTorch's training: a file of tests/golden.
struct Golden {
  explicit Golden(const std::string& name, ParameterLayout trained)
      : file(test::read_safetensors(test::source_path(name))), layout(std::move(trained)) {}

  template <typename T>
  std::vector<T> values_of(const std::string& name, const char* dtype,
                           const std::vector<std::size_t>& shape) const {
    return test::values_of<T>(file, name, dtype, shape);
  }
  std::vector<float> initial() const { return values_of<float>("initial", "F32", {layout.size}); }
  /// One step's behind the other.
  std::vector<float> gradients() const { return values_of<float>("gradients", "F32", {kSteps, layout.size}); }
  std::vector<double> weights(const std::string& name) const {
    return values_of<double>(name, "F64", {layout.size});
  }

  SafetensorsFile file;
  ParameterLayout layout;
};

inline const Golden& golden_optimizers() {
  static const Golden golden("tests/golden/optimizers.safetensors", layout());
  return golden;
}

/// @param train  the keys of the section train
inline Job job_with(const std::string& train) {
  return parse_job("{model: net, train: {epochs: " + std::to_string(kEpochs) + ", " + train + "}}",
                   "job.yaml");
}

}  // namespace lockstep::weight_update_test
