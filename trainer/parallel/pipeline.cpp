// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A step: passes in schedule order, sums over replicas, an outcome of all ranks, the update.
#include "trainer/parallel/pipeline.hpp"

#include "comm/agreement.hpp"
#include "common/machine.hpp"
#include "trainer/training/evaluator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <span>

namespace lockstep {
namespace {

/// Micro-batches between two questions whether to leave an evaluation, for each rank of a pipeline.
constexpr int kGrainsBetweenQuestions = 8;

/// Spans of the weights and of each part of the optimiser state.
std::vector<std::span<float>> spans_of(const TrainedState& state, std::size_t first, std::size_t size) {
  std::vector<std::span<float>> spans{state.weights.subspan(first, size)};
  for (const OptimizerBufferView& buffer : state.optimizer)
    spans.push_back(buffer.values.subspan(first, size));
  return spans;
}

}  // namespace

Pipeline::Pipeline(const PipelineOptions& options, const TrainingSetup& setup, const DeviceSetup& device,
                   Communicator& comm, StagePlan plan)
    : ParallelStrategy(setup.options, setup.network.parameters(),
                       pipeline_sampling(setup.options, setup.data->train, plan, comm.rank()),
                       /*longest_series=*/1),
      order_(options.schedule),
      setup_(setup),
      device_(device),
      comm_(comm),
      plan_(std::move(plan)),
      rank_(comm.rank() % plan_.width),
      replicas_(comm.split(rank_)),
      members_(plan_.replicas > 1 ? comm.split(replica()) : nullptr),
      units_(make_gradient_units(setup.network.parameters(), sampler_.batch_grains(0))),
      held_(held_layout(setup.network, plan_, rank_)),
      engine_((device.gpu ? make_device_stage_engine : make_cpu_stage_engine)(
          {setup, device_, plan_, rank_, held_, sampler_, comm, *replicas_, unread_, observers_})),
      links_(make_stage_links(plan_, comm, device.gpu.get(), engine_->message_stream())),
      worker_(options.schedule, plan_, rank_, *links_, *engine_, observers_, comm.activity().timeline()),
      whole_weights_(comm.rank() == 0 ? setup.network.parameters().size : 0),
      whole_buffers_(update_.buffer_names(), whole_weights_.size()),
      slots_of_row_(setup.options.fingerprints
                        ? fingerprint_layout(setup.network.parameters(), whole_buffers_.count()).slots()
                        : 0) {
  engine_->while_waiting([this] { links_->look_after(); });
  teams_ = {.peers = replicas_.get(),
            .members = members_.get(),
            .held = held_.tensors,
            .holders = holders(),
            .share_parts = share_parts(),
            .reads_pictures = plan_.rank_of(0),
            .reads_labels = plan_.rank_of(plan_.last())};
}

template <typename Work>
auto Pipeline::naming_silent_stages(const Work& work) {
  try {
    return work();
  } catch (const PeerLostError& error) {
    throw_silent_stages(error);
  }
}

class Pipeline::Step final : public StepWork {
 public:
  Step(Pipeline& rank, const StepPosition& position, bool stop_requested, StepSeries& series)
      : rank_(rank), position_(position), stop_requested_(stop_requested), series_(series) {}

  StepSums reduce() override {
    const auto start = Clock::now();
    rank_.comm_.activity().begin_step(position_.global_step + 1);
    const StageSums own = rank_.compute(position_);
    const StepSums sums = rank_.sum_over_all(own, stop_requested_, position_.global_step + 1);
    rank_.wall_seconds_ += seconds_since(start);
    return sums;
  }
  void take(const StepTotals& totals) override {
    rank_.comm_.activity().enter(Phase::kUpdating);
    const auto norm = [this](const std::vector<double>& own) {
      return norm_of_all(rank_.of_all_tensors(own));
    };
    rank_.engine_->update(position_, totals.samples, series_.fingerprints, norm);
    // A rank without parameters has a row of zeros.
    series_.fingerprints.resize(static_cast<std::size_t>(series_.steps + 1) * rank_.slots_of_row_);
    if (rank_.plan_.replicas > 1 && has_units())
      series_.own_sums.push_back(rank_.engine_->fingerprint_that_left());
  }
  bool has_units() const override { return rank_.setup_.options.step.determinism == Determinism::kWorld; }
  std::vector<double> largest_sums() override { return rank_.of_all_tensors(rank_.engine_->largest_sums()); }

  const StepPosition& position() const override { return position_; }
  SumFingerprints own_share() override { return rank_.share_of(rank_.engine_->own_fingerprints()); }
  /// Its memory is for the shares that pipelines have.
  bool has_room_for(std::size_t grains) override {
    return grains <= static_cast<std::size_t>(rank_.sampler_.most_grains_of(rank_.replica()));
  }
  SumFingerprints gradients_of(const std::vector<Grain>& grains) override {
    const auto start = Clock::now();
    rank_.engine_->begin_replay(static_cast<int>(grains.size()));
    rank_.train(position_, grains);
    const SumFingerprints gradients = rank_.engine_->end_replay();
    rank_.wall_seconds_ += seconds_since(start);  // its passes count, too
    return rank_.share_of(gradients);
  }

