// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The walk along a network's layers and an ONNX graph together, as each kind of layer sees it.
#pragma once

#include "models/layer.hpp"
#include "models/network.hpp"
#include "models/onnx/onnx_graph.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

/// Looks for the node of one layer after the other, and copies its tensors. What does not fit throws DataError.
class LayerSearch {
 public:
  using Shape = std::vector<std::int64_t>;
  using Ops = std::initializer_list<std::string_view>;
  /// "" or in which way a node of these operators is another layer.
  using WhyNot = std::function<std::string(const onnx::NodeProto&)>;

  LayerSearch(const OnnxGraph& graph, std::string file, const Network& network, std::span<float> weights)
      : graph_(graph), file_(std::move(file)), network_(network), weights_(weights) {}

  /// All layers, each with what find_layer() makes of it. @returns what was taken, in words
  std::string read_all();

  const OnnxGraph& graph() const { return graph_; }
  /// The layer that is looked for.
  const Layer& layer() const { return *layer_; }
  /// What its other input's layer computes.
  const std::string& branch() const { return values_[*layer_->branch()]; }
  [[noreturn]] void fail_layer(const std::string& what) const;

  /// Nodes that read the value, or what only hands it on.
  std::vector<std::size_t> readers_of(const std::string& value, bool through_views) const;
  /// Nodes that read both x and the branch.
  /// @param values  x and the branch; become all that are the same
  std::vector<std::size_t> readers_of_both(std::vector<std::string> (&values)[2]) const;
  /// Between a plain vector and channels of 1x1 there is no difference here.
  bool sees_through_views() const { return layer_->input().height == 1 && layer_->input().width == 1; }

  /// The one of these nodes that is the layer.
  const onnx::NodeProto& choose(const std::vector<std::size_t>& readers, Ops ops,
                                const WhyNot& why_not) const;
  /// The one of those that read x.
  const onnx::NodeProto& choose(const std::string& x, Ops ops, const WhyNot& why_not) const;

  /// Null: not a constant.
  const onnx::TensorProto* constant_input(const onnx::NodeProto& node, int input) const;
  /// "" or why the input does not hold the tensor of the network.
  std::string why_not_tensor(const onnx::NodeProto& node, int input, const Parameter& tensor,
                             const std::optional<Shape>& other_shape = std::nullopt) const;
  std::string why_not_bias(const onnx::NodeProto& node, int input) const;

  /// Of the arena, where the tensor lies. It counts as taken.
  std::span<float> take(const Parameter& tensor);
  void copy(const onnx::NodeProto& node, int input, const Parameter& tensor);
  void copy_weight_and_bias(const onnx::NodeProto& node);
  /// The layer's tensors are this node's.
  void note(const onnx::NodeProto& node);

 private:
  [[noreturn]] void fail(const std::string& what) const;
  void check_input() const;
  std::vector<std::size_t> readers_of(std::vector<std::string>& values, bool through_views) const;
  /// Behind what scales and shifts the input, number by number or channel by channel.
  std::string behind_normalisation(std::string value);
  /// Behind the last layer: what gives the same class, and what the loss does by itself.
  void check_end(std::string value) const;

  const OnnxGraph& graph_;
  std::string file_;
  const Network& network_;
  std::span<float> weights_;
  const Layer* layer_ = nullptr;
  std::vector<std::string> values_;  ///< what each layer so far computes
  std::vector<std::string> found_;   ///< layers with weights, and their nodes
  std::size_t tensors_ = 0;
  std::string normalisation_;
};

/// The value that the layer computes of x, found by its nodes; tensors are copied.
std::string find_layer(LayerSearch& search, const std::string& x);

// Of the norms, which onnx_norms.cpp reads.

std::string find_nodes(LayerSearch& search, const BatchNormOp& op, const std::string& x);
std::string find_nodes(LayerSearch& search, const GroupNormOp& op, const std::string& x);

}  // namespace lockstep
