// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "trainer/device/device_step_engine.hpp"

#include "comm/step_counters.hpp"
#include "kernels/runtime/error.hpp"

#include <algorithm>
#include <chrono>

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

/// About two milliseconds of a small network's steps: long enough to hide the host's part, short enough to
/// hear a request to stop. The emulator takes seconds for as many.
constexpr std::int64_t kLongestSeries = 64;
constexpr std::int64_t kLongestEmulatedSeries = 4;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
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

StepTotals totals_of(const std::int64_t (&counters)[kCounterSlots]) {
  StepCounters step;
  std::copy_n(counters, step.values.size(), step.values.begin());
  return step.totals();
}

}  // namespace

DeviceStepEngine::DeviceStepEngine(const Job& job, const JobSetup& setup, Communicator& comm)
    : gpu_(setup.device.gpu),
      comm_(comm),
      sampler_(sampler_options(job, setup.data->train, comm)),
      longest_series_(gpu_->device->kind() == "emulated" ? kLongestEmulatedSeries : kLongestSeries),
      step_(job, setup, most_columns(sampler_), sampler_.batch_samples(0), sampler_.batch_grains(0)),
      graphs_(step_, job.parallel.graph == "on"),
      evaluator_(setup.network, *gpu_, step_.stream(), setup.data->test),
      series_done_(gpu_->device->make_event()),
      weights_(setup.network.parameters().size),
      momentum_(setup.network.parameters().size) {}

BatchShare DeviceStepEngine::share_of(std::int64_t step_in_epoch) const {
  BatchShare share = share_of_grains(sampler_.local_grains(step_in_epoch));
  share.batch = sampler_.batch_samples(step_in_epoch);
  return share;
}

StepSeries DeviceStepEngine::run(const StepPosition& position, std::int64_t count, bool stop_requested) {
  const auto start = Clock::now();
  if (epoch_on_device_ != position.epoch) {
    sampler_.set_epoch(position.epoch);
    step_.set_order(sampler_.order());
    epoch_on_device_ = position.epoch;
  }
  StepState state;
  state.step_in_epoch = position.step_in_epoch;
  state.step = static_cast<std::uint32_t>(position.global_step);
  state.stop_requested = stop_requested ? 1 : 0;
  step_.queue_state_to_device(state);
  queue_steps(position.step_in_epoch, count);
  step_.queue_state_to_host();
  times_.queueing += seconds_since(start);
  wait_for_state();
  times_.total += seconds_since(start);

  const StepState& result = step_.state();
  const StepTotals sum = totals_of(result.sums);
  StepSeries series{.steps = result.steps_done,
                    .samples = sum.samples,
                    .correct = sum.correct,
                    .loss = sum.loss,
                    .last = totals_of(result.last)};
  series.last.not_finite = result.halted != 0;
  return series;
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

void DeviceStepEngine::wait_for_state() {
  step_.stream().record(*series_done_);
  wait_for(*series_done_, comm_, "the training steps on the GPU", gpu_->all_reduce.get());
}

Evaluation DeviceStepEngine::evaluate(const LeaveEvaluation& leave) {
  return evaluator_.evaluate(comm_, step_.weights(), leave);
}

void DeviceStepEngine::fetch_state() {
  Stream& stream = step_.stream();
  stream.copy_to_host(weights_.data(), step_.weights(), weights_.span().size_bytes());
  stream.copy_to_host(momentum_.data(), step_.momentum(), momentum_.span().size_bytes());
  stream.synchronize();
}

void DeviceStepEngine::commit_state() {
  Stream& stream = step_.stream();
  stream.copy_to_device(step_.weights(), weights_.data(), weights_.span().size_bytes());
  stream.copy_to_device(step_.momentum(), momentum_.data(), momentum_.span().size_bytes());
  stream.synchronize();
}

}  // namespace lockstep
