// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One walk along the network's layers and the graph together: what every layer asks of it.
#include "common/error.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "models/foreign_weights.hpp"
#include "models/onnx/onnx.hpp"
#include "models/onnx/onnx_graph.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <variant>

namespace lockstep {

std::string LayerSearch::read_all() {
  check_input();
  std::string x = behind_normalisation(graph_.input().name());
  for (const auto& layer : network_.layers()) {
    layer_ = layer.get();
    x = find_layer(*this, x);
    values_.push_back(x);
  }
  check_end(x);
  return fmt::format("{} of {}, along the graph that {} wrote: {}{}", counted(tensors_, "tensor"),
                     counted(found_.size(), "layer"), graph_.producer(), first_and_last(found_),
                     normalisation_.empty() ? "" : "; " + normalisation_);
}

void LayerSearch::fail(const std::string& what) const {
  throw DataError(fmt::format("{}: {}", file_, what));
}

void LayerSearch::fail_layer(const std::string& what) const {
  std::string hint;
  const bool has_norm = std::ranges::any_of(
      network_.layers(), [](const auto& layer) { return std::holds_alternative<BatchNormOp>(layer->op()); });
  if (has_norm && !graph_.has("BatchNormalization"))
    hint =
        "; the file has no BatchNormalization, so its exporter folded them into the convolutions: export "
        "again without that (in PyTorch: optimize=False; with dynamo=False: "
        "training=TrainingMode.PRESERVE)";
  fail(fmt::format("layer {} ({}): {}{}", layer_->name(), layer_->describe(), what, hint));
}

void LayerSearch::check_input() const {
  const ImageShape& input = network_.input_shape();
  const Shape wanted{input.channels, input.height, input.width};
  const auto& dims = graph_.input().type().tensor_type().shape().dim();
  for (int i = 1; i < dims.size(); ++i) {
    if (!dims[i].has_dim_value() ||
        (dims.size() == 4 && dims[i].dim_value() == wanted[static_cast<std::size_t>(i) - 1]) ||
        (dims.size() == 2 && dims[i].dim_value() == input.features()))
      continue;
    fail(fmt::format("its input {} has another shape than the model's {}", quoted_text(graph_.input().name()),
                     to_string(input)));
  }
}

std::vector<std::size_t> LayerSearch::readers_of(const std::string& value, bool through_views) const {
  std::vector<std::string> values{value};
  return readers_of(values, through_views);
}
std::vector<std::size_t> LayerSearch::readers_of(std::vector<std::string>& values, bool through_views) const {
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

std::vector<std::size_t> LayerSearch::readers_of_both(std::vector<std::string> (&values)[2]) const {
  const ImageShape& branch = network_.layers()[*layer_->branch()]->output();
  const auto of_branch = readers_of(values[1], branch.height == 1 && branch.width == 1);
  std::vector<std::size_t> both;
  for (const std::size_t reader : readers_of(values[0], sees_through_views()))
    if (std::ranges::find(of_branch, reader) != of_branch.end()) both.push_back(reader);
  return both;
}

const onnx::NodeProto& LayerSearch::choose(const std::vector<std::size_t>& readers, Ops ops,
                                           const WhyNot& why_not) const {
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
const onnx::NodeProto& LayerSearch::choose(const std::string& x, Ops ops, const WhyNot& why_not) const {
  return choose(readers_of(x, sees_through_views()), ops, why_not);
}

const onnx::TensorProto* LayerSearch::constant_input(const onnx::NodeProto& node, int input) const {
  return input < node.input_size() ? graph_.constant(node.input(input)) : nullptr;
}
std::string LayerSearch::why_not_tensor(const onnx::NodeProto& node, int input, const Parameter& tensor,
                                        const std::optional<Shape>& other_shape) const {
  const onnx::TensorProto* constant = constant_input(node, input);
  if (constant == nullptr) return fmt::format("has no constant for {}", tensor.name);
  const Shape wanted = other_shape.value_or(Shape(tensor.shape.begin(), tensor.shape.end()));
  if (shape_of(*constant) != wanted)
    return fmt::format("has {} of shape {}, and {} is {}", quoted_text(node.input(input)),
                       in_words(shape_of(*constant)), tensor.name, in_words(wanted));
  const std::string why = why_not_numbers(*constant, tensor.size);
  return why.empty() ? "" : fmt::format("has {}, whose numbers {}", quoted_text(node.input(input)), why);
}

std::string LayerSearch::why_not_bias(const onnx::NodeProto& node, int input) const {
  const bool wanted = layer_->parameters().size() > 1;
  const bool has = input < node.input_size() && !node.input(input).empty() &&
                   (wanted || graph_.number(node.input(input)) != 0.0F);
  if (has && !wanted) return "has a bias, and the model's layer has none (bias: false)";
  if (!has && wanted) return "has no bias; say bias: false in the model";
  return has ? why_not_tensor(node, input, layer_->parameters()[1]) : "";
}

std::span<float> LayerSearch::take(const Parameter& tensor) {
  ++tensors_;
  const bool is_kept =
      std::ranges::find(layer_->kept(), tensor.name, &Parameter::name) != layer_->kept().end();
  return weights_.subspan(tensor.offset + (is_kept ? network_.parameters().size : 0), tensor.size);
}
void LayerSearch::copy(const onnx::NodeProto& node, int input, const Parameter& tensor) {
  copy_numbers(*constant_input(node, input), take(tensor));
}
void LayerSearch::copy_weight_and_bias(const onnx::NodeProto& node) {
  for (std::size_t i = 0; i < layer_->parameters().size(); ++i)
    copy(node, static_cast<int>(i) + 1, layer_->parameters()[i]);
  note(node);
}
void LayerSearch::note(const onnx::NodeProto& node) {
  found_.push_back(fmt::format("{} from {}", layer_->name(), describe(node)));
}

std::string LayerSearch::behind_normalisation(std::string value) {
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

void LayerSearch::check_end(std::string value) const {
  for (int steps = 0; steps < 16; ++steps) {
    if (value == graph_.output()) return;
    const onnx::NodeProto* next = nullptr;
    for (const std::size_t i : graph_.readers(value)) next = &graph_.node(i);
    if (next == nullptr || next->output_size() < 1) break;
    if (!is_transparent(*next) && !is_view(*next) && !is_one_of(next->op_type(), {"Softmax", "LogSoftmax"}))
      fail(
          fmt::format("behind the model's last layer, {}, the file has {}", layer_->name(), describe(*next)));
    value = next->output(0);
  }
  fail(fmt::format("what the model's last layer, {}, computes is not the output {} of the file",
                   layer_->name(), quoted_text(graph_.output())));
}

std::string read_onnx(std::span<const std::byte> bytes, const std::string& file, const Network& network,
                      std::span<float> weights) {
  LOCKSTEP_CHECK(weights.size() == network.parameters().weights_size());
  const OnnxGraph graph(bytes, file);
  return LayerSearch(graph, file, network, weights).read_all();
}

}  // namespace lockstep
