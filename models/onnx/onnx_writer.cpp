// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From layers to nodes. Operators: https://github.com/onnx/onnx/blob/v1.12.0/docs/Operators.md
#include "common/error.hpp"
#include "kernels/sum_cuts.hpp"
#include "models/layer.hpp"
#include "models/layer_ops.hpp"
#include "models/onnx/onnx.hpp"

#include <climits>
#include <fmt/format.h>
#include <onnx_schema.pb.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <set>
#include <utility>
#include <variant>

namespace lockstep {
namespace {

constexpr int kOperatorSet = 17, kIrVersion = 8;
constexpr const char* kInput = "image";
constexpr const char* kOutput = "logits";

/// Bytes beside the numbers: nodes and names, generously.
constexpr std::uint64_t kMostOther = std::uint64_t{64} << 20;
/// Numbers of one file, in its weights and constants together.
constexpr std::uint64_t kMostNumbers = (INT_MAX - kMostOther) / sizeof(float);

/// That of a channel, of one number for all or one for each.
double number_for(const std::vector<double>& numbers, std::size_t channel) {
  return numbers.size() == 1 ? numbers.front() : numbers[channel];
}

class GraphWriter {
 public:
  GraphWriter(const Network& network, std::span<const float> weights, onnx::GraphProto& graph)
      : network_(network), weights_(weights), graph_(graph) {}

  void write(const OnnxFacts& facts) {
    take_room(weights_.size());
    graph_.set_name(network_.name());
    for (const auto& layer : network_.layers()) node_names_.insert(layer->name());
    const ImageShape& input = network_.input_shape();
    declare(*graph_.add_input(), kInput, {input.channels, input.height, input.width});
    declare(*graph_.add_output(), kOutput, {network_.classes()});
    for (const Parameter& tensor : network_.parameters().tensors())
      add_tensor(tensor.name, {tensor.shape.begin(), tensor.shape.end()},
                 weights_.subspan(tensor.offset, tensor.size));
    Value x = normalised(facts);
    for (const auto& layer : network_.layers()) {
      layer_ = layer.get();
      x = std::visit([&](const auto& op) { return add(op, x); }, layer->op());
      outputs_.push_back(x);
    }
    name_output(x);
  }

 private:
  /// A tensor of the graph: [N, channels, height, width], or [N, features].
  struct Value {
    std::string name;
    bool is_flat = false;
  };

  /// [N, classes] under the name of the graph's output.
  void name_output(const Value& x) {
    onnx::NodeProto& last = *graph_.mutable_node(graph_.node_size() - 1);
    if (x.is_flat && last.output(0) == x.name) {
      last.set_output(0, kOutput);
    } else {
      add_node(x.is_flat ? "Identity" : "Flatten", free_name(kOutput), {x.name}, kOutput);
    }
  }

  static void declare(onnx::ValueInfoProto& value, const char* name, std::initializer_list<int> sizes) {
    value.set_name(name);
    onnx::TypeProto::Tensor& type = *value.mutable_type()->mutable_tensor_type();
    type.set_elem_type(onnx::TensorProto::FLOAT);
    type.mutable_shape()->add_dim()->set_dim_param("N");
    for (const int size : sizes) type.mutable_shape()->add_dim()->set_dim_value(size);
  }

  std::string add_tensor(const std::string& name, const std::vector<std::int64_t>& shape,
                         std::span<const float> numbers) {
    onnx::TensorProto& tensor = *graph_.add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    for (const std::int64_t size : shape) tensor.add_dims(size);
    tensor.set_raw_data(numbers.data(), numbers.size_bytes());
    return name;
  }

  /// The name of a constant that is no tensor of the layer. With a dot a reader would take it for one.
  std::string own(const char* what) const { return fmt::format("{}/{}", layer_->name(), what); }
  std::string constant(const char* what, float value) {
    return add_tensor(own(what), {}, std::span(&value, 1));
  }

