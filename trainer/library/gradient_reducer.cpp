// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// GradientReducer for a program's buffers: a step is the core's, and remembers terms until it is taken.
#include "comm/reduce/gradient_reducer.hpp"

#include "comm/agreement.hpp"
#include "common/error.hpp"
#include "common/text_layout.hpp"
#include "kernels/numerics/sums.hpp"
#include "trainer/library/inside.hpp"
#include "trainer/training/training_step.hpp"

#include <fmt/format.h>
#include <lockstep/gradient_reducer.hpp>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <mutex>

namespace lockstep::v0 {

namespace {

/// Buckets of 1 MiB leave while the last term's others are still being rounded.
constexpr std::size_t kBucketBytes = std::size_t{1} << 20;

BucketPlan plan_for(std::span<const std::size_t> tensors) {
  std::vector<GradientRange> ranges;
  std::size_t offset = 0;
  for (const std::size_t size : tensors) {
    ranges.push_back({.offset = offset, .size = size});
    offset += size;
  }
  std::ranges::reverse(ranges);  // as backward makes them: the last tensor first
  return plan_buckets_of_size(ranges, sizeof(std::int64_t), kBucketBytes);
}

void check(std::span<const std::size_t> tensors, std::int64_t terms) {
  std::uint64_t numbers = 0;
  for (const std::size_t size : tensors) numbers = size == 0 ? kTooLarge : checked_sum(numbers, size);
  if (tensors.empty() || numbers > kMaxParameters)
    throw ShapeError(fmt::format("a GradientReducer needs tensors of one number or more, {} in all at most",
                                 kMaxParameters));
  if (terms < 1 || terms > std::int64_t{1} << 31)
    throw ShapeError(fmt::format("a GradientReducer for {} terms a step; expected 1 to 2^31", terms));
}

}  // namespace

struct GradientReducer::Inside {
  Inside(lockstep::Communicator& all, std::span<const std::size_t> tensors, std::int64_t terms)
      : plan(plan_for(tensors)),
        units(tensors, terms),
        most_terms(terms),
        reducer(all, plan, units, Determinism::kWorld) {}

  void begin() {
    notes_terms = units.is_refined_at(step);
    reducer.begin_step(expected, /*stop_requested=*/false, notes_terms);
  }

  struct Term {
    std::vector<float> gradient;
    int samples;
  };

  void give(const Term& term) {
    reducer.add_sums({.correct = 1}, term.samples);  // terms are counted where losses are not
    for (std::size_t t = units.tensors(); t-- > 0;)
      reducer.add(units.begin(t), units.end(t) - units.begin(t), term.gradient.data() + units.begin(t));
  }

  StepTrial::Outcome decide(StepTrial& trial) {
    return trial.decide(
        reducer.sums().totals(), reducer.sums().refusals(), [&] { return reducer.sums().largest(); },
        [&] { return reducer.sums().foreseen_refusals(); });
  }

  /// Adds the terms again, unless the reducer remembers enough of them.
  StepTrial::Outcome sum_in_other_units(StepTrial& trial) {
    if (!notes_terms || !reducer.sums().make_again()) {
      begin();
      for (const Term& term : kept) give(term);
      reducer.wait();
    }
    return decide(trial);
  }

  void end() {
    kept.clear();
    expected = 0;
  }

