// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The stages of one rank on a GPU: passes are queued on one stream. Messages lie there or in pinned memory.
#include "comm/communicator.hpp"
#include "comm/device/device_all_reduce.hpp"
#include "common/error.hpp"
#include "kernels/device.hpp"
#include "kernels/device_buffer.hpp"
#include "kernels/device_timeline.hpp"
#include "models/device/device_execution.hpp"
#include "trainer/device/device_arena.hpp"
#include "trainer/device/device_data.hpp"
#include "trainer/device/device_loss.hpp"
#include "trainer/device/gpu.hpp"
#include "trainer/device/gradient_path.hpp"
#include "trainer/parallel/stage_engine.hpp"
#include "trainer/parallel/stage_links.hpp"
#include "trainer/training/training_loss.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace lockstep {
namespace {

/// Computes the operations of a GPU that has the whole network, on grains, and so the same bits. Messages between
/// stages are on the GPU where they stay there (messages_stay_on_device), otherwise in pinned host memory. Each pass
/// ends with a wait for the GPU: the host says when what it made is sent, and how long it took.
class DeviceStageEngine final : public StageEngine {
 public:
  explicit DeviceStageEngine(const StageEngineParts& parts);

  Stream* message_stream() override { return direct_ ? main_.get() : nullptr; }
  void while_waiting(const std::function<void()>& meanwhile) override { meanwhile_ = meanwhile; }

  void make_room(int stage, int micro_batches) override {
    Slots& slots = at(slots_, stage);
    slots.reserve(static_cast<std::size_t>(micro_batches));
    while (std::ssize(slots) < micro_batches) {
      slots.emplace_back(network(), *gpu_->device, *gpu_->ops, grain_, DeviceExecution::Purpose::kTraining,
                         part(stage));
      slots.back().record_into(&timeline_);
    }
  }
  std::span<float> input(const StageVisit& visit) override {
    return {direct_ ? slot(visit).input() : arriving_.data(), input_size(visit)};
  }
  std::span<const float> forward(const StageVisit& visit) override;
  std::span<float> output_gradient(const StageVisit& visit) override {
    return {direct_ ? slot(visit).output_gradient() : arriving_.data(), output_size(visit)};
  }
  std::span<const float> backward(const StageVisit& visit) override;

  void begin_step(const StepPosition& position, const GradientUnits& units, int grains) override;
  StageSums reduce() override {
    const auto wait = [this] { wait_for_stream("the sums of the pipelines' gradients"); };
    if (arena_) arena_->reducer().reduce_watched(*main_, parts_.replicas, wait);
    main_->copy_to_host(host_counters_.data(), counters_.data(), counters_.bytes());
    wait();
    return {counters(), arena_ ? arena_->own_refusals() : std::vector<TensorRefusals>()};
  }
  void require_sight(Sight part) const override {
    if (part == Sight::kOutputs)
      throw ConfigError("inject.what: outputs on a GPU cannot be reached; use parallel.device=cpu");
    if (part == Sight::kSumsOnTheirWay) arena_->reducer().require_compared_sums();
  }
  SumFingerprints own_fingerprints() override {
    return arena_ ? arena_->reducer().own_fingerprints() : SumFingerprints();
  }
  void begin_replay(int /*grains*/) override {
    replaying_ = true;
    begin_sums();
  }
  SumFingerprints end_replay() override {
    replaying_ = false;
    return arena_ ? arena_->reducer().take_replayed(*main_) : SumFingerprints();
  }
  std::uint64_t fingerprint_that_left() override {
    return arena_ ? arena_->reducer().take_fingerprints_that_left().back() : 0;
  }
  std::vector<double> largest_sums() override {
    return arena_ ? arena_->largest_sums() : std::vector<double>();
  }
  void update(const StepPosition& position, std::int64_t samples, std::vector<std::uint64_t>& rows,
              const NormOfAll& norm) override;

  void forget_evaluation() override { main_->fill_zero(counters_.data(), counters_.bytes()); }
  StepCounters evaluated() override {
    main_->copy_to_host(host_counters_.data(), counters_.data(), counters_.bytes());
    wait_for_stream("an evaluation on the GPU");
    return counters();
  }

  TrainedState state() override { return arena_->state(); }
  void fetch_state() override {
    if (!arena_) return;
    arena_->queue_state_to_host();
    wait_for_stream("the weights on the GPU");
  }
  void commit_state() override {
    if (!arena_) return;
    arena_->queue_state_to_device();
    wait_for_stream("the weights on their way to the GPU");
  }

 private:
  using Slots = std::vector<DeviceExecution>;