  /// Counts numbers of the file before they are allocated.
  void take_room(std::uint64_t numbers) {
    if (numbers > kMostNumbers - taken_)
      throw UsageError(
          "too large for an ONNX file, which holds 2 GiB at most; use the safetensors file instead");
    taken_ += numbers;
  }
  std::vector<float> numbers_of(const std::vector<std::int64_t>& shape, float value) {
    std::size_t size = 1;
    for (const std::int64_t side : shape) size *= static_cast<std::size_t>(side);
    take_room(size);
    return std::vector<float>(size, value);
  }
  std::string filled(const char* what, const std::vector<std::int64_t>& shape, float value) {
    return add_tensor(own(what), shape, numbers_of(shape, value));
  }

  /// Adds the matrix that averages an adaptive pool's rows: [out, in], each input row's share in each output row.
  /// Transposed, [in, out], it averages columns.
  std::string adaptive_means(const char* what, int in, int out, bool transposed) {
    const std::vector<std::int64_t> shape{transposed ? in : out, transposed ? out : in};
    std::vector<float> shares = numbers_of(shape, 0);
    for (int i = 0; i < out; ++i) {
      const AdaptiveWindow window(i, in, out);
      for (int k = window.begin; k < window.end; ++k)
        shares[static_cast<std::size_t>(transposed ? k * out + i : i * in + k)] =
            1.0F / static_cast<float>(window.size());
    }
    return add_tensor(own(what), shape, shares);
  }

  /// Whole numbers of the layer, such as a shape.
  std::string integers(const char* what, std::initializer_list<std::int64_t> values) {
    onnx::TensorProto& tensor = *graph_.add_initializer();
    tensor.set_name(own(what));
    tensor.set_data_type(onnx::TensorProto::INT64);
    tensor.add_dims(static_cast<std::int64_t>(values.size()));
    for (const std::int64_t value : values) tensor.add_int64_data(value);
    return tensor.name();
  }

  /// A name that no layer and no other node has. Layers may be called `logits` or `gelu1.sum`. None has a slash.
  std::string free_name(std::string name) {
    while (!node_names_.insert(name).second) name += "/";
    return name;
  }
  onnx::NodeProto& add_node(const char* op, const std::string& name, const std::vector<std::string>& inputs,
                            const std::string& output) {
    onnx::NodeProto& node = *graph_.add_node();
    node.set_op_type(op);
    node.set_name(name);
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(output);
    return node;
  }
  /// One of several nodes of a layer. @returns the name of its output
  std::string add_step(const char* op, const char* what, const std::vector<std::string>& inputs) {
    const std::string name = free_name(fmt::format("{}.{}", layer_->name(), what));
    add_node(op, name, inputs, name + ".output");
    return name + ".output";
  }
  /// The layer's only node, or its last one.
  onnx::NodeProto& add_node(const char* op, const std::vector<std::string>& inputs) {
    return add_node(op, layer_->name(), inputs, output_name());
  }
  std::string output_name() const { return layer_->name() + ".output"; }
  Value add_last(const char* op, const std::vector<std::string>& inputs, bool is_flat = false) {
    add_node(op, inputs);
    return {output_name(), is_flat};
  }

  static onnx::AttributeProto& add_attribute(onnx::NodeProto& node, const char* name,
                                             onnx::AttributeProto::AttributeType type) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(type);
    return attribute;
  }
  static void set(onnx::NodeProto& node, const char* name, std::int64_t value) {
    add_attribute(node, name, onnx::AttributeProto::INT).set_i(value);
  }
  static void set_number(onnx::NodeProto& node, const char* name, float value) {
    add_attribute(node, name, onnx::AttributeProto::FLOAT).set_f(value);
  }
  static void set(onnx::NodeProto& node, const char* name, std::initializer_list<std::int64_t> values) {
    onnx::AttributeProto& attribute = add_attribute(node, name, onnx::AttributeProto::INTS);
    for (const std::int64_t value : values) attribute.add_ints(value);
  }
  static void set_window(onnx::NodeProto& node, std::pair<int, int> kernel, int stride, int padding) {
    set(node, "kernel_shape", {kernel.first, kernel.second});
    set(node, "strides", {stride, stride});
    set(node, "pads", {padding, padding, padding, padding});
  }

