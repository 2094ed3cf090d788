// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Options of the simulation's command line.
#pragma once

#include "kernels/shapes.hpp"
#include "tests/scaling/step_plan.hpp"
#include "tests/support/prelude.hpp"

#include <CLI/CLI.hpp>

namespace lockstep {

struct SimulationOptions {
  std::string model = "net";
  std::string input = "1x28x28";
  int classes = 10;
  int grain = 32;
  int grains = 1;  ///< per rank
  std::int64_t samples = 60'000;
  double spread = 0;  ///< standard deviation of the ranks' computing, as a share of it
  std::vector<int> ranks{8, 64, 1024};
  std::vector<std::string> buckets{"auto", "1", "4"};
  std::vector<std::string> reduce{"trainer", "leaders"};
  Cluster cluster;          ///< but for the ranks
  double gflops = 0;        ///< a rank's, while it computes; 0: 75 % of this core's peak
  std::string step_file;    ///< output of bench step; empty: none
  std::string reduce_file;  ///< output of bench allreduce; empty: none
  bool model_only = false;  ///< simulates nothing
};

/// Microseconds and Gbit/s on the command line are seconds and bytes a second afterwards.
void add_options(CLI::App& app, SimulationOptions& options);

/// @throws UsageError  of what CLI11 cannot see
ImageShape input_shape(const SimulationOptions& options);
/// 0 for auto. @throws UsageError
std::size_t bucket_count(const std::string& text);
/// The cluster with so many ranks. @throws UsageError  they do not fill nodes and switches evenly
Cluster cluster_of(const SimulationOptions& options, int ranks);

}  // namespace lockstep
