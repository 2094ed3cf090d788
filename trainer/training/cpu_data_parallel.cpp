// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Data parallel training on CPU cores. The threads of a rank take grains, buckets leave as soon as all have added
/// theirs, and the optimiser follows.
#include "comm/thread/thread_ranks.hpp"
#include "common/machine.hpp"
#include "data/batch_loader.hpp"
#include "trainer/training/cut_step.hpp"
#include "trainer/training/data_parallel.hpp"
#include "trainer/training/evaluator.hpp"
#include "trainer/training/host_arena.hpp"
#include "trainer/training/training_loss.hpp"
#include "trainer/training/worker_pool.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace lockstep {
namespace {

class CpuDataParallel final : public DataParallel {
 public:
  CpuDataParallel(const TrainingSetup& setup, Communicator& comm);

  Evaluation evaluate(EvaluatedPart part, const LeaveEvaluation& leave) override {
    const Dataset& data = setup_.data->part(part);
    const LossOptions& loss = setup_.options.loss;
    return lockstep::evaluate(comm_, pool_, threads_, data, evaluation_rule(loss.loss, data, loss.own),
                              setup_.options.step.grain, arena_.weights(), leave, &unread_);
  }
  TrainedState whole_state() override { return arena_.state(); }
  StepMeasures measures() override {
    return {norm_of_all(arena_.gradient_squares()), share_rounded_to_zero(comm_, rounding_)};
  }

 private:
  StepSeries run_steps(const StepPosition& position, std::int64_t count, bool stop_requested) override;
  std::int64_t steps_taken() override { return series_steps_; }
  /// Not collective: of a proof's ranks some may compute no share.
  void prepare_replays() {
    alone_ = make_lone_rank(comm_.timeout());
    replayed_.emplace(*alone_, setup_.plan, arena_.units(), Determinism::kWorld);
  }
  /// Fingerprints of the share that was computed last, and added to this reducer.
  SumFingerprints parts_of_share(const GradientReducer& reducer) const {
    SumFingerprints parts = cut_step_.own_sums();
    const SumFingerprints tensors = reducer.sums().own_fingerprints();
    parts.insert(parts.end(), tensors.begin(), tensors.end());
    return parts;
  }
  class Step;
  /// Adds the gradients of these grains to the reducer in use.
  void compute(const StepPosition& position, const std::vector<Grain>& grains, bool stop_requested);
  cpu::int16::RoundingCount take_count();
  void compute_grain(ThreadContext& thread, const StepPosition& position, const Grain& grain);
  void compute_between_cuts(const StepPosition& position, const std::vector<Grain>& grains);
  /// Loads its samples and begins its forward pass.
  void begin_grain(const GrainInWork& work, const StepPosition& position, BatchStatistics* statistics);
  void add_loss(const GrainInWork& work, const StepPosition& position);
  /// The samples at the same place in the next step's batch.
  void prefetch_next(const StepPosition& position, const Grain& grain) {
    const auto next = position.step_in_epoch + 1;
    if (next >= sampler_.steps_per_epoch() || sampler_.batch_samples(next) != sampler_.batch_samples(0))
      return;
    const TimeSpan span(timeline(), Work::kInput, "next");
    loader_.prefetch(sampler_.indices(next, grain));
  }

  Timeline* timeline() const { return comm_.activity().timeline(); }

  TrainingLoss loss_;
  LossRule loss_rule_;        ///< for the step under way
  MixedShare mixed_;          ///< for the step under way
  bool notes_terms_ = false;  ///< in the step under way: its units may become finer
  BatchLoader loader_;
  WorkerPool pool_;
  std::vector<ThreadContext> threads_;
  HostArena arena_;
  GradientReducer& reducer_;
  GradientReducer* into_ = &reducer_;    ///< receives the gradients of grains
  std::shared_ptr<Communicator> alone_;  ///< for shares of other ranks, as the next one
  std::optional<GradientReducer> replayed_;
  CutStep cut_step_;
  std::int64_t series_steps_ = 0;                      ///< taken of the series under way
  std::optional<cpu::int16::RoundingCount> rounding_;  ///< this rank's, in the step taken last
};

CpuDataParallel::CpuDataParallel(const TrainingSetup& setup, Communicator& comm)
    : DataParallel(setup, comm, /*longest_series=*/1),
      loss_(setup.options, setup.data->train),
      loader_(setup.data->train, setup.augment_plan()),
      pool_(setup.options.step.threads),
      threads_(
          make_threads(setup.network, pool_.threads(), setup.options.step.grain, setup.options.recompute)),
      arena_(whole_network(setup, sampler_.steps_per_epoch(), sampler_.batch_grains(0)), comm),
      reducer_(arena_.reducer()),
      cut_step_(setup.network, comm, pool_, threads_,
                static_cast<std::size_t>(
                    most_of_shares([this](int rank) { return sampler_.most_grains_of(rank); })),
                setup.options.recompute) {
  for (ThreadContext& thread : threads_) thread.execution.record_into(timeline());
  reducer_.show_to(observers_);
  times_.until_left.resize(setup.plan.buckets.size());
  if (comm.size() > 1 && setup.options.step.replay_every_steps != 0 && arena_.has_units()) prepare_replays();
}

/// A step as prose: batch, forward, loss and backward, while which buckets leave; the wait for their sums; the update.
class CpuDataParallel::Step final : public StepWork {
 public:
  Step(CpuDataParallel& rank, const StepPosition& position, bool stop_requested, StepSeries& series)
      : rank_(rank),
        position_(position),
        stop_requested_(stop_requested),
        series_(series),
        grains_(rank.sampler_.local_grains(position.step_in_epoch)) {}

