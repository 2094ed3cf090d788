// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// DeviceArena: its buffers, and the kernels that go over all of it.
#include "trainer/device/device_arena.hpp"

#include "common/buffers.hpp"
#include "common/error.hpp"
#include "kernels/numerics/sums.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep {

/// Compares sums on streams where the host looks at steps, to replay them, and after the passes of a pipeline.
DeviceArena::DeviceArena(const ArenaPart& part, const Gpu& gpu, Stream& stream, DeviceState& state,
                         DeviceAllReduce* all_reduce, std::int64_t steps)
    : gpu_(gpu),
      stream_(stream),
      update_(part.options, part.layout, part.steps_per_epoch),
      state_(state),
      units_(make_gradient_units(part.layout, part.global_grains)),
      parameters_(part.layout.size),
      host_weights_(part.layout.weights_size()),
      host_buffers_(update_.buffer_names(), parameters_),
      weights_(*gpu.device, part.layout.weights_size()),
      sums_(*gpu.device, kCounterSlots + parameters_),
      refusals_(*gpu.device, units_.tensors() * kRefusalKinds),
      reducer_(*gpu.device, *gpu.ops, all_reduce, part.plan, units_, part.options.step.determinism,
               sums_.data(), part.options.step.replay_every_steps != 0 || part.is_stage) {
  make_optimizer_memory();
  make_clip_memory();
  queue_zero_sums();
  use_units();
  if (!part.options.fingerprints) return;
  std::vector<const float*> averages;
  for (std::size_t i = update_.rule_buffers(); i < buffers_.size(); ++i)
    averages.push_back(buffers_[i].data());
  fingerprints_.emplace(*gpu.device, stream, fingerprint_layout(part.network, buffers_.size()), part.held,
                        weights_.data(), averages, state.data(), steps);
}

DeviceGradient DeviceArena::gradient(int grain) {
  return {.grain = grain,
          .arena = sums_.data() + kCounterSlots,
          .refused = sums_.data() + kRefused,
          .formats = formats_,
          .refusals = refusals_.data()};
}

void DeviceArena::queue_state_to_host() {
  stream_.copy_to_host(host_weights_.data(), weights_.data(), weights_.bytes());
  for (std::size_t i = 0; i < buffers_.size(); ++i)
    stream_.copy_to_host(host_buffers_.values(i).data(), buffers_[i].data(), buffers_[i].bytes());
}

void DeviceArena::queue_state_to_device() {
  stream_.copy_to_device(weights_.data(), host_weights_.data(), weights_.bytes());
  for (std::size_t i = 0; i < buffers_.size(); ++i)
    stream_.copy_to_device(buffers_[i].data(), host_buffers_.values(i).data(), buffers_[i].bytes());
}

void DeviceArena::use_units() {
  formats_.clear();
  std::vector<std::int16_t> exponents;
  bool all_first = true;
  for (std::size_t i = 0; i < units_.tensors(); ++i) {
    formats_.push_back(units_.format(i));
    all_first &= units_.exponents()[i] == kExactExponent;
    exponents.resize(units_.end(i), units_.exponents()[i]);
  }
  stream_.synchronize();  // queued work may still read the old ones
  if (all_first) exponents.clear();
  if (exponents_.size() != exponents.size())
    exponents_ = DeviceBuffer<std::int16_t>(*gpu_.device, exponents.size());
  stream_.copy_to_device(exponents_.data(), exponents.data(), exponents_.bytes());
  reducer_.set_exponents(exponents_.data());
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
  if (update_.treats_all_alike()) return;
  const auto ranges = update_.tensors();
  std::vector<std::int32_t> range_of;
  for (std::size_t i = 0; i < ranges.size(); ++i)
    range_of.insert(range_of.end(), ranges[i].size, static_cast<std::int32_t>(i));
  ranges_ = upload(*gpu_.device, stream_, ranges);
  factors_ = DeviceBuffer<TensorFactors>(*gpu_.device, ranges.size());
  range_of_ = upload(*gpu_.device, stream_, range_of);
  stream_.synchronize();
}