  /// The layer's weight, and its bias if it has one.
  std::vector<std::string> with_parameters(const std::string& x) const {
    std::vector<std::string> inputs{x};
    for (const Parameter& parameter : layer_->parameters()) inputs.push_back(parameter.name);
    return inputs;
  }

  std::string flat(const Value& x) { return x.is_flat ? x.name : add_step("Flatten", "flatten", {x.name}); }
  /// A plain vector means channels of 1x1.
  std::string image(const Value& x) {
    if (!x.is_flat) return x.name;
    return add_step("Reshape", "image", {x.name, integers("shape", {-1, layer_->input().channels, 1, 1})});
  }

  Value normalised(const OnnxFacts& facts) {
    if (facts.std.empty()) return {kInput};
    std::vector<float> scale, shift;
    for (std::size_t c = 0; c < std::max(facts.mean.size(), facts.std.size()); ++c) {
      const double mean = number_for(facts.mean, c), deviation = number_for(facts.std, c);
      scale.push_back(static_cast<float>(1 / deviation));
      shift.push_back(static_cast<float>(-mean / deviation));
    }
    const auto channels = static_cast<std::int64_t>(scale.size());
    const std::vector<std::int64_t> shape{1, channels, 1, 1};
    add_node("Mul", free_name("image.scale"), {kInput, add_tensor("image/scale", shape, scale)},
             "image.scaled");
    add_node("Add", free_name("image.shift"), {"image.scaled", add_tensor("image/shift", shape, shift)},
             "image.normalised");
    return {"image.normalised"};
  }

