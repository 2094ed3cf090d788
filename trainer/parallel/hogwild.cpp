// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Ranks meet only at the end of a series.
#include "trainer/parallel/hogwild.hpp"

#include "comm/agreement.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "data/batch_loader.hpp"
#include "trainer/training/host_arena.hpp"
#include "trainer/training/training_loss.hpp"
#include "trainer/training/worker_pool.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <span>
#include <vector>

namespace lockstep {

namespace {

// A relaxed load or store of a float is the plain instruction; what is lost against plain code is SIMD.

using Atomic = std::atomic_ref<float>;
static_assert(Atomic::is_always_lock_free);
constexpr auto kRelaxed = std::memory_order_relaxed;

/// The one set of weights that all ranks train, without locks. Every number is read and written by a relaxed atomic
/// access, so no access is a data race. An update may be lost: a write between another rank's read and write is
/// overwritten.
class SharedWeights {
 public:
  /// Collective, as its end is. All zeros.
  SharedWeights(Communicator& comm, std::size_t count)
      : memory_(share_memory(comm, count * sizeof(float))),
        weights_(reinterpret_cast<float*>(memory_.get()), count) {}

  /// Number by number: with others at work it may be a mix of their updates. Same sizes.
  void read(std::span<float> into) const {
    LOCKSTEP_CHECK(into.size() == weights_.size());
    for (std::size_t i = 0; i < into.size(); ++i) into[i] = Atomic(weights_[i]).load(kRelaxed);
  }
  void write(std::span<const float> from) {
    LOCKSTEP_CHECK(from.size() == weights_.size());
    for (std::size_t i = 0; i < from.size(); ++i) Atomic(weights_[i]).store(from[i], kRelaxed);
  }
  /// Adds after - before to each number as it is by now.
  void move(std::span<const float> before, std::span<const float> after) {
    LOCKSTEP_CHECK(before.size() == weights_.size() && after.size() == weights_.size());
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      const Atomic weight(weights_[i]);
      weight.store(weight.load(kRelaxed) + (after[i] - before[i]), kRelaxed);
    }
  }

 private:
  SharedMemory memory_;
  std::span<float> weights_;
};

/// Some tenths of a second of a small network's steps: signals are heard in between.
constexpr std::int64_t kMostStepsBetweenMeetings = 100;

void add(StepTotals& sum, const StepTotals& part) {
  sum.samples += part.samples;
  sum.correct += part.correct;
  sum.loss_units += part.loss_units;
  sum.stop_requested |= part.stop_requested;
}

/// Result of one rank's part of a series.
struct Share {
  std::int64_t steps = 0;  ///< that could be taken
  StepTotals series, last_step;
  StepFailure failure;

  bool failed() const { return failure.losses > 0 || failure.terms > 0; }
};

class Hogwild final : public ParallelStrategy {
 public:
  Hogwild(const TrainingSetup& setup, Communicator& comm);

  StepSeries run(const StepPosition& position, std::int64_t count, bool stop_requested) override;
  Evaluation evaluate(EvaluatedPart part, const LeaveEvaluation& leave) override {
    shared_.read(before_.span());
    const Dataset& data = setup_.data->part(part);
    return lockstep::evaluate(comm_, pool_, threads_, data, evaluation_rule(setup_.options.loss.loss, data),
                              grain_, before_.span(), leave, &unread_);
  }

  TrainedState whole_state() override { return arena_.state(); }
  void distribute() override {
    const TrainedState state = arena_.state();
    if (comm_.rank() == 0) shared_.write(state.weights);  // the others read them after the broadcasts
    for (const OptimizerBufferView& buffer : state.optimizer) broadcast(comm_, buffer.values);
    broadcast_units(comm_, state.units);
  }
  void collect() override {
    if (comm_.rank() == 0) shared_.read(arena_.weights());
  }
  /// It cannot be changed: its weights are those of all.
  void visit_own_state(const StateVisit& visit) override { LOCKSTEP_CHECK(!visit(whole_state())); }
  StrategyDescription describe() const override {
    return {.sums = "no sums: hogwild",
            .lines = {"hogwild: all ranks move one set of weights without locks; no two runs end in the same "
                      "ones"},
            .facts = {{"buckets", "none: hogwild"}}};
  }

 private:
  void step(const StepPosition& position, Share& share);
  void compute(const StepPosition& position, const Grain& grain, Share& share);
  bool gradient_is_finite(Share& share) {
    const std::span<float> gradient = arena_.gradient();
    const auto bad = std::ranges::find_if(gradient, [](float g) { return !std::isfinite(g); });
    if (bad == gradient.end()) return true;
    share.failure.terms = 1;
    share.failure.tensor = arena_.units().tensor_at(static_cast<std::size_t>(bad - gradient.begin()));
    return false;
  }
  StepSeries together(const Share& mine, std::int64_t count) const;

