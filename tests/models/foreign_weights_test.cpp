// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Which tensor of a file becomes which of a network, where names are the same, where they are others, and where they
/// do not say.
#include "models/foreign_weights.hpp"

#include "common/error.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

const char* const kBlock =
    "layers:\n  - conv2d: {name: first, out: 4, kernel: 3, padding: 1, bias: false}\n  - batch_norm: {name: "
    "first_bn}\n"
    "  - relu: {name: start}\n  - conv2d: {name: short, out: 6, kernel: 1, stride: 2, bias: false}\n"
    "  - batch_norm: {name: short_bn}\n  - route: start\n"
    "  - conv2d: {name: a, out: 6, kernel: 3, stride: 2, padding: 1, bias: false}\n  - batch_norm: {name: "
    "a_bn}\n  - relu\n"
    "  - conv2d: {name: b, out: 6, kernel: 3, padding: 1, bias: false}\n  - batch_norm: {name: b_bn}\n"
    "  - add: short_bn\n  - global_avg_pool\n  - linear: {name: last, out: classes}\n";
const char* const kLinears =
    "layers:\n  - linear: {name: a, out: 8}\n  - relu\n  - linear: {name: b, out: 8}\n  - relu\n  - linear: "
    "{name: c, out: 8}\n"
    "  - relu\n  - linear: {name: d, out: classes}\n";

Network network_of(const std::string& yaml) {
  return Network::parse(yaml, "small.yaml", {1, 8, 1}, 3);
}

/// A file that has each tensor of the network under another name.
class RenamedFile {
 public:
  RenamedFile(const Network& network, const std::function<std::string(const std::string&)>& renamed) {
    float next = 1;
    for (const Parameter& tensor : network.parameters().tensors()) {
      std::vector<float>& numbers = numbers_.emplace_back(tensor.size);
      std::iota(numbers.begin(), numbers.end(), next);
      next += static_cast<float>(tensor.size);
      expected_.insert(expected_.end(), numbers.begin(), numbers.end());
      const std::size_t dot = tensor.name.rfind('.');
      add(renamed(tensor.name.substr(0, dot)) + tensor.name.substr(dot),
          {tensor.shape.begin(), tensor.shape.end()}, numbers);
    }
  }
  void add(const std::string& name, const std::vector<std::size_t>& shape, std::span<const float> numbers) {
    tensors_.push_back({name, "F32", shape, std::as_bytes(numbers)});
  }
  void remove(const std::string& name) {
    std::erase_if(tensors_, [&](const TensorView& tensor) { return tensor.name == name; });
  }
  std::string read(const Network& network) {
    weights_.assign(expected_.size(), 0);
    return read_foreign_weights(SafetensorsFile::parse(write_safetensors(tensors_), "f"), "f", network,
                                weights_);
  }
  void expect_right(const Network& network, const std::string& line) {
    EXPECT_EQ(read(network), line);
    EXPECT_EQ(weights_, expected_);
  }
  void expect_refused(const Network& network, const std::string& words) {
    try {
      ADD_FAILURE() << "no error, but " << read(network);
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  }

 private:
  std::deque<std::vector<float>> numbers_;
  std::vector<TensorView> tensors_;
  std::vector<float> expected_, weights_;
};

std::function<std::string(const std::string&)> by(std::map<std::string, std::string> names) {
  return [names = std::move(names)](const std::string& name) { return names.at(name); };
}

TEST(ForeignWeightsTest, NamesDecideWhereTheFileHasThemAll) {
  const Network network = network_of(kLinears);
  RenamedFile(network, [](const std::string& name) {
    return name;
  }).expect_right(network, "8 tensors by name");
  RenamedFile(network, [](const std::string& name) {
    return "module." + name;
  }).expect_right(network, "8 tensors by name behind 'module.'");
}

TEST(ForeignWeightsTest, NumbersInNamesAreTheOrder) {
  const Network network = network_of(kLinears);
  RenamedFile file(network, by({{"a", "net.2"}, {"b", "net.10"}, {"c", "net.12"}, {"d", "head"}}));
  file.expect_right(
      network,
      "8 tensors by shape, since the names are others: a from 'net.2', b from 'net.10', c from 'net.12', "
      "d from 'head'");
}

TEST(ForeignWeightsTest, BatchNormIsThatOfTheConvolutionBeforeIt) {
  const Network network = network_of(kBlock);
  RenamedFile file(network, by({{"first", "conv1"},
                                {"first_bn", "bn1"},
                                {"short", "layer1.0.downsample.0"},
                                {"short_bn", "layer1.0.downsample.1"},
                                {"a", "layer1.0.conv1"},
                                {"a_bn", "layer1.0.bn1"},
                                {"b", "layer1.0.conv2"},
                                {"b_bn", "layer1.0.bn2"},
                                {"last", "fc"}}));
  const float counted = 7;
  file.add("bn1.num_batches_tracked", {}, std::span(&counted, 1));
  file.expect_right(
      network,
      "22 tensors by shape, since the names are others: first from 'conv1', first_bn from 'bn1', "
      "..., last from 'fc'");
}

TEST(ForeignWeightsTest, NamesThatDoNotSayTheOrderAreRefusedWithBoth) {
  const Network network = network_of(kLinears);
  RenamedFile file(network, by({{"a", "in"}, {"b", "middle"}, {"c", "out"}, {"d", "head"}}));
  file.expect_refused(network, "'in' and 'middle' have the same shapes");
}

TEST(ForeignWeightsTest, WhatIsMissingOrLeftOverIsNamed) {
  const Network network = network_of(kLinears);
  const auto names = by({{"a", "net.0"}, {"b", "net.2"}, {"c", "net.4"}, {"d", "net.6"}});
  RenamedFile missing(network, names);
  missing.remove("net.6.bias");
  missing.expect_refused(
      network,
      "f: has no tensor 'a.weight'; by shape neither: the model has 1 layer with bias F32 [3], "
      "weight F32 [3, 8], such as d, and the file 0");
  RenamedFile more(network, names);
  const std::vector<float> two{1, 2};
  more.add("net.8.weight", {2}, two);
  more.expect_refused(network, "'net.8' (weight F32 [2]) is no layer of the model");
}

TEST(ForeignWeightsTest, MoreOfOneShapeThanTheModelHasIsRefused) {
  const Network network = network_of(kLinears);
  RenamedFile file(network, by({{"a", "net.0"}, {"b", "net.2"}, {"c", "net.4"}, {"d", "net.6"}}));
  const std::vector<float> weight(64), bias(8);
  file.add("net.5.weight", {8, 8}, weight);
  file.add("net.5.bias", {8}, bias);
  file.expect_refused(
      network, "the model has 3 layers with bias F32 [8], weight F32 [8, 8], such as a, and the file 4");
}

}  // namespace
}  // namespace lockstep