  Value convolution(const char* op, const Conv2dShape& s, int output_padding, const Value& x) {
    onnx::NodeProto& node = add_node(op, with_parameters(image(x)));
    set_window(node, {s.kernel_height, s.kernel_width}, s.stride, s.padding);
    if (output_padding != 0) set(node, "output_padding", {output_padding, output_padding});
    if (s.dilation != 1) set(node, "dilations", {s.dilation, s.dilation});
    if (s.groups != 1) set(node, "group", s.groups);
    return {output_name()};
  }
  Value add(const Conv2dShape& op, const Value& x) { return convolution("Conv", op, 0, x); }
  Value add(const ConvTransposeOp& op, const Value& x) {
    return convolution("ConvTranspose", op.convolution, op.output_padding(), x);
  }
  Value add(const LinearShape& /*op*/, const Value& x) {
    set(add_node("Gemm", with_parameters(flat(x))), "transB", 1);
    return {output_name(), true};
  }
  Value add(const MaxPoolOp& op, const Value& x) {
    const Pool2dShape& pool = op.shape;
    set_window(add_node("MaxPool", {image(x)}), {pool.kernel, pool.kernel}, pool.stride, pool.padding);
    return {output_name()};
  }
  Value add(const AvgPoolOp& op, const Value& x) {
    const Pool2dShape& pool = op.shape;
    onnx::NodeProto& node = add_node("AveragePool", {image(x)});
    set_window(node, {pool.kernel, pool.kernel}, pool.stride, pool.padding);
    set(node, "count_include_pad", 1);
    return {output_name()};
  }
  Value add(const GlobalAvgPoolOp& /*op*/, const Value& x) {
    return add_last("GlobalAveragePool", {image(x)});
  }
  /// Adds a pool. If windows differ in size, the means of rows and columns are products with matrices: no operator
  /// has them.
  Value add(const AdaptiveAvgPoolOp& op, const Value& x) {
    const AdaptivePoolShape& s = op.shape;
    if (s.in_height % s.out_height == 0 && s.in_width % s.out_width == 0) {
      onnx::NodeProto& node = add_node("AveragePool", {image(x)});
      set(node, "kernel_shape", {s.in_height / s.out_height, s.in_width / s.out_width});
      set(node, "strides", {s.in_height / s.out_height, s.in_width / s.out_width});
      return {output_name()};
    }
    const auto rows = adaptive_means("row_means", s.in_height, s.out_height, false);
    const auto columns = adaptive_means("column_means", s.in_width, s.out_width, true);
    return add_last("MatMul", {add_step("MatMul", "rows", {rows, image(x)}), columns});
  }
  Value add(const ReluOp& /*op*/, const Value& x) { return elementwise("Relu", x); }
  Value add(const DropoutOp& /*op*/, const Value& x) { return x; }
  Value add(const ActivationOp& op, const Value& x) {
    switch (op.function.kind) {
      case Activation::kTanh:
        return elementwise("Tanh", x);
      case Activation::kSigmoid:
        return elementwise("Sigmoid", x);
      case Activation::kRelu6:
        return add_last("Clip", {x.name, constant("least", 0), constant("most", 6)}, x.is_flat);
      case Activation::kGelu:
        return gelu(x);
      case Activation::kGeluTanh:
        return gelu_by_tanh(x);
      case Activation::kLeakyRelu:
        return elementwise("LeakyRelu", x, {{"alpha", op.function.number}});
      case Activation::kElu:
        return elementwise("Elu", x, {{"alpha", op.function.number}});
      case Activation::kSilu:
        break;
      case Activation::kHardSigmoid:
        return elementwise("HardSigmoid", x, {{"alpha", 1.0F / 6}, {"beta", 0.5F}});
      case Activation::kHardSwish:
        return elementwise("HardSwish", x);
    }
    return add_last("Mul", {x.name, add_step("Sigmoid", "sigmoid", {x.name})}, x.is_flat);
  }
  Value elementwise(const char* op, const Value& x,
                    std::initializer_list<std::pair<const char*, float>> numbers = {}) {
    onnx::NodeProto& node = add_node(op, {x.name});
    for (const auto& [name, value] : numbers) set_number(node, name, value);
    return {output_name(), x.is_flat};
  }
  /// x/2 (1 + share): operator set 17 has no Gelu.
  Value half_of(const Value& x, const std::string& share) {
    const std::string sum = add_step("Add", "sum", {share, constant("one", 1)});
    const std::string half = add_step("Mul", "half", {x.name, constant("one_half", 0.5F)});
    return add_last("Mul", {half, sum}, x.is_flat);
  }
  Value gelu(const Value& x) {
    const std::string scaled =
        add_step("Mul", "scaled", {x.name, constant("sqrt_half", 0.70710678118654752F)});
    return half_of(x, add_step("Erf", "erf", {scaled}));
  }
  /// With u = sqrt(2 / pi) (x + 0.044715 x^3) = x (a + b x^2).
  Value gelu_by_tanh(const Value& x) {
    const std::string square = add_step("Mul", "square", {x.name, x.name});
    const std::string cubic = add_step("Mul", "cubic", {square, constant("b", 0.035677408136300125F)});
    const std::string slope = add_step("Add", "slope", {cubic, constant("a", 0.79788456080286536F)});
    return half_of(x, add_step("Tanh", "tanh", {add_step("Mul", "u", {x.name, slope})}));
  }
  Value add(const BatchNormOp& op, const Value& x) {
    std::vector<std::string> inputs = with_parameters(x.name);
    if (!op.affine) inputs.push_back(filled("ones", {op.input.channels}, 1));
    if (!op.affine) inputs.push_back(filled("zeros", {op.input.channels}, 0));
    for (const Parameter& tensor : layer_->kept()) inputs.push_back(tensor.name);
    set_number(add_node("BatchNormalization", inputs), "epsilon", static_cast<float>(op.eps));
    return {output_name(), x.is_flat};
  }
  Value add(const GroupNormOp& op, const Value& x) {
    if (op.whole_layer) return layer_norm(op, x);
    const std::int64_t groups = op.shape.groups, pixels = layer_->input().height;
    const std::string split = add_step("Reshape", "split", {image(x), integers("groups", {0, groups, -1})});
    const std::string name = free_name(layer_->name() + ".normalised"), normal = name + ".output";
    const std::string ones = filled("ones", {groups}, 1), zeros = filled("zeros", {groups}, 0);
    set_number(add_node("InstanceNormalization", name, {split, ones, zeros}, normal), "epsilon",
               static_cast<float>(op.eps));
    const std::vector<std::string> whole{
        normal, integers("channels", {0, op.shape.channels, pixels, layer_->input().width})};
    if (!op.affine) return add_last("Reshape", whole);
    const auto& tensors = layer_->parameters();
    const std::string over_pixels = integers("over_pixels", {-1, 1, 1});
    const std::string scale = add_step("Reshape", "scale", {tensors[0].name, over_pixels});
    const std::string shift = add_step("Reshape", "shift", {tensors[1].name, over_pixels});
    return add_last("Add", {add_step("Mul", "scaled", {add_step("Reshape", "whole", whole), scale}), shift});
  }
  Value layer_norm(const GroupNormOp& op, const Value& x) {
    const std::vector<int> dimensions = dimensions_of(layer_->input());
    const bool is_vector = dimensions.size() == 1;
    std::vector<std::string> inputs = with_parameters(is_vector ? flat(x) : x.name);
    if (!op.affine) inputs.push_back(filled("ones", {dimensions.begin(), dimensions.end()}, 1));
    onnx::NodeProto& node = add_node("LayerNormalization", inputs);
    set(node, "axis", 1);
    set_number(node, "epsilon", static_cast<float>(op.eps));
    return {output_name(), is_vector};
  }
  Value add_of_two(const char* op, const Value& x) {
    const Value& branch = outputs_[*layer_->branch()];
    const bool is_flat = x.is_flat && branch.is_flat;
    return add_last(op, is_flat ? std::vector{x.name, branch.name} : std::vector{image(x), image(branch)},
                    is_flat);
  }
  Value add(const AddOp& /*op*/, const Value& x) { return add_of_two("Add", x); }
  Value add(const MultiplyOp& /*op*/, const Value& x) { return add_of_two("Mul", x); }
  Value add(const ConcatOp& /*op*/, const Value& x) {
    const Value& branch = outputs_[*layer_->branch()];
    const bool is_flat = x.is_flat || branch.is_flat;
    set(add_node("Concat", is_flat ? std::vector{flat(branch), flat(x)} : std::vector{branch.name, x.name}),
        "axis", 1);
    return {output_name(), is_flat};
  }
  Value add(const RouteOp& /*op*/, const Value& /*x*/) { return outputs_[*layer_->branch()]; }
  Value add(const ViewOp& /*op*/, const Value& x) { return {flat(x), true}; }
  Value add(const OwnOp& /*op*/, const Value& /*x*/) {
    throw UsageError(fmt::format("layer {}: ONNX has no {}", layer_->name(), layer_->describe()));
  }

