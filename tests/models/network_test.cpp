// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The networks that ship with Lockstep: shapes, parameters, costs, the table.
#include "models/network.hpp"

#include "common/error.hpp"
#include "models/layer.hpp"
#include "models/layer_ops.hpp"
#include "models/layer_options.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/test_settings.hpp"

namespace lockstep {

namespace {

constexpr ImageShape kMnist{1, 28, 28};

Network parse(const std::string& yaml, const ImageShape& input = kMnist, int classes = 10) {
  return Network::parse(yaml, "test.yaml", input, classes);
}

std::vector<std::string> output_shapes(const Network& network) {
  std::vector<std::string> shapes;
  for (const auto& layer : network.layers()) shapes.push_back(to_string(layer->output()));
  return shapes;
}

TEST(NetworkTest, NetHas21840ParametersAndTrainsWith2595000Flops) {
  const Network net = Network::load("net", kMnist, 10);
  EXPECT_EQ(net.name(), "net");
  EXPECT_EQ(net.classes(), 10);
  EXPECT_EQ(net.input_shape(), kMnist);
  EXPECT_EQ(net.parameters().size, 21840U);
  EXPECT_EQ(net.training_flops_per_sample(), 2595000.0);
  EXPECT_EQ(output_shapes(net),
            (std::vector<std::string>{"10x24x24", "10x12x12", "10x12x12", "20x8x8", "20x8x8", "20x4x4",
                                      "20x4x4", "50", "50", "50", "10"}));
}

TEST(NetworkTest, LenetHas129068ParametersAndTrainsWith13258800Flops) {
  const Network lenet = Network::load("lenet", kMnist, 10);
  EXPECT_EQ(lenet.parameters().size, 129068U);
  EXPECT_EQ(lenet.training_flops_per_sample(), 13258800.0);
  // conv1 24 x 24 of 26 x 26, conv2 8 x 8 of 9 x 9
  EXPECT_EQ(lenet.needed_training_flops_per_sample(),
            2 * (2 * 20 * 9 * 576) + 3 * (2 * 50 * 20 * 25 * 64 + 2 * 800 * 128 + 2 * 128 * 10));
}

/// The output of the layer of that name.
std::string shape_of(const Network& network, const std::string& name) {
  const auto found =
      std::ranges::find(network.layers(), name, [](const auto& layer) { return layer->name(); });
  return found == network.layers().end() ? "none" : to_string((*found)->output());
}

/// Multiplications of a forward pass, as torchvision counts them.
double products_of(const Network& network) {
  double flops = 0;
  for (const auto& layer : network.layers()) flops += layer->flops_per_sample();
  return flops / 2;
}

TEST(NetworkTest, NetworksForPicturesAreThoseOfTorchvision) {
  constexpr ImageShape kPicture{3, 224, 224};
  const Network small = Network::load("resnet18", kPicture, 1000),
                large = Network::load("resnet50", kPicture, 1000);
  const Network mobile = Network::load("mobilenet_v2", kPicture, 1000);
  EXPECT_EQ(small.parameters().size, 11689512U);
  EXPECT_EQ(large.parameters().size, 25557032U);
  EXPECT_EQ(mobile.parameters().size, 3504872U);
  EXPECT_EQ(products_of(small), 1814073344.0);
  EXPECT_EQ(products_of(large), 4089184256.0);
  EXPECT_EQ(products_of(mobile), 300774272.0);
  EXPECT_EQ(shape_of(small, "conv1"), "64x112x112");
  EXPECT_EQ(shape_of(small, "maxpool"), "64x56x56");
  EXPECT_EQ(shape_of(small, "layer2.0.downsample.1"), "128x28x28");
  EXPECT_EQ(shape_of(small, "layer4.1"), "512x7x7");
  EXPECT_EQ(shape_of(large, "layer1.2"), "256x56x56");
  EXPECT_EQ(shape_of(large, "layer4.2"), "2048x7x7");
  EXPECT_EQ(shape_of(mobile, "features.14.conv.1.0"), "576x7x7");
  EXPECT_EQ(shape_of(mobile, "features.18.0"), "1280x7x7");
}

TEST(NetworkTest, GroupsAndDilationShapeWeightsAndOutput) {
  const Network network = parse(R"(
layers:
  - conv2d: {out: 6, kernel: 3, dilation: 3, padding: 2}
  - conv2d: {out: 12, kernel: 5, stride: 2, groups: 3, bias: false}
  - linear: classes
)");
  EXPECT_EQ(output_shapes(network), (std::vector<std::string>{"6x26x26", "12x11x11", "10"}));
  const std::vector<Parameter>& parameters = network.parameters().parameters;
  EXPECT_EQ(parameters[2].shape, (std::vector<int>{12, 2, 5, 5}));
  EXPECT_EQ(parameters[2].fan_in, 50);
  EXPECT_EQ(network.layers()[0]->describe(), "conv2d 6@3x3 padding 2 dilation 3");
  EXPECT_EQ(network.layers()[1]->describe(), "conv2d 12@5x5 stride 2 groups 3, no bias");
  EXPECT_EQ(network.layers()[1]->flops_per_sample(), 2.0 * 12 * 11 * 11 * 2 * 25);
  // Along an axis the middle tap meets 26 pixels, the others 24: two are padding.
  EXPECT_EQ(network.layers()[0]->needed_flops_per_sample({26, 26}), 2.0 * 6 * 74 * 74);
}

TEST(NetworkTest, TransposedConvolutionsHaveTheShapesOfPyTorch) {
  const Network network = parse(R"(
layers:
  - conv2d: {out: 6, kernel: 5, stride: 4}
  - conv_transpose2d: {out: 8, kernel: [3, 4], stride: 3, padding: 1, output_padding: 2, dilation: 2, groups: 2}
  - conv_transpose2d: {out: 3, kernel: 2, bias: false}
  - linear: classes
)");
  EXPECT_EQ(output_shapes(network), (std::vector<std::string>{"6x6x6", "8x20x22", "3x21x23", "10"}));
  const std::vector<Parameter>& parameters = network.parameters().parameters;
  EXPECT_EQ(parameters[2].shape, (std::vector<int>{6, 4, 3, 4}));
  EXPECT_EQ(parameters[2].fan_in, 48);
  EXPECT_EQ(parameters[3].shape, (std::vector<int>{8}));
  EXPECT_EQ(parameters[3].fan_in, 48);
  EXPECT_EQ(network.layers()[1]->describe(),
            "conv_transpose2d 8@3x4 stride 3 padding 1 output_padding 2 dilation 2 groups 2");
  EXPECT_EQ(network.layers()[2]->describe(), "conv_transpose2d 3@2x2, no bias");
  EXPECT_EQ(
      parse("layers: [conv_transpose2d: {out: 1, kernel: 3, stride: 2, output_padding: 1}, linear: classes]")
          .layers()[0]
          ->describe(),
      "conv_transpose2d 1@3x3 stride 2 output_padding 1");
  EXPECT_EQ(network.layers()[1]->flops_per_sample(), 2.0 * 6 * 6 * 6 * 4 * 12);
}

TEST(NetworkTest, MlpAndLinearTakeAnyInput) {
  EXPECT_EQ(Network::load("mlp", kMnist, 10).parameters().size, 235146U);
  EXPECT_EQ(Network::load("mlp", {7, 1, 1}, 3).parameters().size,
            7U * 256 + 256 + 256 * 128 + 128 + 128 * 3 + 3);
  EXPECT_EQ(Network::load("linear", kMnist, 10).parameters().size, 7850U);
  EXPECT_EQ(Network::load("linear", {5, 1, 1}, 2).parameters().size, 12U);
}

TEST(NetworkTest, ArenaHoldsWeightBeforeBiasInForwardOrderWithoutGaps) {
  const Network net = Network::load("net", kMnist, 10);
  const std::vector<Parameter>& parameters = net.parameters().parameters;
  const std::vector<std::string> names{"conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias",
                                       "fc1.weight",   "fc1.bias",   "fc2.weight",   "fc2.bias"};
  const std::vector<std::vector<int>> shapes{{10, 1, 5, 5}, {10}, {20, 10, 5, 5}, {20},
                                             {50, 320},     {50}, {10, 50},       {10}};
  const std::vector<int> fan_in{25, 25, 250, 250, 320, 320, 50, 50};
  ASSERT_EQ(parameters.size(), names.size());
  std::size_t offset = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_EQ(parameters[i].name, names[i]);
    EXPECT_EQ(parameters[i].shape, shapes[i]) << names[i];
    EXPECT_EQ(parameters[i].fan_in, fan_in[i]) << names[i];
    EXPECT_EQ(parameters[i].offset, offset) << names[i];
    offset += parameters[i].size;
  }
  EXPECT_EQ(offset, 21840U);
}

TEST(NetworkTest, LayersWithoutBiasHaveAWeightAlone) {
  const Network network = parse(R"(
layers: [conv2d: {out: 4, kernel: 3, bias: false}, batch_norm, linear: {out: 5, bias: true}, linear: {out: classes, bias: no}]
)");
  std::vector<std::string> names;
  for (const Parameter& parameter : network.parameters().parameters) names.push_back(parameter.name);
  EXPECT_EQ(names, (std::vector<std::string>{"conv1.weight", "bn1.weight", "bn1.bias", "fc1.weight",
                                             "fc1.bias", "fc2.weight"}));
  EXPECT_EQ(network.parameters().size, 4U * 9 + 4 + 4 + 5 * 4 * 26 * 26 + 5 + 10 * 5);
  EXPECT_EQ(network.layers().front()->describe(), "conv2d 4@3x3, no bias");
  EXPECT_EQ(network.layers().back()->describe(), "linear 5 -> 10, no bias");
}

/// A program that computes them by other means sets its own.
TEST(NetworkTest, OpsAreOfOneSample) {
  const Network network = parse(R"(
layers: [conv2d: {name: a, out: 2, kernel: 3}, conv_transpose2d: {out: 2, kernel: 1}, max_pool: 1, group_norm: 2,
         multiply: a, adaptive_avg_pool: 3, linear: classes]
)");
  const auto batch_of = []([[maybe_unused]] const auto& op) {
    if constexpr (requires { op.batch; }) return op.batch;
    if constexpr (requires { op.shape; }) return op.shape.batch;
    if constexpr (requires { op.convolution; }) return op.convolution.batch;
    return 0;
  };
  for (const auto& layer : network.layers()) EXPECT_EQ(std::visit(batch_of, layer->op()), 1) << layer->name();
}

TEST(NetworkTest, CheckpointWithLayersThatNothingReadsIsStillRead) {
  const std::string yaml = "layers: [relu: {name: a}, tanh, route: a, linear: classes]";
  EXPECT_THROW(parse(yaml), ConfigError);
  EXPECT_EQ(Network::parse(yaml, "manifest", kMnist, 10, UnreadLayers::kAllowed).layers().size(), 4U);
}

TEST(NetworkTest, StridePaddingAndOblongKernelsShapeTheOutput) {
  const Network network = parse(R"(
layers:
  - conv2d: {out: 4, kernel: [3, 5], stride: 2, padding: 1}
  - max_pool: {kernel: 3, stride: 2, padding: 1}
  - avg_pool
  - linear: classes
)",
                                {3, 29, 31});
  EXPECT_EQ(output_shapes(network), (std::vector<std::string>{"4x15x15", "4x8x8", "4x4x4", "10"}));
  EXPECT_EQ(network.layers()[0]->describe(), "conv2d 4@3x5 stride 2 padding 1");
  EXPECT_EQ(network.layers()[1]->describe(), "max_pool 3 stride 2 padding 1");
  EXPECT_EQ(output_shapes(parse("layers: [conv2d: {out: 3, kernel: [28, 1]}, linear: classes]")),
            (std::vector<std::string>{"3x1x28", "10"}));
  EXPECT_EQ(output_shapes(parse("layers: [conv2d: {out: 3, kernel: [1, 28]}, linear: classes]")),
            (std::vector<std::string>{"3x28x1", "10"}));
}

