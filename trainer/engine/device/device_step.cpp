// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "trainer/engine/device/device_step.hpp"

#include "comm/step_counters.hpp"
#include "common/error.hpp"
#include "kernels/numerics/exact_sum.hpp"
#include "trainer/config/trail_choice.hpp"
#include "trainer/engine/step_engine.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep {
namespace {

Determinism determinism_of(const Job& job) {
  return job.parallel.determinism == "off" ? Determinism::kOff : Determinism::kWorld;
}

}  // namespace

DeviceStep::DeviceStep(const Job& job, const JobSetup& setup, const WeightUpdate& update, int max_columns,
                       std::int64_t global_batch, std::int64_t global_grains, std::int64_t longest_series)
    : gpu_(*setup.device.gpu),
      grain_(job.parallel.grain),
      seed_(job.train.seed),
      classes_(setup.network.classes()),
      global_batch_(global_batch),
      narrow_limit_(narrow_loss_limit(global_batch * longest_series)),
      units_(make_gradient_units(setup.network, global_grains)),
      update_(update),
      main_(gpu_.device->make_stream(Device::Priority::kHigh)),
      side_(gpu_.device->make_stream()),
      data_(*gpu_.device, *main_, setup.data->train),
      execution_(setup.network, *gpu_.device, *gpu_.ops, max_columns, DeviceExecution::Purpose::kTraining),
      parameters_(setup.network.parameters().size),
      weights_(*gpu_.device, setup.network.parameters().weights_size()),
      ranges_(*gpu_.device, 0),
      range_of_(*gpu_.device, 0),
      factors_(*gpu_.device, 0),
      sums_(*gpu_.device, kCounterSlots + parameters_),
      refusals_(*gpu_.device, units_.tensors() * kRefusalKinds),
      order_(*gpu_.device, setup.data->train.labels.size()),
      state_(*gpu_.device, 1),
      host_state_(*gpu_.device, 1),
      host_counters_(*gpu_.device, kCounterSlots),
      reducer_(*gpu_.device, *gpu_.ops, gpu_.all_reduce.get(), setup.plan, parameters_, determinism_of(job),
               sums_.data()) {
  make_optimizer_memory();
  if (keeps_trail(job)) make_fingerprints(setup.network.parameters(), longest_series);
  queue_zero_sums();
  use_units();
}

void DeviceStep::queue_zero_sums() {
  main_->fill_zero(sums_.data(), sums_.bytes());
  main_->fill_zero(refusals_.data(), refusals_.bytes());
}

void DeviceStep::use_units() {
  formats_.clear();
  std::vector<std::int16_t> exponents(parameters_);
  bool all_first = true;
  for (std::size_t i = 0; i < units_.tensors(); ++i) {
    formats_.push_back(units_.format(i));
    all_first &= units_.exponents()[i] == kExactExponent;
    std::fill(exponents.begin() + static_cast<std::ptrdiff_t>(units_.begin(i)),
              exponents.begin() + static_cast<std::ptrdiff_t>(units_.end(i)), units_.exponents()[i]);
  }
  main_->synchronize();  // What is queued may still read the old ones.
  exponents_ = DeviceBuffer<std::int16_t>(*gpu_.device, all_first ? 0 : parameters_);
  reducer_.set_exponents(exponents_.data());
  if (all_first) return;
  main_->copy_to_device(exponents_.data(), exponents.data(), exponents_.bytes());
  main_->synchronize();
}

std::size_t DeviceStep::pieces() const {
  return reducer_.on_host() ? execution_.cuts() + 1 : 1;
}

void DeviceStep::queue_gradients(const BatchShare& share) {
  for (std::size_t piece = 0; piece < pieces(); ++piece) {
    if (piece > 0) reduce(cut_);
    queue_gradients(share, piece);
  }
}

void DeviceStep::queue_gradients(const BatchShare& share, std::size_t piece) {
  if (piece == 0) begin_step(share);
  cut_ = queue_to_cut(share);
  while (cut_.count > 0 && !reducer_.on_host()) {
    reduce(cut_);
    cut_ = queue_to_cut(share);
  }
  if (cut_.count == 0) reducer_.finish(*main_);
}

void DeviceStep::begin_step(const BatchShare& share) {
  reducer_.begin();
  in_backward_ = false;
  const DevicePass pass{.batch = share.columns,
                        .seed = seed_,
                        .first_sample = static_cast<std::uint32_t>(share.first),
                        .state = state_.data(),
                        .grain = grain_,
                        .batch_samples = share.batch};
  execution_.begin_training(weights_.data(), pass);
  if (share.columns == 0) return;
  const SampleSelection selection{
      .order = order_.data(), .state = state_.data(), .stride = global_batch_, .first = share.first};
  gpu_.ops->gather(*main_, share.columns, data_.view(), selection, execution_.input(), execution_.labels());
}

CutSums DeviceStep::queue_to_cut(const BatchShare& share) {
  if (!in_backward_) {
    const CutSums cut = execution_.forward_to_cut(*main_);
    if (cut.count > 0) return cut;
    queue_loss(share);
    in_backward_ = true;
  }
  const DeviceGradient gradient{.grain = grain_,
                                .arena = sums_.data() + kCounterSlots,
                                .refused = sums_.data() + kRefused,
                                .formats = formats_,
                                .refusals = refusals_.data()};
  const auto ready = [this](Stream& stream, std::size_t offset, std::size_t size) {
    reducer_.ready(stream, offset, size);
  };
  return execution_.backward_to_cut(*main_, *side_, gradient, ready);
}

