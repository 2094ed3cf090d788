// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Replay: the engine takes the steps, their fingerprints are compared with the trail's rows.
#include "trainer/prove/replay.hpp"

#include "comm/agreement.hpp"
#include "common/text/text_layout.hpp"
#include "trainer/checkpoint/checkpoint.hpp"
#include "trainer/prove/diagnosis.hpp"
#include "trainer/run/run_state.hpp"
#include "trainer/run/starting_weights.hpp"
#include "trainer/strategies/strategy_catalogue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

class Replay {
 public:
  Replay(const ReplayedRun& run, const Interval& interval, Communicator& comm, ProofProgress& progress)
      : run_(run),
        interval_(interval),
        comm_(comm),
        progress_(progress),
        strategy_(find_strategy(run.job).make(run.job, run.setup, comm)),
        facts_{run.trail.head(), run.setup.network.parameters(), run.bucket_sizes},
        slots_(run.trail.head().slots()) {}

  ProofResult to_the_end() {
    start();
    while (position_.global_step < interval_.last && !stopped_) take_series();
    if (!stopped_ && !interval_.end.empty()) compare_with_end();
    finish();
    return std::move(verdict_);
  }

 private:
  void start();
  void take_series();
  void compare(const StepSeries& series, const std::vector<std::uint64_t>& apart);
  void fail(const StepSeries& series);
  void compare_with_end();
  void finish();
  void hear_whether_to_stop();

  const ReplayedRun& run_;
  const Interval& interval_;
  Communicator& comm_;
  ProofProgress& progress_;
  std::unique_ptr<ParallelStrategy> strategy_;
  DiagnosisFacts facts_;
  std::size_t slots_;
  StepPosition position_;
  std::int64_t proved_up_to_ = 0;
  std::vector<StepRange> unknown_;  ///< steps without a good record, which were only passed through
  bool stopped_ = false;
  ProofResult verdict_;
};

void Replay::start() {
  agree(comm_, [&] {
    if (comm_.rank() != 0) return;
    if (interval_.start.checkpoint.empty())
      return initialise_weights(run_.job, run_.setup.network, strategy_->whole_state().weights);
    const CheckpointState checkpoint = load_checkpoint(Env::posix(), interval_.start.checkpoint);
    position_ =
        restore(checkpoint, run_.job, run_.setup, strategy_->sampler(), strategy_->whole_state()).position;
  });
  comm_.broadcast(std::as_writable_bytes(std::span(&position_, 1)), 0);
  proved_up_to_ = position_.global_step;
  strategy_->distribute();
}

void Replay::take_series() {
  const std::int64_t in_epoch = strategy_->sampler().steps_per_epoch();
  if (position_.step_in_epoch == in_epoch) position_ = {position_.epoch + 1, 0, position_.global_step};
  const std::int64_t count = std::min({strategy_->longest_series(), in_epoch - position_.step_in_epoch,
                                       interval_.last - position_.global_step});
  StepSeries series = strategy_->run(position_, count, false);
  const auto apart = strategy_->combine_fingerprints(series.fingerprints, slots_);
  if (comm_.rank() == 0) compare(series, apart);
  position_ = after(position_, series.steps);
  verdict_.replayed += series.steps;
  progress_.add(series.steps);
  if (comm_.rank() == 0 && series.failure && !stopped_) fail(series);
  hear_whether_to_stop();
}

void Replay::hear_whether_to_stop() {
  if (comm_.size() > 1) comm_.broadcast(std::as_writable_bytes(std::span(&stopped_, 1)), 0);
}

void Replay::compare(const StepSeries& series, const std::vector<std::uint64_t>& apart) {
  for (std::int64_t i = 0; i < series.steps && !stopped_; ++i) {
    const std::int64_t step = position_.global_step + 1 + i;
    const auto recorded = run_.trail.find(step);
    if (!recorded) {
      unknown_.push_back({step, step});
      continue;
    }
    const auto at = static_cast<std::size_t>(i);
    const ReplayedStep here{
        .step = step,
        .fingerprints = std::span(series.fingerprints).subspan(at * slots_, slots_),
        .apart = apart[at],
        .first_replayed = step == interval_.start.step + 1,
        .start = interval_.start.checkpoint.empty()
                     ? std::string("the weights that its job begins with")
                     : fmt::format("the checkpoint of step {}", with_thousands(interval_.start.step))};
    if (auto finding = diagnose_step(facts_, *recorded, here)) {
      verdict_.findings.push_back(std::move(*finding));
      stopped_ = true;
    } else {
      proved_up_to_ = step;
    }
  }
}

/// Where the run could not take the step either, its trail ends before it.
void Replay::fail(const StepSeries& series) {
  const std::int64_t step = position_.global_step + 1;
  Discrepancy finding;
  finding.step = step;
  finding.what = "gradient";
  finding.text = fmt::format("{} losses and {} terms of its gradient are NaN or infinite here",
                             series.failure->losses, series.failure->terms);
  finding.cause =
      "the run was computed from other data or weights, or wrongly; or this machine computes wrongly";
  verdict_.findings.push_back(std::move(finding));
  stopped_ = true;
}

void Replay::compare_with_end() {
  strategy_->collect();
  agree(comm_, [&] {
    if (comm_.rank() != 0) return;
    const CheckpointState there = load_checkpoint(Env::posix(), interval_.end);
    const TrainedState here = strategy_->whole_state();
    std::vector<std::span<const float>> optimizer;
    for (const OptimizerBufferView& buffer : here.optimizer) optimizer.emplace_back(buffer.values);
    if (auto finding = diagnose_state(facts_, there, here.weights, optimizer))
      verdict_.findings.push_back(std::move(*finding));
  });
}

/// What lies behind a step that differs follows from it.
void Replay::finish() {
  const std::int64_t first = interval_.start.step + 1;
  progress_.leave_out(interval_.last - position_.global_step);
  verdict_.proved = without({{first, proved_up_to_}}, merged(unknown_));
  if (verdict_.proved.size() == 1 && verdict_.proved.front().empty()) verdict_.proved.clear();
  if (!stopped_ || comm_.rank() != 0) return;
  const std::int64_t step = verdict_.findings.back().step;
  if (step < interval_.last)
    verdict_.not_proved.push_back(
        {{step + 1, interval_.last}, fmt::format("they follow from step {}", with_thousands(step))});
}

}  // namespace

ProofResult replay(const ReplayedRun& run, const Interval& interval, Communicator& comm,
                   ProofProgress& progress) {
  return Replay(run, interval, comm, progress).to_the_end();
}

}  // namespace lockstep
