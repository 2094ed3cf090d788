// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// ONNX files of our own, node by node, and their tensors read back to the bit. And files that are damaged.
/// What other programs compute of them, and what they write, is tested by tests/launch/onnx_test.sh.
#include "models/onnx/onnx.hpp"

#include "common/error.hpp"
#include "models/foreign_weights.hpp"
#include "models/network.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/test_settings.hpp"

#include <fmt/ranges.h>
#include <onnx_schema.pb.h>

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

onnx::TensorProto& tensor_of(onnx::ModelProto& model, const std::string& name) {
  for (onnx::TensorProto& tensor : *model.mutable_graph()->mutable_initializer())
    if (tensor.name() == name) return tensor;
  throw std::runtime_error("no tensor " + name);
}

Network all_layers() {
  return Network::load(test::source_path("tests/trainer/onnx/all_layers.yaml"), {3, 28, 28}, kClasses);
}

TEST(OnnxTest, WeightsComeBackToTheBit) {
  std::vector<Network> networks{all_layers()};
  for (const char* name :
       {"net", "lenet", "mlp", "linear", "resnet8", "resnet20", "resnet18", "mobilenet_v2"})
    networks.push_back(Network::load(name, {1, 28, 28}, kClasses));
  for (const Network& network : networks)
    EXPECT_EQ(read_back(file_of(network), network), weights_of(network)) << network.name();
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
  const onnx::ModelProto model = parsed(file_of(all_layers()));
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

/// Sizes and numbers of the tensors that are none of the network's.
using Constants = std::map<std::string, std::pair<std::vector<std::int64_t>, std::vector<float>>>;

Constants constants_of(const onnx::ModelProto& model) {
  Constants constants;
  for (const onnx::TensorProto& tensor : model.graph().initializer()) {
    if (tensor.name().find('/') == std::string::npos) continue;
    auto& [sizes, numbers] = constants[tensor.name()];
    sizes.assign(tensor.dims().begin(), tensor.dims().end());
    numbers.assign(tensor.int64_data().begin(), tensor.int64_data().end());
    if (tensor.data_type() != onnx::TensorProto::FLOAT) continue;
    numbers.resize(tensor.raw_data().size() / sizeof(float));
    std::memcpy(numbers.data(), tensor.raw_data().data(), tensor.raw_data().size());
  }
  return constants;
}

TEST(OnnxTest, LayersBringTheirConstants) {
  const auto of = [](const std::vector<float>& numbers) {
    return std::pair(std::vector{static_cast<std::int64_t>(numbers.size())}, numbers);
  };
  const auto one = [](float number) { return std::pair(std::vector<std::int64_t>{}, std::vector{number}); };
  std::vector<float> rows(5 * 15), columns(11 * 5);  // 15 x 11 pixels become 5 x 5
  for (std::size_t i = 0; i < 5; ++i)
    for (std::size_t k = 0; k < 3; ++k) rows[i * 15 + 3 * i + k] = columns[(2 * i + k) * 5 + i] = 1.F / 3;
  const std::vector<float> ones(400, 1), zeros(12), twelve(12, 1);
  const Constants expected = {
      {"image/scale", {{1, 1, 1, 1}, {4}}},
      {"image/shift", {{1, 1, 1, 1}, {-2}}},
      {"start/sqrt_half", one(std::sqrt(0.5F))},
      {"start/one", one(1)},
      {"start/one_half", one(0.5F)},
      {"shortcut_bn/ones", of(twelve)},
      {"shortcut_bn/zeros", of(zeros)},
      {"gelu2/a", one(0.79788456080286536F)},
      {"gelu2/b", one(0.035677408136300125F)},
      {"gelu2/one", one(1)},
      {"gelu2/one_half", one(0.5F)},
      {"relu1/least", one(0)},
      {"relu1/most", one(6)},
      {"pool3/row_means", {{5, 15}, rows}},
      {"pool3/column_means", {{11, 5}, columns}},
      {"gn1/groups", of({0, 4, -1})},
      {"gn1/ones", of({1, 1, 1, 1})},
      {"gn1/zeros", of({0, 0, 0, 0})},
      {"gn1/channels", of({0, 16, 5, 5})},
      {"gn1/over_pixels", of({-1, 1, 1})},
      {"ln1/ones", {{16, 5, 5}, ones}},
      {"gn2/groups", of({0, 2, -1})},
      {"gn2/ones", of({1, 1})},
      {"gn2/zeros", of({0, 0})},
      {"gn2/channels", of({0, 16, 5, 5})},
      {"multiply1/shape", of({-1, 16, 1, 1})},
      {"multiply2/shape", of({-1, 16, 1, 1})},
      {"conv4/shape", of({-1, 64, 1, 1})},
      {"add2/shape", of({-1, 24, 1, 1})},
  };
  EXPECT_EQ(constants_of(parsed(file_of(all_layers()))), expected);
}

/// Channels are scaled by 1 / std and shifted by -mean / std. With 0.25 that is 4, and -4 mean.
TEST(OnnxTest, OneMeanOrDeviationIsThatOfAllChannels) {
  const Network network = Network::parse("layers:\n  - linear: classes\n", "m.yaml", {3, 4, 4}, kClasses);
  const auto normalised = [&](const std::vector<double>& mean, const std::vector<double>& deviation) {
    const OnnxFacts facts{.mean = mean, .std = deviation, .program = "1.2", .metadata = {}};
    return constants_of(parsed(write_onnx(network, weights_of(network), facts)));
  };
  const std::vector<std::int64_t> sizes = {1, 3, 1, 1};
  EXPECT_EQ(normalised({0.5, 1, 2}, {0.25}),
            (Constants{{"image/scale", {sizes, {4, 4, 4}}}, {"image/shift", {sizes, {-2, -4, -8}}}}));
  EXPECT_EQ(normalised({0.5}, {0.25, 0.5, 1}),
            (Constants{{"image/scale", {sizes, {4, 2, 1}}}, {"image/shift", {sizes, {-2, -1, -0.5F}}}}));
}

TEST(OnnxTest, LogitsOfAConvolutionAreFlattened) {
  const Network network = network_of("layers:\n  - conv2d: {out: classes, kernel: 12}\n");
  const onnx::ModelProto model = parsed(file_of(network));
  const onnx::NodeProto& last = model.graph().node(model.graph().node_size() - 1);
  EXPECT_EQ(last.op_type() + " " + last.name() + ": " + last.input(0) + " -> " + last.output(0),
            "Flatten logits: conv1.output -> logits");
}

/// "image" is also the first word of what becomes of the input, and "logits" the node that flattens the output. "g.sum"
/// is a step of "g".
TEST(OnnxTest, EveryValueIsWrittenByOneNodeAndNodesHaveNamesOfTheirOwn) {
  const onnx::ModelProto model = parsed(file_of(
      network_of("layers:\n  - conv2d: {out: 2, kernel: 3}\n  - gelu: {name: g}\n  - relu: {name: g.sum}\n"
                 "  - group_norm: {name: image, groups: 2}\n  - relu: {name: image.normalised}\n"
                 "  - conv2d: {name: logits, out: classes, kernel: 1}\n  - global_avg_pool\n")));
  std::set<std::string> values, names;
  for (const onnx::NodeProto& node : model.graph().node()) {
    EXPECT_TRUE(names.insert(node.name()).second) << node.name();
    for (const std::string& value : node.output()) EXPECT_TRUE(values.insert(value).second) << value;
  }
  for (const char* name : {"image.scale", "image.scale/", "logits", "logits/", "g.sum", "g.sum/"})
    EXPECT_TRUE(names.contains(name)) << name;
}

TEST(OnnxTest, WhatIsTooLargeForAFileIsRefused) {
  const Network network = network_of("layers:\n  - linear: 1000000\n  - linear: 520\n  - linear: classes\n");
  const float first = 0;
  const std::span<const float> weights(&first, network.parameters().weights_size());  // none is read
  EXPECT_EQ(message_of<UsageError>([&] { write_onnx(network, weights, {}); }),
            "too large for an ONNX file, which holds 2 GiB at most; use the safetensors file instead");
}

/// The matrix that makes 33 columns of 2^24: no operator has windows that differ in size.
TEST(OnnxTest, AConstantThatIsTooLargeForAFileIsRefused) {
  const Network network = Network::parse("layers:\n  - adaptive_avg_pool: 33\n  - linear: classes\n",
                                         "wide.yaml", {1, 1, 1 << 24}, kClasses);
  expect_error<UsageError>([&] { file_of(network); }, {"too large for an ONNX file"});
}

TEST(OnnxTest, FileSaysWhatGoesInAndOut) {
  EXPECT_THROW(write_onnx(network_of(kSmall), {}, {}), InternalError) << "there are no weights";
  const onnx::ModelProto model = parsed(file_of(network_of(kSmall)));
  EXPECT_EQ(model.ir_version(), 8);
  EXPECT_EQ(model.opset_import(0).version(), 17);
  EXPECT_EQ(model.producer_name() + model.producer_version(), "lockstep1.2");
  EXPECT_EQ(model.metadata_props(0).key() + model.metadata_props(0).value(), "ab");
  EXPECT_EQ(model.graph().name(), "small");
  const auto declared = [](const onnx::ValueInfoProto& value) {
    const onnx::TypeProto::Tensor& type = value.type().tensor_type();
    EXPECT_EQ(type.elem_type(), onnx::TensorProto::FLOAT);
    std::string text = value.name() + ":";
    for (const auto& dim : type.shape().dim())
      text += dim.has_dim_param() ? " " + dim.dim_param() : fmt::format(" {}", dim.dim_value());
    return text;
  };
  EXPECT_EQ(declared(model.graph().input(0)), "image: N 1 12 12");
  EXPECT_EQ(declared(model.graph().output(0)), "logits: N 10");
  EXPECT_EQ(model.graph().node(model.graph().node_size() - 1).output(0), "logits");
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

/// 1, 2, 4, ... have the same bits in front in all three types.
TEST(OnnxTest, NumbersOf16BitsMayBeBytesOrAList) {
  const Network network = network_of(kSmall);
  std::vector<float> powers;
  std::vector<std::uint16_t> halves, bfloats;
  for (int i = 0; i < kClasses; ++i) {
    powers.push_back(std::ldexp(1.F, i));
    halves.push_back(static_cast<std::uint16_t>((15 + i) << 10));
    bfloats.push_back(static_cast<std::uint16_t>((127 + i) << 7));
  }
  for (const auto& [type, bits] :
       {std::pair{onnx::TensorProto::FLOAT16, halves}, {onnx::TensorProto::BFLOAT16, bfloats}})
    for (const bool as_list : {false, true}) {
      onnx::ModelProto model = parsed(file_of(network));
      onnx::TensorProto& bias = tensor_of(model, "fc2.bias");
      bias.set_data_type(type);
      bias.clear_raw_data();
      if (as_list) bias.mutable_int32_data()->Add(bits.begin(), bits.end());
      if (!as_list) bias.set_raw_data(bits.data(), bits.size() * sizeof bits[0]);
      std::vector<float> expected = weights_of(network);
      for (const Parameter& tensor : network.parameters().tensors())
        if (tensor.name == "fc2.bias") std::ranges::copy(powers, expected.begin() + tensor.offset);
      EXPECT_EQ(read_back(bytes_of(model), network), expected) << type << as_list;
    }
}

TEST(OnnxTest, WhatIsWrongWithATensorIsNamed) {
  const Network network = network_of(kSmall);
  const std::pair<std::string, Change> cases[] = {
      {"'fc2.weight' has not the bytes",
       [](auto& tensor) { tensor.set_data_type(onnx::TensorProto::FLOAT16); }},
      {"f.onnx: tensor 'fc2.weight' has a number of more than 16 bits",
       [](auto& tensor) {
         tensor.clear_raw_data(), tensor.set_data_type(onnx::TensorProto::FLOAT16);
         tensor.mutable_int32_data()->Resize(6 * kClasses, 65536);
       }},
      {"fc2.weight [10, 6], of which the file has F64 [10, 6]",
       [](auto& tensor) { tensor.set_data_type(onnx::TensorProto::DOUBLE); }},
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
      {"fc2.weight [10, 6], of which the file has [10, 6, 1, 1, 1",  // and so on: as many as a tensor may have
       [](auto& tensor) {
         while (tensor.dims_size() < 32) tensor.add_dims(1);
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

/// A file whose numbers lie beside it, one tensor after the other, as PyTorch's exporter puts them.
class OuterNumbersTest : public ::testing::Test {
 protected:
  OuterNumbersTest() : model_(parsed(file_of(network_))) {
    std::filesystem::create_directories(folder_);
    std::string numbers = "padding.";
    for (onnx::TensorProto& tensor : *model_.mutable_graph()->mutable_initializer()) {
      tensor.set_data_location(onnx::TensorProto::EXTERNAL);
      set(tensor, "location", "m.onnx.data");
      set(tensor, "offset", std::to_string(numbers.size()));
      set(tensor, "length", std::to_string(tensor.raw_data().size()));
      numbers += tensor.raw_data();
      tensor.clear_raw_data();
    }
    bytes_ = numbers.size();
    std::ofstream(folder_ + "/m.onnx.data", std::ios::binary) << numbers;
  }

  static void set(onnx::TensorProto& tensor, const std::string& key, const std::string& value) {
    for (onnx::StringStringEntryProto& entry : *tensor.mutable_external_data())
      if (entry.key() == key) return entry.set_value(value);
    onnx::StringStringEntryProto& entry = *tensor.add_external_data();
    entry.set_key(key), entry.set_value(value);
  }
  SafetensorsFile read() const { return read_onnx(bytes_of(model_), folder_ + "/m.onnx"); }
  template <typename E = DataError>
  void expect_refused(const std::string& key, const std::string& value, const std::string& words) {
    const onnx::ModelProto good = model_;
    set(tensor_of(model_, "fc2.weight"), key, value);
    expect_error<E>([&] { read(); }, {folder_ + "/m.onnx: tensor 'fc2.weight' " + words});
    model_ = good;
  }

  const Network network_ = network_of(kSmall);
  const testing::TemporaryDirectory directory_;
  const std::string folder_ = directory_.path("model");
  onnx::ModelProto model_;
  std::size_t bytes_ = 0;  ///< size of m.onnx.data
};

TEST_F(OuterNumbersTest, AreThoseOfTheModel) {
  set(tensor_of(model_, "fc2.bias"), "checksum", "not read");
  std::vector<float> weights(network_.parameters().weights_size());
  read_foreign_weights(read(), "m.onnx", network_, weights, WeightsFit::kAll);
  EXPECT_EQ(weights, weights_of(network_));
}

/// The .onnx holds the numbers of some tensors itself, and each of two files those of others.
TEST_F(OuterNumbersTest, MayLieInSeveralFiles) {
  onnx::ModelProto good = parsed(file_of(network_));
  std::ofstream(folder_ + "/own.data", std::ios::binary) << "..." << tensor_of(good, "fc2.bias").raw_data();
  onnx::TensorProto& own = tensor_of(model_, "fc2.bias");
  set(own, "location", "own.data"), set(own, "offset", "3");
  std::ofstream(folder_ + "/whole.data", std::ios::binary) << tensor_of(good, "conv1.bias").raw_data();
  onnx::TensorProto& whole = tensor_of(model_, "conv1.bias");
  whole.clear_external_data();
  set(whole, "location", "whole.data");
  tensor_of(model_, "fc1.weight") = tensor_of(good, "fc1.weight");
  std::vector<float> weights(network_.parameters().weights_size());
  read_foreign_weights(read(), "m.onnx", network_, weights, WeightsFit::kAll);
  EXPECT_EQ(weights, weights_of(network_));
}

TEST_F(OuterNumbersTest, LieInAPlainFileOfTheModelsOwnFolder) {
  std::ofstream(directory_.path("outside.data")) << std::string(bytes_, '0');
  std::filesystem::create_directory(folder_ + "/inner");
  std::filesystem::create_symlink("../outside.data", folder_ + "/link");
  for (const std::string location :
       {"../outside.data", "/etc/passwd", "inner/../m.onnx.data", "./m.onnx.data", "..", ".", ""})
    expect_refused("location", location,
                   "lies in '" + location + "', which is not the name of a file beside the model");
  expect_refused("location", std::string("m.onnx.data\0x", 13),
                 "lies in 'm.onnx.data\\x00x', which is not the name");
  expect_refused("location", "link", "lies in 'link', which is a link; put the file itself there");
  expect_refused("location", "inner", "lies in 'inner', which is no file");
  expect_refused<MissingDataError>("location", "gone",
                                   "lies in 'gone', which is not beside the model; copy both");
}

TEST_F(OuterNumbersTest, LieInsideThatFile) {
  const std::size_t bytes = sizeof(float) * 6 * kClasses, last = bytes_ - bytes;
  for (const std::uint64_t offset : {last + 1, bytes_, bytes_ + 1, std::uint64_t{UINT64_MAX}})
    expect_refused(
        "offset", std::to_string(offset),
        fmt::format("takes {} bytes from byte {} of 'm.onnx.data', which has {}", bytes, offset, bytes_));
  for (const char* number : {"-1", "1e3", "", "18446744073709551616", " 8"})
    expect_refused("offset", number,
                   fmt::format("lies in another file, at '{}', which is not a number", number));
  expect_refused("length", std::to_string(bytes - 4), "has not the bytes that its shape takes");
}

TEST(OnnxTest, FileThatIsCutOffIsRefused) {
  EXPECT_EQ(message_of<DataError>([] { read_onnx({}, "f.onnx"); }),
            "f.onnx: is not an ONNX model, or one that is cut off; export it again");
  const Network network = network_of(kSmall);
  const std::vector<std::byte> whole = file_of(network);
  for (std::size_t size = 0; size < whole.size(); size += 1 + size / 40) {
    const std::vector<std::byte> part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_THROW(read_back(part, network), DataError) << size << " of " << whole.size();
  }
}

}  // namespace
}  // namespace lockstep
