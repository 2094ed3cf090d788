// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Whole passes on a device against the CPU's Execution, which stands on finite differences and PyTorch. The
/// same logits, losses and gradients, dropout masks included.
#include "models/device/device_execution.hpp"

#include "common/error.hpp"
#include "kernels/cpu/ops.hpp"
#include "kernels/numerics/sums.hpp"
#include "models/execution.hpp"
#include "models/layer.hpp"
#include "tests/kernels/device/rig.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::test::device_execution_test {
namespace {

constexpr int kClasses = 6;
constexpr std::uint64_t kSeed = 99;
constexpr std::uint32_t kStep = 3, kFirstSample = 40;
constexpr float kLimit = 1e4F;

struct Result {
  std::vector<float> logits;      ///< [classes][batch]
  std::vector<double> gradients;  ///< arena order
  double loss = 0;
  std::int64_t correct = 0;
  std::size_t nodes = 0;  ///< the graph's, if there was one
};

/// A network, its weights and a batch of samples.
struct Problem {
  Problem(const std::string& layers, const ImageShape& input, int batch_size)
      : network(Network::parse("layers:\n" + layers, "test.yaml", input, kClasses)),
        batch(batch_size),
        weights(network.parameters().size),
        x(random_numbers(static_cast<std::size_t>(input.features() * batch), 17)) {
    network.initialise(5, weights.span());
    for (int n = 0; n < batch; ++n) labels.push_back((n * 7 + 1) % kClasses);
  }

  Network network;
  int batch;
  AlignedBuffer<float> weights;
  std::vector<double> x;  ///< [features][batch]
  std::vector<std::int32_t> labels;
};

Result on_cpu(const Problem& problem) {
  const int columns = (problem.batch + 15) / 16 * 16;
  const auto batch = static_cast<std::size_t>(problem.batch), width = static_cast<std::size_t>(columns);
  Execution execution(problem.network, columns);
  for (std::size_t i = 0; i < problem.x.size(); ++i) {
    execution.input()[i / batch * width + i % batch] = static_cast<float>(problem.x[i]);
  }
  float* logits = execution.forward_training(problem.weights.data(), columns, {kSeed, kStep, kFirstSample});
  Result result;
  for (std::size_t i = 0; i < kClasses * batch; ++i) {
    result.logits.push_back(logits[i / batch * width + i % batch]);
  }
  LossSums sums;
  cpu::loss_and_gradient({columns, problem.batch, kClasses}, logits, problem.labels.data(), logits, &sums);
  AlignedBuffer<float> gradients(problem.weights.size());
  execution.backward(logits, gradients.data(), {});
  result.gradients.assign(gradients.span().begin(), gradients.span().end());
  result.loss = sums.loss;
  result.correct = sums.correct;
  return result;
}

/// Forward, loss and backward on the device, part by part, with copies of the tensors between them. All are
/// in one graph if `captured`.
/// @param loss_in_pass  then there are no logits
Result in_parts(DeviceRig& rig, const Problem& problem, int grain, const std::vector<NetworkPart>& parts,
                bool captured = false, bool loss_in_pass = false) {
  const auto bytes_of = [&](const ImageShape& shape) {
    return sizeof(float) * static_cast<std::size_t>(problem.batch) *
           static_cast<std::size_t>(shape.features());
  };
  const auto& layers = problem.network.layers();
  const auto weights = rig.upload(problem.weights.span());
  const auto sums = rig.zeroed<std::int64_t>(kCounterSlots + problem.weights.size());
  StepState state;
  state.step = kStep;
  const auto device_state = rig.upload(std::vector<StepState>{state});
  const auto side = rig.device().make_stream();
  std::vector<DeviceExecution> executions;
  executions.reserve(parts.size());
  for (const NetworkPart& part : parts)
    executions.emplace_back(problem.network, rig.device(), rig.ops(), problem.batch,
                            DeviceExecution::Purpose::kTraining, part);
  DeviceExecution &first = executions.front(), &last = executions.back();
  const std::vector<float> x(problem.x.begin(), problem.x.end());
  rig.stream().copy_to_device(first.input(), x.data(), x.size() * sizeof(float));
  rig.stream().copy_to_device(last.labels(), problem.labels.data(), problem.labels.size() * 4);
  rig.stream().synchronize();

  const DeviceLoss loss{{problem.batch, problem.batch, kClasses},
                        {last.labels(), sums.data(), 1e6, device_state.data()}};
  DevicePass pass{problem.batch, kSeed, kFirstSample, device_state.data()};
  if (loss_in_pass) pass.loss = loss;
  const auto logits_copy = rig.poisoned<float>(kClasses * static_cast<std::size_t>(problem.batch));
  if (captured) rig.stream().begin_capture();
  const float* logits = nullptr;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    if (p > 0)
      rig.stream().copy_on_device(executions[p].input(), logits, bytes_of(layers[parts[p].first]->input()));
    logits = executions[p].forward_training(
        rig.stream(), weights.data() + parameters_of(problem.network, parts[p]).offset, pass);
  }
  rig.stream().copy_on_device(logits_copy.data(), logits, logits_copy.bytes());
  if (!loss_in_pass)
    rig.ops().loss_and_gradient(rig.stream(), loss.shape, logits, loss.target, last.output_gradient());
  const std::vector<ExactFormat> formats(problem.network.parameters().parameters.size(), {.limit = kLimit});
  for (std::size_t p = parts.size(); p-- > 0;) {
    const ParameterRange range = parameters_of(problem.network, parts[p]);
    if (!parts[p].gives_input_gradient && range.size == 0) break;
    if (p + 1 < parts.size())
      rig.stream().copy_on_device(executions[p].output_gradient(), executions[p + 1].input_gradient(),
                                  bytes_of(layers[parts[p].last - 1]->output()));
    std::size_t covered = range.size;
    executions[p].backward(
        rig.stream(), *side, executions[p].output_gradient(),
        {grain, sums.data() + kCounterSlots + range.offset, sums.data() + kRefused, formats},
        [&](Stream& /*stream*/, std::size_t offset, std::size_t size) {
          EXPECT_EQ(offset + size, covered);
          covered = offset;
        });
    EXPECT_EQ(covered, 0U);
  }
  Result result;
  if (captured) {
    const auto graph = rig.stream().end_capture();
    result.nodes = graph->nodes();
    rig.stream().launch(*graph);
    rig.stream().synchronize();
  }
  result.logits = rig.download(logits_copy);
  const auto totals = rig.download(sums);
  EXPECT_EQ(totals[kSamples], problem.batch);
  EXPECT_EQ(totals[kRefused], 0);
  result.loss = static_cast<double>(totals[kLoss]) / kLossScale;
  result.correct = totals[kCorrect];
  for (std::size_t i = 0; i < problem.weights.size(); ++i)
    result.gradients.push_back(from_exact(totals[kCounterSlots + i]));
  return result;
}

