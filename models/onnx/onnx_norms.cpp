// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The norms' nodes: one operator, or several where an operator set has none.
#include "models/onnx/onnx_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace lockstep {
namespace {

using Shape = LayerSearch::Shape;

/// Weights are 1 and biases, which an operator may have no need of, 0.
bool changes_nothing(const LayerSearch& search, const onnx::NodeProto& node, std::size_t count) {
  std::vector<float> numbers(count);
  for (int input = 1; input <= 2; ++input) {
    const onnx::TensorProto* tensor = search.constant_input(node, input);
    if (input == 2 && node.input_size() < 3) continue;
    if (tensor == nullptr || !why_not_numbers(*tensor, numbers.size()).empty()) return false;
    copy_numbers(*tensor, numbers);
    if (std::ranges::any_of(numbers, [&](float number) { return number != (input == 1 ? 1.0F : 0.0F); }))
      return false;
  }
  return true;
}
std::string why_other_eps(const onnx::NodeProto& node, double eps) {
  const float in_file = number_of(node, "epsilon", 1e-5F);
  if (in_file == static_cast<float>(eps)) return "";
  return fmt::format("has epsilon {}, and the model's layer eps {}", in_file, eps);
}
std::string find_layer_norm(LayerSearch& search, const GroupNormOp& op, const std::string& x) {
  const bool is_vector = search.sees_through_views();
  const onnx::NodeProto& node =
      search.choose(x, {"LayerNormalization"}, [&](const onnx::NodeProto& candidate) {
        const std::int64_t axis = integer_of(candidate, "axis", -1);
        const bool is_whole = axis == 1 || axis == (is_vector ? -1 : -3);
        if (!is_whole) return fmt::format("has axis {}, and the model's layer takes whole samples", axis);
        if (!op.affine)
          return changes_nothing(search, candidate, static_cast<std::size_t>(op.shape.channels))
                     ? why_other_eps(candidate, op.eps)
                     : std::string("has weight and bias; leave affine: false out");
        return first_of({why_other_eps(candidate, op.eps),
                         search.why_not_tensor(candidate, 1, search.layer().parameters()[0]),
                         search.why_not_bias(candidate, 2)});
      });
  search.copy_weight_and_bias(node);
  return node.output(0);
}
std::string behind_views(const LayerSearch& search, std::string value) {
  for (;;) {
    const auto& readers = search.graph().readers(value);
    if (readers.size() != 1 || !is_view(search.graph().node(readers.front()))) return value;
    value = search.graph().node(readers.front()).output(0);
  }
}
/// Behind a node that applies one number for each channel, a tensor of the layer.
std::string behind_channels(LayerSearch& search, const std::string& value, const char* op,
                            std::size_t tensor) {
  const Parameter& parameter = search.layer().parameters()[tensor];
  const Shape wanted{parameter.shape.front(), 1, 1};
  const auto side = [&](const onnx::NodeProto& node) {
    return search.constant_input(node, 0) != nullptr ? 0 : 1;
  };
  const onnx::NodeProto& node =
      search.choose(search.readers_of(value, true), {op}, [&](const onnx::NodeProto& candidate) {
        return search.why_not_tensor(candidate, side(candidate), parameter, wanted);
      });
  search.copy(node, side(node), parameter);
  return node.output(0);
}
/// One node since operator set 18; before, an InstanceNormalization of groups between views, a Mul and an Add.
std::string find_group_norm(LayerSearch& search, const GroupNormOp& op, const std::string& x) {
  const Shape channels{op.shape.channels};
  const onnx::NodeProto& node = search.choose(
      search.readers_of(x, true), {"InstanceNormalization", "GroupNormalization"},
      [&](const onnx::NodeProto& candidate) {
        if (candidate.op_type() == "InstanceNormalization")
          return changes_nothing(search, candidate, static_cast<std::size_t>(op.shape.groups))
                     ? why_other_eps(candidate, op.eps)
                     : std::string(
                           "has other groups or weights of its own, or was exported with optimize=False");
        if (!op.affine) return std::string("has weight and bias; leave affine: false out");
        return first_of({why_other("num_groups", {integer_of(candidate, "num_groups", 0)}, {op.shape.groups}),
                         why_other_eps(candidate, op.eps),
                         search.why_not_tensor(candidate, 1, search.layer().parameters()[0]),
                         search.why_not_bias(candidate, 2)});
      });
  if (node.op_type() == "GroupNormalization") {
    search.copy_weight_and_bias(node);
    return node.output(0);
  }
  if (!op.affine) return behind_views(search, node.output(0));
  const std::string scaled = behind_channels(search, node.output(0), "Mul", 0);
  const std::string y = behind_channels(search, scaled, "Add", 1);
  search.note(node);
  return y;
}

}  // namespace

std::string find_nodes(LayerSearch& search, const BatchNormOp& op, const std::string& x) {
  std::vector<Parameter> tensors = search.layer().parameters();
  const bool is_affine = !tensors.empty();
  tensors.insert(tensors.end(), search.layer().kept().begin(), search.layer().kept().end());
  const int first = is_affine ? 1 : 3;
  const onnx::NodeProto& node =
      search.choose(x, {"BatchNormalization"}, [&](const onnx::NodeProto& candidate) {
        if (integer_of(candidate, "training_mode", 0) != 0)
          return std::string("is in training mode; call model.eval() before the export");
        if (const float eps = number_of(candidate, "epsilon", 1e-5F); eps != static_cast<float>(op.eps))
          return fmt::format("has epsilon {}, and the model's layer eps {}", eps, op.eps);
        if (!is_affine &&
            !changes_nothing(search, candidate, static_cast<std::size_t>(search.layer().input().channels)))
          return std::string("has weight and bias; leave affine: false out");
        for (std::size_t i = 0; i < tensors.size(); ++i)
          if (std::string why = search.why_not_tensor(candidate, first + static_cast<int>(i), tensors[i]);
              !why.empty())
            return why;
        return std::string();
      });
  for (std::size_t i = 0; i < tensors.size(); ++i) search.copy(node, first + static_cast<int>(i), tensors[i]);
  search.note(node);
  return node.output(0);
}

std::string find_nodes(LayerSearch& search, const GroupNormOp& op, const std::string& x) {
  return op.whole_layer ? find_layer_norm(search, op, x) : find_group_norm(search, op, x);
}

}  // namespace lockstep