TEST(NetworkTest, LayersWithoutNamesAreCountedByKind) {
  const Network network = parse(R"(
layers: [conv2d: {out: 2, kernel: 3}, relu, max_pool: 2, {conv2d: {name: mine, out: 2, kernel: 3}}, avg_pool,
         conv2d: {out: 2, kernel: 3}, dropout, dropout2d, flatten, linear: 5, linear: classes]
)");
  std::vector<std::string> names;
  for (const auto& layer : network.layers()) names.push_back(layer->name());
  EXPECT_EQ(names, (std::vector<std::string>{"conv1", "relu1", "pool1", "mine", "pool2", "conv3", "drop1",
                                             "drop2", "flatten1", "fc1", "fc2"}));
}

TEST(NetworkTest, NameDefaultsToTheFileStem) {
  EXPECT_EQ(Network::parse("layers: [linear: classes]", "some/dir/tiny.yaml", kMnist, 10).name(), "tiny");
  EXPECT_EQ(parse("{name: big.one, layers: [linear: classes]}").name(), "big.one");
}

TEST(NetworkTest, SummaryIsAnAlignedTable) {
  EXPECT_EQ(Network::load("net", kMnist, 10).summary(),
            "layer       kind              output    parameters\n"
            "input                         1x28x28\n"
            "conv1       conv2d 10@5x5     10x24x24         260\n"
            "pool1       max_pool 2        10x12x12\n"
            "relu1       relu              10x12x12\n"
            "conv2       conv2d 20@5x5     20x8x8         5,020\n"
            "conv2_drop  dropout2d 0.5     20x8x8\n"
            "pool2       max_pool 2        20x4x4\n"
            "relu2       relu              20x4x4\n"
            "fc1         linear 320 -> 50  50            16,050\n"
            "relu3       relu              50\n"
            "drop2       dropout 0.5       50\n"
            "fc2         linear 50 -> 10   10               510\n"
            "total                                       21,840\n");
}