void DeviceArena::make_clip_memory() {
  if (update_.clip().norm == 0) return;
  std::vector<UpdateTensor> tensors(update_.each().begin(), update_.each().end());
  for (UpdateTensor& tensor : tensors)
    if (!tensor.moves) tensor.size = 0;
  measured_ = upload(*gpu_.device, stream_, tensors);
  squares_ = DeviceBuffer<double>(*gpu_.device, tensors.size());
  clip_factor_ = DeviceBuffer<float>(*gpu_.device, 1);
  host_clip_factor_ = PinnedBuffer<float>(*gpu_.device, 1);
  stream_.synchronize();
}

void DeviceArena::queue_gradient_norm() {
  if (measured_.size() == 0) return;
  gpu_.ops->gradient_norm(stream_, update_args(),
                          {.tensors = measured_.data(),
                           .count = static_cast<int>(measured_.size()),
                           .squares = squares_.data(),
                           .most = update_.clip().norm,
                           .factor = clip_factor_.data()});
}

std::vector<double> DeviceArena::gradient_squares() {
  return download(stream_, squares_.data(), squares_.size());
}

void DeviceArena::queue_clip_factor(double norm) {
  host_clip_factor_[0] = clip_factor(update_.clip().norm, norm);
  stream_.copy_to_device(clip_factor_.data(), host_clip_factor_.data(), clip_factor_.bytes());
}

void DeviceArena::queue_update() {
  if (fingerprints_) fingerprints_->add_kept(*gpu_.ops, stream_);
  gpu_.ops->update(stream_, update_args());
  for (std::size_t i = 0; i < update_.averages().count(); ++i)
    if (const float share = update_.averages().share_of_each_step(i); share > 0)
      queue_average(i, share, state_.data());
}

UpdateArgs DeviceArena::update_args() const {
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
                  .clip = {update_.clip().step(1).limit, clip_factor_.data()},
                  .fingerprints = fingerprints_ ? fingerprints_->of_update() : StepFingerprints{},
                  .state = state_.data()};
  for (std::size_t i = 0; i < update_.rule_buffers(); ++i) args.buffers[i] = buffers_[i].data();
  return args;
}

void DeviceArena::queue_averages(std::int64_t step) {
  const WeightAverages& averages = update_.averages();
  for (std::size_t i = 0; i < averages.count(); ++i)
    if (averages.share_of_each_step(i) == 0 && averages.share(i, step) > 0)
      queue_average(i, averages.share(i, step), nullptr);
}

void DeviceArena::queue_average(std::size_t i, float share, const StepState* state) {
  gpu_.ops->average(stream_, {.parameters = parameters_,
                              .weights = weights_.data(),
                              .average = buffers_[update_.rule_buffers() + i].data(),
                              .share = share,
                              .state = state});
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
  const auto sums = download(stream_, sums_.data() + kCounterSlots, parameters_);
  std::vector<double> largest;
  for (std::size_t i = 0; i < units_.tensors(); ++i) {
    const std::size_t begin = units_.begin(i);
    largest.push_back(largest_magnitude(std::span(sums).subspan(begin, units_.end(i) - begin)));
  }
  return largest;
}

std::vector<double> DeviceArena::largest_fp32_sums() {
  const auto sums = download(stream_, reducer_.fp32_sums(), parameters_);
  std::vector<double> largest(units_.tensors());
  for (std::size_t i = 0; i < units_.tensors(); ++i) {
    for (std::size_t k = units_.begin(i); k < units_.end(i); ++k)
      largest[i] = std::max(largest[i], std::abs(double{sums[k]}) * units_.format(i).scale);
  }
  return largest;
}

// DeviceFingerprints: tables of what belongs to which fingerprint; rows, fetched once a series.