void DeviceStep::queue_loss(const BatchShare& share) {
  float* logits = execution_.logits();
  const LossTarget target{.labels = execution_.labels(),
                          .counters = sums_.data(),
                          .narrow_limit = narrow_limit_,
                          .state = state_.data()};
  if (share.columns > 0) {
    const LossShape shape{.batch = share.columns, .samples = share.columns, .classes = classes_};
    gpu_.ops->softmax_cross_entropy(*main_, shape, logits, target, logits);
  }
  execution_.begin_backward(*main_, logits);
}

void DeviceStep::make_optimizer_memory() {
  for (std::size_t i = 0; i < update_.buffer_names().size(); ++i) {
    buffers_.emplace_back(*gpu_.device, parameters_);
    main_->fill_zero(buffers_[i].data(), buffers_[i].bytes());
  }
  const auto ranges = update_.tensors();
  const bool all_alike = ranges.size() == 1 && ranges[0].decays && !uses_norms(update_.rule());
  if (all_alike) return;
  std::vector<std::int32_t> range_of;
  for (std::size_t i = 0; i < ranges.size(); ++i)
    range_of.insert(range_of.end(), ranges[i].size, static_cast<std::int32_t>(i));
  ranges_ = DeviceBuffer<UpdateTensor>(*gpu_.device, ranges.size());
  factors_ = DeviceBuffer<TensorFactors>(*gpu_.device, ranges.size());
  range_of_ = DeviceBuffer<std::int32_t>(*gpu_.device, parameters_);
  main_->copy_to_device(ranges_.data(), ranges.data(), ranges_.bytes());
  main_->copy_to_device(range_of_.data(), range_of.data(), range_of_.bytes());
  main_->synchronize();
}

void DeviceStep::make_fingerprints(const ParameterLayout& parameters, std::int64_t longest_series) {
  FingerprintedBuffers buffers{.sums = sums_.data() + kCounterSlots,
                               .weights = weights_.data(),
                               .optimizer = {},
                               .state = state_.data()};
  for (DeviceBuffer<float>& buffer : buffers_) buffers.optimizer.push_back(buffer.data());
  fingerprints_.emplace(*gpu_.device, *main_, parameters, buffers, longest_series);
}

void DeviceStep::queue_update() {
  if (fingerprints_) fingerprints_->add_step(*gpu_.ops, *main_);
  UpdateArgs args{.parameters = parameters_,
                  .sums = sums_.data(),
                  .fp32_sums = reducer_.fp32_sums(),
                  .exponents = exponents_.data(),
                  .weights = weights_.data(),
                  .rule = update_.rule(),
                  .tensors = {.count = static_cast<int>(ranges_.size()),
                              .ranges = ranges_.data(),
                              .range_of = range_of_.data(),
                              .factors = factors_.data()},
                  .state = state_.data()};
  for (std::size_t i = 0; i < buffers_.size(); ++i) args.buffers[i] = buffers_[i].data();
  gpu_.ops->update(*main_, args);
  execution_.queue_move_kept(*main_);
}

void DeviceStep::set_order(std::span<const std::int32_t> order) {
  LOCKSTEP_CHECK(order.size() == order_.size());
  main_->copy_to_device(order_.data(), order.data(), order.size_bytes());
  main_->synchronize();
}

void DeviceStep::queue_state_to_device(const StepState& state) {
  host_state_[0] = state;
  main_->copy_to_device(state_.data(), host_state_.data(), state_.bytes());
  if (fingerprints_) fingerprints_->zero(*main_);
}

void DeviceStep::queue_counters_to_host() {
  main_->copy_to_host(host_counters_.data(), sums_.data(), host_counters_.bytes());
}

std::vector<TensorRefusals> DeviceStep::own_refusals() {
  static_assert(sizeof(TensorRefusals) == kRefusalKinds * sizeof(std::int64_t));
  std::vector<TensorRefusals> refusals(units_.tensors());
  main_->copy_to_host(refusals.data(), refusals_.data(), refusals_.bytes());
  main_->synchronize();
  return refusals;
}

std::vector<double> DeviceStep::largest_sums() {
  if (reducer_.fp32_sums() != nullptr) return largest_fp32_sums();
  std::vector<std::int64_t> sums(parameters_);
  main_->copy_to_host(sums.data(), sums_.data() + kCounterSlots, sums.size() * sizeof(std::int64_t));
  main_->synchronize();
  std::vector<double> largest;
  for (std::size_t i = 0; i < units_.tensors(); ++i) {
    const std::size_t begin = units_.begin(i);
    largest.push_back(largest_magnitude(std::span(sums).subspan(begin, units_.end(i) - begin)));
  }
  return largest;
}

std::vector<double> DeviceStep::largest_fp32_sums() {
  std::vector<float> sums(parameters_);
  main_->copy_to_host(sums.data(), reducer_.fp32_sums(), sums.size() * sizeof(float));
  main_->synchronize();
  std::vector<double> largest(units_.tensors());
  for (std::size_t i = 0; i < units_.tensors(); ++i) {
    for (std::size_t k = units_.begin(i); k < units_.end(i); ++k)
      largest[i] = std::max(largest[i], std::abs(double{sums[k]}) * units_.format(i).scale);
  }
  return largest;
}

void DeviceStep::queue_state_to_host() {
  main_->copy_to_host(host_state_.data(), state_.data(), state_.bytes());
  if (fingerprints_) fingerprints_->fetch(*main_);
}

}  // namespace lockstep