  StepSums reduce() override {
    const bool counts = counts_rounding(rank_.setup_.network, rank_.sampler_, position_);
    if (counts) rank_.pool_.run([](int) { cpu::int16::begin_count(); });
    rank_.compute(position_, grains_, stop_requested_);
    rank_.rounding_ = counts ? std::optional(rank_.take_count()) : std::nullopt;
    rank_.comm_.activity().enter(Phase::kReducing);
    rank_.times_.exposed += rank_.reducer_.wait();
    return {rank_.reducer_.sums().totals(), rank_.reducer_.sums().refusals()};
  }
  void take(const StepTotals& /*totals*/) override {
    const auto reduced = Clock::now();
    rank_.comm_.activity().enter(Phase::kUpdating);
    rank_.arena_.take_sums(position_.global_step, series_.fingerprints);
    if (const auto own = rank_.reducer_.sums().fingerprint_that_left()) series_.own_sums.push_back(*own);
    rank_.cut_step_.move_kept(rank_.arena_.weights().data());
    rank_.times_.optimizer += seconds_since(reduced);
  }
  bool has_units() const override { return rank_.arena_.has_units(); }
  std::vector<double> largest_sums() override { return rank_.reducer_.sums().largest(); }
  std::vector<TensorRefusals> foreseen_refusals() override {
    return rank_.reducer_.sums().foreseen_refusals();
  }
  bool sum_again() override { return rank_.notes_terms_ && rank_.reducer_.sums().make_again(); }

  const StepPosition& position() const override { return position_; }
  SumFingerprints own_share() override { return rank_.parts_of_share(rank_.reducer_); }
  bool has_room_for(std::size_t grains) override { return rank_.cut_step_.has_room_for(grains); }
  SumFingerprints gradients_of(const std::vector<Grain>& grains) override {
    if (!rank_.replayed_) rank_.prepare_replays();
    rank_.into_ = &*rank_.replayed_;
    rank_.compute(position_, grains, false);
    rank_.replayed_->wait();
    rank_.into_ = &rank_.reducer_;
    return rank_.parts_of_share(*rank_.replayed_);
  }
  void show_sums(const GradientReducer::SeeSums& see) override { rank_.reducer_.sums().show(see); }

