// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A reducer for the rank's own arena, in which every stage is a bucket.
#include "trainer/strategies/pipeline/rank_weights.hpp"

#include "trainer/config/trail_choice.hpp"

namespace lockstep {

RankWeights::RankWeights(const Job& job, const Network& network, const HeldLayout& held,
                         Communicator& replicas, std::int64_t steps_per_epoch, std::int64_t global_grains)
    : held_(held),
      weights_(held_.layout.size),
      gradient_(held_.layout.size),
      grain_gradient_(held_.layout.size),
      update_(job, held_.layout, steps_per_epoch),
      buffers_(update_.buffer_names(), held_.layout.size) {
  if (keeps_trail(job)) {
    fingerprints_.emplace(fingerprint_layout(network.parameters(), buffers_.count()),
                          places_in_network(held_, network.parameters()));
  }
  if (held_.ranges.empty()) return;
  units_.emplace(held_.tensor_sizes(), global_grains);
  reducer_.emplace(replicas, held_.buckets(), *units_, job.parallel.determinism);
}

float* RankWeights::begin_of(int stage, AlignedBuffer<float>& arena) const {
  const HeldRange* range = held_.range_of(stage);
  return range == nullptr ? nullptr : arena.data() + range->local;
}

void RankWeights::use_units(const GradientUnits& whole) {
  if (!units_) return;
  std::vector<std::int16_t> exponents;
  for (const std::size_t tensor : held_.tensors) exponents.push_back(whole.exponents()[tensor]);
  units_->restore(exponents, whole.changed_at());
}

void RankWeights::begin_step(int local_grains) {
  if (reducer_) reducer_->begin_step(local_grains, false);
}

void RankWeights::add(Ops& ops, int stage, std::size_t offset, std::size_t size, const GradientTerms& terms) {
  reducer_->add(ops, held_.range_of(stage)->local + offset, size, terms);
}

void RankWeights::count_grain(int samples) {
  if (reducer_) reducer_->add_sums({}, samples);
}

void RankWeights::poll() {
  if (reducer_) reducer_->poll();
}

void RankWeights::wait() {
  if (reducer_) reducer_->wait();
}

std::span<const TensorRefusals> RankWeights::refusals() const {
  return reducer_ ? reducer_->refusals() : std::span<const TensorRefusals>();
}

std::vector<double> RankWeights::largest_sums() const {
  return reducer_ ? reducer_->largest_sums() : std::vector<double>();
}

void RankWeights::append_fingerprints(std::vector<std::uint64_t>& rows) {
  if (fingerprints_) fingerprints_->append(reducer_ ? &*reducer_ : nullptr, weights_.span(), buffers_, rows);
}

void RankWeights::update(Ops& ops, std::int64_t global_step) {
  if (!reducer_) return;
  reducer_->mean_gradient(ops, gradient_.data());
  ops.update(update_.rule(), update_.scalars(global_step), update_.tensors(), gradient_.data(),
             buffers_.pointers(), weights_.data());
}

}  // namespace lockstep
