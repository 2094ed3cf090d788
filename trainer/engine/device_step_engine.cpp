// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// DeviceStepEngine: how long a series may be, what is looked at between two, and steps done again in another unit.
#include "trainer/engine/device_step_engine.hpp"

#include "comm/device_collectives.hpp"
#include "comm/reduce/gradient_reducer.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"

#include <algorithm>
#include <span>

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

/// Of a full batch or of an epoch's last one, whose grains are dealt anew: now and then it gives a rank more.
int most_columns(const DistributedSampler& sampler) {
  return std::max(share_of_grains(sampler.local_grains(0)).columns,
                  share_of_grains(sampler.local_grains(sampler.steps_per_epoch() - 1)).columns);
}

StepTotals totals_of(std::span<const std::int64_t> counters) {
  return decode(counters.first(kStepCounters)).totals();
}

}  // namespace

DeviceStepEngine::DeviceStepEngine(const Job& job, const JobSetup& setup, Communicator& comm)
    : gpu_(setup.device.gpu),
      comm_(comm),
      sampler_(sampler_options(job, setup.data->train, comm)),
      longest_series_(longest_series_for(gpu_->device->kind() == "emulated", sampler_.batch_samples(0))),
      series_(longest_series_),
      update_(job, setup.network.parameters(), sampler_.steps_per_epoch()),
      step_(job, setup, update_, most_columns(sampler_), sampler_.batch_samples(0), sampler_.batch_grains(0),
            longest_series_),
      graphs_(step_, job.parallel.graph == GraphUse::kOn),
      evaluator_(setup.network, *gpu_, step_.stream(), setup.data->test),
      series_done_(gpu_->device->make_event()),
      weights_(setup.network.parameters().weights_size()),
      buffers_(update_.buffer_names(), setup.network.parameters().size) {}

BatchShare DeviceStepEngine::share_of(std::int64_t step_in_epoch) const {
  BatchShare share = share_of_grains(sampler_.local_grains(step_in_epoch));
  share.batch = sampler_.batch_samples(step_in_epoch);
  return share;
}

StepSeries DeviceStepEngine::run(const StepPosition& position, std::int64_t count, bool stop_requested) {
  const auto start = Clock::now();
  go_to_epoch(position.epoch);
  StepSeries series;
  while (series.steps < count && !series.failure) {
    const StepPosition at = after(position, series.steps);
    const std::int64_t before = series.steps, unseen = unseen_steps(at, count - before);
    if (unseen > 0) run_unseen(at, unseen, stop_requested, series);
    const bool halted = series.steps - before < unseen;
    if (unseen == 0 || halted) run_watched(after(position, series.steps), stop_requested, series);
  }
  const double seconds = seconds_since(start);
  times_.total += seconds;
  if (series.steps > 0) series_.took(series.steps, seconds, comm_);
  return series;
}

std::int64_t DeviceStepEngine::unseen_steps(const StepPosition& position, std::int64_t most) const {
  most = std::min(most, longest_series_);
  std::int64_t steps = 0;
  while (steps < most && !step_.arena().units().is_refined_at(position.global_step + steps)) ++steps;
  return steps;
}

void DeviceStepEngine::go_to_epoch(std::int64_t epoch) {
  if (epoch_on_device_ == epoch) return;
  sampler_.set_epoch(epoch);
  step_.set_order(sampler_.order());
  epoch_on_device_ = epoch;
}

void DeviceStepEngine::queue_state(const StepPosition& position, std::int64_t count, bool stop_requested) {
  StepState state;
  state.step_in_epoch = position.step_in_epoch;
  state.step = static_cast<std::uint32_t>(position.global_step);
  state.stop_requested = stop_requested ? 1 : 0;
  state.scalars = update_.scalars(position.global_step);
  for (std::int64_t i = 1; i < count; ++i) state.ahead[i - 1] = update_.scalars(position.global_step + i);
  step_.queue_state_to_device(state);
}

void DeviceStepEngine::run_unseen(const StepPosition& position, std::int64_t count, bool stop_requested,
                                  StepSeries& series) {
  const auto start = Clock::now();
  queue_state(position, count, stop_requested);
  queue_steps(position.step_in_epoch, count);
  step_.queue_state_to_host();
  times_.queueing += seconds_since(start);
  wait_for_stream();
  const StepState& result = step_.state();
  if (result.steps_done == 0) return;
  const StepTotals sum = totals_of(result.sums);
  series.steps += result.steps_done;
  series.samples += sum.samples;
  series.correct += sum.correct;
  series.loss_units += sum.loss_units;
  series.last = totals_of(result.last);
  step_.append_fingerprints(result.steps_done, series.fingerprints);
}

void DeviceStepEngine::run_watched(const StepPosition& position, bool stop_requested, StepSeries& series) {
  queue_state(position, 1, stop_requested);
  StepTrial trial(step_.arena().units(), position.global_step);
  StepTotals totals;
  if (reduce(position, trial, totals) == StepTrial::Outcome::kFail) {
    step_.arena().queue_zero_sums();
    series.last = totals;
    series.failure = trial.failure();
    return;
  }
  step_.queue_update();
  step_.queue_state_to_host();
  wait_for_stream();
  series.add(totals);
  step_.append_fingerprints(1, series.fingerprints);
}