 private:
  CpuDataParallel& rank_;
  const StepPosition& position_;
  bool stop_requested_;
  StepSeries& series_;
  std::vector<Grain> grains_;
};

StepSeries CpuDataParallel::run_steps(const StepPosition& position, std::int64_t count, bool stop_requested) {
  StepSeries series;
  for (series_steps_ = 0; series_steps_ < count && !series.failure; series_steps_ = series.steps) {
    const auto start = Clock::now();
    const StepPosition at = after(position, series.steps);
    comm_.activity().begin_step(at.global_step + 1);
    sampler_.set_epoch(at.epoch);
    notes_terms_ = arena_.has_units() && arena_.units().is_refined_at(at.global_step);
    Step step(*this, at, stop_requested, series);
    take_step(step, arena_.units(), observers_, timeline(), series);
    times_.total += seconds_since(start);
  }
  times_.under_way = reducer_.times().under_way;
  times_.comparing = reducer_.times().comparing;
  times_.until_left = reducer_.times().until_left;
  for (const ThreadContext& thread : threads_) times_.input = std::max(times_.input, thread.input_seconds);
  return series;
}

void CpuDataParallel::compute(const StepPosition& position, const std::vector<Grain>& grains,
                              bool stop_requested) {
  loss_rule_ = loss_.rule(loss_.scale_of(sampler_, position.step_in_epoch));
  mixed_ = setup_.mixed_share(sampler_, position.epoch, position.step_in_epoch, grains);
  // On a rank without grains buckets must leave between the sums at cuts, as they do on the others.
  const int least = cut_step_.needed() ? 1 : 0;
  into_->begin_step(std::max(least, static_cast<int>(grains.size())), stop_requested, notes_terms_);
  if (cut_step_.needed()) return compute_between_cuts(position, grains);
  std::atomic<std::size_t> next = 0;
  pool_.run([&](int index) {
    ThreadContext& thread = at(threads_, index);
    for (std::size_t g = next++; g < grains.size(); g = next++) compute_grain(thread, position, grains[g]);
  });
}

cpu::int16::RoundingCount CpuDataParallel::take_count() {
  std::vector<cpu::int16::RoundingCount> counts(threads_.size());
  pool_.run([&](int index) { counts[static_cast<std::size_t>(index)] = cpu::int16::take_count(); });
  cpu::int16::RoundingCount sum;
  for (const cpu::int16::RoundingCount& count : counts) {
    sum.nonzero += count.nonzero;
    sum.to_zero += count.to_zero;
  }
  return sum;
}

void CpuDataParallel::compute_grain(ThreadContext& thread, const StepPosition& position, const Grain& grain) {
  const GrainInWork work{thread, thread.execution, thread.labels, grain};
  begin_grain(work, position, nullptr);
  thread.execution.forward_to_cut(nullptr);
  add_loss(work, position);
  prefetch_next(position, grain);
  const auto add = [&](std::size_t offset, std::size_t size, const GradientTerms& terms) {
    into_->add(offset, size, terms);
  };
  thread.execution.backward(thread.execution.logits(), thread.gradients.data(), add, [&] { into_->poll(); });
}

void CpuDataParallel::compute_between_cuts(const StepPosition& position, const std::vector<Grain>& grains) {
  if (grains.empty()) into_->add_sums({}, 0);
  const auto begin = [&](const GrainInWork& work, BatchStatistics& statistics) {
    begin_grain(work, position, &statistics);
  };
  const auto loss = [&](const GrainInWork& work) {
    add_loss(work, position);
    prefetch_next(position, work.grain);
    work.execution.begin_backward(work.execution.logits());
  };
  times_.exposed +=
      cut_step_.run(grains, sampler_.batch_samples(position.step_in_epoch), {begin, loss}, *into_,
                    into_ == &reducer_ ? CutStep::Sums::kOverRanks : CutStep::Sums::kAsBefore);
}

void CpuDataParallel::begin_grain(const GrainInWork& work, const StepPosition& position,
                                  BatchStatistics* statistics) {
  const auto start = Clock::now();
  const int columns = work.thread.columns_for(work.grain.samples);
  {
    const TimeSpan span(timeline(), Work::kInput);
    const auto load = [&] {
      loader_.load(sampler_.indices(position.step_in_epoch, work.grain), columns, work.execution.input(),
                   work.labels.data(), position.epoch,
                   mixed_.mixes(sampler_.place(position.step_in_epoch, work.grain), work.grain.samples));
    };
    if (into_ == &reducer_) {
      unread_.attempt(load);  // otherwise add_loss() refuses the grain
    } else {
      load();
    }
  }
  work.thread.input_seconds += seconds_since(start);
  work.execution.begin_training({.weights = arena_.weights().data(),
                                 .batch = columns,
                                 .samples = work.grain.samples,
                                 .key = pass_key(setup_.options.seed, position, work.grain.first),
                                 .statistics = statistics});
}

/// The logits become their gradient.
void CpuDataParallel::add_loss(const GrainInWork& work, const StepPosition& position) {
  const TimeSpan span(timeline(), Work::kLoss);
  float* logits = work.execution.logits();
  const int columns = work.thread.columns_for(work.grain.samples);
  if (into_ == &reducer_)
    observers_.outputs_computed(std::span(logits, static_cast<std::size_t>(columns) *
                                                      static_cast<std::size_t>(setup_.network.classes())),
                                columns);
  LossSums sums;
  const LossShape shape{.batch = columns,
                        .samples = work.grain.samples,
                        .classes = setup_.network.classes(),
                        .rule = loss_rule_,
                        .mixed = mixed_.second_labels(sampler_.place(position.step_in_epoch, work.grain))};
  cpu::loss_and_gradient(shape, logits, work.labels.data(), logits, &sums);
  if (unread_.any()) sums.not_finite = work.grain.samples;  // so no rank takes the step
  into_->add_sums(sums, work.grain.samples);
}

}  // namespace

std::unique_ptr<ParallelStrategy> make_cpu_data_parallel(const TrainingSetup& setup, Communicator& comm) {
  return std::make_unique<CpuDataParallel>(setup, comm);
}

}  // namespace lockstep