 private:
  Pipeline& rank_;
  const StepPosition& position_;
  bool stop_requested_;
  StepSeries& series_;
};

StepSeries Pipeline::run(const StepPosition& position, std::int64_t count, bool stop_requested) {
  StepSeries series;
  naming_silent_stages([&] {
    while (series.steps < count && !series.failure) {
      const StepPosition at = after(position, series.steps);
      Step step(*this, at, stop_requested, series);
      take_step(step, units_, observers_, comm_.activity().timeline(), series);
    }
  });
  return series;
}

StageSums Pipeline::compute(const StepPosition& position) {
  sampler_.set_epoch(position.epoch);
  const bool counts = counts_rounding(setup_.network, sampler_, position);
  if (counts) cpu::int16::begin_count();
  const std::vector<Grain> share = sampler_.local_grains(position.step_in_epoch);
  engine_->begin_step(position, units_, static_cast<int>(share.size()));
  train(position, share);
  rounding_ = counts ? std::optional(cpu::int16::take_count()) : std::nullopt;
  StageSums sums;
  try {
    sums = engine_->reduce();
  } catch (const SumsDifferError& error) {
    sums_differ_ = error;  // ranks of other stages hear of it with the sums over all
  }
  comm_.activity().enter(Phase::kReducing);
  return sums;
}

void Pipeline::train(const StepPosition& position, const std::vector<Grain>& share) {
  const MixedShare mixed = setup_.mixed_share(sampler_, position.epoch, position.step_in_epoch, share);
  std::vector<StageGrain> grains;
  for (const Grain& grain : share) {
    const std::int64_t place = sampler_.place(position.step_in_epoch, grain);
    grains.push_back({.indices = sampler_.indices(position.step_in_epoch, grain),
                      .key = pass_key(setup_.options.seed, position, grain.first),
                      .epoch = position.epoch,
                      .mixes = mixed.mixes(place, grain.samples),
                      .second_labels = mixed.second_labels(place)});
  }
  worker_.train(grains);
  links_->flush();  // before sums that may keep a GPU busy until other ranks come
}

StepSums Pipeline::sum_over_all(const StageSums& own, bool stop_requested, std::int64_t step) {
  StepCounters mine = own.counters;
  mine.values[kStopRequests] = stop_requested ? 1 : 0;
  if (unread_.any()) ++mine.values[kRefused];
  refusals_.assign(units_.tensors(), {});
  for (std::size_t i = 0; i < own.refusals.size(); ++i) {
    refusals_[held_.tensors[i].number] = own.refusals[i];
    mine.values[kRefused] += own.refusals[i].too_large + own.refusals[i].not_finite;
  }
  std::vector<std::int64_t> numbers(mine.values.begin(), mine.values.end());
  for (const TensorRefusals& tensor : refusals_) {
    numbers.push_back(tensor.too_large);
    numbers.push_back(tensor.not_finite);
  }
  const std::size_t all_counted = numbers.size();
  numbers.push_back(sums_differ_ ? 1 : 0);
  const StageMessages& messages = worker_.messages();
  for (std::size_t link = 0; link < messages.sent.size(); ++link)
    numbers.push_back(static_cast<std::int64_t>(messages.sent[link] - messages.arrived[link]));
  comm_.all_reduce(std::span(numbers));
  if (numbers[all_counted] > 0) throw_wrong_sums_of_a_stage(step);
  const auto apart = std::span(numbers).subspan(all_counted);
  if (std::ranges::count(apart, 0) < std::ssize(apart)) throw_wrong_message(step);
  for (std::size_t i = 0; i < refusals_.size(); ++i)
    refusals_[i] = {numbers[kStepCounters + 2 * i], numbers[kStepCounters + 2 * i + 1]};
  return {decode(std::span<const std::int64_t>(numbers).first(kStepCounters)).totals(), refusals_};
}

void Pipeline::require_sight(Sight part) const {
  const bool has_none = held_.ranges.empty();
  if (part == Sight::kSums) return ParallelStrategy::require_sight(part);
  if (part == Sight::kMessages && (plan_.width == 1 || engine_->message_stream() != nullptr))
    throw ConfigError("inject.what: this rank takes no messages of other stages in host memory");
  if (part == Sight::kSumsOnTheirWay && (plan_.replicas == 1 || has_none))
    throw ConfigError(
        "inject.what: this rank sends no sums; use more replicas of a pipeline, or the strategy data");
  if (part == Sight::kState && has_none)
    throw ConfigError("inject.rank: the stages of this rank have no weights");
  engine_->require_sight(part);
}

StepMeasures Pipeline::measures() {
  StepMeasures measures{.rounded_to_zero = share_rounded_to_zero(comm_, rounding_)};
  if (device_.gpu == nullptr)
    measures.gradient_norm = norm_of_all(of_all_tensors(engine_->gradient_squares()));
  return measures;
}

/// One rank has each tensor; the others add zeros to its number's bits.
/// @param own  a number of each tensor held
std::vector<double> Pipeline::of_all_tensors(const std::vector<double>& own) {
  std::vector<std::int64_t> bits(units_.tensors());
  for (std::size_t i = 0; i < own.size() && replica() == 0; ++i)
    bits[held_.tensors[i].number] = std::bit_cast<std::int64_t>(own[i]);
  comm_.all_reduce(std::span(bits));
  std::vector<double> all;
  for (const std::int64_t number : bits) all.push_back(std::bit_cast<double>(number));
  return all;
}

Evaluation Pipeline::evaluate(EvaluatedPart part, const LeaveEvaluation& leave) {
  return naming_silent_stages([&] { return evaluate_in_rounds(part, leave); });
}

/// Between two rounds all ranks hear whether one wants to leave.
Evaluation Pipeline::evaluate_in_rounds(EvaluatedPart part, const LeaveEvaluation& leave) {
  const Dataset& data = setup_.data->part(part);
  const std::int64_t grain = setup_.options.step.grain, all = (data.size() + grain - 1) / grain;
  const std::int64_t last = all * (replica() + 1) / plan_.replicas;
  const std::int64_t round = std::int64_t{kGrainsBetweenQuestions} * plan_.width;
  const std::int64_t rounds = ((all + plan_.replicas - 1) / plan_.replicas + round - 1) / round;
  std::vector<std::int32_t> order(static_cast<std::size_t>(data.size()));
  std::iota(order.begin(), order.end(), 0);
  bool left = false;
  engine_->begin_evaluation(part);
  std::int64_t next = all * replica() / plan_.replicas;
  for (std::int64_t r = 0; r < rounds; ++r) {
    std::int64_t leaving = leave() || unread_.any() ? 1 : 0;
    comm_.all_reduce(std::span(&leaving, 1));
    left = leaving > 0;
    if (left) break;
    std::vector<StageGrain> grains;
    for (const std::int64_t end = std::min(last, next + round); next < end; ++next) {
      const std::int64_t samples = std::min(grain, data.size() - next * grain);
      grains.push_back({.indices = std::span<const std::int32_t>(order).subspan(
                            static_cast<std::size_t>(next * grain), static_cast<std::size_t>(samples))});
    }
    worker_.evaluate(grains);
    links_->flush();
  }
  StepCounters counters = engine_->evaluated();
  counters.values[kStopRequests] = left || unread_.any() ? 1 : 0;
  return evaluation_over_all(comm_, counters);
}

TrainedState Pipeline::whole_state() {
  return {whole_weights_.span(), whole_buffers_.views(), units_};
}

void Pipeline::distribute() {
  naming_silent_stages([&] {
    broadcast_units(comm_, units_);
    for (int rank = 0; rank < comm_.size(); ++rank)
      for (const HeldRange& range : held_layout(setup_.network, plan_, rank % plan_.width).ranges)
        move_state(range, rank, Way::kOut);
    engine_->commit_state();
  });
}

void Pipeline::collect() {
  naming_silent_stages([&] {
    if (replica() == 0) engine_->fetch_state();
    for (int rank = 0; rank < plan_.width; ++rank)
      for (const HeldRange& range : held_layout(setup_.network, plan_, rank).ranges)
        move_state(range, rank, Way::kBack);
  });
}

/// From rank 0's whole state to the rank that holds the range, or back.
void Pipeline::move_state(const HeldRange& range, int holder, Way way) {
  const bool is_holder = comm_.rank() == holder, outward = way == Way::kOut;
  if (comm_.rank() != 0 && !is_holder) return;
  using Spans = std::vector<std::span<float>>;
  const Spans held = is_holder ? spans_of(engine_->state(), range.local, range.size) : Spans();
  const Spans whole = comm_.rank() == 0 ? spans_of(whole_state(), range.global, range.size) : Spans();
  if (holder == 0) {
    for (std::size_t i = 0; i < held.size(); ++i)
      std::ranges::copy(outward ? whole[i] : held[i], (outward ? held[i] : whole[i]).begin());
    return;
  }
  const std::string what = fmt::format("the weights of {} on rank {}", plan_.describe(range.stage), holder);
  const int peer = is_holder ? 0 : holder;
  for (const std::span<float> values : is_holder ? held : whole) {
    const auto pending =
        is_holder == outward
            ? comm_.point_to_point().start_receive(std::as_writable_bytes(values), peer,
                                                   StageLinks::kStateTag)
            : comm_.point_to_point().start_send(std::as_bytes(values), peer, StageLinks::kStateTag);
    comm_.wait(*pending, what);
  }
}

void Pipeline::visit_own_state(const StateVisit& visit) {
  if (!held_.ranges.empty()) engine_->fetch_state();
  const TrainedState none{{}, {}, units_};
  if (visit(held_.ranges.empty() ? none : engine_->state())) engine_->commit_state();
}

DistributedSampler::Options pipeline_sampling(const TrainingOptions& options, const Dataset& data,
                                              const StagePlan& plan, int rank) {
  return sampler_options(options, data, rank / plan.width, plan.replicas);
}

}  // namespace lockstep
