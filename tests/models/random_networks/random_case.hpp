// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A network that nobody thought of, with the data, grains and optimiser to train it: everything from one
/// seed.
#pragma once

#include "data/dataset.hpp"
#include "trainer/config/job.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace lockstep::test {

/// All kinds of layers in any order, 1 to 8 of them and the last one; images from 1x1 to 15x15 with 1 to 5
/// channels, as bytes or as fp32 features; 2 to 12 classes. An epoch is two steps: a full batch of 1 to 100
/// samples, and a tail.
struct RandomCase {
  std::uint64_t seed = 0;
  std::string yaml;
  std::shared_ptr<const TrainTestData> data;
  Job job;        ///< of one rank; device and ranks are the runner's choice
  int ranks = 1;  ///< at most as many as the full batch has grains

  /// The network's YAML and, as comments, the rest: for messages.
  std::string describe() const;
};

/// The same case for the same seed, on every machine.
RandomCase make_random_case(std::uint64_t seed);

}  // namespace lockstep::test
