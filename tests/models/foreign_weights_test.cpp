// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Tensors of a file become those of one name. Words that the names begin with count for nothing, numbers of
/// 16 bits are widened, and files that do not fit are refused with what both have.
#include "models/foreign_weights.hpp"

#include "common/error.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"

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
  /// Gives a tensor numbers of another type.
  void retype(const std::string& name, const std::string& dtype, std::span<const std::byte> bytes) {
    for (TensorView& tensor : tensors_)
      if (tensor.name == name) tensor.dtype = dtype, tensor.bytes = bytes;
  }
  void remove(const std::string& name) {
    std::erase_if(tensors_, [&](const TensorView& tensor) { return tensor.name == name; });
  }
  FittingWeights read(const Network& network, WeightsFit fit, const std::string& path = "f") {
    weights_.assign(expected_.size(), 0);
    return read_foreign_weights(SafetensorsFile::parse(write_safetensors(tensors_), path), path, network,
                                weights_, fit);
  }
  const std::vector<float>& weights() const { return weights_; }
  void expect_right(const Network& network, const std::string& words) {
    const FittingWeights fitting = read(network, WeightsFit::kAll);
    EXPECT_EQ(fitting.words, words);
    EXPECT_EQ(fitting.widened, "");
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

TEST(ForeignWeightsTest, TensorsThatDoNotFitNeedNotBeginAlike) {
  const Network network = network_of(kLinears);
  RenamedFile file(network, after("model.net."));
  const std::vector<float> others(8);
  file.add("criterion.weight", {8}, others);
  file.add("model.ema.a.bias", {4, 2}, others);
  file.expect_right(network, "model.net.");
  file.add("model.net.inner.a.bias", {8}, others);  // a layer of the model inside another one
  file.expect_right(network, "model.net.");
}

TEST(ForeignWeightsTest, OfTwoBeginningsThatFitNoneIsTaken) {
  const Network network = network_of(kLinears);
  const std::vector<float> bias(8);
  for (const WeightsFit fit : {WeightsFit::kAll, WeightsFit::kPart}) {
    RenamedFile file(network, after("encoder."));
    file.add("decoder.c.bias", {8}, bias);
    file.expect_refused(
        network,
        "f: its names are the model's both without 'encoder.' (encoder.a.weight) and without 'decoder.' "
        "(decoder.c.bias); write a file that has only the tensors that are meant",
        fit);
    RenamedFile wrapped(network, after("module."));
    wrapped.add("b.bias", {8}, bias);
    wrapped.expect_refused(network, "without 'module.' (module.a.weight) and as they are (b.bias)", fit);
  }
}

/// @param wanted  of each 16 bits, as fp32
void expect_widened(const std::string& dtype, const std::string& said,
                    const std::function<double(int sign, int exponent, int fraction)>& wanted,
                    int fraction_bits) {
  constexpr std::size_t kAll = 65536;
  const Network network = Network::parse("layers:\n  - linear: classes\n", "wide.yaml", {1, 128, 256}, 2);
  std::vector<std::uint16_t> halves(kAll);
  std::iota(halves.begin(), halves.end(), std::uint16_t{0});
  RenamedFile file(network, after(""));
  file.retype("fc1.weight", dtype, std::as_bytes(std::span(halves)));
  EXPECT_EQ(file.read(network, WeightsFit::kAll).widened, said);
  const int exponents = 1 << (15 - fraction_bits), fractions = 1 << fraction_bits;
  for (std::size_t bits = 0; bits < kAll; ++bits) {
    const auto sign = bits >> 15 == 0 ? 1 : -1,
               exponent = static_cast<int>(bits >> fraction_bits) % exponents,
               fraction = static_cast<int>(bits) % fractions;
    const float got = file.weights()[bits];
    if (exponent < exponents - 1)
      ASSERT_EQ(got, wanted(sign, exponent, fraction)) << dtype << " " << bits;
    else
      ASSERT_TRUE(fraction == 0 ? std::isinf(got) : std::isnan(got)) << dtype << " " << bits;
    ASSERT_EQ(std::signbit(got), sign < 0) << dtype << " " << bits;
  }
}

TEST(ForeignWeightsTest, NumbersOf16BitsAreWidenedExactly) {
  const auto value = [](int bias, int fractions, int sign, int exponent, int fraction) {
    const int whole = exponent == 0 ? fraction : fractions + fraction;
    return sign * std::ldexp(whole, std::max(exponent, 1) - bias) / fractions;
  };
  expect_widened(
      "F16", "f16", [&](int s, int e, int f) { return value(15, 1024, s, e, f); }, 10);
  expect_widened(
      "BF16", "bf16", [&](int s, int e, int f) { return value(127, 128, s, e, f); }, 7);
}

TEST(ForeignWeightsTest, EachNarrowTypeIsNamed) {
  const Network network = network_of(kLinears);
  RenamedFile file(network, after(""));
  const std::vector<std::uint16_t> bias(8);
  file.retype("a.bias", "F16", std::as_bytes(std::span(bias)));
  file.retype("b.bias", "BF16", std::as_bytes(std::span(bias)));
  EXPECT_EQ(file.read(network, WeightsFit::kAll).widened, "bf16 and f16");
}

TEST(ForeignWeightsTest, NumbersOf64BitsAreNotRounded) {
  const Network network = network_of(kLinears);
  RenamedFile file(network, after(""));
  const std::vector<double> bias(8);
  file.retype("a.bias", "F64", std::as_bytes(std::span(bias)));
  file.expect_refused(network, "a.bias [8], of which the file has F64 [8]");
}

TEST(ForeignWeightsTest, OfManyNamesTheFirstTwoAndTheLastAreNamed) {
  std::vector<std::string> names = {"a", "b", "c", "d", "e", "f", "g", "h"};
  EXPECT_EQ(first_and_last(names), "a, b, c, d, e, f, g, h");
  names.push_back("i");
  EXPECT_EQ(first_and_last(names), "a, b, ..., i");
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

TEST(ForeignWeightsTest, OfWordsWithoutWhichNothingFitsThoseThatNameMostAreLeftOut) {
  const Network network = network_of(kLinears);
  const Network narrow = Network::parse(
      "layers: [linear: {name: a, out: 7}, linear: {name: b, out: 7}, linear: {name: c, out: 7}, linear: "
      "{name: d, "
      "out: classes}]",
      "narrow.yaml", {1, 9, 1}, 4);
  RenamedFile file(narrow, after("module."));
  const std::vector<float> two{1, 2};
  file.add("ema.a.bias", {2}, two);
  file.expect_refused(network,
                      "the model has a.weight [8, 8], of which the file has [7, 9], a.bias [8], of which the "
                      "file has [7], ");
}

TEST(ForeignWeightsTest, WhatIsMissingIsNamedAndInPartItIsFresh) {
  const Network network = network_of(kLinears);
  RenamedFile file(network, after("module."));
  file.remove("module.d.bias");
  file.expect_refused(network,
                      "f: has nothing that fits the model's d.bias [3]; it has, beside what fits, nothing. "
                      "train.partial=true takes what fits, 7 of 8 tensors");
  const std::vector<float> two{1, 2};
  file.add("module.a.num_batches_tracked", {}, std::span(two).first(1));  // PyTorch's counter is left out
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
  file.add("module.b", {2}, two);  // belongs to no layer
  file.add("c", {2}, two);
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
