// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Whether a node is the layer that is looked for, and in which way it is not.
#include "common/printable.hpp"
#include "models/onnx/onnx_graph.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace lockstep {

bool is_one_of(const std::string& op, std::initializer_list<std::string_view> ops) {
  return std::ranges::find(ops, op) != ops.end();
}

bool is_transparent(const onnx::NodeProto& node) {
  return is_one_of(node.op_type(), {"Identity", "Dropout"});
}
bool is_view(const onnx::NodeProto& node) {
  return (node.op_type() == "Flatten" && integer_of(node, "axis", 1) == 1) ||
         is_one_of(node.op_type(), {"Reshape", "Squeeze", "Unsqueeze"});
}

std::string in_words(const std::vector<std::int64_t>& numbers) {
  constexpr std::size_t kMost = 8;
  const std::span<const std::int64_t> all(numbers);
  return fmt::format("[{}{}]", fmt::join(all.first(std::min(all.size(), kMost)), ", "),
                     all.size() > kMost ? ", ..." : "");
}

std::string why_other(const char* what, const std::vector<std::int64_t>& in_file,
                      const std::vector<std::int64_t>& in_model) {
  if (in_file == in_model) return "";
  return fmt::format("has {} {}, and the model {}", what, in_words(in_file), in_words(in_model));
}

std::string first_of(std::initializer_list<std::string> reasons) {
  for (const std::string& reason : reasons)
    if (!reason.empty()) return reason;
  return "";
}

std::string why_other_window(const onnx::NodeProto& node, const std::vector<std::int64_t>& kernel, int stride,
                             int padding, int dilation) {
  const std::string automatic = text_of(node, "auto_pad", "NOTSET");
  if (automatic != "NOTSET" && (automatic != "VALID" || padding != 0))
    return fmt::format("has auto_pad {}; export it with explicit padding", quoted_text(automatic));
  return first_of(
      {why_other("kernel_shape", integers_of(node, "kernel_shape", kernel), kernel),
       why_other("strides", integers_of(node, "strides", {1, 1}), {stride, stride}),
       why_other("pads", integers_of(node, "pads", {0, 0, 0, 0}), std::vector<std::int64_t>(4, padding)),
       why_other("dilations", integers_of(node, "dilations", {1, 1}), {dilation, dilation}),
       why_other("ceil_mode", {integer_of(node, "ceil_mode", 0)}, {0})});
}

// GELU, by what the nodes make of a few numbers.

namespace {

constexpr std::size_t kPoints = 5;
using Points = std::array<double, kPoints>;

std::optional<double> compute(const std::string& op, double a, double b) {
  if (op == "Add") return a + b;
  if (op == "Mul") return a * b;
  if (op == "Div") return a / b;
  if (op == "Pow") return std::pow(a, b);
  if (op == "Erf") return std::erf(a);
  if (op == "Tanh") return std::tanh(a);
  return std::nullopt;
}

/// What the node computes of values that are known and of single constants; nothing: it is not that simple.
std::optional<Points> computed_by(const OnnxGraph& graph, const onnx::NodeProto& node,
                                  const std::map<std::string, Points>& known) {
  if (node.input_size() < 1 || node.input_size() > 2 || node.output_size() != 1) return std::nullopt;
  std::array<Points, 2> inputs{};
  for (int i = 0; i < node.input_size(); ++i) {
    Points& input = inputs[static_cast<std::size_t>(i)];
    const onnx::TensorProto* constant = graph.constant(node.input(i));
    float number = 0;
    if (const auto found = known.find(node.input(i)); found != known.end()) {
      input = found->second;
    } else if (constant != nullptr && why_not_numbers(*constant, 1).empty()) {
      copy_numbers(*constant, std::span(&number, 1));
      input.fill(number);
    } else {
      return std::nullopt;
    }
  }
  Points result{};
  for (std::size_t i = 0; i < kPoints; ++i) {
    const auto value = compute(node.op_type(), inputs[0][i], inputs[1][i]);
    if (!value) return std::nullopt;
    result[i] = *value;
  }
  return result;
}

}  // namespace

std::optional<std::string> find_gelu(const OnnxGraph& graph, const std::string& x, bool by_tanh) {
  const auto gelu = [&](double v) {
    const double u = std::sqrt(2 / 3.14159265358979324) * (v + 0.044715 * v * v * v);
    return 0.5 * v * (1 + (by_tanh ? std::tanh(u) : std::erf(v / std::sqrt(2))));
  };
  const auto is_gelu = [&](const Points& in, const Points& out) {
    for (std::size_t i = 0; i < kPoints; ++i)
      if (!(std::abs(out[i] - gelu(in[i])) < 1e-6)) return false;
    return true;
  };
  constexpr std::size_t kMostValues = 32;
  std::map<std::string, Points> known{{x, {-2.5, -1, -0.25, 0.5, 2}}};
  const Points points = known.begin()->second;
  std::vector<std::string> order{x};
  for (std::size_t i = 0; i < order.size() && order.size() < kMostValues; ++i) {
    for (const std::size_t reader : graph.readers(order[i])) {
      const onnx::NodeProto& node = graph.node(reader);
      if (node.op_type() == "Gelu" && i == 0 && node.output_size() > 0 &&
          (text_of(node, "approximate", "none") == "tanh") == by_tanh)
        return node.output(0);
      const auto computed = computed_by(graph, node, known);
      if (!computed || !known.emplace(node.output(0), *computed).second) continue;
      if (is_gelu(points, *computed)) return node.output(0);
      order.push_back(node.output(0));
    }
  }
  return std::nullopt;
}

}  // namespace lockstep
