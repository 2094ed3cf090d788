// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// ONNX files of our own, read back to the bit; and files that are not what the model is. What other programs compute
/// of them, and what they write, is tested by tests/launch/onnx_test.sh.
#include "models/onnx/onnx.hpp"

#include "common/error.hpp"
#include "models/layer.hpp"
#include "models/network.hpp"
#include "tests/support/test_settings.hpp"

#include <gtest/gtest.h>
#include <onnx_schema.pb.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

constexpr int kClasses = 10;

const char* const kSmall =
    "name: small\nlayers:\n  - conv2d: {out: 4, kernel: 3, stride: 2, padding: 1}\n  - batch_norm: {eps: "
    "1e-3}\n"
    "  - relu\n  - avg_pool: {kernel: 3, padding: 1}\n  - dropout\n  - linear: {out: 6, bias: false}\n  - "
    "gelu\n"
    "  - linear: classes\n";

Network network_of(const std::string& yaml) {
  return Network::parse(yaml, "small.yaml", {1, 12, 12}, kClasses);
}

/// No two alike, and variances above 0.
std::vector<float> weights_of(const Network& network) {
  std::vector<float> weights(network.parameters().weights_size());
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = 0.5F + static_cast<float>(i) / 1024;
  return weights;
}

std::vector<std::byte> file_of(const Network& network) {
  return write_onnx(network, weights_of(network),
                    {.mean = {0.5}, .std = {0.25}, .program = "1.2", .metadata = {{"a", "b"}}});
}

onnx::ModelProto parsed(const std::vector<std::byte>& bytes) {
  onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
  return model;
}

