// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// plan_tensors: from when to when each tensor is needed, and then where it lies.
#include "models/tensor_plan.hpp"

#include "models/memory_plan.hpp"
#include "models/repeated_layers.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace lockstep {

namespace {

/// More of them would hardly save anything: what is kept between them grows.
constexpr std::size_t kMostSegments = 16;

/// Outputs of so many bytes that are made quickly are made again if at most such a share is left.
constexpr std::size_t kMuchMemory = std::size_t{256} << 20;
constexpr double kWorthwhile = 0.9;

/// The moments of a pass over L layers: forward of layer i is moment i, the loss L. Next is backward of each layer
/// from the last one on, and before it the layers that run once more.
class Lifetimes {
 public:
  Lifetimes(const TensorUses& uses, RepeatedLayers repeated)
      : uses_(uses), repeated_(std::move(repeated)), branch_users_(uses.layer_count()) {
    number_moments();
    keep_activations();
    keep_gradients();
    keep_saved();
    keep_branches();
    keep_again();
    keep_runs();
  }

  TensorPlan plan(const NetworkPart& part) const { return place(plan_memory(lifetimes_), part); }

 private:
  void number_moments() {
    again_at_.assign(uses_.layer_count(), 0);
    backward_at_.assign(uses_.layer_count() + 1, uses_.layer_count());
    std::size_t moment = uses_.layer_count() + 1;
    for (std::size_t i = uses_.layer_count(); i-- > 0;) {
      for (const std::size_t again : repeated_.before[i]) again_at_[again] = moment++;
      backward_at_[i] = moment++;
    }
  }

  void keep_activations() {
    for (const TensorUses::Tensor& tensor : uses_.tensors())
      lifetimes_.push_back({tensor.bytes, tensor.producer, tensor.producer});
    const auto keep = [&](std::size_t t, std::size_t moment) {
      lifetimes_[t].last = std::max(lifetimes_[t].last, moment);
    };
    for (std::size_t i = 0; i < uses_.layer_count(); ++i) {
      uses_.for_each_use(i, [&](std::size_t t, bool in_backward) {
        keep(t, in_backward && !repeated_.remade[t] ? backward_at_[i] : i);
        if (repeated_.again[i] && !repeated_.remade[t]) keep(t, again_at_[i]);
      });
    }
    keep(0, backward_at_[0]);
    keep(uses_.last_tensor(), backward_at_[uses_.tensors().back().producer]);
  }

  /// Their second life: from the layer that makes them again to the last one that reads them.
  void keep_again() {
    const std::size_t tensors = lifetimes_.size();
    lifetimes_.resize(tensors + uses_.tensors().size());
    for (std::size_t i = uses_.layer_count(); i-- > 0;)
      if (repeated_.again[i]) lifetimes_[tensors + uses_.output_of(i)].first = again_at_[i];
    for (std::size_t i = 0; i < uses_.layer_count(); ++i) {
      uses_.for_each_use(i, [&](std::size_t t, bool in_backward) {
        if (!repeated_.remade[t] || !(repeated_.again[i] || in_backward)) return;
        Lifetime& life = lifetimes_[tensors + t];
        life.bytes = uses_.tensors()[t].bytes;
        life.last = std::max(life.last, in_backward ? backward_at_[i] : again_at_[i]);
      });
    }
    for (std::size_t i = 0; i < uses_.layer_count(); ++i)
      lifetimes_.push_back(repeated_.again[i] ? Lifetime{uses_.saved_bytes(i), again_at_[i], backward_at_[i]}
                                              : Lifetime{});
  }

  void keep_gradients() {
    for (std::size_t t = 0; t < uses_.tensors().size(); ++t) {
      const TensorUses::Tensor& tensor = uses_.tensors()[t];
      const std::size_t reader = t == uses_.last_tensor() ? uses_.layer_count() : tensor.reader;
      lifetimes_.push_back(uses_.has_gradient(t)
                               ? Lifetime{tensor.bytes, backward_at_[reader], backward_at_[tensor.producer]}
                               : Lifetime{});
    }
  }

  void keep_saved() {
    for (std::size_t i = 0; i < uses_.layer_count(); ++i)
      lifetimes_.push_back({uses_.saved_bytes(i), i, repeated_.again[i] ? i : backward_at_[i]});
  }

  /// Keeps branches from the last layer with that branch, the first one in backward. They last until each
  /// joins the gradient of the layer after it.
  void keep_branches() {
    for (std::size_t i = uses_.first_trained(); i < uses_.layer_count(); ++i)
      if (const auto from = uses_.branch_of(i)) branch_users_[*from] = i;
    for (std::size_t i = 0; i < uses_.layer_count(); ++i) {
      lifetimes_.emplace_back();
      if (!has_branch_gradient(i)) continue;
      if (lends_gradient(i)) {
        Lifetime& lent = lifetimes_[uses_.tensors().size() + uses_.output_of(branch_users_[i])];
        lent.last = std::max(lent.last, backward_at_[i]);
      } else {
        lifetimes_.back() = {uses_.output_bytes(i), backward_at_[branch_users_[i]], backward_at_[i]};
      }
    }
  }
  bool has_branch_gradient(std::size_t i) const { return i >= uses_.first_trained() && branch_users_[i] > 0; }
  /// The gradient of the last layer with branch i is that of the branch, too. No layer before it writes it again.
  bool lends_gradient(std::size_t i) const {
    const std::size_t user = branch_users_[i], tensor = uses_.output_of(user),
                      producer = uses_.tensors()[tensor].producer;
    const bool is_left_alone = producer == user || (producer + 1 == user && !has_branch_gradient(producer) &&
                                                    uses_.branch_of(producer) != std::optional(i));
    return uses_.layer(user).passes_gradient_to_branch() && uses_.has_gradient(tensor) && is_left_alone;
  }