  DeviceExecution& slot(const StageVisit& visit) { return slot_of(slots_, visit); }
  void take_data();
  std::optional<Streaming> streaming_of_steps() const;
  /// Numbers in the largest message of this rank's stages that goes through the host.
  std::size_t most_numbers() const {
    if (direct_) return 0;
    std::size_t most = 0;
    for (const int stage : stages_) {
      if (stage > 0) most = std::max(most, input_features(stage));
      if (stage < plan().last()) most = std::max(most, output_features(stage));
    }
    return most * static_cast<std::size_t>(grain_);
  }
  /// From where it arrived to where a pass reads it.
  void queue_arrival(float* to, std::size_t count) {
    if (!direct_) main_->copy_to_device(to, arriving_.data(), count * sizeof(float));
  }
  /// From where a pass made it to where it is sent.
  std::span<const float> queue_leaving(const float* from, std::size_t count) {
    if (direct_) return {from, count};
    main_->copy_to_host(leaving_.data(), from, count * sizeof(float));
    return leaving_.span().first(count);
  }
  const float* weights_of(int stage) {
    const HeldRange* range = held().range_of(stage);
    return range == nullptr ? nullptr : arena_->weights() + range->local;
  }
  /// Gradient of the stage alone: what passes add to counts from its first parameter, and its first tensor.
  DeviceGradient gradient_of(int stage) {
    const HeldRange* range = held().range_of(stage);
    if (range == nullptr) return {};
    DeviceGradient gradient = arena_->gradient(grain_);
    gradient.arena += range->local;
    gradient.formats = gradient.formats.subspan(range->first_tensor);
    gradient.refusals += range->first_tensor * kRefusalKinds;
    return gradient;
  }
  DevicePass pass_of(const StageVisit& visit) const {
    return {.batch = visit.grain.samples(),
            .seed = parts_.setup.options.seed,
            .first_sample = visit.grain.key.first_sample,
            .state = state_.data(),
            .grain = grain_};
  }
  void begin_sums() {
    if (!arena_) return;
    arena_->queue_zero_sums();
    arena_->reducer().begin();
  }
  void queue_samples(const StageVisit& visit, DeviceExecution& execution);
  DeviceData& data_on_device(const StageVisit& visit) {
    if (visit.training) return *train_;
    return evaluated_part_ == EvaluatedPart::kTest ? *test_ : *validation_;
  }
  /// Waits for the samples and finds them; those of other pipelines are fetched.
  StreamedRows await_samples(const StageVisit& visit);
  void queue_loss(const StageVisit& visit, DeviceExecution& execution);
  /// With the deadline of the ranks.
  void wait_for_stream(std::string_view what) {
    main_->record(*done_);
    wait_for(*done_, parts_.comm, what, all_reduce_.get(), meanwhile_);
  }

  StepCounters counters() const { return decode(host_counters_.span().first(kStepCounters)); }

