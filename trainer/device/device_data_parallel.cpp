// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Data parallel training on a GPU. The host only launches series of steps: how long one may be, what is looked at
/// between two, and steps done again in another unit.
#include "trainer/device/device_data_parallel.hpp"

#include "comm/agreement.hpp"
#include "comm/device/device_all_reduce.hpp"
#include "comm/reduce/gradient_reducer.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "models/batch_layer.hpp"
#include "trainer/device/device_evaluator.hpp"
#include "trainer/device/device_step.hpp"
#include "trainer/training/data_parallel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

/// kLongestSeries is about two milliseconds of a small network's steps: long enough to hide the host's part. The
/// emulator takes seconds for as many.
constexpr std::int64_t kLongestEmulatedSeries = 4;

/// Shorter for batches so huge that a series could add up more losses than their sum has room for.
std::int64_t longest_series_for(bool emulated, std::int64_t global_batch) {
  const std::int64_t wanted = emulated ? kLongestEmulatedSeries : kLongestSeries;
  return std::clamp<std::int64_t>(kMostLossTerms / global_batch, 1, wanted);
}

BatchShare share_of_grains(const std::vector<Grain>& grains) {
  BatchShare share;
  if (!grains.empty()) share.first = grains.front().first;
  for (const Grain& grain : grains) share.columns += grain.samples;
  return share;
}

/// Samples of the rank that has most in a full batch.
std::int64_t largest_share(const DistributedSampler& sampler, int grain, int ranks) {
  const std::int64_t grains = sampler.batch_grains(0);
  return std::min(sampler.batch_samples(0), (grains + ranks - 1) / ranks * grain);
}

/// Steps in the sample ring: one half is computed while the other is filled. 0: the set does not stream.
std::int64_t ring_steps(const TrainingSetup& setup, bool streams, const DistributedSampler& sampler,
                        int ranks) {
  if (!streams) return 0;
  const auto samples = static_cast<std::uint64_t>(largest_share(sampler, setup.options.step.grain, ranks));
  return training_ring_steps(samples * (setup.mixer.mixes() ? 2 : 1) * row_bytes_of(setup.data->train));
}

/// Columns in a full batch or an epoch's last one, whose grains are dealt anew. Now and then it gives a rank more.
int share_of_rank(const DistributedSampler& sampler, int rank) {
  return std::max(share_of_grains(sampler.grains_of(rank, 0)).columns,
                  share_of_grains(sampler.grains_of(rank, sampler.steps_per_epoch() - 1)).columns);
}

StepTotals totals_of(std::span<const std::int64_t> counters) {
  return decode(counters.first(kStepCounters)).totals();
}

class DeviceDataParallel final : public DataParallel {
 public:
  DeviceDataParallel(const TrainingSetup& setup, const DeviceSetup& device, Communicator& comm);

  Evaluation evaluate(EvaluatedPart part, const LeaveEvaluation& leave) override {
    return evaluator_of(part).evaluate(comm_, arena_.weights(), leave, &unread_);
  }
  TrainedState whole_state() override { return arena_.state(); }

 private:
  StepSeries run_steps(const StepPosition& position, std::int64_t count, bool stop_requested) override;
  std::int64_t steps_taken() override;
  void fetch_state() override {
    arena_.queue_state_to_host();
    step_.stream().synchronize();
  }
  void put_weights() override {
    arena_.queue_state_to_device();
    step_.stream().synchronize();
  }
  void commit_state() override {
    put_weights();
    use_units();
  }
  void require_sight(Sight part) const override {
    DataParallel::require_sight(part);
    if (part == Sight::kSums || part == Sight::kOutputs)
      throw ConfigError(fmt::format("inject.what: {} on a GPU cannot be reached; use parallel.device=cpu",
                                    part == Sight::kSums ? "sums" : "outputs"));
    if (part == Sight::kSumsOnTheirWay) arena_.reducer().require_compared_sums();
  }
  SumFingerprints gradients_of(const StepPosition& position, const std::vector<Grain>& grains);
  std::int64_t at_a_time(std::int64_t samples) const {
    return samples_at_a_time(setup_.options.batch.micro_batch, setup_.options.step.grain, samples);
  }
  StepSizes step_sizes() const;
  DeviceEvaluator& evaluator_of(EvaluatedPart part);
  /// Fingerprints of the share that was computed last.
  SumFingerprints parts_of_share(const SumFingerprints& tensors);
  BatchShare share_of(const std::vector<Grain>& grains, std::int64_t step_in_epoch) const {
    BatchShare share = share_of_grains(grains);
    share.batch = sampler_.batch_samples(step_in_epoch);
    return share;
  }
  BatchShare share_of(std::int64_t step_in_epoch) const {
    return share_of(sampler_.local_grains(step_in_epoch), step_in_epoch);
  }
  void go_to_epoch(const StepPosition& position);
  void queue_state(const StepPosition& position, std::int64_t count, bool stop_requested);
  /// How many of the next steps need not be watched.
  std::int64_t unseen_steps(const StepPosition& position, std::int64_t most) const;
  /// Steps that the host does not look at before the last of them is done. Fewer if one refuses a number.
  void run_unseen(const StepPosition& position, std::int64_t count, bool stop_requested, StepSeries& series);
  class WatchedStep;
  void run_watched(const StepPosition& position, bool stop_requested, StepSeries& series);
  void append_own_sums(std::int64_t steps, StepSeries& series);
  StepTotals reduce(const StepPosition& position);
  std::vector<TensorRefusals> refusals_of_all();
  void use_units() {
    arena_.use_units();
    graphs_.forget();
  }
  /// In a watched step.
  bool compares_on_streams() const { return arena_.reducer().compares_sums() && !arena_.reducer().on_host(); }
  void queue_steps(const StepPosition& position, std::int64_t count);
  void await_samples(std::int64_t end);
  void wait_for_stream();

