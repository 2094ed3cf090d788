// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// HostArena: sums, weights and buffers are read for fingerprints while the cache has them.
#include "trainer/training/host_arena.hpp"

#include "kernels/cpu/ops.hpp"
#include "kernels/numerics/fingerprint.hpp"

#include <algorithm>

namespace lockstep {

HostArena::HostArena(const ArenaPart& part, Communicator& comm)
    : weights_(part.layout.weights_size()),
      gradient_(part.layout.size),
      update_(part.options, part.layout, part.steps_per_epoch),
      buffers_(update_.buffer_names(), part.layout.size),
      determinism_(part.options.step.determinism),
      units_(make_gradient_units(part.layout, part.global_grains)),
      held_(part.held) {
  if (!part.plan.buckets.empty()) reducer_.emplace(comm, part.plan, units_, determinism_);
  if (part.options.fingerprints) row_ = fingerprint_layout(part.network, buffers_.count());
}

void HostArena::take_sums(std::int64_t global_step, std::vector<std::uint64_t>& rows, const NormOfAll& norm) {
  const StepUpdate step = update_of(global_step);
  Row row;
  GradientReducer::SeeSums see;
  if (row_) {
    rows.resize(rows.size() + row_->slots());
    row = Row(rows).last(row_->slots());
    see = [&](std::size_t tensor, std::size_t first, std::span<const std::int64_t> sums) {
      const HeldTensor& held = held_[tensor];
      row[row_->gradient(held.number)] +=
          cpu::fingerprint(kGradientBuffer, held.first + (first - held.local), sums);
    };
  }
  reducer_->sums().mean(gradient_.data(), see);
  clip_gradient(norm);
  if (row_) {
    update_seen(step, row);
  } else {
    update(step, update_.tensors());
  }
}

void HostArena::take_gradient(std::int64_t global_step) {
  clip_gradient(norm_of_all);
  update(update_of(global_step), update_.tensors());
}

std::vector<double> HostArena::measure_gradient() const {
  std::vector<double> squares;
  for (const UpdateTensor& tensor : update_.each())
    squares.push_back(tensor.moves ? cpu::sum_of_squares(gradient_.span().subspan(tensor.offset, tensor.size))
                                   : 0);
  return squares;
}

void HostArena::clip_gradient(const NormOfAll& norm) {
  const GradientClip& clip = update_.clip();
  if (!clip.is_given()) return;
  squares_ = measure_gradient();
  const float factor = clip.norm > 0 ? clip_factor(clip.norm, norm(squares_)) : 1;
  cpu::clip(gradient_.size(), clip.step(factor), gradient_.data());
}

HostArena::StepUpdate HostArena::update_of(std::int64_t global_step) const {
  StepUpdate step{update_.scalars(global_step), {}};
  for (std::size_t i = 0; i < update_.averages().count(); ++i)
    step.shares.push_back(update_.averages().share(i, global_step));
  return step;
}

/// The averages follow while the cache has the weights.
void HostArena::update(const StepUpdate& step, std::span<const UpdateTensor> tensors) {
  cpu::update(update_.rule(), step.scalars, tensors, gradient_.data(), buffers_.pointers(), weights_.data());
  for (std::size_t i = 0; i < step.shares.size(); ++i) {
    if (step.shares[i] == 0) continue;
    float* average = buffers_.values(update_.rule_buffers() + i).data();
    for (const UpdateTensor& tensor : tensors)
      cpu::average(step.shares[i], tensor.size, weights_.data() + tensor.offset, average + tensor.offset);
  }
}

/// Updates to the same numbers. It and the fingerprints read a little at a time, while the cache has weights and
/// buffers.
void HostArena::update_seen(const StepUpdate& step, Row row) {
  constexpr std::size_t kNear = 2048;
  for (UpdateTensor tensor : update_.tensors()) {
    const std::size_t end = tensor.offset + tensor.size,
                      at_once = uses_norms(update_.rule()) ? tensor.size : kNear;
    for (; tensor.offset < end; tensor.offset += at_once) {
      tensor.size = std::min(at_once, end - tensor.offset);
      add_state(*row_, held_, weights_.data(), buffers_.pointers(), tensor.offset,
                tensor.offset + tensor.size, row);
      update(step, {&tensor, 1});
    }
  }
  // Tensors kept beside the parameters.
  add_state(*row_, held_, weights_.data(), buffers_.pointers(), gradient_.size(), weights_.size(), row);
}

}  // namespace lockstep
