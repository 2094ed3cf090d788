// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Tensors of a file become those of one name; words that all names begin with count for nothing, and files that do not
/// fit are refused with what both have.
#include "models/foreign_weights.hpp"

#include "common/error.hpp"
#include "tests/support/messages.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

namespace lockstep {
namespace {

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
  FittingWeights read(const Network& network, WeightsFit fit, const std::string& path = "f") {
    weights_.assign(expected_.size(), 0);
    return read_foreign_weights(SafetensorsFile::parse(write_safetensors(tensors_), path), path, network,
                                weights_, fit);
  }
  void expect_right(const Network& network, const std::string& words) {
    EXPECT_EQ(read(network, WeightsFit::kAll).words, words);
    EXPECT_EQ(weights_, expected_);
  }
  void expect_refused(const Network& network, const std::string& message, WeightsFit fit = WeightsFit::kAll,
                      const std::string& path = "f") {
    expect_error<DataError>([&] { read(network, fit, path); }, {message});
  }

 private:
  std::deque<std::vector<float>> numbers_;
  std::vector<TensorView> tensors_;
  std::vector<float> expected_, weights_;
};

std::function<std::string(const std::string&)> after(const std::string& words) {
  return [=](const std::string& name) { return words + name; };
}

TEST(ForeignWeightsTest, WordsThatAllNamesBeginWithCountForNothing) {
  const Network network = network_of(kLinears);
  for (const char* words : {"", "module.", "_orig_mod.module.", "a.a.b.c.d."}) {
    RenamedFile file(network, after(words));
    file.expect_right(network, words);
    const float averaged = 7;
    file.add("n_averaged", {}, std::span(&averaged, 1));  // as AveragedModel has it, of no module
    file.expect_right(network, words);
  }
}

TEST(ForeignWeightsTest, WordsOfTheNetworksOwnNamesStay) {
  const Network network = network_of("layers:\n  - linear: {name: net.fc, out: classes}\n");
  RenamedFile(network, after("")).expect_right(network, "");
  RenamedFile(network, after("net.")).expect_right(network, "net.");
}

/// Another's "encoder." and "decoder." could both be it.
TEST(ForeignWeightsTest, AWordOfSomeNamesIsNotLeftOut) {
  const Network network = network_of(kLinears);
  RenamedFile file(network, after("encoder."));
  const std::vector<float> bias(8);
  file.add("decoder.a.bias", {8}, bias);
  file.expect_refused(network,
                      "the file has, beside those, encoder.a.weight, encoder.a.bias, ..., decoder.a.bias.");
}

TEST(ForeignWeightsTest, OtherNamesAreRefusedWithBothAndTheWayOut) {
  const Network network = network_of(kLinears);
  RenamedFile file(network, [](const std::string& name) { return "net." + std::to_string(name[0] - 'a'); });
  for (const WeightsFit fit : {WeightsFit::kAll, WeightsFit::kPart})
    file.expect_refused(
        network,
        "f: none of its tensors has the name and shape of one of the model's: the model has a.weight [8, 8], "
        "a.bias [8], b.weight [8, 8], b.bias [8], c.weight [8, 8], c.bias [8], d.weight [3, 8], d.bias [3]; "
        "the file has, beside those, net.0.weight, net.0.bias, net.1.weight, net.1.bias, net.2.weight, "
        "net.2.bias, net.3.weight, net.3.bias. Name the model's layers as the file does, or write a file "
        "with the model's names (in PyTorch: safetensors.torch.save_file(model.state_dict(), "
        "\"weights.safetensors\"))",
        fit);
}

TEST(ForeignWeightsTest, WhatIsMissingIsNamedAndInPartItIsFresh) {
  const Network network = network_of(kLinears);
  RenamedFile file(network, after("module."));
  file.remove("module.d.bias");
  const std::vector<float> two{1, 2};
  file.add("module.d.bias", {2}, two);
  file.add("module.e.weight", {2}, two);
  file.expect_refused(
      network,
      "f: has nothing that fits the model's d.bias [3], of which the file has [2]; it has, "
      "beside what fits, module.e.weight. train.partial=true takes what fits, 7 of 8 tensors, "
      "and starts the rest afresh");
  const FittingWeights part = file.read(network, WeightsFit::kPart);
  EXPECT_EQ(part.taken.size(), 7U);
  EXPECT_EQ(part.fresh, std::vector<std::string>{"d.bias [3], of which the file has [2]"});
  EXPECT_EQ(part.left_over, std::vector<std::string>{"module.e.weight"});
}

TEST(ForeignWeightsTest, ALayerIsReadWhole) {
  const Network network = network_of(kLinears);
  RenamedFile file(network, after("module."));
  const std::vector<float> two{1, 2};
  file.add("module.more.weight", {2}, two);
  file.expect_right(network, "module.");
  file.add("module.a.scale", {2}, two);
  file.expect_refused(network, "f: it has 'module.a.scale', but the model's a has none");
}

/// An exporter that folds leaves the convolution its name, so an ONNX file without statistics has other numbers there.
TEST(ForeignWeightsTest, AnOnnxFileWithoutTheStatisticsIsNotReadInPartEither) {
  const Network network = network_of(
      "layers:\n  - conv2d: {name: conv, out: 4, kernel: 1, bias: false}\n  - batch_norm: {name: bn}\n"
      "  - linear: {name: fc, out: classes}\n");
  RenamedFile file(network, after(""));
  for (const char* what : {"weight", "bias", "running_mean", "running_var"})
    file.remove(std::string("bn.") + what);
  EXPECT_EQ(file.read(network, WeightsFit::kPart).taken.size(), 3U);
  for (const WeightsFit fit : {WeightsFit::kAll, WeightsFit::kPart})
    file.expect_refused(network, "f.onnx: has no bn.running_mean: its exporter may have folded", fit,
                        "f.onnx");
}

}  // namespace
}  // namespace lockstep