namespace {

/// Words of a part. They are enough that a block's threads are worth their start, few enough to be spread over a GPU.
constexpr std::size_t kPartWords = 1024;

/// Tables in device memory besides the rows.
struct Tables {
  std::vector<FingerprintTensor> tensors;
  std::vector<std::int32_t> tensor_of;
  std::vector<KeptPart> kept;
};

std::size_t strides(std::size_t parameters) {
  return (parameters + kFingerprintStride - 1) / kFingerprintStride;
}

void add_parts(const HeldTensor& tensor, std::size_t slot, const float* values, std::uint32_t buffer,
               std::vector<KeptPart>& parts) {
  for (std::size_t done = 0; done < tensor.size; done += kPartWords) {
    parts.push_back({values + tensor.local + done, tensor.first + done,
                     std::min(kPartWords, tensor.size - done), slot, buffer});
  }
}

Tables make_tables(const FingerprintLayout& layout, const std::vector<HeldTensor>& held, const float* weights,
                   const std::vector<const float*>& averages) {
  const std::size_t of_update = layout.buffers - averages.size();
  LOCKSTEP_CHECK(of_update <= kMostBuffers);
  Tables tables;
  std::size_t parameters = 0;
  for (const HeldTensor& tensor : held) {
    if (tensor.number >= layout.trained) {
      add_parts(tensor, layout.weights(tensor.number), weights, kWeightsBuffer, tables.kept);
      continue;
    }
    LOCKSTEP_CHECK(tensor.local == parameters);
    parameters += tensor.size;
    tables.tensor_of.resize(strides(parameters), static_cast<std::int32_t>(tables.tensors.size()));
    FingerprintTensor& row = tables.tensors.emplace_back();
    row.first = tensor.first;
    row.offset = tensor.local;
    row.slots[0] = static_cast<std::uint32_t>(layout.gradient(tensor.number));
    row.slots[1] = static_cast<std::uint32_t>(layout.weights(tensor.number));
    for (std::size_t b = 0; b < of_update; ++b)
      row.slots[2 + b] = static_cast<std::uint32_t>(layout.optimizer(b, tensor.number));
    for (std::size_t i = 0; i < averages.size(); ++i) {
      const std::size_t buffer = of_update + i;
      add_parts(tensor, layout.optimizer(buffer, tensor.number), averages[i],
                kOptimizerBuffer + static_cast<std::uint32_t>(buffer), tables.kept);
    }
  }
  tables.tensors.push_back({.first = 0, .offset = parameters});
  return tables;
}

}  // namespace

std::uint64_t device_fingerprint_bytes(const ParameterLayout& parameters, std::size_t optimizer_buffers,
                                       std::int64_t steps) {
  const FingerprintLayout layout = fingerprint_layout(parameters, optimizer_buffers);
  std::uint64_t kept_parts = 0;
  for (const HeldTensor& tensor : held_tensors(parameters))
    if (tensor.number >= layout.trained) kept_parts += (tensor.size + kPartWords - 1) / kPartWords;
  return checked_sum(
      checked_sum((layout.trained + 1) * sizeof(FingerprintTensor), kept_parts * sizeof(KeptPart)),
      checked_sum(strides(parameters.size) * sizeof(std::int32_t),
                  checked_product(checked_product(layout.slots(), steps), sizeof(std::int64_t))));
}

DeviceFingerprints::DeviceFingerprints(Device& device, Stream& stream, const FingerprintLayout& layout,
                                       const std::vector<HeldTensor>& held, const float* weights,
                                       const std::vector<const float*>& averages, const StepState* state,
                                       std::int64_t steps)
    : slots_(layout.slots()),
      rows_(device, static_cast<std::size_t>(steps) * slots_),
      host_rows_(device, rows_.size()),
      state_(state) {
  const Tables tables = make_tables(layout, held, weights, averages);
  tensors_ = upload(device, stream, tables.tensors);
  tensor_of_ = upload(device, stream, tables.tensor_of);
  kept_ = upload(device, stream, tables.kept);
  zero(stream);
  stream.synchronize();
}

void DeviceFingerprints::add_kept(DeviceOps& ops, Stream& stream) {
  if (kept_.size() == 0) return;
  ops.fingerprint_kept(stream, {.parts = kept_.data(),
                                .count = static_cast<int>(kept_.size()),
                                .slots = slots_,
                                .rows = rows_.data(),
                                .state = state_});
}

StepFingerprints DeviceFingerprints::of_update() const {
  return {.tensors = tensors_.data(), .tensor_of = tensor_of_.data(), .slots = slots_, .rows = rows_.data()};
}

void DeviceFingerprints::append(std::int64_t steps, std::vector<std::uint64_t>& rows) const {
  const std::size_t words = static_cast<std::size_t>(steps) * slots_;
  LOCKSTEP_CHECK(words <= host_rows_.size());  // the device counts the steps of a series
  for (const std::int64_t word : host_rows_.span().first(words))
    rows.push_back(static_cast<std::uint64_t>(word));
}

}  // namespace lockstep