/// The whole network as one part.
Result on_device(DeviceRig& rig, const Problem& problem, int grain, bool captured = false,
                 bool loss_in_pass = false) {
  return in_parts(rig, problem, grain, {NetworkPart{}}, captured, loss_in_pass);
}

/// The network cut wherever no branch leads across, as trainer/parallel/pipeline cuts it into stages.
std::vector<NetworkPart> smallest_parts(const Network& network) {
  const auto& layers = network.layers();
  std::vector<NetworkPart> parts;
  for (std::size_t cut = 0; cut < layers.size(); ++cut) {
    bool is_crossed = false;
    for (std::size_t i = cut; i < layers.size(); ++i) is_crossed |= layers[i]->branch().value_or(cut) < cut;
    if (is_crossed) continue;
    if (!parts.empty()) parts.back().last = cut;
    parts.push_back({.first = cut, .last = layers.size()});
  }
  for (NetworkPart& part : parts) {
    const ParameterRange range = parameters_of(network, part);
    part.gives_input_gradient = range.offset > 0;
    part.takes_output_gradient = part.last < layers.size() && range.offset + range.size > 0;
  }
  return parts;
}

void expect_same(const Result& actual, const Result& expected, const std::string& what) {
  expect_close(std::span<const float>(actual.logits),
               std::span<const double>(std::vector<double>(expected.logits.begin(), expected.logits.end())),
               1e-5, what + ": logits");
  expect_close(std::span<const double>(actual.gradients), std::span<const double>(expected.gradients), 3e-5,
               what + ": gradients");
  EXPECT_NEAR(actual.loss, expected.loss, 1e-5 * expected.loss) << what;
  EXPECT_EQ(actual.correct, expected.correct) << what;
}

