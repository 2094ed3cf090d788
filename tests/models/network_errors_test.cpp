// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Every way in which a network file can be wrong, and the one line that says so.
#include "common/error.hpp"
#include "models/layer.hpp"
#include "models/network.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep {
namespace {

struct BadFile {
  const char* name;
  const char* yaml;
  const char* message;
};

std::ostream& operator<<(std::ostream& out, const BadFile& bad) {
  return out << bad.name;
}

template <typename Exception>
void expect_message(const BadFile& bad) {
  try {
    Network::parse(bad.yaml, "my.yaml", {1, 28, 28}, 10);
    FAIL() << "accepted";
  } catch (const Exception& error) {
    EXPECT_STREQ(error.what(), bad.message);
    EXPECT_EQ(error.code(), ExitCode::kUsage);
  }
}

TEST(NetworkErrorsTest, OneClassIsNoPlural) {
  expect_error<ShapeError>(
      [] {
        Network::parse("layers:\n  - linear: 12\n", "my.yaml", ImageShape{1, 28, 28}, 1);
      },
      {"but the data has 1 class; end"});
}

class MisfitTest : public testing::TestWithParam<BadFile> {};

TEST_P(MisfitTest, NamesLineLayerAndShapes) {
  expect_message<ShapeError>(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Files, MisfitTest,
    testing::Values(
        BadFile{"product_of_other_channels",
                "layers:\n  - conv2d: {out: 4, kernel: 3}\n  - global_avg_pool\n  - linear: 5\n"
                "  - multiply: conv1\n",
                "my.yaml:5:15: layer multiply1: from: conv1 has an output of 4x26x26, and here come 5; with "
                "an output of 5 channels there is fc1"},
        BadFile{"product_of_other_pixels",
                "layers:\n  - conv2d: {out: 4, kernel: 3}\n  - max_pool: 2\n  - multiply: conv1\n",
                "my.yaml:4:15: layer multiply1: from: conv1 has an output of 4x26x26, and here come 4x13x13; "
                "with an output of 4x13x13 or 4 there is pool1"},
        BadFile{"channels_of_other_pixels",
                "layers:\n  - conv2d: {out: 4, kernel: 3}\n  - max_pool: 2\n  - concat: {from: conv1}\n",
                "my.yaml:4:20: layer concat1: from: conv1 has an output of 4x26x26, and here come 4x13x13; "
                "with an output of channels of 13x13 there is pool1"},
        BadFile{
            "norm_groups_that_do_not_divide", "layers:\n  - conv2d: {out: 6, kernel: 3}\n  - group_norm: 4\n",
            "my.yaml:3:5: layer gn1: 4 groups do not divide 6 channels; write groups: 1, or another divisor"},
        BadFile{
            "norm_groups_of_one_channel", "layers:\n  - group_norm: 4\n",
            "my.yaml:2:5: layer gn1: 4 groups do not divide 1 channel; write groups: 1, or another divisor"},

        BadFile{
            "kernel_larger_than_image",
            "layers:\n  - conv2d: {out: 20, kernel: 20}\n  - max_pool: 3\n  - conv2d: {out: 4, kernel: 5}\n",
            "my.yaml:4:5: layer conv2: kernel 5x5 does not fit an input of 20x3x3; use a smaller kernel or "
            "more "
            "padding"},
        BadFile{"padding_is_not_enough",
                "layers:\n  - flatten\n  - conv2d: {out: 2, kernel: 5, padding: 1}\n",
                "my.yaml:3:5: layer conv1: kernel 5x5 does not fit an input of 784x1x1 with padding 1; use a "
                "smaller "
                "kernel or more padding"},
        BadFile{"dilated_kernel_larger_than_image", "layers:\n  - conv2d: {out: 1, kernel: 5, dilation: 7}\n",
                "my.yaml:2:5: layer conv1: kernel 5x5 with dilation 7 does not fit an input of 1x28x28; use "
                "a smaller "
                "kernel or more padding"},
        BadFile{"padding_that_leaves_nothing",
                "layers:\n  - global_avg_pool\n  - conv_transpose2d: {out: 1, kernel: 3, padding: 2}\n",
                "my.yaml:3:5: layer conv1: padding 2 leaves nothing of what an input of 1 becomes; use less "
                "padding"},
        BadFile{
            "output_padding_of_a_stride",
            "layers:\n  - conv_transpose2d: {out: 1, kernel: 3, stride: 2, output_padding: 2}\n",
            "my.yaml:2:5: layer conv1: output_padding 2 is not smaller than stride 2, so that its pixels are "
            "of no input; use a smaller output_padding or a larger stride"},
        BadFile{
            "transposed_convolution_that_grows_too_large",
            "layers:\n  - conv_transpose2d: {out: 3, kernel: 3, stride: 1024}\n",
            "my.yaml:2:5: layer conv1: an output of 3x27651x27651 is more than the 16777216 numbers a layer "
            "may have"},
        BadFile{"groups_that_do_not_divide",
                "layers:\n  - conv2d: {out: 6, kernel: 3}\n  - conv2d: {out: 9, kernel: 3, groups: 2}\n",
                "my.yaml:3:41: layer conv2: 2 groups do not divide 6 channels into 9; use a divisor of 3"},
        BadFile{"pool_larger_than_image",
                "layers:\n  - linear: 8\n  - avg_pool: {name: last, kernel: 2}\n  - linear: classes\n",
                "my.yaml:3:5: layer last: kernel 2x2 does not fit an input of 8x1x1; use a smaller kernel or "
                "more "
                "padding"},
        BadFile{"wrong_number_of_outputs", "layers:\n  - linear: 12\n",
                "my.yaml:2:5: layer fc1: the network ends with an output of 12, but the data has 10 classes; "
                "end with "
                "'- linear: classes'"},
        BadFile{"ends_with_an_image", "layers:\n  - conv2d: {out: 10, kernel: 5}\n",
                "my.yaml:2:5: layer conv1: the network ends with an output of 10x24x24, but the data has 10 "
                "classes; "
                "end with '- linear: classes'"},
        BadFile{"ends_with_relu", "layers:\n  - linear: classes\n  - relu\n  - dropout\n",
                "my.yaml:4:5: layer relu1: a network cannot end with relu, logits need both signs and any "
                "size; end with "
                "'- linear: classes'"},
        BadFile{"ends_with_tanh_in_place", "layers:\n  - linear: classes\n  - tanh\n  - flatten\n",
                "my.yaml:4:5: layer tanh1: a network cannot end with tanh, logits need both signs and any "
                "size; end with '- linear: classes'"},
        BadFile{"sum_of_different_shapes",
                "layers:\n  - conv2d: {out: 4, kernel: 5}\n  - relu\n  - conv2d: {out: 4, kernel: 3}\n"
                "  - add: {from: relu1}\n  - linear: classes\n",
                "my.yaml:5:17: layer add1: from: relu1 has an output of 4x24x24, and here come 4x22x22; with "
                "an output of 4x22x22 there is conv2"},
        BadFile{"output_too_large", "layers:\n  - conv2d: {out: 1000000, kernel: 5}\n",
                "my.yaml:2:5: layer conv1: an output of 1000000x24x24 is more than the 16777216 numbers a "
                "layer may "
                "have"},
        BadFile{"too_many_weights", "layers:\n  - linear: 1000000\n  - linear: 1000000\n",
                "my.yaml:3:5: layer fc2: 1000000000000 weights are more than a network may have "
                "(2147483647); make "
                "'out' smaller"}),
    [](const auto& test) { return test.param.name; });

class BadFileTest : public testing::TestWithParam<BadFile> {};

TEST_P(BadFileTest, IsRefusedWithOneLine) {
  expect_message<ConfigError>(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Documents, BadFileTest,
    testing::Values(
        BadFile{"list", "- relu\n", "my.yaml:1:1: a network file must be a map with 'layers: [...]'"},
        BadFile{"no_layers", "name: x\n",
                "my.yaml:1:1: 'layers' is missing; write layers: and one '- ...' line for each layer"},
        BadFile{"layers_not_a_list", "layers: relu\n",
                "my.yaml:1:9: 'layers' must be a list with at least one layer"},
        BadFile{"layers_empty", "layers: []\n",
                "my.yaml:1:9: 'layers' must be a list with at least one layer"},
        BadFile{
            "unknown_document_key", "layer:\n  - relu\n",
            "my.yaml:1:1: unknown key 'layer' (did you mean 'layers'?); a network has name, init, layers"},
        BadFile{"bad_name", "name: a b\nlayers: [relu]\n",
                "my.yaml:1:7: a name must be 1 to 64 letters, digits, '_', '-' or '.'"},
        BadFile{"nothing_to_train", "layers: [relu]\n",
                "my.yaml:1:9: nothing to train: add a conv2d or linear layer"},
        BadFile{"bad_init", "init: xavier\nlayers: [relu]\n",
                "my.yaml:1:7: init must be default or {normal: 0.01}"},
        BadFile{"empty_init", "init: {}\nlayers: [relu]\n",
                "my.yaml:1:7: init must be default or {normal: 0.01}"},
        BadFile{"unknown_init_key", "init: {norml: 0.1}\nlayers: [relu]\n",
                "my.yaml:1:8: unknown key 'norml' (did you mean 'normal'?); init has normal"},
        BadFile{"negative_init", "init: {normal: -1}\nlayers: [relu]\n",
                "my.yaml:1:16: init: normal must be a number above 0, at most 1000"}),
    [](const auto& test) { return test.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Layers, BadFileTest,
    testing::Values(
        BadFile{"sum_without_a_name", "layers: [add, linear: classes]\n",
                "my.yaml:1:10: layer add1: 'from' is missing; write {from: ...}"},
        BadFile{
            "sum_with_nobody", "layers:\n  - conv2d: {out: 4, kernel: 3}\n  - relu\n  - add: rely1\n",
            "my.yaml:4:10: layer add1: from: no layer before this one is called 'rely1'; with an output of "
            "4x26x26 there are conv1, relu1 (did you mean 'relu1'?)"},
        BadFile{
            "sum_with_a_later_layer",
            "layers:\n  - linear: 20\n  - add: fc2\n  - linear: {name: fc2, out: 20}\n  - linear: classes\n",
            "my.yaml:3:10: layer add1: from: no layer before this one is called 'fc2'; with an output of "
            "20 there is fc1 (did you mean 'fc1'?)"},
        BadFile{"sum_with_itself", "layers:\n  - add: {name: a, from: a}\n",
                "my.yaml:2:26: layer a: from: no layer before this one is called 'a'; there is none with an "
                "output of 1x28x28"},
        BadFile{"sum_of_a_list", "layers:\n  - linear: 20\n  - add: {from: [fc1, fc1]}\n",
                "my.yaml:3:17: layer add1: from must be the name of an earlier layer, not a list"},
        BadFile{"groups_missing", "layers:\n  - conv2d: {out: 6, kernel: 3}\n  - group_norm\n",
                "my.yaml:3:5: layer gn1: 'groups' is missing; write {groups: ...}"},
        BadFile{"adaptive_pool_of_classes", "layers:\n  - adaptive_avg_pool: classes\n",
                "my.yaml:2:24: layer pool1: out must be a whole number from 1 to 1024, not 'classes'"},
        BadFile{"slope_above_one", "layers:\n  - leaky_relu: 2\n",
                "my.yaml:2:17: layer leaky1: slope must be a number from 0 to 1, not '2'"},
        BadFile{"alpha_below_zero", "layers:\n  - elu: {alpha: -1}\n",
                "my.yaml:2:18: layer elu1: alpha must be a number from 0 to 100, not '-1'"},
        BadFile{"option_of_none", "layers:\n  - tanh: {alpha: 2}\n",
                "my.yaml:2:12: unknown key 'alpha'; tanh has name"},
        BadFile{
            "option_of_other_words", "layers:\n  - gelu: {approximate: tan}\n",
            "my.yaml:2:25: layer gelu1: approximate must be none or tanh, not 'tan' (did you mean 'tanh'?)"},
        BadFile{"eps_of_zero", "layers:\n  - batch_norm: {eps: 0}\n",
                "my.yaml:2:23: layer bn1: eps must be a number from 1e-12 to 1, not '0'"},
        BadFile{"momentum_above_one", "layers:\n  - batch_norm: {momentum: 1.1}\n",
                "my.yaml:2:28: layer bn1: momentum must be a number from 0 to 1, not '1.1'"},
        BadFile{"momentum_of_next_to_nothing", "layers:\n  - batch_norm: {momentum: 1e-50}\n",
                "my.yaml:2:28: layer bn1: momentum must be a number from 0 to 1, not '1e-50', which is 0 as "
                "fp32, "
                "whose smallest number is 1.4e-45"},
        BadFile{"momentum_of_none", "layers:\n  - batch_norm: {momentum: null}\n",
                "my.yaml:2:28: layer bn1: momentum must be a number from 0 to 1, not nothing"},
        BadFile{"affine_of_a_number", "layers:\n  - batch_norm: {affine: 1}\n",
                "my.yaml:2:26: layer bn1: affine must be true or false, not '1'"},
        BadFile{
            "option_of_pytorch", "layers:\n  - batch_norm: {track_running_stats: false}\n",
            "my.yaml:2:18: unknown key 'track_running_stats'; batch_norm has name, eps, momentum, affine"},
        BadFile{"value_of_batch_norm", "layers:\n  - batch_norm: 16\n",
                "my.yaml:2:17: batch_norm takes a map of options: {name, eps, momentum, affine}"},
        BadFile{"route_from_nowhere", "layers:\n  - relu: {name: start}\n  - route: stort\n",
                "my.yaml:3:12: layer route1: from: no layer before this one is called 'stort' (did you mean "
                "'start'?)"},
        BadFile{
            "route_after_what_nothing_reads",
            "layers:\n  - relu: {name: a}\n  - conv2d: {out: 3, kernel: 3}\n  - batch_norm: {name: lost}\n"
            "  - route: a\n  - linear: classes\n",
            "my.yaml:4:5: layer lost: nothing reads its output, because route1 goes on from elsewhere; name "
            "it "
            "behind that, as in '- add: lost', or leave it out"},
        BadFile{"route_that_nothing_reads",
                "layers:\n  - relu: {name: a}\n  - tanh: {name: b}\n  - route: a\n  - route: b\n  - add: a\n"
                "  - linear: classes\n",
                "my.yaml:4:5: layer route1: nothing reads its output, because route2 goes on from elsewhere; "
                "name it "
                "behind that, as in '- add: route1', or leave it out"},
        BadFile{"bias_of_a_number", "layers:\n  - linear: {out: classes, bias: 0}\n",
                "my.yaml:2:34: layer fc1: bias must be true or false, not '0'"},
        BadFile{"route_from_a_list", "layers:\n  - relu\n  - route: {from: [relu1]}\n",
                "my.yaml:3:19: layer route1: from must be the name of an earlier layer, not a list"},
        BadFile{"route_alone", "layers:\n  - relu\n  - route\n",
                "my.yaml:3:5: layer route1: 'from' is missing; write {from: ...}"},
        BadFile{"nothing_but_batch_norm_without_weights",
                "layers:\n  - batch_norm: {affine: false}\n  - flatten\n",
                "my.yaml:2:3: nothing to train: add a conv2d or linear layer"},
        BadFile{"value_of_none", "layers:\n  - global_avg_pool: 2\n",
                "my.yaml:2:22: global_avg_pool takes a map of options: {name}"},
        BadFile{"unknown_layer", "layers:\n  - conv3d: {out: 1}\n",
                "my.yaml:2:5: unknown layer 'conv3d' (did you mean 'conv2d'?); there are conv2d, "
                "conv_transpose2d, max_pool, avg_pool, "
                "global_avg_pool, adaptive_avg_pool, batch_norm, layer_norm, group_norm, relu, relu6, tanh, "
                "sigmoid, gelu, leaky_relu, elu, silu, hardsigmoid, "
                "hardswish, dropout, dropout2d, add, multiply, concat, route, "
                "flatten, "
                "linear"},
        BadFile{"softmax", "layers:\n  - softmax\n",
                "my.yaml:2:5: 'softmax' is no layer here: leave it out; the cross-entropy contains it, the "
                "binary one a "
                "sigmoid, and the mean squared error takes the last layer's outputs as they are"},
        BadFile{"log_softmax", "layers:\n  - LogSoftmax: {dim: 1}\n",
                "my.yaml:2:5: 'LogSoftmax' is no layer here: leave it out; the cross-entropy contains it, "
                "the binary one "
                "a sigmoid, and the mean squared error takes the last layer's outputs as they are"},
        BadFile{"two_layers_in_one_entry", "layers:\n  - relu:\n    flatten:\n",
                "my.yaml:2:5: a layer must look like '- relu' or '- conv2d: {out: 10, kernel: 5}'"},
        BadFile{"nested_list", "layers:\n  - [relu]\n",
                "my.yaml:2:5: a layer must look like '- relu' or '- conv2d: {out: 10, kernel: 5}'"},
        BadFile{"unknown_option", "layers:\n  - conv2d: {out: 1, kernal: 5}\n",
                "my.yaml:2:22: unknown key 'kernal' (did you mean 'kernel'?); conv2d has name, out, kernel, "
                "stride, padding, dilation, groups, bias"},
        BadFile{"missing_option", "layers:\n  - conv2d: {out: 1}\n",
                "my.yaml:2:5: layer conv1: 'kernel' is missing; write {kernel: ...}"},
        BadFile{"no_options", "layers:\n  - linear\n",
                "my.yaml:2:5: layer fc1: 'out' is missing; write {out: ...}"},
        BadFile{"short_form_of_conv2d", "layers:\n  - conv2d: 5\n",
                "my.yaml:2:13: conv2d takes a map of options: {name, out, kernel, stride, padding, dilation, "
                "groups, bias}"},
        BadFile{"short_form_of_relu", "layers:\n  - relu: 5\n",
                "my.yaml:2:11: relu takes a map of options: {name}"},
        BadFile{
            "mistyped_number", "layers:\n  - linear: ten\n",
            "my.yaml:2:13: layer fc1: out must be a whole number from 1 to 1048576 or 'classes', not 'ten'"},
        BadFile{"fraction", "layers:\n  - max_pool: 2.5\n",
                "my.yaml:2:15: layer pool1: kernel must be a whole number from 1 to 15, not '2.5'"},
        BadFile{"zero_stride", "layers:\n  - conv2d: {out: 1, kernel: 5, stride: 0}\n",
                "my.yaml:2:41: layer conv1: stride must be a whole number from 1 to 1024, not '0'"},
        BadFile{"huge_number", "layers:\n  - linear: 99999999999999999999\n",
                "my.yaml:2:13: layer fc1: out must be a whole number from 1 to 1048576 or 'classes', not "
                "'99999999999999999999'"},
        BadFile{"padding_as_large_as_the_kernel", "layers:\n  - conv2d: {out: 1, kernel: 3, padding: 3}\n",
                "my.yaml:2:42: layer conv1: padding must be a whole number from 0 to 2, not '3'"},
        BadFile{"zero_groups", "layers:\n  - conv2d: {out: 1, kernel: 5, groups: 0}\n",
                "my.yaml:2:41: layer conv1: groups must be a whole number from 1 to 1048576, not '0'"},
        BadFile{"pool_padding_above_half", "layers:\n  - max_pool: {kernel: 3, padding: 2}\n",
                "my.yaml:2:36: layer pool1: padding must be a whole number from 0 to 1, not '2'"},
        BadFile{"kernel_of_three_numbers", "layers:\n  - conv2d: {out: 1, kernel: [3, 3, 3]}\n",
                "my.yaml:2:30: layer conv1: kernel must be one number or [height, width], not a list of 3"},
        BadFile{"kernel_is_a_map", "layers:\n  - conv2d: {out: 1, kernel: {a: 3}}\n",
                "my.yaml:2:30: layer conv1: kernel must be a whole number from 1 to 1024, not a map"},
        BadFile{"certain_dropout", "layers:\n  - dropout: 1\n",
                "my.yaml:2:14: layer drop1: p must be a number from 0 to below 1, not '1'"},
        BadFile{"dropout_almost_one", "layers:\n  - dropout2d: {p: 0.99999999999}\n",
                "my.yaml:2:20: layer drop1: p must be a number from 0 to below 1, not '0.99999999999', which "
                "is 1 as fp32, "
                "whose largest number below 1 is 0.99999994"},
        BadFile{"dropout_of_next_to_nothing", "layers:\n  - dropout: 1e-50\n",
                "my.yaml:2:14: layer drop1: p must be a number from 0 to below 1, not '1e-50', which is 0 as "
                "fp32, "
                "whose smallest number is 1.4e-45"},
        BadFile{"dropout_of_a_word", "layers:\n  - dropout: half\n",
                "my.yaml:2:14: layer drop1: p must be a number from 0 to below 1, not 'half'"},
        BadFile{"name_used_twice", "layers:\n  - linear: {name: a, out: 3}\n  - linear: {name: a, out: 3}\n",
                "my.yaml:3:20: layer a: line 2 has a layer of this name already; write name: ..."},
        BadFile{"default_name_is_taken", "layers:\n  - relu: {name: relu2}\n  - relu\n",
                "my.yaml:3:5: layer relu2: line 2 has a layer of this name already; write name: ..."},
        BadFile{"name_is_a_list", "layers:\n  - relu: {name: [a]}\n",
                "my.yaml:2:18: a name must be 1 to 64 letters, digits, '_', '-' or '.'"}),
    [](const auto& test) { return test.param.name; });

/// The loader's own errors are tested with it; here, that network files go through it.
TEST(NetworkErrorsTest, YamlThatSurprisesIsRefused) {
  for (const char* yaml :
       {"layers: &a [relu]\n", "layers: [relu]\nlayers: [relu]\n", "layers: [relu]\n---\nlayers: []\n",
        "layers: !list [relu]\n", "layers: [relu\n", "\x01"}) {
    SCOPED_TRACE(yaml);
    const auto text = message_of<ConfigError>([&] { Network::parse(yaml, "my.yaml", {1, 28, 28}, 10); });
    EXPECT_TRUE(text.starts_with("my.yaml:")) << text;
  }
}

TEST(NetworkErrorsTest, EmptyFileIsRefused) {
  EXPECT_THROW(Network::parse("", "my.yaml", {1, 28, 28}, 10), ConfigError);
}

TEST(NetworkErrorsTest, InputsBeyondTheLimitsAreRefused) {
  const std::string yaml = "layers:\n  - conv2d: {out: 10, kernel: 1024}\n  - linear: classes\n";
  constexpr int kMost = 2147483647;
  for (const ImageShape& input : {ImageShape{1, 65536, 65537},
                                  {kMost, kMost, kMost},
                                  {0, 28, 28},
                                  {1, -28, 28},
                                  {-1, -1, 28},
                                  {1, 4096, 4097}}) {
    EXPECT_THROW(Network::parse(yaml, "my.yaml", input, 10), ShapeError) << to_string(input);
  }
  EXPECT_NO_THROW(Network::parse("layers:\n  - linear: classes\n", "my.yaml", {1, 4096, 4096}, 10));
  for (const int classes : {0, -5, kMost}) {
    EXPECT_THROW(Network::parse("layers:\n  - linear: classes\n", "my.yaml", {1, 28, 28}, classes),
                 ShapeError);
  }
}

TEST(NetworkErrorsTest, ThousandsOfLayersAreRefused) {
  std::string yaml = "layers:\n";
  for (int i = 0; i < 1025; ++i) yaml += "  - relu\n";
  EXPECT_THROW(Network::parse(yaml, "my.yaml", {1, 28, 28}, 10), ConfigError);
}

}  // namespace
}  // namespace lockstep