  /// Kept here because graphs hold all-reduces. They must be gone before what makes those (NCCL's abort waits for
  /// them), in whatever order the strategy and the setup go.
  std::shared_ptr<Gpu> gpu_;
  std::int64_t ring_steps_;  ///< 0: the set does not stream
  DeviceStep step_;
  DeviceArena& arena_;
  StepGraphs graphs_;
  bool streams_;
  std::optional<DeviceEvaluator> tester_, validator_;  ///< made by evaluator_of()
  std::uint64_t tested_set_ = 0;                       ///< as TrainingSetup::test_sets
  std::unique_ptr<Event> series_done_;
  std::int64_t epoch_on_device_ = -1;
  std::int64_t first_of_series_ = 0;  ///< steps taken before it
};

DeviceDataParallel::DeviceDataParallel(const TrainingSetup& setup, const DeviceSetup& device,
                                       Communicator& comm)
    : DataParallel(
          setup, comm,
          longest_series_for(device.gpu->device->kind() == "emulated", setup.options.batch.global_batch)),
      gpu_(device.gpu),
      ring_steps_(ring_steps(setup, device.streams, sampler_, comm.size())),
      step_(setup, *gpu_, device.graph, step_sizes()),
      arena_(step_.arena()),
      graphs_(step_, device.graph, comm),
      streams_(device.streams),
      series_done_(gpu_->device->make_event()) {
  for (const EvaluatedPart part : {EvaluatedPart::kTest, EvaluatedPart::kValidation})
    if (setup.data->part(part).size() > 0) evaluator_of(part);
  step_.record_into(comm.activity().timeline());
  arena_.reducer().show_to(observers_);
}

StepSizes DeviceDataParallel::step_sizes() const {
  const std::int64_t largest = largest_share(sampler_, setup_.options.step.grain, comm_.size());
  const int most = most_of_shares([this](int rank) { return share_of_rank(sampler_, rank); });
  StepSizes sizes{.max_columns = static_cast<int>(at_a_time(most)),
                  .long_steps = at_a_time(largest) < largest,
                  .global_batch = sampler_.batch_samples(0),
                  .global_grains = sampler_.batch_grains(0),
                  .steps_per_epoch = sampler_.steps_per_epoch(),
                  .longest_series = series_.longest()};
  if (ring_steps_ == 0) return sizes;
  const RingSizes ring{.columns = std::max(1, share_of_rank(sampler_, comm_.rank())),
                       .has_pairs = setup_.mixer.mixes(),
                       .steps = ring_steps_,
                       .spare_columns = sizes.max_columns};
  sizes.streaming = {ring, training_rows(sampler_, setup_.mixer, ring.columns)};
  return sizes;
}

/// Made once, and anew for another set.
DeviceEvaluator& DeviceDataParallel::evaluator_of(EvaluatedPart part) {
  const bool tests = part == EvaluatedPart::kTest;
  std::optional<DeviceEvaluator>& evaluator = tests ? tester_ : validator_;
  if (evaluator && (!tests || tested_set_ == setup_.test_sets)) return *evaluator;
  evaluator.reset();  // first, for its memory
  evaluator.emplace(setup_.network, *gpu_, step_.stream(), setup_.data->part(part), setup_.options.loss.loss,
                    at_a_time(kEvaluatedAtOnce), streams_ ? &comm_ : nullptr);
  if (tests) tested_set_ = setup_.test_sets;
  return *evaluator;
}

