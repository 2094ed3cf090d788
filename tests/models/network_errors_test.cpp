// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Every way in which a network file can be wrong, and its message: network_errors.txt, and binary files.
#include "common/error.hpp"
#include "models/layer.hpp"
#include "models/network.hpp"
#include "tests/support/message_table.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep {
namespace {

template <typename Error>
std::string said_of(const std::string& yaml) {
  return message_of<Error>([&] { Network::parse(yaml, "my.yaml", {1, 28, 28}, 10); });
}

TEST(NetworkErrorsTest, EveryWrongNetworkIsToldWhatTheTableSays) {
  for (const test::SaidOf& row : test::read_messages("tests/models/network_errors.txt")) {
    const std::string said =
        row.title.starts_with("ShapeError") ? said_of<ShapeError>(row.text) : said_of<ConfigError>(row.text);
    row.expect(said.substr(std::strlen("my.yaml:")));
  }
}

TEST(NetworkErrorsTest, OneClassIsNoPlural) {
  expect_error<ShapeError>(
      [] {
        Network::parse("layers:\n  - linear: 12\n", "my.yaml", ImageShape{1, 28, 28}, 1);
      },
      {"but the data has 1 class; end"});
}

/// The loader's own errors are tested with it; here, that network files go through it.
TEST(NetworkErrorsTest, YamlThatSurprisesIsRefused) {
  for (const char* yaml :
       {"layers: &a [relu]\n", "layers: [relu]\nlayers: [relu]\n", "layers: [relu]\n---\nlayers: []\n",
        "layers: !list [relu]\n", "layers: [relu\n", "\x01", ""}) {
    SCOPED_TRACE(yaml);
    EXPECT_TRUE(said_of<ConfigError>(yaml).starts_with("my.yaml:"));
  }
}

TEST(NetworkErrorsTest, InputsBeyondTheLimitsAreRefused) {
  const std::string yaml = "layers:\n  - conv2d: {out: 10, kernel: 1024}\n  - linear: classes\n";
  constexpr int kMost = 2147483647;
  for (const ImageShape& input : {ImageShape{1, 65536, 65537},
                                  {kMost, kMost, kMost},
                                  {0, 28, 28},
                                  {1, -28, 28},
                                  {1, 0, 28},
                                  {1, 28, 0},
                                  {-1, -1, 28},
                                  {1, 4096, 4097}}) {
    EXPECT_THROW(Network::parse(yaml, "my.yaml", input, 10), ShapeError) << to_string(input);
  }
  EXPECT_NO_THROW(Network::parse("layers:\n  - linear: classes\n", "my.yaml", {1, 4096, 4096}, 10));
  EXPECT_NO_THROW(Network::parse("layers:\n  - linear: classes\n", "my.yaml", {1, 1, 1}, 1 << 20));
  for (const int classes : {0, -5, (1 << 20) + 1, kMost}) {
    EXPECT_THROW(Network::parse("layers:\n  - linear: classes\n", "my.yaml", {1, 28, 28}, classes),
                 ShapeError);
  }
}

TEST(NetworkErrorsTest, ASideBeyondTheLimitIsSaidToBeJustBeyondIt) {
  EXPECT_EQ(message_of<ShapeError>([] {
              Network::parse("layers: [conv_transpose2d: {out: 1, kernel: 1, stride: 1024}, linear: classes]",
                             "my.yaml", {1, 1, 16386}, 10);
            }),
            "my.yaml:1:10: layer conv1: an output of 1x1x16777217 is more than the 16777216 numbers a layer "
            "may have");
}

TEST(NetworkErrorsTest, ThousandsOfLayersAreRefused) {
  std::string yaml = "layers:\n";
  for (int i = 0; i < 1023; ++i) yaml += "  - relu\n";
  EXPECT_NO_THROW(Network::parse(yaml + "  - linear: classes\n", "my.yaml", {1, 28, 28}, 10));
  EXPECT_EQ(said_of<ConfigError>(yaml + "  - relu\n  - linear: classes\n"),
            "my.yaml:2:3: 1025 layers are too many; at most 1024");
}

TEST(NetworkErrorsTest, NumbersBeyondTheLimitsOfAnOptionAreRefused) {
  for (const std::string layer :
       {"linear: 0", "conv2d: {out: 1, kernel: 0}", "conv2d: {out: 1, kernel: [3, 0]}",
        "conv2d: {out: 1, kernel: 1025}", "conv2d: {out: 1, kernel: 3, stride: 1025}",
        "conv2d: {out: 1, kernel: 3, dilation: 0}", "conv2d: {out: 1, kernel: 3, padding: -1}", "max_pool: 0",
        "max_pool: 16", "max_pool: {kernel: 2, stride: 0}", "adaptive_avg_pool: 0", "adaptive_avg_pool: 1025",
        "group_norm: 0", "dropout: -0.5", "leaky_relu: -0.1", "elu: 101", "batch_norm: {momentum: -0.1}",
        "batch_norm: {eps: 1.1}", "batch_norm: {eps: 9e-13}"})
    EXPECT_TRUE(contains(said_of<ConfigError>("layers: [" + layer + ", linear: classes]"),
                         {" must be a ", "number ", " from ", ", not '"}))
        << layer;
}

TEST(NetworkErrorsTest, WhatIsJustWithinTheLimitsIsNoError) {
  const std::string longest(64, 'a');
  for (const std::string layers :
       {"conv2d: {out: 1, kernel: 3, padding: 2}", "max_pool: {kernel: 15, padding: 7}", "max_pool: 1",
        "conv2d: {out: 1, kernel: [28, 1], stride: 1024}", "leaky_relu: 0", "leaky_relu: 1", "elu: 0",
        "elu: 100", "batch_norm: {eps: 1, momentum: 0}", "batch_norm: {eps: 1e-12, momentum: 1}",
        "dropout: 0", "adaptive_avg_pool: 1024", "group_norm: 1", "conv2d: {out: 21399, kernel: 1}",
        "global_avg_pool, conv2d: {out: 1, kernel: 3, padding: 1}",
        "global_avg_pool, conv_transpose2d: {out: 1, kernel: 3, padding: 1}",
        "adaptive_avg_pool: 1024, conv2d: {out: 16, kernel: 1}",  // 2^24 numbers
        "linear: 3141, linear: 680526"})                          // with the last layer 2147483647 weights
    EXPECT_EQ(test::error_of<Error>([&] {
                Network::parse(
                    "name: " + longest + "\ninit: {normal: 1000}\nlayers: [" + layers + ", linear: classes]",
                    "my.yaml", {1, 28, 28}, 10);
              }),
              "")
        << layers;
  EXPECT_EQ(said_of<ConfigError>("name: " + longest + "a\nlayers: [linear: classes]"),
            "my.yaml:1:7: a name must be 1 to 64 letters, digits, '_', '-' or '.'");
}

}  // namespace
}  // namespace lockstep