  std::shared_ptr<Gpu> gpu_;  ///< as device_data_parallel.cpp keeps it
  std::vector<int> stages_;   ///< this rank's
  bool direct_;               ///< messages are on the GPU
  std::function<void()> meanwhile_ = [] {};
  int grain_;
  double narrow_limit_, evaluation_limit_;       ///< for losses, in training and evaluation
  std::unique_ptr<DeviceAllReduce> all_reduce_;  ///< over the replicas; null: there is one
  std::unique_ptr<Stream> main_, side_;
  std::unique_ptr<Event> done_;
  std::optional<DeviceData> train_, test_, validation_;  ///< empty unless the rank has the first stage
  bool replaying_ = false;
  std::int64_t step_ = 0, first_of_step_ = 0;  ///< under way; of the rank's pipeline in its global batch
  DeviceState state_;
  std::optional<DeviceArena> arena_;  ///< none: the rank's stages have no parameters
  std::vector<Slots> slots_;          ///< for each stage of the network; none for others'
  TrainingLoss loss_;
  DeviceLossRule loss_rule_;
  PinnedBuffer<float> arriving_, leaving_;
  PinnedBuffer<std::int32_t> host_indices_, host_labels_;  ///< for a grain
  DeviceBuffer<std::int32_t> indices_;
  DeviceMixes mixes_;                    ///< for a grain
  DeviceBuffer<std::int64_t> counters_;  ///< for losses
  PinnedBuffer<std::int64_t> host_counters_;
  DeviceTimeline timeline_;
};

DeviceStageEngine::DeviceStageEngine(const StageEngineParts& parts)
    : StageEngine(parts, 1),
      gpu_(parts.device.gpu),
      stages_(parts.plan.stages_of(parts.rank)),
      direct_(messages_stay_on_device(parts.plan, gpu_.get())),
      grain_(parts.setup.options.step.grain),
      narrow_limit_(narrow_loss_limit(parts.sampler.batch_samples(0))),
      evaluation_limit_(
          narrow_loss_limit(std::max(parts.setup.data->test.size(), parts.setup.data->validation.size()))),
      all_reduce_(set_up_all_reduce(parts.replicas, *gpu_->device, parts.device.path).all_reduce),
      main_(gpu_->device->make_stream(Device::Priority::kHigh)),
      side_(gpu_->device->make_stream()),
      done_(gpu_->device->make_event()),
      state_(*gpu_->device),
      slots_(parts.plan.stages.size()),
      loss_(parts.setup.options, parts.setup.data->train),
      loss_rule_(*gpu_->device, *main_, loss_.rule(), parts.setup.data->train),
      arriving_(*gpu_->device, most_numbers()),
      leaving_(*gpu_->device, most_numbers()),
      host_indices_(*gpu_->device, static_cast<std::size_t>(grain_)),
      host_labels_(*gpu_->device, static_cast<std::size_t>(grain_)),
      indices_(*gpu_->device, static_cast<std::size_t>(grain_)),
      mixes_(*gpu_->device, parts.setup.mixer, static_cast<std::size_t>(grain_),
             static_cast<std::size_t>(grain_)),
      counters_(*gpu_->device, kCounterSlots),
      host_counters_(*gpu_->device, kCounterSlots),
      timeline_(*gpu_->device) {
  timeline_.record_into(parts.comm.activity().timeline());
  timeline_.name(*main_, "device: main stream");
  timeline_.name(*side_, "device: side stream");
  if (stages_.front() == 0) take_data();
  if (parts.held.ranges.empty()) return;
  arena_.emplace(arena_part(), *gpu_, *main_, state_, all_reduce_.get(), 1);
  arena_->reducer().record_into(&timeline_);
  arena_->reducer().show_to(parts_.observers);
  if (arena_->reducer().compares_sums() && !arena_->reducer().on_host()) arena_->reducer().hold_buckets(true);
}

void DeviceStageEngine::take_data() {
  const TrainTestData& sets = *parts_.setup.data;
  train_.emplace(*gpu_->device, *main_, sets.train, parts_.setup.augment_plan(), streaming_of_steps());
  const auto put = [&](const Dataset& set, std::optional<DeviceData>& data) {
    std::optional<Streaming> streaming;
    if (parts_.device.streams)
      streaming = {{.columns = grain_, .steps = kEvaluationRingSteps}, evaluated_rows(0, set.size(), grain_)};
    data.emplace(*gpu_->device, *main_, set, nullptr, streaming);
  };
  put(sets.test, test_);
  if (sets.validation.size() > 0) put(sets.validation, validation_);
}

/// A step is all grains of this rank's pipeline.
std::optional<Streaming> DeviceStageEngine::streaming_of_steps() const {
  if (!parts_.device.streams) return std::nullopt;
  RingSizes sizes{.columns = grain_ * std::max(1, parts_.sampler.most_local_grains()),
                  .has_pairs = parts_.setup.mixer.mixes(),
                  .spare_columns = grain_};
  sizes.steps =
      training_ring_steps(static_cast<std::uint64_t>(sizes.rows()) * row_bytes_of(parts_.setup.data->train));
  return Streaming{sizes, training_rows(parts_.sampler, parts_.setup.mixer, sizes.columns)};
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
  if (visit.stage == plan().last()) {
    queue_loss(visit, execution);
  } else {
    leaving = queue_leaving(output, output_size(visit));
  }
  wait_for_stream("a forward pass on the GPU");
  return leaving;
}

void DeviceStageEngine::queue_samples(const StageVisit& visit, DeviceExecution& execution) {
  const auto indices = visit.grain.indices;
  std::ranges::copy(indices, host_indices_.data());
  main_->copy_to_device(indices_.data(), host_indices_.data(), indices.size_bytes());
  mixes_.queue(*main_, visit.grain.mixes);
  const StreamedRows rows = await_samples(visit);
  gpu_->ops->gather(*main_, visit.grain.samples(), data_on_device(visit).view(),
                    {.order = indices_.data(),
                     .state = visit.training ? state_.data() : nullptr,
                     .mixes = visit.training ? mixes_.mixes() : nullptr,
                     .second_labels = mixes_.second_labels(),
                     .rows = rows},
                    execution.input(), execution.labels());
}

/// Each pass before this one has ended.
StreamedRows DeviceStageEngine::await_samples(const StageVisit& visit) {
  SampleRing* const ring = data_on_device(visit).ring();
  if (ring == nullptr) return {};
  if (visit.training && replaying_)
    return ring->load_now(*main_, rows_of_samples(visit.grain.indices, visit.grain.mixes, grain_));
  const std::int64_t step = visit.training ? step_ : visit.grain.indices.front() / grain_;
  const std::int64_t column = visit.training ? visit.grain.key.first_sample - first_of_step_ : 0;
  ring->begin(step);
  parts_.unread.attempt([&] { ring->await(parts_.comm, *main_, step + 1); });
  return ring->rows_of_step(step, column);
}

void DeviceStageEngine::queue_loss(const StageVisit& visit, DeviceExecution& execution) {
  copy_labels(visit, host_labels_.span());
  main_->copy_to_device(execution.labels(), host_labels_.data(), visit.grain.indices.size_bytes());
  const int samples = visit.grain.samples();
  if (visit.training) mixes_.queue_labels(*main_, visit.grain.second_labels, samples);
  const LossTarget target{.labels = execution.labels(),
                          .counters = counters_.data(),
                          .narrow_limit = visit.training ? narrow_limit_ : evaluation_limit_,
                          .state = visit.training ? state_.data() : nullptr};
  const LossShape shape{.batch = samples,
                        .samples = samples,
                        .classes = network().classes(),
                        .rule = visit.training ? loss_rule_.rule() : loss_rule_.of_evaluation(),
                        .mixed = visit.training ? mixes_.second_labels() : nullptr};
  gpu_->ops->loss_and_gradient(*main_, shape, execution.logits(), target,
                               visit.training ? execution.logits() : nullptr);
}

std::span<const float> DeviceStageEngine::backward(const StageVisit& visit) {
  DeviceExecution& execution = slot(visit);
  float* arrived = execution.output_gradient();
  if (visit.stage < plan().last()) queue_arrival(arrived, output_size(visit));
  const auto is_not_asked_yet = [](Stream&, std::size_t, std::size_t) {};  // buckets leave in reduce()
  execution.backward(*main_, *side_, arrived, gradient_of(visit.stage), is_not_asked_yet);
  const float* gradient = execution.input_gradient();
  std::span<const float> leaving;
  if (gradient != nullptr) leaving = queue_leaving(gradient, input_size(visit));
  wait_for_stream("a backward pass on the GPU");
  return leaving;
}

void DeviceStageEngine::begin_step(const StepPosition& position, const GradientUnits& units, int /*grains*/) {
  timeline_.end_step();  // ends the first try of a step that is computed again
  timeline_.begin_step(*main_);
  step_ = position.global_step;
  const std::vector<Grain> grains = parts_.sampler.local_grains(position.step_in_epoch);
  first_of_step_ = grains.empty() ? 0 : grains.front().first;
  StepState state;
  state.epoch = position.epoch;
  state.step_in_epoch = position.step_in_epoch;
  state.step = static_cast<std::uint32_t>(position.global_step);
  state.loss_scales[0] = loss_.scale_of(parts_.sampler, position.step_in_epoch);
  if (arena_) state.scalars = arena_->weight_update().scalars(position.global_step);
  state_.queue_to_device(*main_, state);
  main_->fill_zero(counters_.data(), counters_.bytes());
  if (arena_ && held().take_units(units, arena_->units())) arena_->use_units();
  begin_sums();
}

/// The update divides by the samples that the sums bring with them. It stops where they say that a number was
/// refused; of both, the host knows those of all stages.
void DeviceStageEngine::update(const StepPosition& position, std::int64_t samples,
                               std::vector<std::uint64_t>& rows, const NormOfAll& norm) {
  if (!arena_) {
    if (clips_by_norm()) norm({});
    return timeline_.end_step();
  }
  std::ranges::fill(host_counters_.span(), 0);
  host_counters_[kSamples] = samples;
  main_->copy_to_device(arena_->counters(), host_counters_.data(), host_counters_.bytes());
  arena_->queue_zero_rows();
  if (clips_by_norm()) {
    arena_->queue_gradient_norm();
    arena_->queue_clip_factor(norm(arena_->gradient_squares()));
  }
  arena_->queue_update();
  arena_->queue_averages(position.global_step);
  arena_->queue_rows_to_host();
  wait_for_stream("an update on the GPU");
  arena_->append_rows(1, rows);
  timeline_.end_step();
}

}  // namespace

std::unique_ptr<StageEngine> make_device_stage_engine(const StageEngineParts& parts) {
  return std::make_unique<DeviceStageEngine>(parts);
}

}  // namespace lockstep
