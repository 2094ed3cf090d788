// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Whether a node is the layer that is looked for, and in which way it is not.
#include "common/printable.hpp"
#include "kernels/sum_cuts.hpp"
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

std::vector<float> adaptive_means(int in, int out, bool transposed) {
  std::vector<float> shares(static_cast<std::size_t>(in) * static_cast<std::size_t>(out));
  for (int i = 0; i < out; ++i) {
    const AdaptiveWindow window(i, in, out);
    for (int k = window.begin; k < window.end; ++k)
      shares[static_cast<std::size_t>(transposed ? k * out + i : i * in + k)] =
          1.0F / static_cast<float>(window.size());
  }
  return shares;
}

// Activations, by what the nodes make of a few numbers.

namespace {

constexpr std::size_t kPoints = 7;
using Points = std::array<double, kPoints>;

/// Below and above every bend.
constexpr Points kTried{-4, -2.5, -1, -0.25, 0.5, 2, 4};

double logistic(double x) {
  return 1 / (1 + std::exp(-x));
}

double gelu(double x, bool by_tanh) {
  const double u = std::sqrt(2 / 3.14159265358979324) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1 + (by_tanh ? std::tanh(u) : std::erf(x / std::sqrt(2))));
}

double value_of(const ActivationFunction& f, double x) {
  switch (f.kind) {
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kSigmoid:
      return logistic(x);
    case Activation::kGelu:
      return gelu(x, false);
    case Activation::kGeluTanh:
      return gelu(x, true);
    case Activation::kLeakyRelu:
      return x > 0 ? x : f.number * x;
    case Activation::kElu:
      return x > 0 ? x : f.number * std::expm1(x);
    case Activation::kSilu:
      return x * logistic(x);
    case Activation::kHardSigmoid:
      return std::clamp(x / 6 + 0.5, 0.0, 1.0);
    case Activation::kHardSwish:
      return x * std::clamp(x / 6 + 0.5, 0.0, 1.0);
    case Activation::kRelu6:
      break;
  }
  return std::clamp(x, 0.0, 6.0);
}

using Inputs = std::array<double, 3>;

std::optional<double> compute(const onnx::NodeProto& node, const Inputs& in) {
  const std::string& op = node.op_type();
  const auto number = [&](const char* name, float otherwise) { return number_of(node, name, otherwise); };
  if (op == "Add") return in[0] + in[1];
  if (op == "Sub") return in[0] - in[1];
  if (op == "Mul") return in[0] * in[1];
  if (op == "Div") return in[0] / in[1];
  if (op == "Pow") return std::pow(in[0], in[1]);
  if (op == "Clip" && node.input_size() == 3) return std::min(std::max(in[0], in[1]), in[2]);
  if (op == "Erf") return std::erf(in[0]);
  if (op == "Tanh") return std::tanh(in[0]);
  if (op == "Sigmoid") return logistic(in[0]);
  if (op == "Gelu") return gelu(in[0], text_of(node, "approximate", "none") == "tanh");
  if (op == "LeakyRelu") return in[0] > 0 ? in[0] : number("alpha", 0.01F) * in[0];
  if (op == "Elu") return in[0] > 0 ? in[0] : number("alpha", 1) * std::expm1(in[0]);
  if (op == "HardSigmoid") return std::clamp(number("alpha", 0.2F) * in[0] + number("beta", 0.5F), 0.0, 1.0);
  if (op == "HardSwish") return in[0] * std::clamp(in[0] / 6 + 0.5, 0.0, 1.0);
  return std::nullopt;
}

/// What the node computes of values that are known and of single constants; nothing: it is not that simple.
std::optional<Points> computed_by(const OnnxGraph& graph, const onnx::NodeProto& node,
                                  const std::map<std::string, Points>& known) {
  if (node.input_size() < 1 || node.input_size() > 3 || node.output_size() != 1) return std::nullopt;
  std::array<Points, 3> inputs{};
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
    const auto value = compute(node, {inputs[0][i], inputs[1][i], inputs[2][i]});
    if (!value) return std::nullopt;
    result[i] = *value;
  }
  return result;
}

bool is_function(const Points& values, const ActivationFunction& f) {
  for (std::size_t i = 0; i < kPoints; ++i)
    if (!(std::abs(values[i] - value_of(f, kTried[i])) < 1e-6)) return false;
  return true;
}

}  // namespace

std::optional<std::string> find_activation(const OnnxGraph& graph, const std::string& x,
                                           const ActivationFunction& f) {
  constexpr std::size_t kMostValues = 32;
  std::map<std::string, Points> known{{x, kTried}};
  std::vector<std::string> order{x};
  for (std::size_t i = 0; i < order.size() && order.size() < kMostValues; ++i) {
    for (const std::size_t reader : graph.readers(order[i])) {
      const onnx::NodeProto& node = graph.node(reader);
      const auto computed = computed_by(graph, node, known);
      if (!computed || !known.emplace(node.output(0), *computed).second) continue;
      if (is_function(*computed, f)) return node.output(0);
      order.push_back(node.output(0));
    }
  }
  return std::nullopt;
}

}  // namespace lockstep