const char* const kNetworks[] = {
    // As Net, smaller.
    "  - conv2d: {out: 4, kernel: 3}\n  - max_pool: 2\n  - relu\n  - conv2d: {out: 5, kernel: 2}\n"
    "  - dropout2d: 0.4\n  - max_pool: 2\n  - relu\n  - linear: 11\n  - relu\n  - dropout: 0.5\n"
    "  - linear: classes\n",
    // As LeNet, with an image that the pool does not divide.
    "  - conv2d: {out: 3, kernel: 4}\n  - relu\n  - avg_pool: 2\n  - flatten\n  - linear: 9\n  - relu\n"
    "  - linear: classes\n",
    // Pools that are stages of their own, between and behind epilogues; strides and padding.
    "  - conv2d: {out: 4, kernel: 3, padding: 1}\n  - relu\n"
    "  - max_pool: {kernel: 3, stride: 1, padding: 1}\n  - dropout: 0.3\n"
    "  - conv2d: {out: 6, kernel: 3, stride: 2, padding: 1}\n  - max_pool: 2\n"
    "  - avg_pool: {kernel: 2, stride: 1}\n  - relu\n  - linear: classes\n",
    // Layers before the first and behind the last parameters.
    "  - dropout: 0.2\n  - avg_pool: 2\n  - relu\n  - linear: 7\n  - dropout: 0.5\n  - linear: classes\n"
    "  - dropout: 0.4\n",
    // Two pools in a row, and an epilogue that is too long for one stage.
    "  - conv2d: {out: 3, kernel: 1}\n  - avg_pool: 2\n  - max_pool: 2\n  - relu\n  - linear: 8\n  - relu\n"
    "  - dropout: 0.1\n  - relu\n  - dropout: 0.2\n  - relu\n  - dropout: 0.3\n  - relu\n  - linear: "
    "classes\n",
    "  - linear: classes\n",
    // Convolutions behind flatten, whose input has another shape than the epilogue in
    // front of them. Without a pool, with one, through an epilogue alone, and twice in a
    // row.
    "  - conv2d: {out: 10, kernel: [1, 6]}\n  - relu\n  - flatten\n  - conv2d: {out: 5, kernel: 1}\n"
    "  - linear: classes\n",
    "  - conv2d: {out: 3, kernel: 2}\n  - dropout: 0.5\n  - max_pool: 2\n  - flatten\n"
    "  - conv2d: {out: 5, kernel: 3, padding: 2}\n  - avg_pool: 2\n  - flatten\n  - linear: classes\n",
    "  - conv2d: {out: 3, kernel: 3}\n  - max_pool: {kernel: 3, stride: 2, padding: 1}\n  - flatten\n"
    "  - relu\n  - dropout2d: 0.3\n  - conv2d: {out: 4, kernel: 5, padding: 4}\n  - avg_pool: 2\n"
    "  - flatten\n  - conv2d: {out: 4, kernel: 1}\n  - relu\n  - flatten\n"
    "  - conv2d: {out: classes, kernel: 1}\n",
    "  - conv2d: {out: 4, kernel: 3}\n  - avg_pool: 2\n  - flatten\n"
    "  - max_pool: {kernel: 3, stride: 1, padding: 1}\n  - relu\n  - conv2d: {out: 3, kernel: 1}\n"
    "  - linear: classes\n",
    // Curves, whose derivative is computed of what they saved, and branches. Over an epilogue, over two of
    // them, from the layer before, from what is itself a sum, twice from one, and from in front of the first
    // trained layer.
    "  - conv2d: {out: 4, kernel: 3, padding: 1}\n  - tanh\n  - dropout: 0.2\n"
    "  - conv2d: {out: 4, kernel: 3, padding: 1}\n  - relu: {name: a}\n  - max_pool: {kernel: 1}\n  - add: "
    "drop1\n"
    "  - relu\n  - add: {from: a}\n  - add: {name: b, from: a}\n  - conv2d: {out: 4, kernel: 3, padding: 1}\n"
    "  - sigmoid\n  - add: sigmoid1\n  - add: b\n  - global_avg_pool\n  - linear: classes\n  - add: fc1\n",
    "  - tanh: {name: a}\n  - relu: {name: r}\n  - conv2d: {out: 2, kernel: 3, padding: 1}\n  - add: a\n"
    "  - add: r\n  - linear: 72\n  - sigmoid\n  - flatten\n  - linear: 72\n  - add: "
    "flatten1\n"
    "  - relu\n  - linear: classes\n",
    // No biases, and one among layers without.
    "  - conv2d: {out: 4, kernel: 3, bias: false}\n  - max_pool: 2\n  - relu\n"
    "  - conv2d: {out: 7, kernel: 2, bias: false}\n  - tanh\n  - linear: 9\n  - relu\n"
    "  - linear: {out: classes, bias: false}\n",
    // A sum at the end, over an epilogue.
    "  - linear: classes\n  - dropout: 0.3\n  - add: drop1\n",
};

