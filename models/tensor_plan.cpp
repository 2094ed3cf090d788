// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// plan_tensors: which layers share a tensor, from when to when each tensor is needed, and then where it
/// lies.
#include "models/tensor_plan.hpp"

#include "common/error.hpp"
#include "models/layer.hpp"

#include <algorithm>
#include <optional>

namespace lockstep {

namespace {

/// The tensors of a part, counted from its input on. A layer may work in place on that, too.
std::vector<std::size_t> tensors_of_part(const Network& network, const NetworkPart& part) {
  const std::vector<std::size_t> all = output_tensors(network.layers());
  const std::size_t input = part.first == 0 ? 0 : all[part.first - 1];
  std::vector<std::size_t> tensors;
  for (std::size_t i = part.first; i < part.last; ++i) tensors.push_back(all[i] - input);
  return tensors;
}

NetworkPart within(const Network& network, NetworkPart part) {
  part.last = std::min(part.last, network.layers().size());
  LOCKSTEP_CHECK(part.first < part.last);
  return part;
}

/// The moments of a pass over L layers: forward of layer i is moment i, backward of layer i is moment 2L - i.
/// Layers are counted from the first one of the part.
class Planner {
 public:
  Planner(const Network& network, int batch, const NetworkPart& part)
      : network_(network),
        part_(within(network, part)),
        batch_(batch),
        y_(tensors_of_part(network, part_)),
        branch_users_(layer_count()),
        runs_(runs_of_part()) {
    if (part_.gives_input_gradient) return;
    while (first_trained_ < layer_count() && layer(first_trained_).parameters().empty()) ++first_trained_;
  }

  TensorPlan plan() {
    name_tensors();
    keep_activations();
    keep_gradients();
    keep_saved();
    keep_branches();
    keep_runs();
    return place(plan_memory(lifetimes_));
  }

 private:
  /// One activation, shared by a layer and those that work on its output in place. Tensor 0 is the input.
  struct Tensor {
    std::size_t producer = 0;  ///< the first layer that writes it
    std::size_t reader = 0;    ///< the layer that makes another tensor of it; for the last tensor, none
    std::size_t bytes = 0;
  };

  std::size_t layer_count() const { return part_.last - part_.first; }
  const Layer& layer(std::size_t i) const { return *network_.layers()[part_.first + i]; }
  std::optional<std::size_t> branch_of(std::size_t i) const {
    const auto from = layer(i).branch();
    if (!from) return std::nullopt;
    LOCKSTEP_CHECK(*from >= part_.first);
    return *from - part_.first;
  }
  std::vector<ChannelRun> runs_of_part() const {
    std::vector<const Layer*> layers;
    for (std::size_t i = 0; i < layer_count(); ++i) layers.push_back(&layer(i));
    const std::vector<bool> all = layers_that_branch(network_.layers());
    return channel_runs(layers, {all.begin() + static_cast<std::ptrdiff_t>(part_.first), all.end()});
  }
  static int forward_of(std::size_t i) { return static_cast<int>(i); }
  int backward_of(std::size_t i) const { return static_cast<int>(2 * layer_count() - i); }
  std::size_t bytes_of(const ImageShape& shape) const {
    return sizeof(float) * static_cast<std::size_t>(shape.features()) * static_cast<std::size_t>(batch_);
  }
  std::size_t last_tensor() const { return tensors_.size() - 1; }
  /// A tensor before the first layer with parameters, or the last one, has no gradient tensor, unless others
  /// are concerned with it.
  bool has_gradient(std::size_t t) const {
    const bool wanted = t > 0 || part_.gives_input_gradient;
    const bool is_ours = t < last_tensor() || part_.takes_output_gradient;
    return wanted && is_ours && tensors_[t].producer >= first_trained_;
  }

  void name_tensors() {
    tensors_.push_back({0, 0, bytes_of(layer(0).input())});
    for (std::size_t i = 0; i < layer_count(); ++i) {
      x_.push_back(last_tensor());
      if (y_[i] == x_[i]) continue;
      tensors_.back().reader = i;
      tensors_.push_back({i, 0, bytes_of(layer(i).output())});
    }
  }

  void keep_activations() {
    for (const Tensor& tensor : tensors_) {
      lifetimes_.push_back({tensor.bytes, forward_of(tensor.producer), forward_of(tensor.producer)});
    }
    const auto keep = [&](std::size_t t, int moment) {
      lifetimes_[t].last = std::max(lifetimes_[t].last, moment);
    };
    for (std::size_t i = 0; i < layer_count(); ++i) {
      keep(x_[i], layer(i).needs_input() ? backward_of(i) : forward_of(i));
      const bool needs_output = layer(i).output_need() != Layer::OutputNeed::kNothing;
      keep(y_[i], needs_output ? backward_of(i) : forward_of(i));
      if (const auto from = branch_of(i))
        keep(y_[*from], layer(i).needs_branch() ? backward_of(i) : forward_of(i));
    }
    keep(0, backward_of(0));
    keep(last_tensor(), backward_of(tensors_.back().producer));
  }

  void keep_gradients() {
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      const Tensor& tensor = tensors_[t];
      const std::size_t reader = t == last_tensor() ? layer_count() : tensor.reader;
      lifetimes_.push_back(has_gradient(t)
                               ? Lifetime{tensor.bytes, backward_of(reader), backward_of(tensor.producer)}
                               : Lifetime{});
    }
  }

