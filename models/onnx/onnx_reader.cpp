// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One walk along the network's layers and the graph together: each layer finds the node that computes it.
#include "common/error.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "models/foreign_weights.hpp"
#include "models/layer.hpp"
#include "models/onnx/onnx.hpp"
#include "models/onnx/onnx_graph.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

namespace lockstep {
namespace {

using Shape = std::vector<std::int64_t>;
using Ops = std::initializer_list<std::string_view>;

class GraphReader {
 public:
  GraphReader(const OnnxGraph& graph, std::string file, const Network& network, std::span<float> weights)
      : graph_(graph), file_(std::move(file)), network_(network), weights_(weights) {}

  std::string read() {
    check_input();
    std::string x = behind_normalisation(graph_.input().name());
    for (const auto& layer : network_.layers()) {
      layer_ = layer.get();
      x = std::visit([&](const auto& op) { return find(op, x); }, layer->op());
      values_.push_back(x);
    }
    check_end(x);
    return fmt::format("{} of {}, along the graph that {} wrote: {}{}", counted(tensors_, "tensor"),
                       counted(found_.size(), "layer"), graph_.producer(), first_and_last(found_),
                       normalisation_.empty() ? "" : "; " + normalisation_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(fmt::format("{}: {}", file_, what));
  }
  [[noreturn]] void fail_layer(const std::string& what) const {
    std::string hint;
    const bool has_norm = std::ranges::any_of(network_.layers(), [](const auto& layer) {
      return std::holds_alternative<BatchNormOp>(layer->op());
    });
    if (has_norm && !graph_.has("BatchNormalization"))
      hint =
          "; the file has no BatchNormalization, so its exporter folded them into the convolutions: export "
          "again without that (in PyTorch: optimize=False; with dynamo=False: "
          "training=TrainingMode.PRESERVE)";
    fail(fmt::format("layer {} ({}): {}{}", layer_->name(), layer_->describe(), what, hint));
  }

  void check_input() const {
    const ImageShape& input = network_.input_shape();
    const Shape wanted{input.channels, input.height, input.width};
    const auto& dims = graph_.input().type().tensor_type().shape().dim();
    for (int i = 1; i < dims.size(); ++i) {
      if (!dims[i].has_dim_value() ||
          (dims.size() == 4 && dims[i].dim_value() == wanted[static_cast<std::size_t>(i) - 1]) ||
          (dims.size() == 2 && dims[i].dim_value() == input.features()))
        continue;
      fail(fmt::format("its input {} has another shape than the model's {}",
                       quoted_text(graph_.input().name()), to_string(input)));
    }
  }

  /// Nodes that read the value, or what only hands it on.
  std::vector<std::size_t> readers_of(const std::string& value, bool through_views) const {
    std::vector<std::string> values{value};
    return readers_of(values, through_views);
  }
  /// @param values  the value; becomes all that are the same
  std::vector<std::size_t> readers_of(std::vector<std::string>& values, bool through_views) const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < values.size(); ++i) {
      for (const std::size_t reader : graph_.readers(values[i])) {
        const onnx::NodeProto& node = graph_.node(reader);
        const bool hands_on = is_transparent(node) || (through_views && is_view(node));
        if (!hands_on) {
          if (std::ranges::find(found, reader) == found.end()) found.push_back(reader);
        } else if (node.input(0) == values[i] && node.output_size() > 0 &&
                   std::ranges::find(values, node.output(0)) == values.end()) {
          values.push_back(node.output(0));
        }
      }
    }
    return found;
  }

  /// Between a plain vector and channels of 1x1 there is no difference here.
  bool sees_through_views() const { return layer_->input().height == 1 && layer_->input().width == 1; }

