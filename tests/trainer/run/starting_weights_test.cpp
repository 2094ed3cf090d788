// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Starting from a state_dict of PyTorch; tests/golden/make_golden.py made the files.
#include "common/buffers.hpp"
#include "common/env.hpp"
#include "common/error.hpp"
#include "common/safetensors.hpp"
#include "models/execution.hpp"
#include "models/onnx/onnx.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/test_settings.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"
#include "trainer/run/saved_model.hpp"

namespace lockstep {
namespace {

constexpr int kSamples = 16, kClasses = 5;
constexpr ImageShape kImage{2, 9, 12};

Network network_with(const std::string& conv1, int classes = kClasses) {
  return Network::parse(
      "layers:\n  - conv2d: {out: 4, kernel: 3, padding: 1" + conv1 +
          "}\n  - batch_norm\n  - relu\n  - max_pool: 2\n  - conv2d: {out: 6, kernel: [2, 3], stride: 2}\n"
          "  - tanh\n  - linear: 8\n  - relu\n  - linear: {out: classes, bias: false}\n",
      "torch.yaml", kImage, classes);
}

std::string golden(const std::string& name) {
  return test::source_path("tests/golden/") + name;
}

class StartingWeightsTest : public ::testing::Test {
 protected:
  /// Initialises weights_ from the file.
  StartingWeights begin(const Network& network) {
    weights_.assign(network.parameters().weights_size(), 0);
    return initialise_weights(job_, network, weights_);
  }
  /// Puts another file in place of PyTorch's. @returns its path
  std::string put(const std::string& name, std::span<const std::byte> bytes) {
    job_.train.initial_weights = directory_.path(name);
    write_synced(Env::posix(), job_.train.initial_weights, bytes);
    return job_.train.initial_weights;
  }
  std::string refusal(const Network& network) {
    return message_of<DataError>([&] { begin(network); });
  }