TEST(DeviceExecutionTest, AgreesWithTheCpu) {
  DeviceRig rig;
  for (const char* layers : kNetworks) {
    for (const int batch : {1, 17, 33}) {
      const Problem problem(layers, {2, 9, 11}, batch);
      expect_same(on_device(rig, problem, 16), on_cpu(problem), layers + std::to_string(batch));
    }
  }
}

TEST(DeviceExecutionTest, GradientsHaveTheSameBitsInEveryThreadOrder) {
  DeviceRig rig;
  const Problem problem(kNetworks[0], {2, 9, 11}, 21);
  same_in_every_order([&] { return on_device(rig, problem, 8).gradients; });
}

TEST(DeviceExecutionTest, PartsHaveTheBitsOfTheWhole) {
  DeviceRig rig;
  for (const char* layers : kNetworks) {
    const Problem problem(layers, {2, 9, 11}, 17);
    const Result parts = in_parts(rig, problem, 8, smallest_parts(problem.network)),
                 whole = on_device(rig, problem, 8);
    EXPECT_EQ(parts.logits, whole.logits) << layers;
    EXPECT_EQ(parts.gradients, whole.gradients) << layers;
    EXPECT_EQ(parts.loss, whole.loss) << layers;
  }
}

TEST(DeviceExecutionTest, GraphHasTheSameBits) {
  DeviceRig rig;
  for (const char* layers : kNetworks) {
    const Problem problem(layers, {2, 9, 11}, 10);
    EXPECT_EQ(on_device(rig, problem, 4, true).gradients, on_device(rig, problem, 4).gradients) << layers;
  }
}

TEST(DeviceExecutionTest, ALossThatIsPartOfThePassHasTheSameBits) {
  DeviceRig rig;
  for (const char* layers : kNetworks) {
    const Problem problem(layers, {2, 9, 11}, 17);
    const Result apart = on_device(rig, problem, 8), in_pass = on_device(rig, problem, 8, false, true);
    EXPECT_EQ(in_pass.gradients, apart.gradients) << layers;
    EXPECT_EQ(in_pass.loss, apart.loss) << layers;
    EXPECT_EQ(in_pass.correct, apart.correct) << layers;
  }
}

/// As in Net and LeNet: forward, loss and data gradient. Through a pool the data gradient is a launch of its own, the
/// first trained layer has none, and a layer of which something follows has three launches.
TEST(DeviceExecutionTest, TheLastLayerAndItsLossAreOneLaunch) {
  DeviceRig rig;
  const auto launches_saved = [&](const std::string& layers) {
    const Problem problem(layers, {2, 9, 11}, 17);
    return on_device(rig, problem, 8, true).nodes - on_device(rig, problem, 8, true, true).nodes;
  };
  EXPECT_EQ(launches_saved(kNetworks[0]), 2U);
  EXPECT_EQ(launches_saved(kNetworks[1]), 2U);
  EXPECT_EQ(launches_saved("  - conv2d: {out: 4, kernel: 3}\n  - max_pool: 2\n  - linear: classes\n"), 1U);
  EXPECT_EQ(launches_saved("  - linear: classes\n"), 1U);
  EXPECT_EQ(launches_saved(kNetworks[3]), 0U);
}

/// The last stage here is a dropout alone, which has no loss in its kernel.
TEST(DeviceExecutionTest, EveryPassEndsWithItsLoss) {
  DeviceRig rig;
  const Problem problem("  - linear: classes\n  - add: fc1\n  - dropout: 0.3\n", {2, 9, 11}, 5);
  const auto weights = rig.upload(problem.weights.span());
  const auto counters = rig.zeroed<std::int64_t>(kCounterSlots);
  const auto state = rig.upload(std::vector<StepState>(1));
  DeviceExecution execution(problem.network, rig.device(), rig.ops(), 5, DeviceExecution::Purpose::kTraining);
  const std::vector<float> x(problem.x.begin(), problem.x.end());
  rig.stream().copy_to_device(execution.input(), x.data(), x.size() * sizeof(float));
  rig.stream().copy_to_device(execution.labels(), problem.labels.data(), problem.labels.size() * 4);
  DevicePass pass{5, kSeed, kFirstSample, state.data()};
  pass.loss = DeviceLoss{{5, 5, kClasses}, {execution.labels(), counters.data(), 1e6, state.data()}};
  for (int i = 0; i < 2; ++i) execution.forward_training(rig.stream(), weights.data(), pass);
  EXPECT_EQ(rig.download(counters)[kSamples], 10);
}

