// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "trainer/device/device_step.hpp"

#include "comm/step_counters.hpp"
#include "kernels/exact_sum.hpp"
#include "kernels/runtime/error.hpp"

namespace lockstep {
namespace {

SgdParams sgd_params(const OptimizerSection& section) {
  return {.learning_rate = static_cast<float>(section.lr),
          .momentum = static_cast<float>(section.momentum),
          .weight_decay = static_cast<float>(section.weight_decay),
          .nesterov = section.nesterov};
}

Determinism determinism_of(const Job& job) {
  return job.parallel.determinism == "off" ? Determinism::kOff : Determinism::kWorld;
}

}  // namespace

DeviceStep::DeviceStep(const Job& job, const JobSetup& setup, int max_columns, std::int64_t global_batch,
                       std::int64_t global_grains)
    : gpu_(*setup.device.gpu),
      grain_(job.parallel.grain),
      seed_(job.train.seed),
      classes_(setup.network.classes()),
      global_batch_(global_batch),
      loss_limit_(loss_limit(global_batch)),
      gradient_limit_(exact_limit(global_grains * kPartialSums)),
      sgd_(sgd_params(job.train.optimizer)),
      main_(gpu_.device->make_stream(Device::Priority::kHigh)),
      side_(gpu_.device->make_stream()),
      data_(*gpu_.device, *main_, setup.data->train),
      execution_(setup.network, *gpu_.device, *gpu_.ops, max_columns, DeviceExecution::Purpose::kTraining),
      parameters_(setup.network.parameters().size),
      weights_(*gpu_.device, parameters_),
      momentum_(*gpu_.device, parameters_),
      sums_(*gpu_.device, kCounterSlots + parameters_),
      order_(*gpu_.device, setup.data->train.labels.size()),
      state_(*gpu_.device, 1),
      host_state_(*gpu_.device, 1),
      reduction_(gpu_, setup.plan, parameters_, determinism_of(job), sums_.data()) {
  main_->fill_zero(sums_.data(), sums_.bytes());
}

void DeviceStep::queue_gradients(const BatchShare& share) {
  reduction_.begin();
  if (share.columns > 0) {
    const DevicePass pass{.batch = share.columns,
                          .seed = seed_,
                          .first_sample = static_cast<std::uint32_t>(share.first),
                          .state = state_.data()};
    const BatchPlace place{
        .order = order_.data(), .state = state_.data(), .stride = global_batch_, .first = share.first};
    gpu_.ops->gather(*main_, share.columns, data_.view(), place, execution_.input(), execution_.labels());
    queue_loss_and_backward(execution_.forward_training(*main_, weights_.data(), pass), pass);
  }
  reduction_.finish(*main_);
}

void DeviceStep::queue_loss_and_backward(float* logits, const DevicePass& pass) {
  const LossTarget target{.labels = execution_.labels(),
                          .counters = sums_.data(),
                          .loss_limit = loss_limit_,
                          .state = state_.data()};
  gpu_.ops->softmax_cross_entropy(*main_, {.batch = pass.batch, .samples = pass.batch, .classes = classes_},
                                  logits, target, logits);
  const DeviceGradient gradient{.grain = grain_,
                                .arena = sums_.data() + kCounterSlots,
                                .refused = sums_.data() + kNotFinite,
                                .limit = gradient_limit_};
  const auto ready = [this](Stream& stream, std::size_t offset, std::size_t size) {
    reduction_.ready(stream, offset, size);
  };
  execution_.backward(*main_, *side_, weights_.data(), pass, logits, gradient, ready);
}

void DeviceStep::queue_update() {
  gpu_.ops->sgd_update(*main_, {.parameters = parameters_,
                                .sums = sums_.data(),
                                .fp32_sums = reduction_.fp32_sums(),
                                .weights = weights_.data(),
                                .momentum = sgd_.momentum > 0 ? momentum_.data() : nullptr,
                                .sgd = sgd_,
                                .state = state_.data()});
}

void DeviceStep::set_order(std::span<const std::int32_t> order) {
  LOCKSTEP_CHECK(order.size() == order_.size());
  main_->copy_to_device(order_.data(), order.data(), order.size_bytes());
  main_->synchronize();
}

void DeviceStep::queue_state_to_device(const StepState& state) {
  host_state_[0] = state;
  host_state_[0].learning_rate = sgd_.learning_rate;
  main_->copy_to_device(state_.data(), host_state_.data(), state_.bytes());
}

void DeviceStep::queue_state_to_host() {
  main_->copy_to_host(host_state_.data(), state_.data(), state_.bytes());
}

}  // namespace lockstep
