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
        "layers: !list [relu]\n", "layers: [relu\n", "\x01"}) {
    SCOPED_TRACE(yaml);
    EXPECT_TRUE(said_of<ConfigError>(yaml).starts_with("my.yaml:"));
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