TEST(DeviceExecutionTest, APassThatDoesNotFitIsRefused) {
  DeviceRig rig;
  const Problem problem("  - linear: classes\n", {2, 9, 11}, 5);
  const auto weights = rig.upload(problem.weights.span());
  DeviceExecution execution(problem.network, rig.device(), rig.ops(), 5, DeviceExecution::Purpose::kTraining);
  EXPECT_EQ(execution.max_batch(), 5);
  for (const int batch : {-1, 6})
    EXPECT_THROW(execution.begin_training(weights.data(), {.batch = batch}), InternalError);
  EXPECT_NO_THROW(execution.begin_training(weights.data(), {.batch = 5}));
  EXPECT_THROW(execution.forward_training(rig.stream(), weights.data(), {.batch = 0}), InternalError);
  for (const int batch : {0, 6})
    EXPECT_THROW(execution.forward_evaluation(rig.stream(), weights.data(), batch), InternalError);
  rig.stream().fill_zero(execution.input(), problem.x.size() * sizeof(float));
  for (const int batch : {1, 5})
    EXPECT_NO_THROW(execution.forward_evaluation(rig.stream(), weights.data(), batch));
  rig.stream().synchronize();
  const auto side = rig.device().make_stream();
  execution.begin_training(weights.data(), {.batch = 0});
  EXPECT_NO_THROW(execution.backward(rig.stream(), *side, execution.output_gradient(), {},
                                     [](Stream&, std::size_t, std::size_t) {}))
      << "a rank without samples launches nothing";
  const Network with_cuts = Network::parse("layers:\n  - linear: 3\n  - batch_norm\n  - linear: classes\n",
                                           "test.yaml", {2, 9, 11}, kClasses);
  DeviceExecution cut(with_cuts, rig.device(), rig.ops(), 5, DeviceExecution::Purpose::kTraining);
  EXPECT_THROW(cut.forward_training(rig.stream(), weights.data(), {.batch = 5}), InternalError);
}

/// After the cut come a norm without weights and the first trained layer: nothing runs on `side`.
TEST(DeviceExecutionTest, WhatHasJoinedAtACutDoesNotJoinTheGraphAfterIt) {
  DeviceRig rig;
  const Network network =
      Network::parse("layers:\n  - linear: 3\n  - batch_norm: {affine: false}\n  - linear: classes\n",
                     "test.yaml", {2, 2, 2}, kClasses);
  const ParameterLayout& layout = network.parameters();
  const auto weights = rig.zeroed<float>(layout.weights_size());
  const auto sums = rig.zeroed<std::int64_t>(layout.size), refused = rig.zeroed<std::int64_t>(1);
  const std::vector<ExactFormat> formats(layout.parameters.size(), {.limit = kLimit});
  const DeviceGradient gradient{16, sums.data(), refused.data(), formats};
  const auto side = rig.device().make_stream();
  DeviceExecution execution(network, rig.device(), rig.ops(), 5, DeviceExecution::Purpose::kTraining);
  rig.stream().fill_zero(execution.input(), 5 * 8 * sizeof(float));
  execution.begin_training(weights.data(), {.batch = 5, .grain = 16, .batch_samples = 5});
  EXPECT_GT(execution.forward_to_cut(rig.stream()).count, 0U);
  EXPECT_EQ(execution.forward_to_cut(rig.stream()).count, 0U);
  execution.begin_backward(rig.stream(), execution.output_gradient());
  const auto go_on = [&] {
    return execution.backward_to_cut(rig.stream(), *side, gradient, [](Stream&, std::size_t, std::size_t) {});
  };
  EXPECT_GT(go_on().count, 0U);
  execution.join_side(rig.stream(), *side);
  rig.stream().begin_capture();
  EXPECT_EQ(go_on().count, 0U);
  EXPECT_GT(rig.stream().end_capture()->nodes(), 0U);
}

