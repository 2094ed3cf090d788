// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Each layer's nodes: what an operator must say to be the layer, and where its weights lie.
#include "common/error.hpp"
#include "models/onnx/onnx_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <variant>

namespace lockstep {
namespace {

using Shape = LayerSearch::Shape;

std::string without_options(const LayerSearch& search, const std::string& x, const char* op) {
  return search.choose(x, {op}, [](const onnx::NodeProto&) { return std::string(); }).output(0);
}

/// Also of a transposed convolution, whose filters lie in the same order.
std::string why_other_convolution(const LayerSearch& search, const Conv2dShape& op,
                                  const onnx::NodeProto& node) {
  return first_of(
      {search.why_not_tensor(node, 1, search.layer().parameters()[0]), search.why_not_bias(node, 2),
       why_other("group", {integer_of(node, "group", 1)}, {op.groups}),
       why_other_window(node, {op.kernel_height, op.kernel_width}, op.stride, op.padding, op.dilation)});
}

std::string find_nodes(LayerSearch& search, const Conv2dShape& op, const std::string& x) {
  const onnx::NodeProto& node = search.choose(x, {"Conv"}, [&](const onnx::NodeProto& candidate) {
    return why_other_convolution(search, op, candidate);
  });
  search.copy_weight_and_bias(node);
  return node.output(0);
}

std::string find_nodes(LayerSearch& search, const ConvTransposeOp& op, const std::string& x) {
  const Shape output_padding(2, op.output_padding());
  const onnx::NodeProto& node = search.choose(x, {"ConvTranspose"}, [&](const onnx::NodeProto& candidate) {
    if (!integers_of(candidate, "output_shape", {}).empty())
      return std::string("has output_shape; export it with pads and output_padding");
    return first_of(
        {why_other_convolution(search, op.convolution, candidate),
         why_other("output_padding", integers_of(candidate, "output_padding", {0, 0}), output_padding)});
  });
  search.copy_weight_and_bias(node);
  return node.output(0);
}

void copy_transposed(const onnx::TensorProto& tensor, const LinearShape& op, std::span<float> to) {
  std::vector<float> numbers(op.weight_size());
  copy_numbers(tensor, numbers);
  const auto rows = static_cast<std::size_t>(op.in_features),
             columns = static_cast<std::size_t>(op.out_features);
  for (std::size_t out = 0; out < columns; ++out)
    for (std::size_t in = 0; in < rows; ++in) to[out * rows + in] = numbers[in * columns + out];
}
/// The bias of a MatMul is a node of its own.
std::string behind_bias(LayerSearch& search, const std::string& product) {
  if (search.layer().parameters().size() < 2) return product;
  const Parameter& bias = search.layer().parameters()[1];
  const auto side = [&](const onnx::NodeProto& node) {
    return search.constant_input(node, 0) != nullptr ? 0 : 1;
  };
  const onnx::NodeProto& node =
      search.choose(search.readers_of(product, false), {"Add"}, [&](const onnx::NodeProto& candidate) {
        return search.why_not_tensor(candidate, side(candidate), bias);
      });
  search.copy(node, side(node), bias);
  return node.output(0);
}

std::string find_nodes(LayerSearch& search, const LinearShape& op, const std::string& x) {
  const Shape transposed{op.in_features, op.out_features};
  const Parameter& weight = search.layer().parameters()[0];
  const onnx::NodeProto& node =
      search.choose(search.readers_of(x, true), {"Gemm", "MatMul"}, [&](const onnx::NodeProto& candidate) {
        if (candidate.op_type() == "MatMul") return search.why_not_tensor(candidate, 1, weight, transposed);
        if (number_of(candidate, "alpha", 1) != 1 || number_of(candidate, "beta", 1) != 1 ||
            integer_of(candidate, "transA", 0) != 0)
          return std::string("has alpha, beta or transA, which a linear layer has not");
        const bool is_ours = integer_of(candidate, "transB", 0) != 0;
        return first_of(
            {search.why_not_tensor(candidate, 1, weight, is_ours ? std::nullopt : std::optional(transposed)),
             search.why_not_bias(candidate, 2)});
      });
  if (node.op_type() == "Gemm" && integer_of(node, "transB", 0) != 0) {
    search.copy_weight_and_bias(node);
    return node.output(0);
  }
  copy_transposed(*search.constant_input(node, 1), op, search.take(weight));
  search.note(node);
  if (node.op_type() == "MatMul") return behind_bias(search, node.output(0));
  if (search.layer().parameters().size() > 1) search.copy(node, 2, search.layer().parameters()[1]);
  return node.output(0);
}

std::string find_nodes(LayerSearch& search, const MaxPoolOp& op, const std::string& x) {
  const Pool2dShape& pool = op.shape;
  return search
      .choose(x, {"MaxPool"},
              [&](const onnx::NodeProto& node) {
                return why_other_window(node, {pool.kernel, pool.kernel}, pool.stride, pool.padding);
              })
      .output(0);
}
std::string find_nodes(LayerSearch& search, const AvgPoolOp& op, const std::string& x) {
  const Pool2dShape& pool = op.shape;
  return search
      .choose(x, {"AveragePool"},
              [&](const onnx::NodeProto& node) {
                if (pool.padding > 0 && integer_of(node, "count_include_pad", 0) == 0)
                  return std::string("leaves padding out of the average, and the model's layer counts it");
                return why_other_window(node, {pool.kernel, pool.kernel}, pool.stride, pool.padding);
              })
      .output(0);
}
std::string find_nodes(LayerSearch& search, const GlobalAvgPoolOp& op, const std::string& x) {
  return search
      .choose(x, {"GlobalAveragePool", "ReduceMean", "AveragePool"},
              [&](const onnx::NodeProto& node) {
                if (node.op_type() == "GlobalAveragePool") return std::string();
                if (node.op_type() == "AveragePool")
                  return why_other("kernel_shape", integers_of(node, "kernel_shape", {}),
                                   {op.input.height, op.input.width});
                const onnx::TensorProto* axes = search.constant_input(node, 1);
                Shape over = axes != nullptr ? integers_of(*axes) : integers_of(node, "axes", {});
                for (std::int64_t& axis : over) axis += axis < 0 ? 4 : 0;
                std::ranges::sort(over);
                return why_other("axes", over, {2, 3});
              })
      .output(0);
}
/// What write_onnx makes of windows that differ in size.
std::string find_products(LayerSearch& search, const AdaptivePoolShape& s, const std::string& x) {
  const auto is_matrix = [&](const onnx::NodeProto& node, int input, const std::vector<float>& wanted) {
    const onnx::TensorProto* tensor = search.constant_input(node, input);
    std::vector<float> numbers(wanted.size());
    if (tensor == nullptr || !why_not_numbers(*tensor, numbers.size()).empty()) return false;
    copy_numbers(*tensor, numbers);
    return numbers == wanted;
  };
  const auto product = [&](const std::string& from, int input, const std::vector<float>& wanted) {
    return search
        .choose(from, {"MatMul"},
                [&](const onnx::NodeProto& node) {
                  return is_matrix(node, input, wanted)
                             ? std::string()
                             : std::string("multiplies by other than the means of the model's windows");
                })
        .output(0);
  };
  return product(product(x, 0, adaptive_means(s.in_height, s.out_height, false)), 1,
                 adaptive_means(s.in_width, s.out_width, true));
}
std::string find_nodes(LayerSearch& search, const AdaptiveAvgPoolOp& op, const std::string& x) {
  const AdaptivePoolShape& s = op.shape;
  const Shape window{s.in_height / s.out_height, s.in_width / s.out_width};
  if (s.in_height % s.out_height != 0 || s.in_width % s.out_width != 0) return find_products(search, s, x);
  return search
      .choose(x, {"AveragePool", "GlobalAveragePool"},
              [&](const onnx::NodeProto& node) {
                if (node.op_type() == "GlobalAveragePool")
                  return why_other("an output of", {1, 1}, {s.out_height, s.out_width});
                return first_of({why_other("kernel_shape", integers_of(node, "kernel_shape", {}), window),
                                 why_other("strides", integers_of(node, "strides", {1, 1}), window),
                                 why_other("pads", integers_of(node, "pads", {0, 0, 0, 0}), {0, 0, 0, 0})});
              })
      .output(0);
}
std::string find_nodes(LayerSearch& search, const ReluOp& /*op*/, const std::string& x) {
  return without_options(search, x, "Relu");
}
std::string find_nodes(LayerSearch& /*search*/, const DropoutOp& /*op*/, const std::string& x) {
  return x;
}
/// Its limits are inputs since operator set 11, and attributes before.
std::string find_relu6(LayerSearch& search, const std::string& x) {
  const auto limit = [&](const onnx::NodeProto& node, int input, const char* attribute) {
    const float of_attribute = number_of(node, attribute, NAN);
    return input < node.input_size() ? search.graph().number(node.input(input)).value_or(of_attribute)
                                     : of_attribute;
  };
  return search
      .choose(x, {"Clip"},
              [&](const onnx::NodeProto& node) {
                const float least = limit(node, 1, "min"), most = limit(node, 2, "max");
                return least == 0 && most == 6 ? "" : fmt::format("has the limits {} and {}", least, most);
              })
      .output(0);
}
std::string find_nodes(LayerSearch& search, const ActivationOp& op, const std::string& x) {
  if (op.function.kind == Activation::kTanh) return without_options(search, x, "Tanh");
  if (op.function.kind == Activation::kSigmoid) return without_options(search, x, "Sigmoid");
  if (op.function.kind == Activation::kRelu6) return find_relu6(search, x);
  const auto y = find_activation(search.graph(), x, op.function);
  if (!y) search.fail_layer("the file computes something else there");
  return *y;
}

/// A node of both inputs, in any order.
std::string find_of_both(LayerSearch& search, const std::string& x, const char* op,
                         const char* with_constant) {
  std::vector<std::string> values[2] = {{x}, {search.branch()}};
  return search
      .choose(search.readers_of_both(values), {op},
              [&](const onnx::NodeProto& node) {
                return node.input_size() == 2 && !search.constant_input(node, 0) &&
                               !search.constant_input(node, 1)
                           ? std::string()
                           : std::string(with_constant);
              })
      .output(0);
}
std::string find_nodes(LayerSearch& search, const AddOp& /*op*/, const std::string& x) {
  return find_of_both(search, x, "Add", "adds a constant");
}
std::string find_nodes(LayerSearch& search, const MultiplyOp& /*op*/, const std::string& x) {
  return find_of_both(search, x, "Mul", "multiplies by a constant");
}
std::string find_nodes(LayerSearch& search, const ConcatOp& /*op*/, const std::string& x) {
  std::vector<std::string> values[2] = {{x}, {search.branch()}};
  const auto readers = search.readers_of_both(values);
  const auto is_among = [](const std::vector<std::string>& names, const std::string& name) {
    return std::ranges::find(names, name) != names.end();
  };
  return search
      .choose(readers, {"Concat"},
              [&](const onnx::NodeProto& node) {
                if (node.input_size() != 2) return std::string("joins other than two tensors");
                if (!is_among(values[1], node.input(0)) || !is_among(values[0], node.input(1)))
                  return std::string("joins them in the other order");
                const std::int64_t axis = integer_of(node, "axis", 1);
                return why_other("axis", {axis < 0 ? axis + 4 : axis}, {1});
              })
      .output(0);
}
std::string find_nodes(LayerSearch& search, const RouteOp& /*op*/, const std::string& /*x*/) {
  return search.branch();
}
std::string find_nodes(LayerSearch& /*search*/, const ViewOp& /*op*/, const std::string& x) {
  return x;
}

}  // namespace

std::string find_layer(LayerSearch& search, const std::string& x) {
  return std::visit([&](const auto& op) { return find_nodes(search, op, x); }, search.layer().op());
}

}  // namespace lockstep