  testing::TemporaryDirectory directory_;
  Job job_;
  std::string torch_ = job_.train.initial_weights = golden("torch_state_dict.safetensors");
  std::vector<float> weights_;
  const Network network_ = network_with(", bias: false"),
                one_ = Network::parse("layers:\n  - linear: classes\n", "one.yaml", {1, 1, 2}, 2);
};

TEST_F(StartingWeightsTest, StateDictOfPyTorchGivesItsLogits) {
  begin(network_);
  AlignedBuffer<float> weights(weights_.size());
  std::ranges::copy(weights_, weights.data());
  const auto answers = test::read_safetensors(golden("torch_answers.safetensors"));
  const auto images = test::values_of<float>(answers, "images", "F32", {kSamples, 2, 9, 12});
  const auto logits = test::values_of<double>(answers, "logits", "F64", {kSamples, kClasses});
  Execution execution(network_, kSamples);
  const auto features = static_cast<std::size_t>(kImage.features());
  for (std::size_t f = 0; f < features; ++f)
    for (std::size_t n = 0; n < kSamples; ++n) execution.input()[f * kSamples + n] = images[n * features + f];
  const float* computed = execution.forward_evaluation(weights.data(), kSamples);
  for (std::size_t n = 0; n < kSamples; ++n)
    for (std::size_t c = 0; c < kClasses; ++c)
      EXPECT_NEAR(computed[c * kSamples + n], logits[n * kClasses + c], 1e-5)
          << "sample " << n << " class " << c;
}

TEST_F(StartingWeightsTest, WhatTheFileOrTheModelLacksIsNamed) {
  test::expect_words(refusal(network_with(", bias: true")), {"conv1.bias"});
  test::expect_words(
      refusal(network_with(", bias: false, name: first")),
      {"has nothing that fits the model's first.weight [4, 2, 3, 3]; it has, beside what fits, "
       "conv1.weight."});
  const std::string without_bias =
      "layers:\n  - conv2d: {out: 4, kernel: 3, padding: 1, bias: false}\n  - batch_norm: {affine: false}\n"
      "  - linear: classes\n";
  test::expect_words(refusal(Network::parse(without_bias, "torch.yaml", kImage, kClasses)),
                     {"'bn1.bias', but the model's bn1 has none"});
}

/// As torch.compile around DistributedDataParallel makes them.
TEST_F(StartingWeightsTest, WordsThatBeginAllNamesAreLeftOutAndSaid) {
  begin(network_);
  const std::vector<float> from_pytorch = weights_;
  const auto file = test::read_safetensors(torch_);
  std::vector<TensorView> tensors = file.tensors();
  for (TensorView& tensor : tensors) tensor.name = "_orig_mod.module." + tensor.name;
  const std::string path = put("wrapped.safetensors", write_safetensors(tensors));
  for (const bool partial : {false, true}) {
    job_.train.partial = partial;
    EXPECT_EQ(begin(network_).lines.front(), "initial weights: " + path + (partial ? ": 10 of 10" : ": 10") +
                                                 " tensors by name, without '_orig_mod.module.'" +
                                                 (partial ? " (train.partial)" : ""));
    EXPECT_EQ(weights_, from_pytorch);
  }
}

TEST_F(StartingWeightsTest, OfWhatFitsInPartTheRestIsThatOfTheSeed) {
  begin(network_);
  const std::vector<float> from_pytorch = weights_;
  const Network other = network_with(", bias: false", kClasses + 1);
  job_.train.partial = true;
  EXPECT_EQ(begin(other).fresh, std::vector<std::string>{"fc2.weight [6, 8], of which the file has [5, 8]"});
  std::vector<float> fresh(weights_.size());
  other.initialise(job_.train.seed, fresh, 0);
  const auto expected = network_.parameters().tensors();
  for (const Parameter& tensor : other.parameters().tensors()) {
    const auto same = std::ranges::find(expected, tensor.name, &Parameter::name);
    ASSERT_NE(same, expected.end());
    const auto numbers = std::span(weights_).subspan(tensor.offset, tensor.size);
    EXPECT_TRUE(tensor.name == "fc2.weight"
                    ? std::ranges::equal(numbers, std::span(fresh).subspan(tensor.offset, tensor.size))
                    : std::ranges::equal(numbers, std::span(from_pytorch).subspan(same->offset, same->size)))
        << tensor.name;
  }
}

TEST_F(StartingWeightsTest, FurtherLayersOfTheFileAreNamed) {
  const std::vector<float> numbers = {1, 2, 3, 4, 5, 6};
  const auto bytes = std::as_bytes(std::span(numbers));
  const std::string path =
      put("more.safetensors",
          write_safetensors(std::vector<TensorView>{{"fc1.weight", "F32", {2, 2}, bytes.first(16)},
                                                    {"fc1.bias", "F32", {2}, bytes.last(8)},
                                                    {"fc2.weight", "F32", {1, 2}, bytes.first(8)}}));
  EXPECT_EQ(begin(one_).lines, (std::vector<std::string>{"initial weights: " + path + ": 2 tensors by name",
                                                         "  not used: fc2.weight"}));
}

TEST_F(StartingWeightsTest, ConstantsOfAnOnnxGraphAreNotNamed) {
  begin(network_);
  const std::vector<float> from_pytorch = weights_;
  const std::string path =
      put("net.ONNX",
          write_onnx(network_, weights_, {.mean = {0.5}, .std = {0.25}, .program = "1", .metadata = {}}));
  EXPECT_EQ(begin(network_).lines, std::vector{"initial weights: " + path + ": 10 tensors by name"});
  EXPECT_EQ(weights_, from_pytorch);
}

TEST_F(StartingWeightsTest, ClassesOfAnOnnxFileAreMatchedByName) {
  const std::vector<float> numbers = {1, 2, 3, 4, 5, 6};
  TrainTestData data;
  data.class_names = {"y", "x"};
  int files = 0;
  const auto lines_of_file_with = [&](const std::string& names) {
    put(fmt::format("{}.onnx", ++files),
        write_onnx(one_, numbers, {.program = "1", .metadata = {{kOnnxClassNames, names}}}));
    weights_.assign(numbers.size(), 0);
    return initialise_weights(job_, one_, weights_, data).lines;
  };
  EXPECT_EQ(lines_of_file_with(R"(["x","y"])").back(),
            "the last layer's rows are put in the order of the set's classes, by name");
  EXPECT_EQ(weights_, (std::vector<float>{3, 4, 1, 2, 6, 5}));
  for (const char* names :
       {"", "x, y", R"({"x": 0, "y": 1})", R"(["x", 1])", R"(["x", "\u001b"])", R"(["x", "x"])"}) {
    EXPECT_EQ(lines_of_file_with(names).size(), 1U) << names;
    EXPECT_EQ(weights_, numbers) << names;
  }
}

TEST_F(StartingWeightsTest, ACheckpointIsVerifiedUnderEachOfItsNames) {
  CheckpointState state = make_state(7);
  state.facts.parameters = {{"fc1.weight", {2, 2}}, {"fc1.bias", {2}}};
  state.facts.gradient_units.exponents = {-40, 77};
  state.facts.bucket_sizes = {6};
  state.facts.test_accuracy = 0.5;
  state.weights = {1, 2, 3, 4, 5, 6};
  state.optimizer.clear();
  const std::string checkpoint = save_checkpoint(Env::posix(), directory_.path(), state);
  const std::string names[] = {directory_.path(), directory_.path() + "@best", directory_.path() + "@step:7",
                               checkpoint};
  for (const std::string& name : names) {
    job_.train.initial_weights = name;
    begin(one_);
    EXPECT_EQ(weights_, state.weights) << name;
  }
  std::string bytes = text_of(checkpoint + "/model.safetensors");
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  std::ofstream(checkpoint + "/model.safetensors") << bytes;
  for (const std::string& name : names) {
    job_.train.initial_weights = name;
    EXPECT_THROW(begin(one_), DataError) << name;
  }
}

/// As others publish weights.
TEST_F(StartingWeightsTest, AFolderWithoutAManifestIsItsFile) {
  std::filesystem::create_directory(directory_.path("published"));
  const std::vector<float> weights{1, 2, 3, 4, 5, 6};
  const auto bytes = std::as_bytes(std::span(weights));
  const std::vector<TensorView> tensors{{"fc1.weight", "F32", {2, 2}, bytes.first(16)},
                                        {"fc1.bias", "F32", {2}, bytes.last(8)}};
  put("published/model.safetensors", write_safetensors(tensors));
  job_.train.initial_weights = directory_.path("published");
  begin(one_);
  EXPECT_EQ(weights_, weights);
  put("published/optimizer.safetensors", write_safetensors({}));
  job_.train.initial_weights = directory_.path("published");
  EXPECT_THROW(begin(one_), DataError) << "what is left of a checkpoint";
}

TEST_F(StartingWeightsTest, FileOfTorchSaveIsRefusedWithTheWayOut) {
  for (const auto& [name, in_python] :
       {std::pair{"weights.pt", "weights.pt"}, {R"(a "b" \c.pt)", R"(a \"b\" \\c.pt)"}}) {
    put(name, std::as_bytes(std::span("PK\x03\x04 and more")));
    test::expect_words(refusal(one_),
                       {"save_file(torch.load(\"" + directory_.path(in_python) + "\", weights_only=True), "});
  }
}

TEST_F(StartingWeightsTest, WeightsThatAreNotFiniteAreNamed) {
  const std::vector<float> weight = {1, std::numeric_limits<float>::quiet_NaN(), 2, 3}, bias = {0, 0};
  const std::string path =
      put("not_finite.safetensors", write_safetensors(std::vector<TensorView>{
                                        {"fc1.weight", "F32", {2, 2}, std::as_bytes(std::span(weight))},
                                        {"fc1.bias", "F32", {2}, std::as_bytes(std::span(bias))}}));
  EXPECT_EQ(refusal(one_),
            path + ": 1 of 4 numbers of fc1.weight is NaN or infinite; give a file of finite weights");
}

TEST_F(StartingWeightsTest, NarrowerNumbersAreWidenedAndThatIsSaid) {
  const std::vector<std::uint16_t> half = {0x3c00, 0xb800, 0x0001, 0}, bfloat = {0x3f80, 0xbf00};
  const std::string path =
      put("narrow.safetensors", write_safetensors(std::vector<TensorView>{
                                    {"fc1.weight", "F16", {2, 2}, std::as_bytes(std::span(half))},
                                    {"fc1.bias", "BF16", {2}, std::as_bytes(std::span(bfloat))}}));
  std::ofstream(directory_.path("manifest.json")) << "damaged, and none of these weights'";
  EXPECT_EQ(begin(one_).lines,
            std::vector{"initial weights: " + path + ": 2 tensors by name, widened from bf16 and f16"});
  EXPECT_EQ(weights_, (std::vector{1.F, -0.5F, 0x1p-24F, 0.F, 1.F, -0.5F}));
}

TEST_F(StartingWeightsTest, ColumnsInAnotherOrderAreRefused) {
  CheckpointState state = make_state(7);
  state.facts.model = {{"set", "table"}, {"mean", "0"}, {"std", "1"}};
  state.facts.data = {{"train_samples", "3"}, {"test_samples", "2"}, {"class_names", "x\ny"}};
  for (const char* key :
       {"train_samples_sha256", "train_labels_sha256", "test_samples_sha256", "test_labels_sha256"})
    state.facts.data[key] = "";
  state.facts.data["columns"] = R"([{"name":"a"},{"name":"b"}])";
  state.facts.gradient_units.exponents = {-40, 77};
  state.optimizer.clear();
  state.facts.parameters = {{"fc1.weight", {2, 2}}, {"fc1.bias", {2}}};
  state.weights = {1, 2, 3, 4, 5, 6};
  const std::string checkpoint = save_checkpoint(Env::posix(), directory_.path(), state);
  TrainTestData data;
  data.origin = "sets/t2";
  data.class_names = {"x", "y"};
  const auto begin_on = [&](const Network& network, const std::string& columns) {
    data.columns = columns;
    weights_.assign(network.parameters().weights_size(), 0);
    return initialise_weights(job_, network, weights_, data);
  };
  const std::string turned = R"([{"name":"b"},{"name":"a"}])";
  for (const std::string& from : {checkpoint, checkpoint + "/model.safetensors"}) {
    job_.train.initial_weights = from;
    for (const std::string& columns : {state.facts.data["columns"], std::string()}) begin_on(one_, columns);
    EXPECT_EQ(weights_, state.weights);
    EXPECT_EQ(message_of<DataError>([&] { begin_on(one_, turned); }),
              checkpoint +
                  "/model.safetensors: was trained on columns in the order a, b, and sets/t2 has b, a "
                  "(column 1 is another); convert the table with its columns as they were, in that "
                  "order");
  }
  job_.train.partial = true;
  const Network other =
      Network::parse("layers:\n  - linear: {out: 2, name: new}\n  - linear: {out: classes, name: fc1}\n",
                     "new.yaml", {1, 1, 2}, 2);
  EXPECT_EQ(begin_on(other, turned).fresh.size(), 2U) << "the first layer begins anew";
  const Network longer =
      Network::parse("layers:\n  - linear: {out: 2, name: fc1}\n  - linear: {out: classes, name: fc1.new}\n",
                     "longer.yaml", {1, 1, 2}, 2);
  EXPECT_THROW(begin_on(longer, turned), DataError) << "only the tensors of fc1.new begin anew";
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(checkpoint);
  job_.train.initial_weights = "model.safetensors";
  EXPECT_THROW(begin_on(one_, turned), DataError) << "its manifest is beside it";
  std::filesystem::current_path(before);
}

}  // namespace
}  // namespace lockstep
