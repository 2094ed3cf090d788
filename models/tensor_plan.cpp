// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// plan_tensors: which layers share a tensor, from when to when each tensor is needed, and then where it
/// lies.
#include "models/tensor_plan.hpp"

#include "common/error.hpp"
#include "models/layer.hpp"
#include "models/layer_ops.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

namespace lockstep {

namespace {

/// More of them would hardly save anything: what is kept between them grows.
constexpr std::size_t kMostSegments = 16;

/// Outputs of so many bytes that are made quickly are made again if at most such a share is left.
constexpr std::size_t kMuchMemory = std::size_t{256} << 20;
constexpr double kWorthwhile = 0.9;

/// The moments of a pass over L layers: forward of layer i is moment i, the loss L. Next is backward of each layer
/// from the last one on, and before it the layers that run once more. Layers are counted from the first one of the
/// part.
class Planner {
 public:
  Planner(const Network& network, int batch, const NetworkPart& part)
      : part_(part), layers_(layers_of(network, part)), batch_(batch) {
    name_tensors(output_tensors(network.layers()));
    const std::vector<bool> branched = layers_that_branch(network.layers());
    runs_ =
        channel_runs(layers_, {branched.begin() + static_cast<std::ptrdiff_t>(part.first), branched.end()});
    if (part.gives_input_gradient) return;
    while (first_trained_ < layer_count() && layer(first_trained_).parameters().empty()) ++first_trained_;
  }

  /// @param begins  begins of all segments but the first one; some of possible_begins()
  TensorPlan plan(const std::vector<std::size_t>& begins = {}) {
    find_segments(begins);
    choose_remade();
    for (std::size_t i = 0; i < layer_count(); ++i) again_before_.push_back(again_in_segment_of(i));
    return plan_lifetimes();
  }

  /// Each output of a norm or a route is made again right before backward first reads it. That takes one pass over
  /// what is kept.
  TensorPlan plan_quick_again() {
    choose_quick();
    for (std::size_t i = layer_count(); i-- > 0;) {
      for_each_use(i, [&](std::size_t t, bool in_backward) {
        if (in_backward && remade_[t]) make_quick_again(tensors_[t].producer, again_before_[i]);
      });
    }
    return plan_lifetimes();
  }

  /// Layers at which one tensor alone goes on, and no layer overwrites it.
  std::vector<std::size_t> possible_begins() const {
    std::vector<std::size_t> begins;
    for (std::size_t i = 1; i < layer_count(); ++i) {
      const bool in_run =
          std::ranges::any_of(runs_, [i](const ChannelRun& run) { return run.first < i && i <= run.last; });
      if (!in_run && y_[i] != x_[i] && !others_go_on(i)) begins.push_back(i);
    }
    return begins;
  }

  /// Chooses some of those, with about equally much between them of what forward makes.
  std::vector<std::size_t> begins_of_equal(std::size_t segments) const {
    std::vector<std::size_t> made{0};  // before each layer
    for (std::size_t i = 0; i < layer_count(); ++i)
      made.push_back(made.back() + layer(i).saved_bytes(batch_) +
                     (y_[i] == x_[i] ? 0 : tensors_[y_[i]].bytes));
    std::vector<std::size_t> begins;
    const std::vector<std::size_t> possible = possible_begins();
    for (std::size_t n = 1; n < segments && !possible.empty(); ++n) {
      const std::size_t wanted = made.back() / segments * n;
      const auto distance = [&](std::size_t i) {
        return made[i] > wanted ? made[i] - wanted : wanted - made[i];
      };
      const std::size_t nearest = *std::ranges::min_element(possible, {}, distance);
      if (begins.empty() || nearest > begins.back()) begins.push_back(nearest);
    }
    return begins;
  }

 private:
  /// One activation, shared by a layer and those that work on its output in place. Tensor 0 is the input.
  struct Tensor {
    std::size_t producer = 0;  ///< the first layer that writes it
    std::size_t reader = 0;    ///< the layer that makes another tensor of it; for the last tensor, none
    std::size_t bytes = 0;
  };