  /// The one of these nodes that is the layer.
  /// @param why_not  "" or in which way a node of these operators is another layer
  template <typename WhyNot>
  const onnx::NodeProto& choose(const std::vector<std::size_t>& readers, Ops ops, const WhyNot& why_not) {
    const onnx::NodeProto* chosen = nullptr;
    std::string reason;
    for (const std::size_t i : readers) {
      const onnx::NodeProto& node = graph_.node(i);
      const bool is_kind = is_one_of(node.op_type(), ops) && node.input_size() > 0 && node.output_size() > 0;
      const std::string why = is_kind ? why_not(node) : "is no " + std::string(*ops.begin());
      if (!why.empty()) {
        if (reason.empty() || is_kind) reason = fmt::format("{} {}", describe(node), why);
      } else if (chosen != nullptr) {
        fail_layer(fmt::format("{} and {} could both be it", describe(*chosen), describe(node)));
      } else {
        chosen = &node;
      }
    }
    if (chosen == nullptr) fail_layer(reason.empty() ? "the file's graph ends before it" : reason);
    return *chosen;
  }
  template <typename WhyNot>
  const onnx::NodeProto& choose(const std::string& x, Ops ops, const WhyNot& why_not) {
    return choose(readers_of(x, sees_through_views()), ops, why_not);
  }
  std::string without_options(const std::string& x, const char* op) {
    return choose(x, {op}, [](const onnx::NodeProto&) { return std::string(); }).output(0);
  }

  const onnx::TensorProto* constant_input(const onnx::NodeProto& node, int input) const {
    return input < node.input_size() ? graph_.constant(node.input(input)) : nullptr;
  }
  /// Whether the input holds the tensor of the network.
  std::string why_not_tensor(const onnx::NodeProto& node, int input, const Parameter& tensor,
                             const std::optional<Shape>& other_shape = std::nullopt) const {
    const onnx::TensorProto* constant = constant_input(node, input);
    if (constant == nullptr) return fmt::format("has no constant for {}", tensor.name);
    const Shape wanted = other_shape.value_or(Shape(tensor.shape.begin(), tensor.shape.end()));
    if (shape_of(*constant) != wanted)
      return fmt::format("has {} of shape {}, and {} is {}", quoted_text(node.input(input)),
                         in_words(shape_of(*constant)), tensor.name, in_words(wanted));
    const std::string why = why_not_numbers(*constant, tensor.size);
    return why.empty() ? "" : fmt::format("has {}, whose numbers {}", quoted_text(node.input(input)), why);
  }
  std::string why_not_bias(const onnx::NodeProto& node, int input) const {
    const bool wanted = layer_->parameters().size() > 1;
    const bool has = input < node.input_size() && !node.input(input).empty() &&
                     (wanted || graph_.number(node.input(input)) != 0.0F);
    if (has && !wanted) return "has a bias, and the model's layer has none (bias: false)";
    if (!has && wanted) return "has no bias; say bias: false in the model";
    return has ? why_not_tensor(node, input, layer_->parameters()[1]) : "";
  }

  /// Of the arena, where the layer's tensors lie.
  std::span<float> place_of(const Parameter& tensor) const {
    const bool is_kept =
        std::ranges::find(layer_->kept(), tensor.name, &Parameter::name) != layer_->kept().end();
    return weights_.subspan(tensor.offset + (is_kept ? network_.parameters().size : 0), tensor.size);
  }
  void copy(const onnx::NodeProto& node, int input, const Parameter& tensor) {
    copy_numbers(*constant_input(node, input), place_of(tensor));
    ++tensors_;
  }
  void copy_weight_and_bias(const onnx::NodeProto& node) {
    for (std::size_t i = 0; i < layer_->parameters().size(); ++i)
      copy(node, static_cast<int>(i) + 1, layer_->parameters()[i]);
    note(node);
  }
  void note(const onnx::NodeProto& node) {
    found_.push_back(fmt::format("{} from {}", layer_->name(), describe(node)));
  }

  /// What scales and shifts the input, number by number or channel by channel.
  std::string behind_normalisation(std::string value) {
    std::vector<std::string> steps;
    for (;;) {
      const auto readers = readers_of(value, false);
      if (readers.size() != 1) break;
      const onnx::NodeProto& node = graph_.node(readers.front());
      if (!is_one_of(node.op_type(), {"Mul", "Add", "Sub", "Div"}) || node.input_size() != 2 ||
          node.output_size() != 1 || constant_input(node, 1) == nullptr)
        break;
      steps.push_back(node.op_type());
      value = node.output(0);
      if (steps.size() > 4) break;
    }
    if (!steps.empty())
      normalisation_ = fmt::format("what it does to its input ({}) is left to data.mean and data.std",
                                   fmt::join(steps, ", "));
    return value;
  }