std::vector<std::byte> bytes_of(const onnx::ModelProto& model) {
  const std::string text = model.SerializeAsString();
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

std::vector<float> read_back(const std::vector<std::byte>& bytes, const Network& network) {
  std::vector<float> weights(network.parameters().weights_size());
  read_onnx(bytes, "f.onnx", network, weights);
  return weights;
}

onnx::NodeProto& node_of(onnx::ModelProto& model, const std::string& name) {
  for (onnx::NodeProto& node : *model.mutable_graph()->mutable_node())
    if (node.name() == name) return node;
  throw std::runtime_error("no node " + name);
}

onnx::AttributeProto& attribute_of(onnx::NodeProto& node, const std::string& name) {
  for (onnx::AttributeProto& attribute : *node.mutable_attribute())
    if (attribute.name() == name) return attribute;
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  return attribute;
}

onnx::TensorProto& tensor_of(onnx::ModelProto& model, const std::string& name) {
  for (onnx::TensorProto& tensor : *model.mutable_graph()->mutable_initializer())
    if (tensor.name() == name) return tensor;
  throw std::runtime_error("no tensor " + name);
}

TEST(OnnxTest, ShippedModelsComeBackToTheBit) {
  for (const char* name :
       {"net", "lenet", "mlp", "linear", "resnet8", "resnet20", "resnet18", "mobilenet_v2"}) {
    const Network network = Network::load(name, {1, 28, 28}, kClasses);
    EXPECT_EQ(read_back(file_of(network), network), weights_of(network)) << name;
  }
}

TEST(OnnxTest, EveryKindOfLayerComesBackToTheBit) {
  const std::string file = test::source_path("tests/trainer/onnx/all_layers.yaml");
  const Network network = Network::load(file, {3, 28, 28}, kClasses);
  EXPECT_EQ(read_back(file_of(network), network), weights_of(network));
}

TEST(OnnxTest, FileSaysWhatGoesInAndOut) {
  const onnx::ModelProto model = parsed(file_of(network_of(kSmall)));
  EXPECT_EQ(model.ir_version(), 8);
  EXPECT_EQ(model.opset_import(0).version(), 17);
  EXPECT_EQ(model.producer_name() + model.producer_version(), "lockstep1.2");
  EXPECT_EQ(model.metadata_props(0).key() + model.metadata_props(0).value(), "ab");
  const auto& input = model.graph().input(0).type().tensor_type().shape();
  ASSERT_EQ(input.dim_size(), 4);
  EXPECT_EQ(input.dim(0).dim_param(), "N");
  EXPECT_EQ(input.dim(3).dim_value(), 12);
  EXPECT_EQ(model.graph().output(0).name(), "logits");
  EXPECT_EQ(model.graph().node(model.graph().node_size() - 1).output(0), "logits");
}

TEST(OnnxTest, NodesAreWhatTheLayersCompute) {
  onnx::ModelProto model = parsed(file_of(network_of(kSmall)));
  std::string ops;
  for (const onnx::NodeProto& node : model.graph().node()) ops += node.op_type() + " ";
  EXPECT_EQ(ops, "Mul Add Conv BatchNormalization Relu AveragePool Flatten Gemm Mul Erf Add Mul Mul Gemm ");
  const auto& pads = attribute_of(node_of(model, "conv1"), "pads").ints();
  EXPECT_EQ(std::vector<std::int64_t>(pads.begin(), pads.end()), (std::vector<std::int64_t>{1, 1, 1, 1}));
  EXPECT_EQ(attribute_of(node_of(model, "conv1"), "strides").ints(1), 2);
  EXPECT_EQ(attribute_of(node_of(model, "pool1"), "count_include_pad").i(), 1);
  EXPECT_EQ(attribute_of(node_of(model, "bn1"), "epsilon").f(), 1e-3F);
  float scale = 0, shift = 0;
  std::memcpy(&scale, tensor_of(model, "image.scale").raw_data().data(), sizeof(float));
  std::memcpy(&shift, tensor_of(model, "image.shift").raw_data().data(), sizeof(float));
  EXPECT_EQ(scale, 4);
  EXPECT_EQ(shift, -2);
}

TEST(OnnxTest, NamesAndTheOrderOfNodesDoNotMatter) {
  const Network network = network_of(kSmall);
  onnx::ModelProto model = parsed(file_of(network));
  auto& nodes = *model.mutable_graph()->mutable_node();
  std::reverse(nodes.begin(), nodes.end());
  for (onnx::NodeProto& node : nodes) {
    node.clear_name();
    for (std::string& name : *node.mutable_input()) name = name == "image" ? name : "x" + name;
    for (std::string& name : *node.mutable_output()) name = name == "logits" ? name : "x" + name;
  }
  for (onnx::TensorProto& tensor : *model.mutable_graph()->mutable_initializer())
    tensor.set_name("x" + tensor.name());
  EXPECT_EQ(read_back(bytes_of(model), network), weights_of(network));
}

TEST(OnnxTest, ProductAndSumAreALinearLayer) {
  const Network network = network_of("layers:\n  - linear: classes\n");
  onnx::ModelProto model = parsed(file_of(network));
  onnx::NodeProto& product = node_of(model, "fc1");
  onnx::NodeProto sum;
  sum.set_op_type("Add");
  for (const char* input : {"fc1.bias", "product"}) sum.add_input(input);
  sum.add_output("logits");
  product.set_op_type("MatMul");
  product.clear_attribute();
  product.mutable_input()->RemoveLast();
  product.set_output(0, "product");
  *model.mutable_graph()->add_node() = sum;
  onnx::TensorProto& weight = tensor_of(model, "fc1.weight");
  const std::string rows = weight.raw_data();
  std::string columns;
  for (std::size_t in = 0; in < 144; ++in)
    for (std::size_t out = 0; out < kClasses; ++out)
      columns += rows.substr((out * 144 + in) * sizeof(float), sizeof(float));
  weight.set_raw_data(columns);
  weight.set_dims(0, 144);
  weight.set_dims(1, kClasses);
  EXPECT_EQ(read_back(bytes_of(model), network), weights_of(network));
}

using Change = std::function<void(onnx::ModelProto&)>;

/// As PyTorch writes a convolution without one.
TEST(OnnxTest, BiasThatOnlyRepeatsAZeroIsNone) {
  const Network network = network_of(
      "layers:\n  - conv2d: {out: 4, kernel: 3, groups: 1, dilation: 2, bias: false}\n  - linear: classes\n");
  onnx::ModelProto model = parsed(file_of(network));
  onnx::TensorProto& zero = *model.mutable_graph()->add_initializer();
  zero.set_name("zero"), zero.set_data_type(onnx::TensorProto::FLOAT), zero.add_float_data(0);
  onnx::NodeProto& repeat = *model.mutable_graph()->add_node();
  repeat.set_op_type("Expand"), repeat.add_input("zero"), repeat.add_input("size"),
      repeat.add_output("zeros");
  node_of(model, "conv1").add_input("zeros");
  EXPECT_EQ(read_back(bytes_of(model), network), weights_of(network));
  tensor_of(model, "zero").set_float_data(0, 1);
  EXPECT_THROW(read_back(bytes_of(model), network), DataError);
}

TEST(OnnxTest, TransposedConvolutionsLeaveOverWhatTheirNodeSays) {
  const Network network = network_of(
      "layers:\n  - conv_transpose2d: {out: 4, kernel: 3, stride: 2, output_padding: 1}\n  - linear: "
      "classes\n");
  onnx::ModelProto model = parsed(file_of(network));
  onnx::NodeProto& node = node_of(model, "conv1");
  EXPECT_EQ(node.op_type(), "ConvTranspose");
  EXPECT_EQ(attribute_of(node, "output_padding").ints(1), 1);
  EXPECT_EQ(read_back(bytes_of(model), network), weights_of(network));
  attribute_of(node, "output_padding").set_ints(1, 0);
  EXPECT_THROW(read_back(bytes_of(model), network), DataError);
  attribute_of(node, "output_padding").set_ints(1, 1);
  attribute_of(node, "output_shape").add_ints(26);
  EXPECT_THROW(read_back(bytes_of(model), network), DataError);
}

/// As PyTorch writes it.
TEST(OnnxTest, LimitsOfRelu6MayBeNumbersThatAreCast) {
  const Network network = network_of("layers:\n  - linear: 4\n  - relu6\n  - linear: classes\n");
  onnx::ModelProto model = parsed(file_of(network));
  onnx::NodeProto& six = *model.mutable_graph()->add_node();
  six.set_op_type("Constant"), six.add_output("six"), attribute_of(six, "value_float").set_f(6);
  onnx::NodeProto& cast = *model.mutable_graph()->add_node();
  cast.set_op_type("CastLike"), cast.add_input("six"), cast.add_input("fc1.output"), cast.add_output("most");
  node_of(model, "relu1").set_input(2, "most");
  EXPECT_EQ(read_back(bytes_of(model), network), weights_of(network));
  attribute_of(*model.mutable_graph()->mutable_node(model.graph().node_size() - 2), "value_float").set_f(5);
  EXPECT_THROW(read_back(bytes_of(model), network), DataError);
}

TEST(OnnxTest, WhatDiffersIsNamed) {
  const Network network = network_of(kSmall);
  const std::pair<std::string, Change> cases[] = {
      {"Conv 'conv1' has strides [1, 1], and the model [2, 2]",
       [](auto& model) {
         attribute_of(node_of(model, "conv1"), "strides").clear_ints(),
             attribute_of(node_of(model, "conv1"), "strides").add_ints(1),
             attribute_of(node_of(model, "conv1"), "strides").add_ints(1);
       }},
      {"has pads [2, 1, 1, 1]",
       [](auto& model) { attribute_of(node_of(model, "conv1"), "pads").set_ints(0, 2); }},
      {"has dilations [2, 2]",
       [](auto& model) {
         attribute_of(node_of(model, "conv1"), "dilations").add_ints(2),
             attribute_of(node_of(model, "conv1"), "dilations").add_ints(2);
       }},
      {"has group [2]", [](auto& model) { attribute_of(node_of(model, "conv1"), "group").set_i(2); }},
      {"has auto_pad 'SAME_UPPER'",
       [](auto& model) { attribute_of(node_of(model, "conv1"), "auto_pad").set_s("SAME_UPPER"); }},
      {"has no bias; say bias: false",
       [](auto& model) { node_of(model, "conv1").mutable_input()->RemoveLast(); }},
      {"has a bias, and the model's layer has none",
       [](auto& model) { node_of(model, "fc1").add_input("fc2.bias"); }},
      {"layer relu1 (relu): Tanh 'relu1' is no Relu",
       [](auto& model) { node_of(model, "relu1").set_op_type("Tanh"); }},
      {"has epsilon 0.5, and the model's layer eps 0.001",
       [](auto& model) { attribute_of(node_of(model, "bn1"), "epsilon").set_f(0.5); }},
      {"call model.eval()",
       [](auto& model) { attribute_of(node_of(model, "bn1"), "training_mode").set_i(1); }},
      {"its exporter folded them into the convolutions",
       [](auto& model) { node_of(model, "bn1").set_op_type("Relu"); }},
      {"leaves padding out",
       [](auto& model) { attribute_of(node_of(model, "pool1"), "count_include_pad").set_i(0); }},
      {"has ceil_mode [1]", [](auto& model) { attribute_of(node_of(model, "pool1"), "ceil_mode").set_i(1); }},
      {"layer gelu1 (gelu): the file computes something else",
       [](auto& model) { node_of(model, "gelu1.erf").set_op_type("Tanh"); }},
      {"has alpha, beta or transA",
       [](auto& model) { attribute_of(node_of(model, "fc1"), "transA").set_i(1); }},
      {"lie in another file",
       [](auto& model) { tensor_of(model, "fc2.weight").set_data_location(onnx::TensorProto::EXTERNAL); }},
      {"are not fp32",
       [](auto& model) { tensor_of(model, "fc2.weight").set_data_type(onnx::TensorProto::FLOAT16); }},
      {"the file is damaged",
       [](auto& model) { tensor_of(model, "fc2.weight").mutable_raw_data()->pop_back(); }},
      {"of shape [10, 9223372036854775807]",
       [](auto& model) { tensor_of(model, "fc2.weight").set_dims(1, INT64_MAX); }},
      {"has no constant for fc2.weight", [](auto& model) { node_of(model, "fc2").set_input(1, "nowhere"); }},
      {"Conv 'conv1' and Conv 'twin' could both be it",
       [](auto& model) {
         onnx::NodeProto twin = node_of(model, "conv1");
         twin.set_name("twin"), twin.set_output(0, "twin");
         *model.mutable_graph()->add_node() = twin;
       }},
      {"behind the model's last layer, fc2, the file has Relu 'more'",
       [](auto& model) {
         node_of(model, "fc2").set_output(0, "almost");
         onnx::NodeProto& more = *model.mutable_graph()->add_node();
         more.set_op_type("Relu"), more.set_name("more"), more.add_input("almost"), more.add_output("logits");
       }},
      {"is not the output 'other'",
       [](auto& model) { model.mutable_graph()->mutable_output(0)->set_name("other"); }},
      {"has the inputs 'image' and 'second'",
       [](auto& model) { model.mutable_graph()->add_input()->set_name("second"); }},
      {"has another shape than the model's 1x12x12",
       [](auto& model) {
         model.mutable_graph()
             ->mutable_input(0)
             ->mutable_type()
             ->mutable_tensor_type()
             ->mutable_shape()
             ->mutable_dim(3)
             ->set_dim_value(13);
       }},
      {"has two tensors of the name 'fc2.bias'",
       [](auto& model) { *model.mutable_graph()->add_initializer() = tensor_of(model, "fc2.bias"); }},
      {"operator set 6 is older than 9", [](auto& model) { model.mutable_opset_import(0)->set_version(6); }},
      {"is of the domain 'com.other'", [](auto& model) { node_of(model, "fc2").set_domain("com.other"); }},
      {"its graph has no output", [](auto& model) { model.mutable_graph()->clear_output(); }},
      {"the file's graph ends before it", [](auto& model) { node_of(model, "fc2").set_input(0, "nowhere"); }},
      {"is no ONNX model", [](auto& model) { model.clear_graph(); }},
  };
  const onnx::ModelProto good = parsed(file_of(network));
  for (const auto& [words, change] : cases) {
    onnx::ModelProto model = good;
    change(model);
    try {
      read_back(bytes_of(model), network);
      ADD_FAILURE() << "no error: " << words;
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << words << "\n" << error.what();
      EXPECT_TRUE(std::string(error.what()).starts_with("f.onnx: ")) << error.what();
    }
  }
}

TEST(OnnxTest, WhatTheLossAndThePassDoByThemselvesIsLeftOut) {
  const Network network = network_of(kSmall);
  onnx::ModelProto model = parsed(file_of(network));
  node_of(model, "fc2").set_output(0, "almost");
  onnx::NodeProto& more = *model.mutable_graph()->add_node();
  more.set_op_type("LogSoftmax"), more.add_input("almost"), more.add_output("logits");
  EXPECT_EQ(read_back(bytes_of(model), network), weights_of(network));
}

TEST(OnnxTest, FileThatIsCutOffIsRefused) {
  const Network network = network_of(kSmall);
  const std::vector<std::byte> whole = file_of(network);
  for (std::size_t size = 0; size < whole.size(); size += 1 + size / 40) {
    const std::vector<std::byte> part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_THROW(read_back(part, network), DataError) << size << " of " << whole.size();
  }
}

}  // namespace
}  // namespace lockstep
