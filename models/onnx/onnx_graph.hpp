// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The graph of an ONNX file as its reader asks about it: who reads a value, which values are constants, and which nodes
/// are a layer.
#pragma once

#include "kernels/shapes.hpp"
#include "models/layer.hpp"
#include "models/network.hpp"

#include <onnx_schema.pb.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

/// Owns the parsed file. Nothing in it is trusted: what the methods return may be of any size and shape.
class OnnxGraph {
 public:
  /// @throws DataError  no ONNX model, a truncated one, or one of a form that is not read: names `file`
  OnnxGraph(std::span<const std::byte> bytes, const std::string& file);

  /// "pytorch 2.15.0", for people.
  std::string producer() const;
  /// The one input that is no constant, and the first output.
  const onnx::ValueInfoProto& input() const { return *input_; }
  const std::string& output() const { return model_.graph().output(0).name(); }
  const onnx::NodeProto& node(std::size_t i) const { return model_.graph().node(static_cast<int>(i)); }
  bool has(std::string_view op) const;

  /// Nodes that read the value.
  const std::vector<std::size_t>& readers(const std::string& value) const;
  /// Null: not a constant.
  const onnx::TensorProto* constant(const std::string& value) const;
  /// Of one constant number, or of what only repeats one, as PyTorch writes a bias that is not there; else none.
  std::optional<float> number(const std::string& value) const;

 private:
  void add_constant_of(const onnx::NodeProto& node);
  void add_constant(const std::string& name, const onnx::TensorProto& tensor);
  void find_input();

  std::string file_;
  onnx::ModelProto model_;
  const onnx::ValueInfoProto* input_ = nullptr;
  std::map<std::string, std::vector<std::size_t>, std::less<>> readers_;
  std::map<std::string, const onnx::TensorProto*, std::less<>> constants_;
  std::map<std::string, float, std::less<>> numbers_;  ///< beside those of constants_
};

/// "Conv 'features.0'", for messages.
std::string describe(const onnx::NodeProto& node);

// Attributes of a node; of one that it does not have, the operator's default.

std::int64_t integer_of(const onnx::NodeProto& node, std::string_view name, std::int64_t otherwise);
float number_of(const onnx::NodeProto& node, std::string_view name, float otherwise);
std::string text_of(const onnx::NodeProto& node, std::string_view name, std::string_view otherwise);
std::vector<std::int64_t> integers_of(const onnx::NodeProto& node, std::string_view name,
                                      const std::vector<std::int64_t>& otherwise);

// Constants.

std::vector<std::int64_t> shape_of(const onnx::TensorProto& tensor);
/// Whether the file holds `count` fp32 numbers for it; else why not: "are fp16, not fp32".
std::string why_not_numbers(const onnx::TensorProto& tensor, std::size_t count);
/// @param to  as many as the tensor has, by why_not_numbers()
void copy_numbers(const onnx::TensorProto& tensor, std::span<float> to);
/// Whole numbers of a small tensor; nothing if it has others, or many.
std::vector<std::int64_t> integers_of(const onnx::TensorProto& tensor);

// What nodes compute, as far as layers ask.

bool is_one_of(const std::string& op, std::initializer_list<std::string_view> ops);
/// A pass in evaluation hands its input on as it is.
bool is_transparent(const onnx::NodeProto& node);
/// It changes the shape alone.
bool is_view(const onnx::NodeProto& node);

/// "[1, 2]"; of many, the first ones.
std::string in_words(const std::vector<std::int64_t>& numbers);
/// "" or "has strides [1, 1], and the model [2, 2]".
std::string why_other(const char* what, const std::vector<std::int64_t>& in_file,
                      const std::vector<std::int64_t>& in_model);
/// The first of them that is not empty; "" if all are.
std::string first_of(std::initializer_list<std::string> reasons);
/// "" or in which way the window of a convolution or pool is another.
std::string why_other_window(const onnx::NodeProto& node, const std::vector<std::int64_t>& kernel, int stride,
                             int padding, int dilation = 1);

/// What makes the means of an adaptive pool's rows: [out, in], the share of each row of x in each of y. Transposed: of
/// columns, [in, out].
std::vector<float> adaptive_means(int in, int out, bool transposed);

/// The value that is this function of `x`: of one node or of several, which compute the same of a few numbers.
std::optional<std::string> find_activation(const OnnxGraph& graph, const std::string& x,
                                           const ActivationFunction& f);

// The walk along a network's layers and an ONNX graph together, as each kind of layer sees it.

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