  std::size_t layer_count() const { return layers_.size(); }
  const Layer& layer(std::size_t i) const { return *layers_[i]; }
  std::optional<std::size_t> branch_of(std::size_t i) const {
    const auto from = layer(i).branch();
    if (!from) return std::nullopt;
    LOCKSTEP_CHECK(*from >= part_.first);
    return *from - part_.first;
  }
  std::size_t bytes_of(const ImageShape& shape) const {
    return sizeof(float) * static_cast<std::size_t>(shape.features()) * static_cast<std::size_t>(batch_);
  }
  std::size_t last_tensor() const { return tensors_.size() - 1; }
  /// A tensor before the first layer with parameters, or the last one, has no gradient, unless others need
  /// it.
  bool has_gradient(std::size_t t) const {
    const bool wanted = t > 0 || part_.gives_input_gradient;
    const bool is_ours = t < last_tensor() || part_.takes_output_gradient;
    return wanted && is_ours && tensors_[t].producer >= first_trained_;
  }

  /// Counted from the part's input on, on which a layer may work in place, too.
  /// @param all  the network's: for each layer that of its output
  void name_tensors(const std::vector<std::size_t>& all) {
    const std::size_t input = part_.first == 0 ? 0 : all[part_.first - 1];
    tensors_.push_back({0, 0, bytes_of(layer(0).input())});
    for (std::size_t i = 0; i < layer_count(); ++i) {
      x_.push_back(last_tensor());
      y_.push_back(all[part_.first + i] - input);
      if (y_[i] == x_[i]) continue;
      tensors_.back().reader = i;
      tensors_.push_back({i, 0, bytes_of(layer(i).output())});
    }
  }

  /// Calls use(tensor, whether backward reads it) for all that a layer reads and writes.
  template <typename Use>
  void for_each_use(std::size_t i, const Use& use) const {
    if (layer(i).reads_layer_before()) use(x_[i], layer(i).needs_input());
    use(y_[i], layer(i).needs_output());
    if (const auto from = branch_of(i)) use(y_[*from], layer(i).needs_branch());
  }

  bool others_go_on(std::size_t begin) const {
    for (std::size_t i = begin; i < layer_count(); ++i) {
      const auto from = branch_of(i);
      if (from && *from < begin && y_[*from] != x_[begin]) return true;
    }
    return false;
  }

  void find_segments(const std::vector<std::size_t>& begins) {
    segment_.clear();
    for (std::size_t i = 0; i < layer_count(); ++i)
      segment_.push_back(static_cast<std::size_t>(std::ranges::upper_bound(begins, i) - begins.begin()));
    again_before_.clear();
  }

  /// Once it is known what is made again, and when.
  TensorPlan plan_lifetimes() {
    lifetimes_.clear();
    branch_users_.assign(layer_count(), 0);
    number_moments();
    keep_activations();
    keep_gradients();
    keep_saved();
    keep_branches();
    keep_again();
    keep_runs();
    return place(plan_memory(lifetimes_));
  }

  void number_moments() {
    again_at_.assign(layer_count(), 0);
    backward_at_.assign(layer_count() + 1, layer_count());
    std::size_t moment = layer_count() + 1;
    for (std::size_t i = layer_count(); i-- > 0;) {
      for (const std::size_t again : again_before_[i]) again_at_[again] = moment++;
      backward_at_[i] = moment++;
    }
  }