  /// Behind the last layer: what gives the same class, and what the loss does by itself.
  void check_end(std::string value) {
    for (int steps = 0; steps < 16; ++steps) {
      if (value == graph_.output()) return;
      const onnx::NodeProto* next = nullptr;
      for (const std::size_t i : graph_.readers(value)) next = &graph_.node(i);
      if (next == nullptr || next->output_size() < 1) break;
      if (!is_transparent(*next) && !is_view(*next) && !is_one_of(next->op_type(), {"Softmax", "LogSoftmax"}))
        fail(fmt::format("behind the model's last layer, {}, the file has {}", layer_->name(),
                         describe(*next)));
      value = next->output(0);
    }
    fail(fmt::format("what the model's last layer, {}, computes is not the output {} of the file",
                     layer_->name(), quoted_text(graph_.output())));
  }

  std::string find(const Conv2dShape& op, const std::string& x) {
    const onnx::NodeProto& node = choose(x, {"Conv"}, [&](const onnx::NodeProto& candidate) {
      return first_of({why_not_tensor(candidate, 1, layer_->parameters()[0]), why_not_bias(candidate, 2),
                       why_other("group", {integer_of(candidate, "group", 1)}, {op.groups}),
                       why_other_window(candidate, {op.kernel_height, op.kernel_width}, op.stride, op.padding,
                                        op.dilation)});
    });
    copy_weight_and_bias(node);
    return node.output(0);
  }

  std::string find(const LinearShape& op, const std::string& x) {
    const Shape transposed{op.in_features, op.out_features};
    const Parameter& weight = layer_->parameters()[0];
    const onnx::NodeProto& node =
        choose(readers_of(x, true), {"Gemm", "MatMul"}, [&](const onnx::NodeProto& candidate) {
          if (candidate.op_type() == "MatMul") return why_not_tensor(candidate, 1, weight, transposed);
          if (number_of(candidate, "alpha", 1) != 1 || number_of(candidate, "beta", 1) != 1 ||
              integer_of(candidate, "transA", 0) != 0)
            return std::string("has alpha, beta or transA, which a linear layer has not");
          const bool is_ours = integer_of(candidate, "transB", 0) != 0;
          return first_of(
              {why_not_tensor(candidate, 1, weight, is_ours ? std::nullopt : std::optional(transposed)),
               why_not_bias(candidate, 2)});
        });
    if (node.op_type() == "Gemm" && integer_of(node, "transB", 0) != 0) {
      copy_weight_and_bias(node);
      return node.output(0);
    }
    copy_transposed(*constant_input(node, 1), op, place_of(weight));
    note(node);
    if (node.op_type() == "MatMul") return behind_bias(node.output(0));
    if (layer_->parameters().size() > 1) copy(node, 2, layer_->parameters()[1]);
    return node.output(0);
  }
  void copy_transposed(const onnx::TensorProto& tensor, const LinearShape& op, std::span<float> to) {
    std::vector<float> numbers(op.weight_size());
    copy_numbers(tensor, numbers);
    const auto rows = static_cast<std::size_t>(op.in_features),
               columns = static_cast<std::size_t>(op.out_features);
    for (std::size_t out = 0; out < columns; ++out)
      for (std::size_t in = 0; in < rows; ++in) to[out * rows + in] = numbers[in * columns + out];
    ++tensors_;
  }
  /// The bias of a MatMul is a node of its own.
  std::string behind_bias(const std::string& product) {
    if (layer_->parameters().size() < 2) return product;
    const Parameter& bias = layer_->parameters()[1];
    const auto side = [&](const onnx::NodeProto& node) { return constant_input(node, 0) != nullptr ? 0 : 1; };
    const onnx::NodeProto& node = choose(
        readers_of(product, false), {"Add"},
        [&](const onnx::NodeProto& candidate) { return why_not_tensor(candidate, side(candidate), bias); });
    copy(node, side(node), bias);
    return node.output(0);
  }