  const TrainingSetup& setup_;
  Communicator& comm_;
  int grain_;
  TrainingLoss loss_;
  LossRule loss_rule_;  ///< for the step under way
  MixedShare mixed_;    ///< for the step under way
  BatchLoader loader_;
  WorkerPool pool_{1};
  std::vector<ThreadContext> threads_;  ///< one
  SharedWeights shared_;
  AlignedBuffer<float> before_;  ///< the weights that a step began with
  HostArena arena_;              ///< this rank's copies; units are those of a run's start
};

Hogwild::Hogwild(const TrainingSetup& setup, Communicator& comm)
    : ParallelStrategy(setup.options, setup.network.parameters(), sampler_options(setup, comm),
                       kMostStepsBetweenMeetings),
      setup_(setup),
      comm_(comm),
      grain_(setup.options.step.grain),
      loss_(setup.options, setup.data->train),
      loader_(setup.data->train, setup.augment_plan()),
      threads_(make_threads(setup.network, 1, grain_)),
      shared_(comm, setup.network.parameters().size),
      before_(setup.network.parameters().size),
      arena_(whole_network(setup, sampler_.steps_per_epoch(), sampler_.batch_grains(0)), comm) {
  teams_.held = held_tensors(setup.network.parameters());
  threads_.front().execution.record_into(comm.activity().timeline());
}

StepSeries Hogwild::run(const StepPosition& position, std::int64_t count, bool stop_requested) {
  const auto start = Clock::now();
  Share share;
  for (std::int64_t i = 0; i < count && !share.failed(); ++i) {
    share.last_step = {};
    step(after(position, i), share);
    add(share.series, share.last_step);
    if (!share.failed()) ++share.steps;
  }
  share.last_step.stop_requested = stop_requested;
  StepSeries series = together(share, count);
  if (series.steps > 0) series_.took(series.steps, seconds_since(start), comm_);
  return series;
}

void Hogwild::step(const StepPosition& position, Share& share) {
  Timeline* const timeline = comm_.activity().timeline();
  const TimeSpan step(timeline, Work::kStep, {}, position.global_step + 1);
  sampler_.set_epoch(position.epoch);
  const auto grains = sampler_.local_grains(position.step_in_epoch);
  if (grains.empty()) return;
  Grain own = grains.front();  // with its neighbours, which the others are
  for (const Grain& grain : std::span(grains).subspan(1)) own.samples += grain.samples;
  loss_rule_ = loss_.rule(loss_.scale_of(sampler_.indices(position.step_in_epoch, own)));
  mixed_ = setup_.mixed_share(sampler_, position.epoch, position.step_in_epoch, grains);
  shared_.read(before_.span());
  std::ranges::copy(before_.span(), arena_.weights().begin());
  std::ranges::fill(arena_.gradient(), 0.0F);
  for (const Grain& grain : grains) compute(position, grain, share);
  const float samples = static_cast<float>(share.last_step.samples);
  for (float& number : arena_.gradient()) number /= samples;
  if (share.failed() || !gradient_is_finite(share)) return;
  const TimeSpan update(timeline, Work::kUpdate);
  arena_.take_gradient(position.global_step);
  shared_.move(before_.span(), arena_.weights());
}

/// From before_, which no other thread writes: all grains of a step see the same weights.
void Hogwild::compute(const StepPosition& position, const Grain& grain, Share& share) {
  ThreadContext& thread = threads_.front();
  const int columns = thread.columns_for(grain.samples);
  const std::int64_t place = sampler_.place(position.step_in_epoch, grain);
  {
    const TimeSpan span(comm_.activity().timeline(), Work::kInput);
    loader_.load(sampler_.indices(position.step_in_epoch, grain), columns, thread.execution.input(),
                 thread.labels.data(), position.epoch, mixed_.mixes(place, grain.samples));
  }
  float* logits = thread.execution.forward_training(before_.data(), columns,
                                                    pass_key(setup_.options.seed, position, grain.first));
  LossSums sums;
  const LossShape shape{.batch = columns,
                        .samples = grain.samples,
                        .classes = setup_.network.classes(),
                        .rule = loss_rule_,
                        .mixed = mixed_.second_labels(place)};
  cpu::loss_and_gradient(shape, logits, thread.labels.data(), logits, &sums);
  share.last_step.samples += grain.samples;
  share.last_step.correct += sums.correct;
  share.failure.losses += sums.not_finite + (std::isfinite(sums.loss) ? 0 : 1);
  if (std::isfinite(sums.loss)) share.last_step.loss_units.add(sums.loss * kLossScale);
  float *gradients = thread.gradients.data(), *sums_of_grains = arena_.gradient().data();
  const auto add = [&](std::size_t offset, std::size_t size, const GradientTerms& /*terms*/) {
    for (std::size_t i = offset; i < offset + size; ++i) sums_of_grains[i] += gradients[i];
  };
  thread.execution.backward(logits, gradients, add, [] {});
}

/// When all ranks have come here, none moves the weights. Of steps that failed the first one is told.
StepSeries Hogwild::together(const Share& mine, std::int64_t count) const {
  Share all{.steps = count, .series = {}, .last_step = {}, .failure = {}};
  for (const Share& share : gather(comm_, mine)) {
    all.steps = std::min(all.steps, share.steps);
    add(all.series, share.series);
    add(all.last_step, share.last_step);
    all.failure.losses += share.failure.losses;
    all.failure.terms += share.failure.terms;
    if (share.failure.tensor != StepFailure::kNoTensor) all.failure.tensor = share.failure.tensor;
  }
  if (all.failed())
    return {.steps = all.steps, .loss_units = {}, .last = all.last_step, .failure = all.failure};
  StepSeries series;
  series.add(count, all.series, all.last_step);
  return series;
}

}  // namespace

std::unique_ptr<ParallelStrategy> make_hogwild(const TrainingSetup& setup, Communicator& comm) {
  return std::make_unique<Hogwild>(setup, comm);
}

}  // namespace lockstep
