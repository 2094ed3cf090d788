// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Contract of every backend of Communicator: one body of checks, run by each backend's test.
#pragma once

#include "comm/communicator.hpp"
#include "comm/reduce/gradient_reducer.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::testing {

/// `check` is called on all ranks of a group at the same time; its expectations hold on each of them.
struct ConformanceCase {
  const char* name;
  void (*check)(Communicator&);
  friend std::ostream& operator<<(std::ostream& out, const ConformanceCase& c) { return out << c.name; }
};

const std::vector<ConformanceCase>& conformance_cases();
/// Cases for the functions of comm/collectives.hpp.
const std::vector<ConformanceCase>& collective_cases();

// A made-up training job for the reducer: grains with known gradients, spread over ranks and threads.

struct ReducerJob {
  std::size_t parameters = 10007;
  int grains = 7;
  std::size_t buckets = 2;
  std::size_t pieces = 6;  ///< ranges in which a grain's gradient is added, not those of the buckets
  Determinism determinism = Determinism::kWorld;
  int threads = 1;  ///< per rank
  int steps = 2;    ///< with the same reducer; the last one counts
  int stopping_rank = -1;
  int spoilt_grain = -1;  ///< one of its gradients is `spoilt_value`, if not 0
  float spoilt_value = 0;
  double spoilt_loss = 0;  ///< its loss is this, if not 0
  bool sums_before_gradients = true;
  std::vector<std::int16_t> exponents = {};  ///< the units of kTensors tensors; empty: the first ones
  int gradient_exponent = 0;                 ///< all gradients are 2^this times as large
  /// Rank that computes a grain.
  std::function<int(int grain, int ranks)> owner = [](int grain, int ranks) { return grain % ranks; };
};

/// Tensors of a job's arena, of sizes that fit neither buckets nor pieces.
inline constexpr std::size_t kTensors = 4;

/// Results of a step on a rank.
struct StepResult {
  std::vector<float> gradient;
  std::int64_t samples = 0, correct = 0;
  double loss = 0;
  bool stop_requested = false;
  std::int64_t refused = 0;
  std::vector<TensorRefusals> refusals = std::vector<TensorRefusals>(kTensors);
  friend bool operator==(const StepResult&, const StepResult&) = default;
  friend std::ostream& operator<<(std::ostream& out, const StepResult& r);
};

float gradient_of(int grain, std::size_t parameter);
BucketPlan even_plan(std::size_t parameters, std::size_t buckets);

/// One rank's part of the job, with polls between the pieces.
StepResult run_step(Communicator& comm, const ReducerJob& job, int rank);
/// Runs it on threads and expects every rank to know the same, bit for bit.
StepResult run_on_threads(int ranks, const ReducerJob& job);
/// Expected result under `determinism: world`, summed here in plain 64-bit arithmetic.
StepResult reference_step(const ReducerJob& job);

/// The sum of the losses in double.
double reference_loss(const ReducerJob& job);

}  // namespace lockstep::testing