StepTrial::Outcome DeviceStepEngine::reduce(const StepPosition& position, StepTrial& trial,
                                            StepTotals& totals) {
  const BatchShare share = share_of(position.step_in_epoch);
  for (;;) {
    step_.arena().queue_zero_sums();
    step_.queue_gradients(share);
    if (step_.arena().reducer().on_host()) step_.arena().reducer().reduce(step_.stream());
    step_.queue_counters_to_host();
    wait_for_stream();
    totals = totals_of(step_.counters());
    const auto refusals = totals.refused > 0 ? refusals_of_all() : std::vector<TensorRefusals>();
    const auto outcome = trial.decide(totals, refusals, [this] { return step_.arena().largest_sums(); });
    if (outcome != StepTrial::Outcome::kRepeat) return outcome;
    use_units();
  }
}

std::vector<TensorRefusals> DeviceStepEngine::refusals_of_all() {
  std::vector<TensorRefusals> refusals = step_.arena().own_refusals();
  comm_.all_reduce(std::span(&refusals.front().too_large, kRefusalKinds * refusals.size()));
  return refusals;
}

void DeviceStepEngine::use_units() {
  step_.arena().use_units();
  graphs_.forget();
}

/// Full batches come first in an epoch, so a series has at most two shapes.
void DeviceStepEngine::queue_steps(std::int64_t first, std::int64_t count) {
  while (count > 0) {
    const BatchShare share = share_of(first);
    std::int64_t alike = 1;
    while (alike < count && sampler_.batch_samples(first + alike) == sampler_.batch_samples(first)) ++alike;
    graphs_.queue(share, alike);
    first += alike;
    count -= alike;
  }
}

void DeviceStepEngine::wait_for_stream() {
  step_.stream().record(*series_done_);
  wait_for(*series_done_, comm_, "the training steps on the GPU", gpu_->all_reduce.get());
}

Evaluation DeviceStepEngine::evaluate(const LeaveEvaluation& leave) {
  return evaluator_.evaluate(comm_, step_.arena().weights(), leave);
}

void DeviceStepEngine::fetch_state() {
  Stream& stream = step_.stream();
  stream.copy_to_host(weights_.data(), step_.arena().weights(), weights_.span().size_bytes());
  for (std::size_t i = 0; i < buffers_.count(); ++i)
    stream.copy_to_host(buffers_.values(i).data(), step_.arena().buffer(i), buffers_.values(i).size_bytes());
  stream.synchronize();
}

void DeviceStepEngine::commit_state() {
  Stream& stream = step_.stream();
  stream.copy_to_device(step_.arena().weights(), weights_.data(), weights_.span().size_bytes());
  for (std::size_t i = 0; i < buffers_.count(); ++i)
    stream.copy_to_device(step_.arena().buffer(i), buffers_.values(i).data(),
                          buffers_.values(i).size_bytes());
  stream.synchronize();
  use_units();
}

// Batches are queued share by share; counters come back at the end.

namespace {

/// Enough to fill a GPU, and small enough for its cache.
constexpr std::int64_t kMostColumns = 1000;

int columns_for(const Dataset& data) {
  return static_cast<int>(std::min(kMostColumns, data.size()));
}

}  // namespace

DeviceEvaluator::DeviceEvaluator(const Network& network, const Gpu& gpu, Stream& stream, const Dataset& data)
    : gpu_(gpu),
      stream_(stream),
      classes_(network.classes()),
      data_(*gpu.device, stream, data),
      execution_(network, *gpu.device, *gpu.ops, columns_for(data), DeviceExecution::Purpose::kEvaluation),
      counters_(*gpu.device, kCounterSlots),
      host_counters_(*gpu.device, kCounterSlots),
      ended_{gpu.device->make_event(), gpu.device->make_event()} {}

Evaluation DeviceEvaluator::evaluate(Communicator& comm, const float* weights, const LeaveEvaluation& leave) {
  stream_.fill_zero(counters_.data(), counters_.bytes());
  std::int64_t left = queue_share(comm, weights, leave) ? 0 : 1;
  stream_.copy_to_host(host_counters_.data(), counters_.data(), counters_.bytes());
  stream_.record(*ended_.front());
  wait_for(*ended_.front(), comm, "an evaluation on the GPU", nullptr);
  comm.all_reduce(host_counters_.span());
  comm.all_reduce(std::span(&left, 1));
  const StepTotals totals = decode(host_counters_.span().first(kStepCounters)).totals();
  Evaluation evaluation = make_evaluation(totals.samples, totals.correct, totals.refused, totals.loss());
  evaluation.interrupted = left > 0;
  return evaluation;
}

/// False if it was left before its end.
bool DeviceEvaluator::queue_share(Communicator& comm, const float* weights, const LeaveEvaluation& leave) {
  std::int64_t first = data_.size() * comm.rank() / comm.size();
  const std::int64_t last = data_.size() * (comm.rank() + 1) / comm.size();
  for (std::size_t batches = 0; first < last; ++batches) {
    Event& ended = *ended_[batches % ended_.size()];
    if (batches >= ended_.size()) wait_for(ended, comm, "an evaluation on the GPU", nullptr);
    if (leave()) return false;
    const auto batch = std::min<std::int64_t>(execution_.max_batch(), last - first);
    queue_batch(first, static_cast<int>(batch), weights);
    stream_.record(ended);
    first += batch;
  }
  return true;
}

void DeviceEvaluator::queue_batch(std::int64_t first, int batch, const float* weights) {
  DeviceOps& ops = *gpu_.ops;
  ops.gather(stream_, batch, data_.view(), {.first = first}, execution_.input(), execution_.labels());
  const float* logits = execution_.forward_evaluation(stream_, weights, batch);
  const LossTarget target{.labels = execution_.labels(),
                          .counters = counters_.data(),
                          .narrow_limit = narrow_loss_limit(data_.size())};
  ops.softmax_cross_entropy(stream_, {.batch = batch, .samples = batch, .classes = classes_}, logits, target,
                            nullptr);
}

}  // namespace lockstep