  /// Finds tensors that backward reads and that only a norm with its steps, or a route, writes.
  void choose_quick() {
    again_.assign(layer_count(), false);
    again_before_.assign(layer_count(), {});
    remade_.assign(tensors_.size(), false);
    for (std::size_t i = 0; i < layer_count(); ++i)
      for_each_use(i, [&](std::size_t t, bool in_backward) {
        if (in_backward && t > 0 && t < last_tensor()) remade_[t] = true;
      });
    for (std::size_t i = 0; i < layer_count(); ++i) {
      const std::size_t first = tensors_[y_[i]].producer;
      const bool is_quick =
          layer(first).over_batch() != nullptr || std::holds_alternative<RouteOp>(layer(first).op());
      if (!is_quick || i > last_step_of(first)) remade_[y_[i]] = false;
    }
  }
  /// The last step of a norm; of a norm or route without, itself.
  std::size_t last_step_of(std::size_t i) const {
    const auto found = std::ranges::find(runs_, i, &ChannelRun::first);
    return found == runs_.end() ? i : found->last;
  }
  /// Appends layer i and its steps, after those whose outputs they read.
  void make_quick_again(std::size_t i, std::vector<std::size_t>& layers) {
    if (again_[i]) return;
    const std::size_t last = last_step_of(i);
    for (std::size_t j = i; j <= last; ++j) {
      again_[j] = true;
      for_each_use(j, [&](std::size_t t, bool) {
        if (remade_[t]) make_quick_again(tensors_[t].producer, layers);
      });
    }
    for (std::size_t j = i; j <= last; ++j) layers.push_back(j);
  }

  /// Tensors that no other segment reads. Of the layers that make them, those without which backward lacks something.
  void choose_remade() {
    const std::size_t last_segment = segment_.back();
    remade_.assign(tensors_.size(), true);
    remade_.front() = remade_.back() = false;
    for (std::size_t i = 0; i < layer_count(); ++i) {
      if (segment_[i] == last_segment) remade_[y_[i]] = false;
      for_each_use(i, [&](std::size_t t, bool) {
        if (segment_[tensors_[t].producer] != segment_[i]) remade_[t] = false;
      });
    }
    for (const ChannelRun& run : runs_) {
      bool all = true;
      for (std::size_t i = run.first; i <= run.last; ++i) all = all && remade_[y_[i]];
      for (std::size_t i = run.first; i <= run.last; ++i) remade_[y_[i]] = all;
    }
    std::vector<bool> needed(tensors_.size());
    for (std::size_t i = 0; i < layer_count(); ++i)
      for_each_use(i, [&](std::size_t t, bool in_backward) {
        if (in_backward) needed[t] = true;
      });
    again_.assign(layer_count(), false);
    for (std::size_t last = layer_count(); last > 0;) {
      const std::size_t first = first_of_run(last - 1);
      bool wanted = false;
      for (std::size_t i = first; i < last; ++i)
        wanted = wanted || (remade_[y_[i]] && (needed[y_[i]] || layer(i).saved_bytes(batch_) > 0));
      for (std::size_t i = first; wanted && i < last; ++i) {
        again_[i] = true;
        for_each_use(i, [&](std::size_t t, bool) { needed[t] = true; });
      }
      last = first;
    }
  }
  /// The first layer of the run that ends with this one; itself where it is in none.
  std::size_t first_of_run(std::size_t i) const {
    const auto found = std::ranges::find(runs_, i, &ChannelRun::last);
    return found == runs_.end() ? i : found->first;
  }

  void keep_activations() {
    for (const Tensor& tensor : tensors_)
      lifetimes_.push_back({tensor.bytes, tensor.producer, tensor.producer});
    const auto keep = [&](std::size_t t, std::size_t moment) {
      lifetimes_[t].last = std::max(lifetimes_[t].last, moment);
    };
    for (std::size_t i = 0; i < layer_count(); ++i) {
      for_each_use(i, [&](std::size_t t, bool in_backward) {
        keep(t, in_backward && !remade_[t] ? backward_at_[i] : i);
        if (again_[i] && !remade_[t]) keep(t, again_at_[i]);
      });
    }
    keep(0, backward_at_[0]);
    keep(last_tensor(), backward_at_[tensors_.back().producer]);
  }