TEST(DeviceExecutionTest, TheNextInputTakesThePlaceOfThisOne) {
  DeviceRig rig;
  const Problem problem("  - linear: classes\n", {2, 9, 11}, 5);
  DeviceExecution execution(problem.network, rig.device(), rig.ops(), 5, DeviceExecution::Purpose::kTraining);
  EXPECT_EQ(execution.next_input(), nullptr);
  EXPECT_EQ(execution.next_labels(), nullptr);
  execution.make_room_for_next_input(rig.device());
  const std::array inputs = {execution.input(), execution.next_input()};
  const std::array labels = {execution.labels(), execution.next_labels()};
  EXPECT_TRUE(inputs[1] != nullptr && labels[1] != nullptr);
  execution.take_next_input();
  EXPECT_EQ((std::array{execution.next_input(), execution.input()}), inputs);
  EXPECT_EQ((std::array{execution.next_labels(), execution.labels()}), labels);
  EXPECT_EQ(execution.input_gradient(), nullptr);
  EXPECT_EQ(execution.output_gradient(), execution.logits());
}

std::string beyond_limits(const std::string& layers, const ImageShape& input, std::int64_t samples,
                          std::string_view fewer = "less") {
  const Network network = Network::parse("layers:\n" + layers, "test.yaml", input, 2);
  return test::error_of<ShapeError>([&] { check_device_limits(network, samples, fewer); });
}

TEST(DeviceLimitsTest, AreMetByTheLastNumberThatFits) {
  const std::string last = "  - linear: classes\n";
  EXPECT_EQ(beyond_limits(last, {1, 1, 1}, 2'097'120), "");
  const std::string too_many =
      "2097121 samples of one rank in a step are more than a GPU's grid can have (2097120); ";
  EXPECT_EQ(beyond_limits(last, {1, 1, 1}, 2'097'121), too_many + "less or use more ranks");
  EXPECT_EQ(beyond_limits(last, {1, 1, 1}, 2'097'121, ""),
            too_many + "lower " + spelling().global_batch + " or use more ranks");
  const std::string wide = "  - linear: 32768\n";
  for (const auto& [layers, input] :
       {std::pair(last, ImageShape{1, 128, 256}), std::pair(wide + last, ImageShape{1, 1, 1})}) {
    EXPECT_EQ(beyond_limits(layers, input, 65'535), "");
    const std::string text = beyond_limits(layers, input, 65'536);
    EXPECT_TRUE(text.starts_with("layer fc1 (")) << text;
    expect_words(text, {"): 32768 numbers for each of 65536 samples of a rank are more than a GPU kernel can "
                        "count (2147483647); less or use more ranks; use "});
  }
  const std::string end = "  - conv2d: {out: 2, kernel: 1}\n" + last;
  EXPECT_EQ(beyond_limits("  - linear: 65535\n" + end, {1, 1, 1}, 1), "");
  expect_words(
      beyond_limits("  - linear: 65536\n" + end, {1, 1, 1}, 1),
      {"layer conv1 (conv2d 2@1x1): a convolution of 65,536 channels of height 1 into 2 is beyond what "
       "a GPU's grid can have (65535)"});
  const std::string transposed = "  - conv_transpose2d: {out: 2, kernel: 1}\n" + last;
  EXPECT_EQ(beyond_limits("  - linear: 65535\n" + transposed, {1, 1, 1}, 1), "");
  expect_words(beyond_limits("  - linear: 65536\n" + transposed, {1, 1, 1}, 1),
               {"a transposed convolution of 65,536 channels into 2 of height 1 is beyond what "});
}

TEST(DeviceExecutionTest, EvaluationHasNoDropout) {
  DeviceRig rig;
  const Problem with_dropout(kNetworks[0], {2, 9, 11}, 5);
  std::string layers = kNetworks[0];
  for (const std::string line : {"  - dropout2d: 0.4\n", "  - dropout: 0.5\n"}) {
    layers.erase(layers.find(line), line.size());
  }
  const Problem without(layers, {2, 9, 11}, 5);
  const auto weights = rig.upload(with_dropout.weights.span());
  DeviceExecution execution(with_dropout.network, rig.device(), rig.ops(), 5,
                            DeviceExecution::Purpose::kEvaluation);
  execution.begin_training(weights.data(), {.batch = 5});  // is over
  const std::vector<float> x(with_dropout.x.begin(), with_dropout.x.end());
  rig.stream().copy_to_device(execution.input(), x.data(), x.size() * sizeof(float));
  const float* logits = execution.forward_evaluation(rig.stream(), weights.data(), 5);
  std::vector<float> evaluated(kClasses * 5);
  rig.stream().copy_to_host(evaluated.data(), logits, evaluated.size() * sizeof(float));
  rig.stream().synchronize();
  const std::vector<float> expected = on_cpu(without).logits;
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(evaluated[i], expected[i], 1e-5);
}

}  // namespace
}  // namespace lockstep::test::device_execution_test