StepSeries DeviceDataParallel::run_steps(const StepPosition& position, std::int64_t count,
                                         bool stop_requested) {
  const auto start = Clock::now();
  go_to_epoch(position);
  StepSeries series;
  first_of_series_ = position.global_step;
  while (series.steps < count && !series.failure) {
    const StepPosition at = after(position, series.steps);
    const std::int64_t before = series.steps, unseen = unseen_steps(at, count - before);
    if (unseen > 0) run_unseen(at, unseen, stop_requested, series);
    const bool halted = series.steps - before < unseen;
    if (unseen == 0 || halted) run_watched(after(position, series.steps), stop_requested, series);
  }
  if (series.steps > 0) arena_.queue_averages(position.global_step + series.steps - 1);
  const double seconds = seconds_since(start);
  times_.total += seconds;
  if (series.steps > 0) series_.took(series.steps, seconds, comm_);
  return series;
}

std::int64_t DeviceDataParallel::unseen_steps(const StepPosition& position, std::int64_t most) const {
  const Timeline* const timeline = comm_.activity().timeline();
  if (timeline != nullptr && timeline->is_open()) return 0;  // every step is watched, and none is captured
  most = std::min(most, series_.longest());
  if (ring_steps_ > 0) most = std::min(most, ring_steps_ / 2);
  std::int64_t steps = 0;
  while (steps < most && !arena_.units().is_refined_at(position.global_step + steps) &&
         !observers_.looks_at(position.global_step + steps))
    ++steps;
  return steps;
}

/// The device counts them.
std::int64_t DeviceDataParallel::steps_taken() {
  step_.queue_state_to_host();
  step_.stream().synchronize();
  return static_cast<std::int64_t>(step_.state().step) - first_of_series_;
}

void DeviceDataParallel::go_to_epoch(const StepPosition& position) {
  const std::int64_t epoch = position.epoch;
  // By the one the ring has its steps, by the other the order.
  LOCKSTEP_CHECK(ring_steps_ == 0 ||
                 position.global_step == epoch * sampler_.steps_per_epoch() + position.step_in_epoch);
  if (epoch_on_device_ == epoch) return;
  sampler_.set_epoch(epoch);
  const auto order = sampler_.order();
  step_.set_order(order, setup_.mixer.draw(epoch, order, 0, std::ssize(order)));
  epoch_on_device_ = epoch;
}

void DeviceDataParallel::queue_state(const StepPosition& position, std::int64_t count, bool stop_requested) {
  StepState state;
  state.epoch = position.epoch;
  state.step_in_epoch = position.step_in_epoch;
  state.step = static_cast<std::uint32_t>(position.global_step);
  state.stop_requested = stop_requested ? 1 : 0;
  state.scalars = arena_.weight_update().scalars(position.global_step);
  for (std::int64_t i = 1; i < count; ++i)
    state.ahead[i - 1] = arena_.weight_update().scalars(position.global_step + i);
  for (std::int64_t i = 0; i < count; ++i)
    state.loss_scales[i] = step_.loss().scale_of(sampler_, position.step_in_epoch + i);
  step_.queue_state_to_device(state);
}

void DeviceDataParallel::run_unseen(const StepPosition& position, std::int64_t count, bool stop_requested,
                                    StepSeries& series) {
  const auto start = Clock::now();
  arena_.reducer().take_fingerprints_that_left();
  queue_state(position, count, stop_requested);
  queue_steps(position, count);
  step_.queue_state_to_host();
  times_.queueing += seconds_since(start);
  wait_for_stream();
  const StepState& result = step_.state();
  if (result.steps_done == 0) return;
  series.add(result.steps_done, totals_of(result.sums), totals_of(result.last));
  arena_.append_rows(result.steps_done, series.fingerprints);
  append_own_sums(result.steps_done, series);
}

/// One step that the host looks at between reduction and update.
class DeviceDataParallel::WatchedStep final : public StepWork {
 public:
  WatchedStep(DeviceDataParallel& rank, const StepPosition& position, StepSeries& series)
      : rank_(rank), position_(position), series_(series) {}

  StepSums reduce() override {
    if (std::exchange(again_, true)) rank_.use_units();
    rank_.arena_.reducer().take_fingerprints_that_left();
    const StepTotals totals = rank_.reduce(position_);
    if (totals.refused > 0) refusals_ = rank_.refusals_of_all();
    return {totals, refusals_};
  }
  void take(const StepTotals& /*totals*/) override {
    rank_.step_.queue_update();
    rank_.step_.queue_state_to_host();
    rank_.wait_for_stream();
    rank_.arena_.append_rows(1, series_.fingerprints);
    rank_.append_own_sums(1, series_);
  }
  bool has_units() const override { return true; }
  std::vector<double> largest_sums() override { return rank_.arena_.largest_sums(); }