  std::string find(const MaxPoolOp& op, const std::string& x) {
    const Pool2dShape& pool = op.shape;
    return choose(x, {"MaxPool"},
                  [&](const onnx::NodeProto& node) {
                    return why_other_window(node, {pool.kernel, pool.kernel}, pool.stride, pool.padding);
                  })
        .output(0);
  }
  std::string find(const AvgPoolOp& op, const std::string& x) {
    const Pool2dShape& pool = op.shape;
    return choose(
               x, {"AveragePool"},
               [&](const onnx::NodeProto& node) {
                 if (pool.padding > 0 && integer_of(node, "count_include_pad", 0) == 0)
                   return std::string("leaves padding out of the average, and the model's layer counts it");
                 return why_other_window(node, {pool.kernel, pool.kernel}, pool.stride, pool.padding);
               })
        .output(0);
  }
  std::string find(const GlobalAvgPoolOp& op, const std::string& x) {
    return choose(x, {"GlobalAveragePool", "ReduceMean", "AveragePool"},
                  [&](const onnx::NodeProto& node) {
                    if (node.op_type() == "GlobalAveragePool") return std::string();
                    if (node.op_type() == "AveragePool")
                      return why_other("kernel_shape", integers_of(node, "kernel_shape", {}),
                                       {op.input.height, op.input.width});
                    const onnx::TensorProto* axes = constant_input(node, 1);
                    Shape over = axes != nullptr ? integers_of(*axes) : integers_of(node, "axes", {});
                    for (std::int64_t& axis : over) axis += axis < 0 ? 4 : 0;
                    std::ranges::sort(over);
                    return why_other("axes", over, {2, 3});
                  })
        .output(0);
  }
  std::string find(const AdaptiveAvgPoolOp& op, const std::string& x) {
    const AdaptivePoolShape& s = op.shape;
    const Shape window{s.in_height / s.out_height, s.in_width / s.out_width};
    if (s.in_height % s.out_height != 0 || s.in_width % s.out_width != 0) return find_products(s, x);
    return choose(
               x, {"AveragePool", "GlobalAveragePool"},
               [&](const onnx::NodeProto& node) {
                 if (node.op_type() == "GlobalAveragePool")
                   return why_other("an output of", {1, 1}, {s.out_height, s.out_width});
                 return first_of({why_other("kernel_shape", integers_of(node, "kernel_shape", {}), window),
                                  why_other("strides", integers_of(node, "strides", {1, 1}), window),
                                  why_other("pads", integers_of(node, "pads", {0, 0, 0, 0}), {0, 0, 0, 0})});
               })
        .output(0);
  }
  /// What write_onnx makes of windows that differ in size.
  std::string find_products(const AdaptivePoolShape& s, const std::string& x) {
    const auto is_matrix = [&](const onnx::NodeProto& node, int input, const std::vector<float>& wanted) {
      const onnx::TensorProto* tensor = constant_input(node, input);
      std::vector<float> numbers(wanted.size());
      if (tensor == nullptr || !why_not_numbers(*tensor, numbers.size()).empty()) return false;
      copy_numbers(*tensor, numbers);
      return numbers == wanted;
    };
    const auto product = [&](const std::string& from, int input, const std::vector<float>& wanted) {
      return choose(from, {"MatMul"},
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
  std::string find(const ReluOp& /*op*/, const std::string& x) { return without_options(x, "Relu"); }
  std::string find(const DropoutOp& /*op*/, const std::string& x) { return x; }
  std::string find(const ActivationOp& op, const std::string& x) {
    if (op.function.kind == Activation::kTanh) return without_options(x, "Tanh");
    if (op.function.kind == Activation::kSigmoid) return without_options(x, "Sigmoid");
    if (op.function.kind == Activation::kRelu6) return find_relu6(x);
    const auto y = find_activation(graph_, x, op.function);
    if (!y) fail_layer("the file computes something else there");
    return *y;
  }
  /// Its limits are inputs since operator set 11, and attributes before.
  std::string find_relu6(const std::string& x) {
    const auto limit = [&](const onnx::NodeProto& node, int input, const char* attribute) {
      const float of_attribute = number_of(node, attribute, NAN);
      return input < node.input_size() ? graph_.number(node.input(input)).value_or(of_attribute)
                                       : of_attribute;
    };
    return choose(x, {"Clip"},
                  [&](const onnx::NodeProto& node) {
                    const float least = limit(node, 1, "min"), most = limit(node, 2, "max");
                    return least == 0 && most == 6 ? ""
                                                   : fmt::format("has the limits {} and {}", least, most);
                  })
        .output(0);
  }
  std::string find(const BatchNormOp& op, const std::string& x) {
    std::vector<Parameter> tensors = layer_->parameters();
    const bool is_affine = !tensors.empty();
    tensors.insert(tensors.end(), layer_->kept().begin(), layer_->kept().end());
    const int first = is_affine ? 1 : 3;
    const onnx::NodeProto& node = choose(x, {"BatchNormalization"}, [&](const onnx::NodeProto& candidate) {
      if (integer_of(candidate, "training_mode", 0) != 0)
        return std::string("is in training mode; call model.eval() before the export");
      if (const float eps = number_of(candidate, "epsilon", 1e-5F); eps != static_cast<float>(op.eps))
        return fmt::format("has epsilon {}, and the model's layer eps {}", eps, op.eps);
      if (!is_affine && !changes_nothing(candidate))
        return std::string("has weight and bias; leave affine: false out");
      for (std::size_t i = 0; i < tensors.size(); ++i)
        if (std::string why = why_not_tensor(candidate, first + static_cast<int>(i), tensors[i]);
            !why.empty())
          return why;
      return std::string();
    });
    for (std::size_t i = 0; i < tensors.size(); ++i) copy(node, first + static_cast<int>(i), tensors[i]);
    note(node);
    return node.output(0);
  }
  /// Weights are 1 and biases, which an operator may have no need of, 0.
  bool changes_nothing(const onnx::NodeProto& node) const {
    return changes_nothing(node, static_cast<std::size_t>(layer_->input().channels));
  }
  bool changes_nothing(const onnx::NodeProto& node, std::size_t count) const {
    std::vector<float> numbers(count);
    for (int input = 1; input <= 2; ++input) {
      const onnx::TensorProto* tensor = constant_input(node, input);
      if (input == 2 && node.input_size() < 3) continue;
      if (tensor == nullptr || !why_not_numbers(*tensor, numbers.size()).empty()) return false;
      copy_numbers(*tensor, numbers);
      if (std::ranges::any_of(numbers, [&](float number) { return number != (input == 1 ? 1.0F : 0.0F); }))
        return false;
    }
    return true;
  }
  std::string why_other_eps(const onnx::NodeProto& node, double eps) const {
    const float in_file = number_of(node, "epsilon", 1e-5F);
    if (in_file == static_cast<float>(eps)) return "";
    return fmt::format("has epsilon {}, and the model's layer eps {}", in_file, eps);
  }
  std::string find(const GroupNormOp& op, const std::string& x) {
    return op.whole_layer ? find_layer_norm(op, x) : find_group_norm(op, x);
  }
  std::string find_layer_norm(const GroupNormOp& op, const std::string& x) {
    const bool is_vector = sees_through_views();
    const onnx::NodeProto& node = choose(x, {"LayerNormalization"}, [&](const onnx::NodeProto& candidate) {
      const std::int64_t axis = integer_of(candidate, "axis", -1);
      const bool is_whole = axis == 1 || axis == (is_vector ? -1 : -3);
      if (!is_whole) return fmt::format("has axis {}, and the model's layer takes whole samples", axis);
      if (!op.affine)
        return changes_nothing(candidate, static_cast<std::size_t>(op.shape.channels))
                   ? why_other_eps(candidate, op.eps)
                   : std::string("has weight and bias; leave affine: false out");
      return first_of({why_other_eps(candidate, op.eps),
                       why_not_tensor(candidate, 1, layer_->parameters()[0]), why_not_bias(candidate, 2)});
    });
    copy_weight_and_bias(node);
    return node.output(0);
  }
  /// One node since operator set 18; before, an InstanceNormalization of groups between views, a Mul and an Add.
  std::string find_group_norm(const GroupNormOp& op, const std::string& x) {
    const Shape channels{op.shape.channels};
    const onnx::NodeProto& node = choose(
        readers_of(x, true), {"InstanceNormalization", "GroupNormalization"},
        [&](const onnx::NodeProto& candidate) {
          if (candidate.op_type() == "InstanceNormalization")
            return changes_nothing(candidate, static_cast<std::size_t>(op.shape.groups))
                       ? why_other_eps(candidate, op.eps)
                       : std::string(
                             "has other groups or weights of its own, or was exported with optimize=False");
          if (!op.affine) return std::string("has weight and bias; leave affine: false out");
          return first_of(
              {why_other("num_groups", {integer_of(candidate, "num_groups", 0)}, {op.shape.groups}),
               why_other_eps(candidate, op.eps), why_not_tensor(candidate, 1, layer_->parameters()[0]),
               why_not_bias(candidate, 2)});
        });
    if (node.op_type() == "GroupNormalization") {
      copy_weight_and_bias(node);
      return node.output(0);
    }
    if (!op.affine) return behind_views(node.output(0));
    const std::string scaled = behind_channels(node.output(0), "Mul", 0);
    const std::string y = behind_channels(scaled, "Add", 1);
    note(node);
    return y;
  }
  std::string behind_views(std::string value) const {
    for (;;) {
      const auto& readers = graph_.readers(value);
      if (readers.size() != 1 || !is_view(graph_.node(readers.front()))) return value;
      value = graph_.node(readers.front()).output(0);
    }
  }
  /// Behind a node that applies one number for each channel, a tensor of the layer.
  std::string behind_channels(const std::string& value, const char* op, std::size_t tensor) {
    const Parameter& parameter = layer_->parameters()[tensor];
    const Shape wanted{parameter.shape.front(), 1, 1};
    const auto side = [&](const onnx::NodeProto& node) { return constant_input(node, 0) != nullptr ? 0 : 1; };
    const onnx::NodeProto& node =
        choose(readers_of(value, true), {op}, [&](const onnx::NodeProto& candidate) {
          return why_not_tensor(candidate, side(candidate), parameter, wanted);
        });
    copy(node, side(node), parameter);
    return node.output(0);
  }
  /// Nodes that read both x and the branch.
  /// @param values  x and the branch; become all that are the same
  std::vector<std::size_t> readers_of_both(std::vector<std::string> (&values)[2]) const {
    const ImageShape& branch = network_.layers()[*layer_->branch()]->output();
    const auto of_branch = readers_of(values[1], branch.height == 1 && branch.width == 1);
    std::vector<std::size_t> both;
    for (const std::size_t reader : readers_of(values[0], sees_through_views()))
      if (std::ranges::find(of_branch, reader) != of_branch.end()) both.push_back(reader);
    return both;
  }
  /// A node of both inputs, in any order.
  std::string find_of_both(const std::string& x, const char* op, const char* with_constant) {
    std::vector<std::string> values[2] = {{x}, {values_[*layer_->branch()]}};
    return choose(readers_of_both(values), {op},
                  [&](const onnx::NodeProto& node) {
                    return node.input_size() == 2 && !constant_input(node, 0) && !constant_input(node, 1)
                               ? std::string()
                               : std::string(with_constant);
                  })
        .output(0);
  }
  std::string find(const AddOp& /*op*/, const std::string& x) {
    return find_of_both(x, "Add", "adds a constant");
  }
  std::string find(const MultiplyOp& /*op*/, const std::string& x) {
    return find_of_both(x, "Mul", "multiplies by a constant");
  }
  std::string find(const ConcatOp& /*op*/, const std::string& x) {
    std::vector<std::string> values[2] = {{x}, {values_[*layer_->branch()]}};
    const auto readers = readers_of_both(values);
    const auto is_among = [](const std::vector<std::string>& names, const std::string& name) {
      return std::ranges::find(names, name) != names.end();
    };
    return choose(readers, {"Concat"},
                  [&](const onnx::NodeProto& node) {
                    if (node.input_size() != 2) return std::string("joins other than two tensors");
                    if (!is_among(values[1], node.input(0)) || !is_among(values[0], node.input(1)))
                      return std::string("joins them in the other order");
                    const std::int64_t axis = integer_of(node, "axis", 1);
                    return why_other("axis", {axis < 0 ? axis + 4 : axis}, {1});
                  })
        .output(0);
  }
  std::string find(const RouteOp& /*op*/, const std::string& /*x*/) { return values_[*layer_->branch()]; }
  std::string find(const ViewOp& /*op*/, const std::string& x) { return x; }

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

}  // namespace

std::string read_onnx(std::span<const std::byte> bytes, const std::string& file, const Network& network,
                      std::span<float> weights) {
  LOCKSTEP_CHECK(weights.size() == network.parameters().weights_size());
  const OnnxGraph graph(bytes, file);
  return GraphReader(graph, file, network, weights).read();
}

}  // namespace lockstep
