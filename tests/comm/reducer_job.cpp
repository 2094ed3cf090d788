// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "comm/thread/thread_ranks.hpp"
#include "kernels/numerics/sums.hpp"
#include "tests/comm/conformance.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::testing {
namespace {

int samples_of(const ReducerJob& job, int grain) {
  return grain + 1 == job.grains ? 5 : 16;
}

LossSums sums_of(const ReducerJob& job, int grain) {
  LossSums sums{2.302585 * samples_of(job, grain) / (grain + 1), grain % 5};
  if (grain == job.spoilt_grain && job.spoilt_loss != 0) sums.loss = job.spoilt_loss;
  return sums;
}

/// Tensors that end where neither buckets nor pieces do.
GradientUnits units_of(const ReducerJob& job) {
  std::vector<std::size_t> sizes = {1, job.parameters / 2, 3};
  sizes.push_back(job.parameters - sizes[0] - sizes[1] - sizes[2]);
  GradientUnits units(sizes, job.grains);
  if (!job.exponents.empty()) units.restore(job.exponents, 0);
  return units;
}

std::vector<float> gradients_of(const ReducerJob& job, int grain) {
  std::vector<float> gradients(job.parameters);
  for (std::size_t i = 0; i < gradients.size(); ++i)
    gradients[i] = std::ldexp(gradient_of(grain, i), job.gradient_exponent);
  if (grain == job.spoilt_grain && job.spoilt_value != 0) gradients[job.parameters / 3] = job.spoilt_value;
  return gradients;
}

void add_grain(GradientReducer& reducer, const ReducerJob& job, int grain) {
  const std::vector<float> gradients = gradients_of(job, grain);
  if (job.sums_before_gradients) reducer.add_sums(sums_of(job, grain), samples_of(job, grain));
  std::size_t end = job.parameters;
  for (std::size_t piece = job.pieces; piece-- > 0;) {
    const std::size_t begin = job.parameters * piece / job.pieces;
    reducer.add(begin, end - begin, gradients.data() + begin);
    reducer.poll();
    end = begin;
  }
  if (!job.sums_before_gradients) reducer.add_sums(sums_of(job, grain), samples_of(job, grain));
}

void add_all(GradientReducer& reducer, const ReducerJob& job, const std::vector<int>& grains) {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(job.threads));
  for (int thread = 0; thread < job.threads; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::size_t i = 0; i < grains.size(); ++i) {
        if (static_cast<int>(i) % job.threads == thread) add_grain(reducer, job, grains[i]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// Unlike ==, says yes to the same NaN.
bool same_bits(StepResult a, StepResult b) {
  const std::size_t bytes = a.gradient.size() * sizeof(float);
  if (b.gradient.size() != a.gradient.size() || std::memcmp(a.gradient.data(), b.gradient.data(), bytes) != 0)
    return false;
  a.gradient.clear();
  b.gradient.clear();
  return a == b;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const StepResult& r) {
  double checksum = 0;
  for (std::size_t i = 0; i < r.gradient.size(); ++i)
    checksum += r.gradient[i] * static_cast<double>(i % 97 + 1);
  return out << r.gradient.size() << " gradients (checksum " << checksum << "), samples " << r.samples
             << ", correct " << r.correct << ", loss " << r.loss << ", stop " << r.stop_requested
             << ", refused " << r.refused;
}

float gradient_of(int grain, std::size_t parameter) {
  const std::uint64_t mixed = (parameter * 131 + static_cast<std::uint64_t>(grain) + 1) * 0x9E3779B97F4A7C15U;
  const float unit = static_cast<float>(mixed >> 40) / 8388608.0F - 1;
  return std::ldexp(unit, static_cast<int>(parameter % 24) - 12);
}

BucketPlan even_plan(std::size_t parameters, std::size_t buckets) {
  BucketPlan plan;
  std::size_t end = parameters;
  for (std::size_t i = buckets; i-- > 0;) {
    const std::size_t begin = parameters * i / buckets;
    const std::size_t index = buckets - 1 - i;
    plan.buckets.push_back({begin, end - begin, index, index});
    end = begin;
  }
  return plan;
}

StepResult run_step(Communicator& comm, const ReducerJob& job, int rank) {
  std::vector<int> mine;
  for (int grain = 0; grain < job.grains; ++grain) {
    if (job.owner(grain, comm.size()) == rank) mine.push_back(grain);
  }
  GradientUnits units = units_of(job);
  GradientReducer reducer(comm, even_plan(job.parameters, job.buckets), units, job.determinism);
  for (int step = 0; step < job.steps; ++step) {
    reducer.begin_step(static_cast<int>(mine.size()), rank == job.stopping_rank && step + 1 == job.steps);
    add_all(reducer, job, mine);
    reducer.wait();
  }
  const StepTotals& totals = reducer.sums().totals();
  StepResult result{std::vector<float>(job.parameters),
                    totals.samples,
                    totals.correct,
                    totals.loss(),
                    totals.stop_requested,
                    totals.refused,
                    {reducer.sums().refusals().begin(), reducer.sums().refusals().end()}};
  reducer.sums().mean(result.gradient.data());
  return result;
}

StepResult run_on_threads(int ranks, const ReducerJob& job) {
  std::vector<StepResult> results(static_cast<std::size_t>(ranks));
  run_thread_ranks(ranks, [&](Communicator& comm) {
    results[static_cast<std::size_t>(comm.rank())] = run_step(comm, job, comm.rank());
  });
  for (const StepResult& result : results) EXPECT_TRUE(same_bits(result, results[0])) << result;
  return results[0];
}

double reference_loss(const ReducerJob& job) {
  double loss = 0;
  for (int grain = 0; grain < job.grains; ++grain) loss += sums_of(job, grain).loss;
  return loss;
}

StepResult reference_step(const ReducerJob& job) {
  StepResult result{std::vector<float>(job.parameters)};
  std::int64_t loss = 0;
  for (int grain = 0; grain < job.grains; ++grain) {
    result.samples += samples_of(job, grain);
    result.correct += sums_of(job, grain).correct;
    loss += std::llrint(std::ldexp(sums_of(job, grain).loss, 32));
  }
  result.loss = std::ldexp(static_cast<double>(loss), -32);
  for (std::size_t i = 0; i < job.parameters; ++i) {
    std::int64_t sum = 0;
    for (int grain = 0; grain < job.grains; ++grain)
      sum += std::llrint(std::ldexp(double{gradient_of(grain, i)}, 40));
    result.gradient[i] =
        static_cast<float>(std::ldexp(static_cast<double>(sum), -40) / static_cast<double>(result.samples));
  }
  return result;
}

}  // namespace lockstep::testing