  BucketPlan plan;
  GradientUnits units;
  std::int64_t most_terms;
  lockstep::GradientReducer reducer;
  std::mutex mutex;
  std::deque<Term> kept;  ///< terms of the step under way, which stay where they are
  int expected = 0;
  bool under_way = false;    ///< a step has begun
  bool notes_terms = false;  ///< units may become finer
  std::int64_t step = 0;     ///< taken
};

GradientReducer::GradientReducer(Communicator& comm, std::span<const std::size_t> tensors,
                                 std::int64_t terms) {
  check(tensors, terms);
  inside_ = std::make_unique<Inside>(comm.inside().comm, tensors, terms);
}
GradientReducer::~GradientReducer() = default;
GradientReducer::GradientReducer(GradientReducer&&) noexcept = default;

void GradientReducer::begin_step(int own_terms) {
  Inside& in = *inside_;
  if (own_terms < 0 || own_terms > in.most_terms)
    throw UsageError(fmt::format("begin_step: {} terms; expected 0 to {}", own_terms, in.most_terms));
  if (in.under_way) throw UsageError("begin_step: the step before has not ended; call mean() first");
  in.under_way = true;
  in.kept.clear();
  in.expected = own_terms;
  in.begin();
}

void GradientReducer::add(std::span<const float> gradient, std::int64_t samples) {
  Inside& in = *inside_;
  if (gradient.size() != in.units.parameters() || samples < 0 || samples > INT32_MAX)
    throw ShapeError(fmt::format("add: {} numbers of {} samples; expected {}", gradient.size(), samples,
                                 in.units.parameters()));
  std::unique_lock lock(in.mutex);
  if (std::ssize(in.kept) >= in.expected)
    throw UsageError(fmt::format("add: begin_step() announced {} terms, and here is one more", in.expected));
  const Inside::Term& term =
      in.kept.emplace_back(Inside::Term{{gradient.begin(), gradient.end()}, static_cast<int>(samples)});
  lock.unlock();
  in.give(term);
}

std::int64_t GradientReducer::mean(std::span<float> gradient) {
  Inside& in = *inside_;
  if (gradient.size() != in.units.parameters())
    throw ShapeError(
        fmt::format("mean: room for {} numbers; expected {}", gradient.size(), in.units.parameters()));
  if (!in.under_way) throw UsageError("mean: no step has begun; call begin_step() first");
  if (std::ssize(in.kept) != in.expected)
    throw UsageError(
        fmt::format("mean: begin_step() announced {} terms, and there were {}", in.expected, in.kept.size()));
  in.under_way = false;
  in.reducer.wait();
  const auto fail = [&in](const std::string& message) {
    in.end();
    throw AgreedError(ExitCode::kUsage, "mean: " + message);
  };
  const StepTotals& totals = in.reducer.sums().totals();
  if (totals.correct > in.most_terms)
    fail(fmt::format("{} terms on all ranks together, and the reducer was made for {}; make it for so many",
                     totals.correct, in.most_terms));
  if (totals.samples == 0) fail("the terms of all ranks are of no samples, which have no mean");
  StepTrial trial(in.units, in.step);
  auto outcome = in.decide(trial);
  while (outcome == StepTrial::Outcome::kRepeat) outcome = in.sum_in_other_units(trial);
  in.end();
  if (outcome == StepTrial::Outcome::kFail)
    throw AgreedError(
        ExitCode::kInternal,
        fmt::format("step {}: NaN or infinite: {} of the terms, the last in tensor {}", in.step + 1,
                    counted(trial.failure().terms, "number"), trial.failure().tensor));
  in.reducer.sums().mean(gradient.data());
  ++in.step;
  return in.reducer.sums().totals().samples;
}

GradientReducer::Units GradientReducer::units() const {
  const GradientUnits& units = inside_->units;
  return {{units.exponents().begin(), units.exponents().end()}, units.changed_at(), inside_->step};
}

void GradientReducer::restore(const Units& units) {
  if (inside_->under_way) throw UsageError("restore: a step is under way; call mean() first");
  if (units.exponents.size() != inside_->units.tensors())
    throw ShapeError(
        fmt::format("restore: {} units for {} tensors", units.exponents.size(), inside_->units.tensors()));
  if (!std::ranges::all_of(units.exponents, is_exact_exponent) || units.changed_at < 0 || units.steps < 0)
    throw ConfigError("restore: its units are none; give those of GradientReducer::units()");
  inside_->units.restore(units.exponents, units.changed_at);
  inside_->step = units.steps;
}

}  // namespace lockstep::v0
