// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The stages of one rank on a CPU core. It has an execution for each part that the rank holds, and room for the
/// grains in flight.
#include "data/batch_loader.hpp"
#include "data/dataset.hpp"
#include "models/execution.hpp"
#include "trainer/parallel/stage_engine.hpp"
#include "trainer/training/host_arena.hpp"
#include "trainer/training/training_loss.hpp"
#include "trainer/verify/share_replay.hpp"

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace lockstep {
namespace {

/// Every stage is a bucket of the arena.
class CpuStageEngine final : public StageEngine {
 public:
  explicit CpuStageEngine(const StageEngineParts& parts);

  void make_room(int stage, int micro_batches) override {
    Slots& slots = at(slots_, stage);
    while (std::ssize(slots) < micro_batches)
      slots.emplace_back(network(), columns_, part(stage)).record_into(timeline());
  }
  std::span<float> input(const StageVisit& visit) override {
    return {slot(visit).input(), input_size(visit)};
  }
  std::span<const float> forward(const StageVisit& visit) override;
  std::span<float> output_gradient(const StageVisit& visit) override {
    return {slot(visit).output_gradient(), output_size(visit)};
  }
  std::span<const float> backward(const StageVisit& visit) override;

  void begin_step(const StepPosition& position, const GradientUnits& units, int grains) override {
    counters_ = {};
    narrow_limit_ = narrow_loss_limit(units.global_grains());
    loss_rule_ = loss_.rule(loss_.scale_of(parts_.sampler, position.step_in_epoch));
    if (!arena_) return;
    held().take_units(units, arena_->units());
    arena_->reducer().begin_step(grains, false);
  }
  /// Refusals are summed over the replicas already: the first one speaks for all.
  StageSums reduce() override {
    if (!arena_) return {counters_, {}};
    arena_->reducer().wait();
    const auto refusals = arena_->reducer().sums().refusals();
    if (parts_.replicas.rank() == 0) return {counters_, {refusals.begin(), refusals.end()}};
    return {counters_, std::vector<TensorRefusals>(refusals.size())};
  }
  SumFingerprints own_fingerprints() override {
    return arena_ ? arena_->reducer().sums().own_fingerprints() : SumFingerprints();
  }
  void begin_replay(int grains) override {
    replaying_ = true;
    if (!arena_) return;
    into_ = &*replayed_;
    into_->begin_step(grains, false);
  }
  SumFingerprints end_replay() override {
    replaying_ = false;
    if (!arena_) return {};
    replayed_->wait();
    into_ = &arena_->reducer();
    return replayed_->sums().own_fingerprints();
  }
  std::uint64_t fingerprint_that_left() override {
    return arena_ ? arena_->reducer().sums().fingerprint_that_left().value() : 0;
  }
  std::vector<double> largest_sums() override {
    return arena_ ? arena_->reducer().sums().largest() : std::vector<double>();
  }
  std::vector<double> gradient_squares() override {
    return arena_ ? arena_->gradient_squares() : std::vector<double>();
  }
  void update(const StepPosition& position, std::int64_t /*samples*/, std::vector<std::uint64_t>& rows,
              const NormOfAll& norm) override {
    if (arena_) {
      arena_->take_sums(position.global_step, rows, norm);
    } else if (clips_by_norm()) {
      norm({});
    }
  }

  void forget_evaluation() override { evaluated_ = {}; }
  StepCounters evaluated() override { return evaluated_; }
  TrainedState state() override { return arena_->state(); }

 private:
  using Slots = std::vector<Execution>;

  Timeline* timeline() const { return parts_.comm.activity().timeline(); }
  Execution& slot(const StageVisit& visit) { return slot_of(slots_, visit); }
  const float* weights_of(const HeldRange* range) {
    return range == nullptr ? nullptr : arena_->weights().data() + range->local;
  }
  /// The logits become their gradient.
  void take_loss(const StageVisit& visit, float* logits);
  void poll() {
    if (into_ != nullptr) into_->poll();
  }

  int first_stage_;                  ///< this rank's
  std::optional<HostArena> arena_;   ///< none: the rank's stages have no parameters
  GradientReducer* into_ = nullptr;  ///< receives the gradients of passes; null: as arena_
  bool replaying_ = false;
  std::unique_ptr<Communicator> alone_;  ///< for replays, as the next one
  std::optional<GradientReducer> replayed_;
  AlignedBuffer<float> gradients_;  ///< for the grain in work
  int columns_;                     ///< in a full grain
  std::vector<Slots> slots_;        ///< for each stage of the network; none for others'
  std::vector<std::int32_t> labels_;
  TrainingLoss loss_;
  LossRule loss_rule_;  ///< for the step under way
  double narrow_limit_ = 0;
  StepCounters counters_, evaluated_;  ///< in the step under way, in an evaluation
};

CpuStageEngine::CpuStageEngine(const StageEngineParts& parts)
    : StageEngine(parts, cpu::kLanes),
      first_stage_(parts.plan.stages_of(parts.rank).front()),
      gradients_(parts.held.layout.size),
      columns_(columns_for(parts.setup.options.step.grain)),
      slots_(parts.plan.stages.size()),
      labels_(static_cast<std::size_t>(columns_)),
      loss_(parts.setup.options, parts.setup.data->train) {
  if (parts.held.ranges.empty()) return;
  arena_.emplace(arena_part(), parts.replicas);
  into_ = &arena_->reducer();
  into_->show_to(parts.observers);
  if (steps_between_replays(parts.setup.options.step, plan().replicas, false) == 0) return;
  alone_ = parts.replicas.split(parts.replicas.rank());
  replayed_.emplace(*alone_, held().buckets(), arena_->units(), Determinism::kWorld);
}

std::span<const float> CpuStageEngine::forward(const StageVisit& visit) {
  Execution& execution = slot(visit);
  const StageGrain& grain = visit.grain;
  const int columns = columns_for(grain.samples());
  if (visit.stage == 0) {
    const TimeSpan span(timeline(), Work::kInput);
    const BatchLoader loader(data_of(visit), visit.training ? parts_.setup.augment_plan() : nullptr);
    const auto load = [&] {
      loader.load(grain.indices, columns, execution.input(), labels_.data(), grain.epoch, grain.mixes);
    };
    if (replaying_) {
      load();  // other samples in their place would be taken for a processor that is wrong
    } else {
      parts_.unread.attempt(load);
    }
    if (visit.next != nullptr) loader.prefetch(visit.next->indices);
  }
  const float* weights = weights_of(held().range_of(visit.stage));
  float* output = visit.training ? execution.forward_training(weights, columns, grain.key, grain.samples())
                                 : execution.forward_evaluation(weights, columns);
  if (visit.training && !replaying_ && visit.stage == plan().stages_of(parts_.rank).back())
    parts_.observers.outputs_computed({output, output_size(visit)}, columns);
  const bool is_last = visit.stage == plan().last();
  if (is_last) take_loss(visit, output);
  if (visit.training && into_ != nullptr) {
    if (visit.stage == first_stage_) into_->add_sums({}, grain.samples());
    poll();
  }
  return is_last ? std::span<const float>() : std::span<const float>(output, output_size(visit));
}

void CpuStageEngine::take_loss(const StageVisit& visit, float* logits) {
  const TimeSpan span(timeline(), Work::kLoss);
  const StageGrain& grain = visit.grain;
  copy_labels(visit, labels_);
  LossSums sums;
  const LossShape shape{
      .batch = columns_for(grain.samples()),
      .samples = grain.samples(),
      .classes = network().classes(),
      .rule = visit.training ? loss_rule_ : evaluation_rule(parts_.setup.options.loss.loss, data_of(visit)),
      .mixed = grain.second_labels};
  cpu::loss_and_gradient(shape, logits, labels_.data(), visit.training ? logits : nullptr, &sums);
  StepCounters& all = visit.training ? counters_ : evaluated_;
  const double narrow_limit = visit.training ? narrow_limit_ : 0;
  add_up(all.values, loss_counters(sums, grain.samples(), narrow_limit).values, all.values);
}

std::span<const float> CpuStageEngine::backward(const StageVisit& visit) {
  const HeldRange* range = held().range_of(visit.stage);
  const auto add = [&](std::size_t offset, std::size_t size, const GradientTerms& terms) {
    into_->add(range->local + offset, size, terms);
  };
  Execution& execution = slot(visit);
  execution.backward(execution.output_gradient(),
                     range == nullptr ? nullptr : gradients_.data() + range->local, add, [this] { poll(); });
  poll();
  const float* gradient = execution.input_gradient();
  return {gradient, gradient == nullptr ? 0 : input_size(visit)};
}

}  // namespace

std::unique_ptr<StageEngine> make_cpu_stage_engine(const StageEngineParts& parts) {
  return std::make_unique<CpuStageEngine>(parts);
}

}  // namespace lockstep