  /// Their second life: from the layer that makes them again to the last one that reads them.
  void keep_again() {
    const std::size_t tensors = lifetimes_.size();
    lifetimes_.resize(tensors + tensors_.size());
    for (std::size_t i = layer_count(); i-- > 0;)
      if (again_[i]) lifetimes_[tensors + y_[i]].first = again_at_[i];
    for (std::size_t i = 0; i < layer_count(); ++i) {
      for_each_use(i, [&](std::size_t t, bool in_backward) {
        if (!remade_[t] || !(again_[i] || in_backward)) return;
        Lifetime& life = lifetimes_[tensors + t];
        life.bytes = tensors_[t].bytes;
        life.last = std::max(life.last, in_backward ? backward_at_[i] : again_at_[i]);
      });
    }
    for (std::size_t i = 0; i < layer_count(); ++i)
      lifetimes_.push_back(again_[i] ? Lifetime{layer(i).saved_bytes(batch_), again_at_[i], backward_at_[i]}
                                     : Lifetime{});
  }

  void keep_gradients() {
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      const Tensor& tensor = tensors_[t];
      const std::size_t reader = t == last_tensor() ? layer_count() : tensor.reader;
      lifetimes_.push_back(has_gradient(t)
                               ? Lifetime{tensor.bytes, backward_at_[reader], backward_at_[tensor.producer]}
                               : Lifetime{});
    }
  }

  void keep_saved() {
    for (std::size_t i = 0; i < layer_count(); ++i)
      lifetimes_.push_back({layer(i).saved_bytes(batch_), i, again_[i] ? i : backward_at_[i]});
  }

  /// Keeps branches from the last layer with that branch, the first one in backward. They last until each
  /// joins the gradient of the layer after it.
  void keep_branches() {
    for (std::size_t i = first_trained_; i < layer_count(); ++i)
      if (const auto from = branch_of(i)) branch_users_[*from] = i;
    for (std::size_t i = 0; i < layer_count(); ++i) {
      lifetimes_.emplace_back();
      if (!has_branch_gradient(i)) continue;
      if (lends_gradient(i)) {
        Lifetime& lent = lifetimes_[tensors_.size() + y_[branch_users_[i]]];
        lent.last = std::max(lent.last, backward_at_[i]);
      } else {
        lifetimes_.back() = {bytes_of(layer(i).output()), backward_at_[branch_users_[i]], backward_at_[i]};
      }
    }
  }
  bool has_branch_gradient(std::size_t i) const { return i >= first_trained_ && branch_users_[i] > 0; }
  /// The gradient of the last layer with branch i is that of the branch, too. No layer before it writes it again.
  bool lends_gradient(std::size_t i) const {
    const std::size_t user = branch_users_[i], tensor = y_[user], producer = tensors_[tensor].producer;
    const bool is_left_alone = producer == user || (producer + 1 == user && !has_branch_gradient(producer) &&
                                                    branch_of(producer) != std::optional(i));
    return layer(user).passes_gradient_to_branch() && has_gradient(tensor) && is_left_alone;
  }