  const StepPosition& position() const override { return position_; }
  SumFingerprints own_share() override {
    return rank_.parts_of_share(rank_.arena_.reducer().own_fingerprints());
  }
  bool has_room_for(std::size_t /*grains*/) override {
    return rank_.arena_.reducer().compares_sums() && cuts_of(rank_.setup_.network).empty();
  }
  SumFingerprints gradients_of(const std::vector<Grain>& grains) override {
    return rank_.gradients_of(position_, grains);
  }

 private:
  DeviceDataParallel& rank_;
  const StepPosition& position_;
  StepSeries& series_;
  std::vector<TensorRefusals> refusals_;
  bool again_ = false;
};

void DeviceDataParallel::run_watched(const StepPosition& position, bool stop_requested, StepSeries& series) {
  step_.begin_trace();
  if (compares_on_streams()) arena_.reducer().hold_buckets(true);
  queue_state(position, 1, stop_requested);
  unread_.take();  // forgets those of a halted series, which is tried again
  await_samples(position.global_step + 1);
  WatchedStep step(*this, position, series);
  take_step(step, arena_.units(), observers_, comm_.activity().timeline(), series);
  step_.end_trace();
  if (compares_on_streams()) arena_.reducer().hold_buckets(false);
  if (series.failure) arena_.queue_zero_sums();
}

/// Behind a step that was refused, the device took none.
void DeviceDataParallel::append_own_sums(std::int64_t steps, StepSeries& series) {
  const auto left = arena_.reducer().take_fingerprints_that_left();
  const auto count = std::min(std::ssize(left), steps);
  series.own_sums.insert(series.own_sums.end(), left.begin(), left.begin() + count);
}

StepTotals DeviceDataParallel::reduce(const StepPosition& position) {
  arena_.queue_zero_sums();
  if (unread_.any()) step_.queue_refusal();
  step_.queue_gradients(share_of(position.step_in_epoch), observers_.looks_at(position.global_step)
                                                              ? DeviceStep::CutSumsFrom::kRanksNoted
                                                              : DeviceStep::CutSumsFrom::kRanks);
  arena_.reducer().reduce_watched(step_.stream(), comm_, [this] { wait_for_stream(); });
  step_.queue_counters_to_host();
  wait_for_stream();
  return totals_of(step_.counters());
}

SumFingerprints DeviceDataParallel::gradients_of(const StepPosition& position,
                                                 const std::vector<Grain>& grains) {
  arena_.queue_zero_sums();
  const std::int64_t begin_of_step = sampler_.place(position.step_in_epoch, {});
  step_.queue_gradients_of_others(share_of(grains, position.step_in_epoch), [&](const BatchShare& part) {
    return rows_of_places(setup_.mixer, position.epoch, sampler_.order(), begin_of_step + part.first,
                          part.columns, step_.at_a_time());
  });
  return parts_of_share(arena_.reducer().take_replayed(step_.stream()));
}

SumFingerprints DeviceDataParallel::parts_of_share(const SumFingerprints& tensors) {
  SumFingerprints parts = step_.own_cut_sums();
  parts.insert(parts.end(), tensors.begin(), tensors.end());
  return parts;
}

std::vector<TensorRefusals> DeviceDataParallel::refusals_of_all() {
  std::vector<TensorRefusals> refusals = arena_.own_refusals();
  comm_.all_reduce(std::span(&refusals.front().too_large, kRefusalKinds * refusals.size()));
  return refusals;
}

/// Full batches come first in an epoch, so a series has at most two shapes.
void DeviceDataParallel::queue_steps(const StepPosition& position, std::int64_t count) {
  const std::int64_t most = ring_steps_ > 0 ? DeviceStep::kStreamedAtOnce : count;
  for (std::int64_t done = 0, alike = 1; done < count; done += alike) {
    const std::int64_t first = position.step_in_epoch + done;
    const auto is_alike = [&](std::int64_t step) {
      return sampler_.batch_samples(step) == sampler_.batch_samples(first);
    };
    for (alike = 1; alike < std::min(most, count - done) && is_alike(first + alike);) ++alike;
    await_samples(position.global_step + done + alike);
    graphs_.queue(share_of(first), alike);
  }
}

/// A rank whose samples do not come computes what is in their place, and no rank takes the step.
void DeviceDataParallel::await_samples(std::int64_t end) {
  if (!unread_.attempt([&] { step_.await_samples(comm_, end); })) step_.queue_refusal();
}

void DeviceDataParallel::wait_for_stream() {
  step_.stream().record(*series_done_);
  wait_for(*series_done_, comm_, "the training steps on the GPU", gpu_->all_reduce.get());
}

}  // namespace

std::unique_ptr<ParallelStrategy> make_device_data_parallel(const TrainingSetup& setup,
                                                            const DeviceSetup& device, Communicator& comm) {
  return std::make_unique<DeviceDataParallel>(setup, device, comm);
}

}  // namespace lockstep
