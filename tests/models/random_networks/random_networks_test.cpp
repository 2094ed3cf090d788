// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A few dozen random networks, on the CPU and on the emulated GPU. The campaign beside this file tries
/// thousands: tests/models/random_networks/run.
#include "tests/models/random_networks/random_case.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/test_settings.hpp"

namespace lockstep::test {
namespace {

constexpr std::uint64_t kNetworks = effort(48, 10);
/// Its transposed convolutions have fewer terms than their biases, and come behind layers that have more.
constexpr std::uint64_t kOfManyTerms = 153;

TEST(RandomNetworksTest, TrainAsDoublePrecisionDoesAndToTheSameBitsOnBothDevices) {
  std::vector<std::uint64_t> seeds(kNetworks);
  std::iota(seeds.begin(), seeds.end(), 1);
  seeds.push_back(kOfManyTerms);
  for (const std::uint64_t seed : seeds) {
    const RandomCase trial = make_random_case(seed);
    SCOPED_TRACE(trial.describe() + "again: tests/models/random_networks/run --count 1 --seed " +
                 std::to_string(seed));
    const Comparison cpu = try_case(trial, "cpu"), emulated = try_case(trial, "emulated");
    EXPECT_EQ(cpu.mismatch, "") << "cpu";
    EXPECT_EQ(emulated.mismatch, "") << "emulated";
    EXPECT_EQ(difference(trial, cpu, emulated), "");
  }
}

}  // namespace
}  // namespace lockstep::test