  const Network& network_;
  std::span<const float> weights_;
  onnx::GraphProto& graph_;
  std::set<std::string> node_names_;  ///< all layers', and those given so far; onnxruntime takes each once
  const Layer* layer_ = nullptr;      ///< that is being written
  std::vector<Value> outputs_;        ///< one for each of the layers before
  std::uint64_t taken_ = 0;           ///< numbers of the file so far, kMostNumbers at most
};

}  // namespace

std::vector<std::byte> write_onnx(const Network& network, std::span<const float> weights,
                                  const OnnxFacts& facts) {
  LOCKSTEP_CHECK(weights.size() == network.parameters().weights_size());
  onnx::ModelProto model;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("lockstep");
  model.set_producer_version(facts.program);
  model.add_opset_import()->set_version(kOperatorSet);
  for (const auto& [key, value] : facts.metadata) {
    onnx::StringStringEntryProto& entry = *model.add_metadata_props();
    entry.set_key(key);
    entry.set_value(value);
  }
  GraphWriter(network, weights, *model.mutable_graph()).write(facts);
  std::vector<std::byte> bytes(model.ByteSizeLong());
  LOCKSTEP_CHECK(model.SerializeToArray(bytes.data(), static_cast<int>(bytes.size())));
  return bytes;
}

}  // namespace lockstep