  void keep_saved() {
    for (std::size_t i = 0; i < layer_count(); ++i) {
      lifetimes_.push_back({layer(i).saved_bytes(batch_), forward_of(i), backward_of(i)});
    }
  }

  /// From the last layer with that branch, the first one in backward, to where it joins the gradient of the
  /// layer behind.
  void keep_branches() {
    for (std::size_t i = first_trained_; i < layer_count(); ++i) {
      if (const auto from = branch_of(i)) branch_users_[*from] = i;
    }
    for (std::size_t i = 0; i < layer_count(); ++i) {
      lifetimes_.push_back(
          has_branch_gradient(i)
              ? Lifetime{bytes_of(layer(i).output()), backward_of(branch_users_[i]), backward_of(i + 1)}
              : Lifetime{});
    }
  }
  bool has_branch_gradient(std::size_t i) const { return i >= first_trained_ && branch_users_[i] > 0; }

  /// What lives in one moment of a run lives in all of them, forward and backward.
  void keep_runs() {
    for (const ChannelRun& run : runs_) {
      widen(forward_of(run.first), forward_of(run.last));
      widen(backward_of(run.last), backward_of(run.first));
    }
  }
  void widen(int first, int last) {
    for (Lifetime& life : lifetimes_) {
      if (life.first >= first && life.first <= last) life.first = first;
      if (life.last >= first && life.last <= last) life.last = last;
    }
  }

  void place_branches(const MemoryPlan& memory, TensorPlan& plan) const {
    const std::size_t first = 2 * tensors_.size() + layer_count();
    for (std::size_t i = 0; i < layer_count(); ++i) {
      TensorPlan::LayerOffsets& offsets = plan.layers[i];
      if (has_branch_gradient(i)) offsets.from_branches = memory.offsets[first + i];
      const auto from = branch_of(i);
      if (!from) continue;
      offsets.branch = memory.offsets[y_[*from]];
      if (!has_branch_gradient(*from)) continue;
      offsets.dbranch = memory.offsets[first + *from];
      offsets.adds_to_dbranch = branch_users_[*from] != i;
    }
  }

  TensorPlan place(const MemoryPlan& memory) const {
    const auto gradient = [&](std::size_t t) {
      return has_gradient(t) ? memory.offsets[tensors_.size() + t] : TensorPlan::kNone;
    };
    TensorPlan plan;
    for (std::size_t i = 0; i < layer_count(); ++i) {
      plan.layers.push_back({.x = memory.offsets[x_[i]],
                             .y = memory.offsets[y_[i]],
                             .saved = memory.offsets[2 * tensors_.size() + i],
                             .dy = gradient(y_[i]),
                             .dx = gradient(x_[i])});
    }
    place_branches(memory, plan);
    plan.runs = runs_;
    plan.input = memory.offsets[0];
    if (part_.gives_input_gradient) plan.input_gradient = gradient(0);
    if (part_.takes_output_gradient) plan.output_gradient = gradient(last_tensor());
    plan.first_trained = first_trained_;
    plan.bytes = memory.bytes;
    return plan;
  }

  const Network& network_;
  NetworkPart part_;
  int batch_;
  std::size_t first_trained_ = 0;
  std::vector<Tensor> tensors_;
  std::vector<std::size_t> x_, y_;         ///< layer → tensor
  std::vector<std::size_t> branch_users_;  ///< layer → the last layer with this branch; 0: there is none
  std::vector<ChannelRun> runs_;
  /// Activations, then gradients, one for each tensor; then saved, then gradients of branches, for each
  /// layer.
  std::vector<Lifetime> lifetimes_;
};

}  // namespace

TensorPlan plan_tensors(const Network& network, int batch, const NetworkPart& part) {
  return Planner(network, batch, part).plan();
}

// One walk over the layers, which remembers what backward and branches will ask of the tensor at hand.

std::vector<bool> layers_that_branch(Layers layers) {
  std::vector<bool> branches(layers.size());
  for (const auto& layer : layers) {
    if (const auto from = layer->branch()) branches[*from] = true;
  }
  return branches;
}

std::vector<std::size_t> output_tensors(Layers layers) {
  using Need = Layer::OutputNeed;
  const std::vector<bool> branches = layers_that_branch(layers);
  std::vector<std::size_t> tensors;
  std::size_t last = 0;
  Need need = Need::kNumbers;  // the network's input stays as it is
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const Layer& layer = *layers[i];
    const bool in_place = layer.output_memory() == Layer::OutputMemory::kInPlace && need == Need::kNothing;
    if (layer.output_memory() != Layer::OutputMemory::kView && !in_place) {
      ++last;
      need = Need::kNothing;
    }
    need = std::max(need, branches[i] ? Need::kNumbers : layer.output_need());
    tensors.push_back(last);
  }
  return tensors;
}

// A run is a layer that splits its outputs, and the channelwise layers behind it.

std::vector<ChannelRun> channel_runs(std::span<const Layer* const> layers,
                                     const std::vector<bool>& branched) {
  std::vector<ChannelRun> runs;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (!layers[i]->splits_outputs()) continue;
    std::size_t last = i;
    while (last + 1 < layers.size() && !branched[last] && layers[last + 1]->is_channelwise()) ++last;
    if (last > i) runs.push_back({i, last});
  }
  return runs;
}

}  // namespace lockstep