  /// Keeps what lives in one moment of a run for all of it, forward and backward. Steps go back with the first layer.
  void keep_runs() {
    for (const ChannelRun& run : runs_) {
      widen(run.first, run.last);
      if (run.has_steps) {
        keep_until(backward_at_[run.last], backward_at_[run.first]);
      } else {
        widen(backward_at_[run.last], backward_at_[run.first]);
      }
      if (again_[run.first]) widen(again_at_[run.first], again_at_[run.last]);
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
    const std::size_t saved = 2 * tensors_.size(), branches = saved + layer_count(),
                      tensors_again = branches + layer_count(), saved_again = tensors_again + tensors_.size();
    const auto activation = [&](std::size_t t) {
      const bool lives_again = lifetimes_[tensors_again + t].bytes > 0;
      return memory.offsets[back && lives_again ? tensors_again + t : t];
    };
    TensorPlan::LayerOffsets offsets{.x = activation(x_[i]),
                                     .y = activation(y_[i]),
                                     .in_place = x_[i] == y_[i],
                                     .saved = memory.offsets[(back && again_[i] ? saved_again : saved) + i],
                                     .dy = gradient(memory, y_[i]),
                                     .dx = gradient(memory, x_[i])};
    const auto branch_gradient = [&](std::size_t from) {
      return lends_gradient(from) ? gradient(memory, y_[branch_users_[from]])
                                  : memory.offsets[branches + from];
    };
    if (has_branch_gradient(i)) offsets.from_branches = branch_gradient(i);
    const auto from = branch_of(i);
    if (!from) return offsets;
    offsets.branch = activation(y_[*from]);
    offsets.adds_to_dbranch = branch_users_[*from] != i;
    if (has_branch_gradient(*from) && (offsets.adds_to_dbranch || !lends_gradient(*from)))
      offsets.dbranch = branch_gradient(*from);
    return offsets;
  }
  std::size_t gradient(const MemoryPlan& memory, std::size_t t) const {
    return has_gradient(t) ? memory.offsets[tensors_.size() + t] : TensorPlan::kNone;
  }

  /// Before backward reaches layer i, which is the last one of a segment: its layers that run once more.
  std::vector<std::size_t> again_in_segment_of(std::size_t i) const {
    std::vector<std::size_t> layers;
    if (i + 1 == layer_count() || segment_[i] == segment_[i + 1]) return layers;
    for (std::size_t j = 0; j <= i; ++j)
      if (segment_[j] == segment_[i] && again_[j]) layers.push_back(j);
    return layers;
  }

  TensorPlan place(const MemoryPlan& memory) const {
    TensorPlan plan;
    for (std::size_t i = 0; i < layer_count(); ++i) {
      plan.layers.push_back(offsets_of(memory, i, false));
      plan.back.push_back(offsets_of(memory, i, true));
    }
    plan.again = again_before_;
    plan.runs = runs_;
    plan.input = memory.offsets[0];
    if (part_.gives_input_gradient) plan.input_gradient = gradient(memory, 0);
    if (part_.takes_output_gradient) plan.output_gradient = gradient(memory, last_tensor());
    plan.first_trained = first_trained_;
    plan.bytes = memory.bytes;
    return plan;
  }

  NetworkPart part_;
  Layers layers_;
  int batch_;
  std::size_t first_trained_ = 0;
  std::vector<Tensor> tensors_;
  std::vector<std::size_t> x_, y_;         ///< layer → tensor
  std::vector<std::size_t> branch_users_;  ///< layer → the last layer with this branch; 0: there is none
  std::vector<ChannelRun> runs_;
  std::vector<std::size_t> segment_;                 ///< layer → its segment
  std::vector<std::size_t> again_at_, backward_at_;  ///< layer → its moment; of the loss after the last one
  std::vector<std::vector<std::size_t>> again_before_;  ///< layer → TensorPlan::again
  std::vector<bool> again_;                             ///< layer → it runs once more
  std::vector<bool> remade_;  ///< tensor → it has a second life in backward, or none there
  /// Activations, then gradients, one for each tensor. Per layer: saved tensors, then gradients of branches;
  /// then the second lives of activations, and of what is saved.
  std::vector<Lifetime> lifetimes_;
};

}  // namespace

Layers layers_of(const Network& network, const NetworkPart& part) {
  const Layers all = network.layers();
  const std::size_t last = std::min(part.last, all.size());
  LOCKSTEP_CHECK(part.first < last);
  return all.subspan(part.first, last - part.first);
}

TensorPlan plan_tensors(const Network& network, int batch, const NetworkPart& part) {
  Planner planner(network, batch, part);
  TensorPlan best = planner.plan();
  if (best.bytes > kMuchMemory) {
    TensorPlan plan = planner.plan_quick_again();
    if (static_cast<double>(plan.bytes) < kWorthwhile * static_cast<double>(best.bytes))
      best = std::move(plan);
  }
  for (std::size_t segments = 2; part.recomputes && segments <= kMostSegments; ++segments) {
    TensorPlan plan = planner.plan(planner.begins_of_equal(segments));
    if (plan.bytes < best.bytes) best = std::move(plan);
  }
  return best;
}

}  // namespace lockstep