TEST(NetworkTest, OptionsThatAreNotGivenAreThoseOfPyTorch) {
  const Network network = parse(R"(
layers: [conv2d: {out: 4, kernel: 3}, max_pool, leaky_relu, elu, gelu, gelu: {approximate: tanh}, dropout, dropout2d,
         batch_norm, group_norm: 2, layer_norm, adaptive_avg_pool: 3, relu6, hardsigmoid, hardswish, silu, tanh, sigmoid,
         global_avg_pool, linear: classes]
)");
  std::vector<std::string> described;
  for (const auto& layer : network.layers()) described.push_back(layer->describe());
  EXPECT_EQ(described, (std::vector<std::string>{
                           "conv2d 4@3x3", "max_pool 2",   "leaky_relu 0.01", "elu 1",
                           "gelu",         "gelu by tanh", "dropout 0.5",     "dropout2d 0.5",
                           "batch_norm",   "group_norm 2", "layer_norm",      "adaptive_avg_pool 3",
                           "relu6",        "hardsigmoid",  "hardswish",       "silu",
                           "tanh",         "sigmoid",      "global_avg_pool", "linear 4 -> 10"}));
}

TEST(NetworkTest, WeightsStartAsTheirSeedAndScaleSay) {
  const std::string layers = "layers: [conv2d: {out: 8, kernel: 5}, batch_norm, linear: classes]";
  const Network by_file = parse("{init: {normal: 0.5}, " + layers + "}"), plain = parse("{" + layers + "}");
  std::vector<float> weights(plain.parameters().weights_size(), 7), same = weights, uniform = weights;
  by_file.initialise(1, weights, 0);
  plain.initialise(1, same, 0.5);
  EXPECT_EQ(weights, same);
  plain.initialise(2, same, 0.5);
  EXPECT_NE(weights, same);
  by_file.initialise(1, same, 0.25);
  plain.initialise(1, uniform, 0.25);
  EXPECT_EQ(same, uniform) << "a scale that is given counts, and not the file's";
  EXPECT_THROW(plain.initialise(1, std::span(uniform).subspan(1)), InternalError);
  plain.initialise(1, uniform);
  for (const Parameter& tensor : plain.parameters().tensors()) {
    SCOPED_TRACE(tensor.name);
    const std::span<const float> normal = std::span(weights).subspan(tensor.offset, tensor.size);
    const std::span<const float> other = std::span(uniform).subspan(tensor.offset, tensor.size);
    double squares = 0, largest = 0;
    for (const float weight : normal) squares += weight * weight / static_cast<double>(tensor.size);
    for (const float weight : other) largest = std::max(largest, std::abs(double{weight}));
    if (tensor.name == "bn1.weight" || tensor.name == "bn1.running_var") {
      EXPECT_EQ(squares, 1);
      EXPECT_EQ(largest, 1);
    } else if (tensor.shape.size() == 1) {
      EXPECT_EQ(squares, 0);
      EXPECT_EQ(largest > 0, tensor.fan_in > 0);  // those of norms have none
      EXPECT_LE(largest * std::sqrt(tensor.fan_in), 1 + 1e-6);
    } else {
      const double bound = 1 / std::sqrt(tensor.fan_in);
      EXPECT_NEAR(squares, 0.25, 0.1);
      EXPECT_LE(largest, bound * (1 + 1e-6));
      EXPECT_GT(largest, 0.9 * bound);
    }
  }
}

/// A new kind of layer is to be computed with the same bits everywhere: tests/arithmetic trains it.
TEST(NetworkTest, EveryLayerIsAmongThoseWhoseBitsAreKnown) {
  std::string networks;
  for (const char* name : {"layers", "modern", "small", "groups", "transpose"}) {
    std::ifstream file(test::source_path(std::string("tests/arithmetic/") + name + ".yaml"));
    networks.append(std::istreambuf_iterator<char>(file), {});
  }
  for (const LayerKind& layer : layer_catalogue()) {
    const bool is_there = networks.find("- " + std::string(layer.kind) + ":") != std::string::npos ||
                          networks.find("- " + std::string(layer.kind) + "\n") != std::string::npos;
    EXPECT_TRUE(is_there) << layer.kind << " is missing in tests/arithmetic";
  }
}

}  // namespace

}  // namespace lockstep
