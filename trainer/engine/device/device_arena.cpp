// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// DeviceArena: its buffers, and the kernels that go over all of it.
#include "trainer/engine/device/device_arena.hpp"

#include "kernels/numerics/exact_sum.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace lockstep {

DeviceArena::DeviceArena(const Gpu& gpu, Stream& stream, const ParameterLayout& layout,
                         const WeightUpdate& update, GradientUnits units, DeviceState& state,
                         const Reduction& reduction)
    : gpu_(gpu),
      stream_(stream),
      update_(update),
      state_(state),
      units_(std::move(units)),
      parameters_(layout.size),
      weights_(*gpu.device, layout.weights_size()),
      ranges_(*gpu.device, 0),
      range_of_(*gpu.device, 0),
      factors_(*gpu.device, 0),
      sums_(*gpu.device, kCounterSlots + parameters_),
      refusals_(*gpu.device, units_.tensors() * kRefusalKinds),
      reducer_(*gpu.device, *gpu.ops, reduction.all_reduce, reduction.plan, parameters_,
               reduction.determinism, sums_.data()) {
  make_optimizer_memory();
  queue_zero_sums();
  use_units();
}

DeviceGradient DeviceArena::gradient(int grain) {
  return {.grain = grain,
          .arena = sums_.data() + kCounterSlots,
          .refused = sums_.data() + kRefused,
          .formats = formats_,
          .refusals = refusals_.data()};
}

void DeviceArena::keep_fingerprints(const FingerprintLayout& layout, const std::vector<HeldTensor>& held,
                                    std::int64_t steps) {
  fingerprints_.emplace(*gpu_.device, stream_, layout, held, weights_.data(), state_.data(), steps);
}

void DeviceArena::use_units() {
  formats_.clear();
  std::vector<std::int16_t> exponents(parameters_);
  bool all_first = true;
  for (std::size_t i = 0; i < units_.tensors(); ++i) {
    formats_.push_back(units_.format(i));
    all_first &= units_.exponents()[i] == kExactExponent;
    std::fill(exponents.begin() + static_cast<std::ptrdiff_t>(units_.begin(i)),
              exponents.begin() + static_cast<std::ptrdiff_t>(units_.end(i)), units_.exponents()[i]);
  }
  stream_.synchronize();  // What is queued may still read the old ones.
  exponents_ = DeviceBuffer<std::int16_t>(*gpu_.device, all_first ? 0 : parameters_);
  reducer_.set_exponents(exponents_.data());
  if (all_first) return;
  stream_.copy_to_device(exponents_.data(), exponents.data(), exponents_.bytes());
  stream_.synchronize();
}

void DeviceArena::queue_zero_sums() {
  stream_.fill_zero(sums_.data(), sums_.bytes());
  stream_.fill_zero(refusals_.data(), refusals_.bytes());
}

void DeviceArena::make_optimizer_memory() {
  for (std::size_t i = 0; i < update_.buffer_names().size(); ++i) {
    buffers_.emplace_back(*gpu_.device, parameters_);
    stream_.fill_zero(buffers_[i].data(), buffers_[i].bytes());
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
  stream_.copy_to_device(ranges_.data(), ranges.data(), ranges_.bytes());
  stream_.copy_to_device(range_of_.data(), range_of.data(), range_of_.bytes());
  stream_.synchronize();
}

void DeviceArena::queue_update() {
  if (fingerprints_) fingerprints_->add_kept(*gpu_.ops, stream_);
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
                  .fingerprints = fingerprints_ ? fingerprints_->of_update() : StepFingerprints{},
                  .state = state_.data()};
  for (std::size_t i = 0; i < buffers_.size(); ++i) args.buffers[i] = buffers_[i].data();
  gpu_.ops->update(stream_, args);
}

std::vector<TensorRefusals> DeviceArena::own_refusals() {
  static_assert(sizeof(TensorRefusals) == kRefusalKinds * sizeof(std::int64_t));
  std::vector<TensorRefusals> refusals(units_.tensors());
  stream_.copy_to_host(refusals.data(), refusals_.data(), refusals_.bytes());
  stream_.synchronize();
  return refusals;
}

std::vector<double> DeviceArena::largest_sums() {
  if (reducer_.fp32_sums() != nullptr) return largest_fp32_sums();
  std::vector<std::int64_t> sums(parameters_);
  stream_.copy_to_host(sums.data(), sums_.data() + kCounterSlots, sums.size() * sizeof(std::int64_t));
  stream_.synchronize();
  std::vector<double> largest;
  for (std::size_t i = 0; i < units_.tensors(); ++i) {
    const std::size_t begin = units_.begin(i);
    largest.push_back(largest_magnitude(std::span(sums).subspan(begin, units_.end(i) - begin)));
  }
  return largest;
}

std::vector<double> DeviceArena::largest_fp32_sums() {
  std::vector<float> sums(parameters_);
  stream_.copy_to_host(sums.data(), reducer_.fp32_sums(), sums.size() * sizeof(float));
  stream_.synchronize();
  std::vector<double> largest(units_.tensors());
  for (std::size_t i = 0; i < units_.tensors(); ++i) {
    for (std::size_t k = units_.begin(i); k < units_.end(i); ++k)
      largest[i] = std::max(largest[i], std::abs(double{sums[k]}) * units_.format(i).scale);
  }
  return largest;
}

}  // namespace lockstep
