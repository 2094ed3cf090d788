// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// ONNX files of our own, node by node, and their tensors read back to the bit; and files that are damaged. What other
/// programs compute of them, and what they write, is tested by tests/launch/onnx_test.sh.
#include "models/onnx/onnx.hpp"

#include "common/error.hpp"
#include "models/foreign_weights.hpp"
#include "models/network.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/test_settings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <onnx_schema.pb.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
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

/// All tensors of the network, by name.
std::vector<float> read_back(std::vector<std::byte> bytes, const Network& network) {
  std::vector<float> weights(network.parameters().weights_size());
  read_foreign_weights(read_onnx(std::move(bytes), "f.onnx"), "f.onnx", network, weights, WeightsFit::kAll);
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

std::string in_words(const onnx::AttributeProto& attribute) {
  switch (attribute.type()) {
    case onnx::AttributeProto::FLOAT:
      return fmt::format(" {}={}", attribute.name(), attribute.f());
    case onnx::AttributeProto::INT:
      return fmt::format(" {}={}", attribute.name(), attribute.i());
    default:
      return fmt::format(" {}={}", attribute.name(), fmt::join(attribute.ints(), ","));
  }
}

/// tests/launch/onnx_test.sh has onnxruntime compute these nodes.
TEST(OnnxTest, EveryKindOfLayerBecomesItsNodes) {
  const Network network =
      Network::load(test::source_path("tests/trainer/onnx/all_layers.yaml"), {3, 28, 28}, kClasses);
  const onnx::ModelProto model = parsed(file_of(network));
  std::string nodes;
  for (const onnx::NodeProto& node : model.graph().node()) {
    nodes += fmt::format("{} {}: {} -> {}", node.op_type(), node.name(), fmt::join(node.input(), ", "),
                         fmt::join(node.output(), ", "));
    for (const onnx::AttributeProto& attribute : node.attribute()) nodes += in_words(attribute);
    nodes += "\n";
  }
  std::ifstream wanted(test::source_path("tests/models/onnx/all_layers.nodes"));
  EXPECT_EQ(nodes, std::string(std::istreambuf_iterator<char>(wanted), {}));
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
  std::memcpy(&scale, tensor_of(model, "image/scale").raw_data().data(), sizeof(float));
  std::memcpy(&shift, tensor_of(model, "image/shift").raw_data().data(), sizeof(float));
  EXPECT_EQ(scale, 4);
  EXPECT_EQ(shift, -2);
}

using Change = std::function<void(onnx::TensorProto&)>;

/// Another program's file: nodes of any kind, no input and no output, single numbers and whole ones.
TEST(OnnxTest, WhatIsNoWeightIsNotRead) {
  const Network network = network_of(kSmall);
  onnx::ModelProto model = parsed(file_of(network));
  model.mutable_graph()->clear_node();
  model.mutable_graph()->clear_input();
  model.mutable_graph()->clear_output();
  for (const auto& [name, type] :
       {std::pair{"fc2.bias", onnx::TensorProto::INT64}, {"val_0", onnx::TensorProto::FLOAT}}) {
    onnx::TensorProto& tensor = *model.mutable_graph()->add_initializer();
    tensor.set_name(name), tensor.set_data_type(type);
  }
  EXPECT_EQ(read_back(bytes_of(model), network), weights_of(network));
}

TEST(OnnxTest, NumbersMayBeAListOfFloats) {
  const Network network = network_of(kSmall);
  onnx::ModelProto model = parsed(file_of(network));
  onnx::TensorProto& bias = tensor_of(model, "fc2.bias");
  const std::string raw = bias.raw_data();
  bias.clear_raw_data();
  bias.mutable_float_data()->Resize(kClasses, 0);
  std::memcpy(bias.mutable_float_data()->mutable_data(), raw.data(), raw.size());
  EXPECT_EQ(read_back(bytes_of(model), network), weights_of(network));
}

TEST(OnnxTest, WhatIsWrongWithATensorIsNamed) {
  const Network network = network_of(kSmall);
  const std::pair<std::string, Change> cases[] = {
      {"f.onnx: tensor 'fc2.weight' lies in another file",
       [](auto& tensor) { tensor.set_data_location(onnx::TensorProto::EXTERNAL); }},
      {"fc2.weight [10, 6], of which the file has F16 [10, 6]",
       [](auto& tensor) { tensor.set_data_type(onnx::TensorProto::FLOAT16); }},
      {"f.onnx: tensor 'fc2.weight' has not the bytes that its shape takes",
       [](auto& tensor) { tensor.mutable_raw_data()->pop_back(); }},
      {"'fc2.weight' has not the bytes", [](auto& tensor) { tensor.set_dims(1, INT64_MAX); }},
      {"'fc2.weight' has not the bytes", [](auto& tensor) { tensor.set_dims(1, -1); }},
      {"fc2.weight [10, 6]; it has, beside what fits, image/scale, image/shift.",
       [](auto& tensor) { tensor.set_data_type(onnx::TensorProto::INT64); }},
      {"fc2.weight [10, 6]; it has",
       [](auto& tensor) {
         for (int i = 0; i < 40; ++i) tensor.add_dims(1);
       }},
      {"fc2.weight [10, 6], of which the file has [6, 10]",
       [](auto& tensor) { tensor.set_dims(0, 6), tensor.set_dims(1, 10); }},
      {"f.onnx: tensor 'fc2.bias' is there twice", [](auto& tensor) { tensor.set_name("fc2.bias"); }},
  };
  const onnx::ModelProto good = parsed(file_of(network));
  for (const auto& [words, change] : cases) {
    onnx::ModelProto model = good;
    change(tensor_of(model, "fc2.weight"));
    expect_error<DataError>([&] { read_back(bytes_of(model), network); }, {words});
  }
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