  /// Keeps what lives in one moment of a run for all of it, forward and backward. Steps go back with the first layer.
  void keep_runs() {
    for (const ChannelRun& run : uses_.runs()) {
      widen(run.first, run.last);
      if (run.has_steps) {
        keep_until(backward_at_[run.last], backward_at_[run.first]);
      } else {
        widen(backward_at_[run.last], backward_at_[run.first]);
      }
      if (repeated_.again[run.first]) widen(again_at_[run.first], again_at_[run.last]);
    }
  }
  void widen(std::size_t first, std::size_t last) {
    for (Lifetime& life : lifetimes_)
      if (life.first >= first && life.first <= last) life.first = first;
    keep_until(first, last);
  }
  void keep_until(std::size_t first, std::size_t last) {
    for (Lifetime& life : lifetimes_)
      if (life.last >= first && life.last <= last) life.last = last;
  }

  /// Offsets of layer i, in its first forward pass or after that.
  TensorPlan::LayerOffsets offsets_of(const MemoryPlan& memory, std::size_t i, bool back) const {
    const std::size_t saved = 2 * uses_.tensors().size(), branches = saved + uses_.layer_count(),
                      tensors_again = branches + uses_.layer_count(),
                      saved_again = tensors_again + uses_.tensors().size();
    const auto activation = [&](std::size_t t) {
      const bool lives_again = lifetimes_[tensors_again + t].bytes > 0;
      return memory.offsets[back && lives_again ? tensors_again + t : t];
    };
    TensorPlan::LayerOffsets offsets{
        .x = activation(uses_.input_of(i)),
        .y = activation(uses_.output_of(i)),
        .in_place = uses_.in_place(i),
        .saved = memory.offsets[(back && repeated_.again[i] ? saved_again : saved) + i],
        .dy = gradient(memory, uses_.output_of(i)),
        .dx = gradient(memory, uses_.input_of(i))};
    const auto branch_gradient = [&](std::size_t from) {
      return lends_gradient(from) ? gradient(memory, uses_.output_of(branch_users_[from]))
                                  : memory.offsets[branches + from];
    };
    if (has_branch_gradient(i)) offsets.from_branches = branch_gradient(i);
    const auto from = uses_.branch_of(i);
    if (!from) return offsets;
    offsets.branch = activation(uses_.output_of(*from));
    offsets.adds_to_dbranch = branch_users_[*from] != i;
    if (has_branch_gradient(*from) && (offsets.adds_to_dbranch || !lends_gradient(*from)))
      offsets.dbranch = branch_gradient(*from);
    return offsets;
  }
  std::size_t gradient(const MemoryPlan& memory, std::size_t t) const {
    return uses_.has_gradient(t) ? memory.offsets[uses_.tensors().size() + t] : TensorPlan::kNone;
  }

  TensorPlan place(const MemoryPlan& memory, const NetworkPart& part) const {
    TensorPlan plan;
    for (std::size_t i = 0; i < uses_.layer_count(); ++i) {
      plan.layers.push_back(offsets_of(memory, i, false));
      plan.back.push_back(offsets_of(memory, i, true));
    }
    plan.again = repeated_.before;
    plan.runs = uses_.runs();
    plan.input = memory.offsets[0];
    if (part.gives_input_gradient) plan.input_gradient = gradient(memory, 0);
    if (part.takes_output_gradient) plan.output_gradient = gradient(memory, uses_.last_tensor());
    plan.first_trained = uses_.first_trained();
    plan.bytes = memory.bytes;
    return plan;
  }

  const TensorUses& uses_;
  RepeatedLayers repeated_;
  std::vector<std::size_t> branch_users_;  ///< layer → the last layer with this branch; 0: there is none
  std::vector<std::size_t> again_at_, backward_at_;  ///< layer → its moment; of the loss after the last one
  /// Activations, then gradients, one for each tensor. Per layer: saved tensors, then gradients of branches;
  /// then the second lives of activations, and of what is saved.
  std::vector<Lifetime> lifetimes_;
};

}  // namespace

TensorPlan plan_tensors(const Network& network, int batch, const NetworkPart& part) {
  const TensorUses uses(network, batch, part);
  const auto plan_with = [&](RepeatedLayers repeated) {
    return Lifetimes(uses, std::move(repeated)).plan(part);
  };
  TensorPlan best = plan_with(repeat_segments(uses, {}));
  if (best.bytes > kMuchMemory) {
    TensorPlan plan = plan_with(repeat_quick_layers(uses));
    if (static_cast<double>(plan.bytes) < kWorthwhile * static_cast<double>(best.bytes))
      best = std::move(plan);
  }
  for (std::size_t segments = 2; part.recomputes && segments <= kMostSegments; ++segments) {
    TensorPlan plan = plan_with(repeat_segments(uses, segment_begins(uses, segments)));
    if (plan.bytes < best.bytes) best = std::move(plan);
  }
  return best;
}

}  // namespace lockstep
