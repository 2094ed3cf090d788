// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A few dozen random networks, on the CPU and on the emulated GPU. The campaign beside this file tries
/// thousands: tests/models/random_networks/run.
#include "tests/models/random_networks/trial.hpp"

#include <gtest/gtest.h>

namespace lockstep::test {
namespace {

constexpr std::uint64_t kNetworks = 48;

class RandomNetworksTest : public testing::TestWithParam<const char*> {};

TEST_P(RandomNetworksTest, TrainAsDoublePrecisionDoes) {
  for (std::uint64_t seed = 1; seed <= kNetworks; ++seed) {
    const RandomCase trial = make_random_case(seed);
    const Verdict verdict = try_case(trial, GetParam());
    EXPECT_EQ(verdict.mismatch, "") << trial.describe() << "again: tests/models/random_networks/run --seed "
                                    << seed << " --count 1 --device " << GetParam();
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, RandomNetworksTest, testing::Values("cpu", "emulated"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace lockstep::test
