// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// DeviceStageEngine: passes are queued on one stream, and messages go through pinned memory.
#include "trainer/strategies/device_stage_engine.hpp"

#include "comm/backend.hpp"
#include "comm/communicator.hpp"
#include "comm/device_collectives.hpp"
#include "kernels/device.hpp"
#include "models/layer.hpp"
#include "trainer/config/job.hpp"
#include "trainer/ranks/all_reduce_choice.hpp"
#include "trainer/strategies/stage_links.hpp"

#include <algorithm>
#include <functional>

namespace lockstep {

// Work on a rank's device as something that the communicator can wait for, while messages between stages go on.

/// The end of what is queued for this rank's stages, in which other ranks may take part. Borrows all.
class StageWork final : public PendingCollective {
 public:
  StageWork(Event& done, DeviceAllReduce* all_reduce, const std::function<void()>& meanwhile)
      : done_(done), all_reduce_(all_reduce), meanwhile_(meanwhile) {}

  bool test() override {
    if (done_.done()) return true;
    if (all_reduce_ != nullptr) all_reduce_->check();
    meanwhile_();
    return false;
  }
  bool needs_this_core() const override { return all_reduce_ != nullptr && all_reduce_->on_stream(); }

 private:
  Event& done_;
  DeviceAllReduce* all_reduce_;
  const std::function<void()>& meanwhile_;
};

DeviceStageEngine::DeviceStageEngine(const StageEngineParts& parts)
    : gpu_(parts.setup.device.gpu),
      network_(parts.setup.network),
      data_(*parts.setup.data),
      plan_(parts.plan),
      stages_(parts.plan.stages_of(parts.rank)),
      held_(parts.held),
      direct_(messages_stay_on_device(parts.plan, gpu_.get())),
      comm_(parts.comm),
      grain_(parts.job.parallel.grain),
      seed_(parts.job.train.seed),
      narrow_limit_(narrow_loss_limit(parts.sampler.batch_samples(0))),
      evaluation_limit_(narrow_loss_limit(parts.setup.data->test.size())),
      all_reduce_(set_up_all_reduce(parts.replicas, *gpu_->device,
                                    backend_named(parts.job.parallel.backend).gradients)
                      .all_reduce),
      main_(gpu_->device->make_stream(Device::Priority::kHigh)),
      side_(gpu_->device->make_stream()),
      done_(gpu_->device->make_event()),
      update_(parts.job, held_.layout, parts.sampler.steps_per_epoch()),
      weights_(held_.layout.size),
      buffers_(update_.buffer_names(), held_.layout.size),
      state_(*gpu_->device),
      slots_(parts.plan.stages.size()),
      arriving_(*gpu_->device, most_numbers()),
      leaving_(*gpu_->device, most_numbers()),
      host_indices_(*gpu_->device, static_cast<std::size_t>(grain_)),
      host_labels_(*gpu_->device, static_cast<std::size_t>(grain_)),
      indices_(*gpu_->device, static_cast<std::size_t>(grain_)),
      counters_(*gpu_->device, kCounterSlots),
      host_counters_(*gpu_->device, kCounterSlots) {
  if (stages_.front() == 0) {
    train_.emplace(*gpu_->device, *main_, data_.train);
    test_.emplace(*gpu_->device, *main_, data_.test);
  }
  const ParameterLayout& whole = network_.parameters();
  const FingerprintLayout row = fingerprint_layout(whole, buffers_.count());
  if (keeps_trail(parts.job)) slots_of_row_ = row.slots();
  if (held_.ranges.empty()) return;
  const auto determinism = parts.job.parallel.determinism;
  const BucketPlan buckets = held_.buckets();
  arena_.emplace(*gpu_, *main_, held_.layout, update_,
                 GradientUnits(held_.tensor_sizes(), parts.sampler.batch_grains(0)), state_,
                 DeviceArena::Reduction{all_reduce_.get(), buckets, determinism});
  if (keeps_trail(parts.job)) arena_->keep_fingerprints(row, places_in_network(held_, whole), 1);
}

std::size_t DeviceStageEngine::input_size(const StageVisit& visit) const {
  const Layer& first = *network_.layers()[part(visit.stage).first];
  return std::size_t{1} * first.input().features() * visit.grain.samples();
}

std::size_t DeviceStageEngine::output_size(const StageVisit& visit) const {
  const Layer& last = *network_.layers()[part(visit.stage).last - 1];
  return std::size_t{1} * last.output().features() * visit.grain.samples();
}

std::size_t DeviceStageEngine::most_numbers() const {
  if (direct_) return 0;
  int most = 0;
  for (const int stage : stages_) {
    if (stage > 0) most = std::max(most, network_.layers()[part(stage).first]->input().features());
    if (stage < plan_.last())
      most = std::max(most, network_.layers()[part(stage).last - 1]->output().features());
  }
  return std::size_t{1} * most * grain_;
}

void DeviceStageEngine::make_room(int stage, int micro_batches) {
  Slots& slots = slots_[static_cast<std::size_t>(stage)];
  slots.reserve(static_cast<std::size_t>(micro_batches));
  while (slots.size() < static_cast<std::size_t>(micro_batches)) {
    slots.emplace_back(network_, *gpu_->device, *gpu_->ops, grain_, DeviceExecution::Purpose::kTraining,
                       part(stage));
  }
}

DeviceExecution& DeviceStageEngine::slot(const StageVisit& visit) {
  Slots& slots = slots_[static_cast<std::size_t>(visit.stage)];
  return slots[static_cast<std::size_t>(visit.number) % slots.size()];
}

const float* DeviceStageEngine::weights_of(int stage) {
  const HeldRange* range = held_.range_of(stage);
  return range == nullptr ? nullptr : arena_->weights() + range->local;
}

/// Of the stage alone: what passes add to counts from its first parameter, and its first tensor.
DeviceGradient DeviceStageEngine::gradient_of(int stage) {
  const HeldRange* range = held_.range_of(stage);
  if (range == nullptr) return {};
  DeviceGradient gradient = arena_->gradient(grain_);
  gradient.arena += range->local;
  gradient.formats = gradient.formats.subspan(range->first_tensor);
  gradient.refusals += range->first_tensor * kRefusalKinds;
  return gradient;
}

DevicePass DeviceStageEngine::pass_of(const StageVisit& visit) const {
  return {.batch = visit.grain.samples(),
          .seed = seed_,
          .first_sample = visit.grain.key.first_sample,
          .state = state_.data(),
          .grain = grain_};
}

std::span<const float> DeviceStageEngine::forward(const StageVisit& visit) {
  DeviceExecution& execution = slot(visit);
  if (visit.stage == 0) {
    queue_samples(visit, execution);
  } else {
    queue_arrival(execution.input(), input_size(visit));
  }
  const float* weights = weights_of(visit.stage);
  const float* output = visit.training ? execution.forward_training(*main_, weights, pass_of(visit))
                                       : execution.forward_evaluation(*main_, weights, visit.grain.samples());
  std::span<const float> leaving;
  if (visit.stage == plan_.last()) {
    queue_loss(visit, execution);
  } else {
    leaving = queue_shutdown(output, output_size(visit));
  }
  wait_for_stream("a forward pass on the GPU");
  return leaving;
}

std::span<float> DeviceStageEngine::input(const StageVisit& visit) {
  return {direct_ ? slot(visit).input() : arriving_.data(), input_size(visit)};
}

std::span<float> DeviceStageEngine::output_gradient(const StageVisit& visit) {
  return {direct_ ? slot(visit).output_gradient() : arriving_.data(), output_size(visit)};
}

void DeviceStageEngine::queue_arrival(float* to, std::size_t count) {
  if (!direct_) main_->copy_to_device(to, arriving_.data(), count * sizeof(float));
}

std::span<const float> DeviceStageEngine::queue_shutdown(const float* from, std::size_t count) {
  if (direct_) return {from, count};
  main_->copy_to_host(leaving_.data(), from, count * sizeof(float));
  return leaving_.span().first(count);
}

void DeviceStageEngine::queue_samples(const StageVisit& visit, DeviceExecution& execution) {
  const auto indices = visit.grain.indices;
  std::ranges::copy(indices, host_indices_.data());
  main_->copy_to_device(indices_.data(), host_indices_.data(), indices.size_bytes());
  gpu_->ops->gather(*main_, visit.grain.samples(), (visit.training ? *train_ : *test_).view(),
                    {.order = indices_.data()}, execution.input(), execution.labels());
}

void DeviceStageEngine::queue_loss(const StageVisit& visit, DeviceExecution& execution) {
  const Dataset& data = visit.training ? data_.train : data_.test;
  const auto indices = visit.grain.indices;
  for (std::size_t n = 0; n < indices.size(); ++n)
    host_labels_[n] = data.labels[static_cast<std::size_t>(indices[n])];
  main_->copy_to_device(execution.labels(), host_labels_.data(), indices.size_bytes());
  const int samples = visit.grain.samples();
  const LossTarget target{.labels = execution.labels(),
                          .counters = counters_.data(),
                          .narrow_limit = visit.training ? narrow_limit_ : evaluation_limit_};
  gpu_->ops->softmax_cross_entropy(*main_,
                                   {.batch = samples, .samples = samples, .classes = network_.classes()},
                                   execution.logits(), target, visit.training ? execution.logits() : nullptr);
}

std::span<const float> DeviceStageEngine::backward(const StageVisit& visit) {
  DeviceExecution& execution = slot(visit);
  float* arrived = execution.output_gradient();
  if (visit.stage < plan_.last()) queue_arrival(arrived, output_size(visit));
  const auto is_not_asked_yet = [](Stream&, std::size_t, std::size_t) {};  // buckets leave in reduce()
  execution.backward(*main_, *side_, weights_of(visit.stage), pass_of(visit), arrived,
                     gradient_of(visit.stage), is_not_asked_yet);
  const float* gradient = execution.input_gradient();
  std::span<const float> leaving;
  if (gradient != nullptr) leaving = queue_shutdown(gradient, input_size(visit));
  wait_for_stream("a backward pass on the GPU");
  return leaving;
}

void DeviceStageEngine::wait_for_stream(std::string_view what) {
  main_->record(*done_);
  StageWork work(*done_, all_reduce_.get(), meanwhile_);
  comm_.wait(work, what);
}

void DeviceStageEngine::use_units(const GradientUnits& whole) {
  std::vector<std::int16_t> exponents;
  for (const std::size_t tensor : held_.tensors) exponents.push_back(whole.exponents()[tensor]);
  GradientUnits& units = arena_->units();
  if (std::ranges::equal(exponents, units.exponents())) return;
  units.restore(exponents, whole.changed_at());
  arena_->use_units();
}

void DeviceStageEngine::begin_step(const StepPosition& position, const GradientUnits& units, int /*grains*/) {
  StepState state;
  state.step_in_epoch = position.step_in_epoch;
  state.step = static_cast<std::uint32_t>(position.global_step);
  state.scalars = update_.scalars(position.global_step);
  state_.queue_to_device(*main_, state);
  main_->fill_zero(counters_.data(), counters_.bytes());
  if (!arena_) return;
  use_units(units);
  arena_->queue_zero_sums();
  arena_->reducer().begin();
}

void DeviceStageEngine::reduce() {
  if (arena_) {
    DeviceGradientReducer& reducer = arena_->reducer();
    if (reducer.on_host()) {
      reducer.reduce(*main_);
    } else {
      reducer.finish(*main_);
    }
  }
  main_->copy_to_host(host_counters_.data(), counters_.data(), counters_.bytes());
  wait_for_stream("the sums of the pipelines' gradients");
}

StepCounters DeviceStageEngine::counters() {
  return decode(host_counters_.span().first(kStepCounters));
}

std::vector<TensorRefusals> DeviceStageEngine::refusals() {
  return arena_ ? arena_->own_refusals() : std::vector<TensorRefusals>();
}

std::vector<double> DeviceStageEngine::largest_sums() {
  return arena_ ? arena_->largest_sums() : std::vector<double>();
}

/// The update divides by the samples that the sums bring with them, and stops where they say that a number was
/// refused; of both, the host knows those of all stages.
void DeviceStageEngine::update(const StepPosition& /*position*/, std::int64_t samples,
                               std::vector<std::uint64_t>& rows) {
  if (!arena_) {
    rows.resize(rows.size() + slots_of_row_);
    return;
  }
  std::ranges::fill(host_counters_.span(), 0);
  host_counters_[kSamples] = samples;
  main_->copy_to_device(arena_->counters(), host_counters_.data(), host_counters_.bytes());
  DeviceFingerprints* fingerprints = arena_->fingerprints();
  if (fingerprints != nullptr) fingerprints->zero(*main_);
  arena_->queue_update();
  if (fingerprints != nullptr) fingerprints->fetch(*main_);
  wait_for_stream("an update on the GPU");
  if (fingerprints != nullptr) fingerprints->append(1, rows);
}

void DeviceStageEngine::begin_evaluation() {
  main_->fill_zero(counters_.data(), counters_.bytes());
}

EvaluationSums DeviceStageEngine::evaluated() {
  main_->copy_to_host(host_counters_.data(), counters_.data(), counters_.bytes());
  wait_for_stream("an evaluation on the GPU");
  EvaluationSums sums;
  sums.add(counters().totals());
  return sums;
}

void DeviceStageEngine::fetch_state() {
  if (!arena_) return;
  main_->copy_to_host(weights_.data(), arena_->weights(), weights_.span().size_bytes());
  for (std::size_t i = 0; i < buffers_.count(); ++i)
    main_->copy_to_host(buffers_.values(i).data(), arena_->buffer(i), buffers_.values(i).size_bytes());
  wait_for_stream("the weights on the GPU");
}

void DeviceStageEngine::commit_state() {
  if (!arena_) return;
  main_->copy_to_device(arena_->weights(), weights_.data(), weights_.span().size_bytes());
  for (std::size_t i = 0; i < buffers_.count(); ++i)
    main_->copy_to_device(arena_->buffer(i), buffers_.values(i).data(), buffers_.values(i).size_bytes());
  wait_for_stream("the weights on their way to the GPU");
}

}  // namespace lockstep
