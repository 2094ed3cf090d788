// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Batch normalisation over the global batch, trained by whole engines on several ranks. Against PyTorch in
/// double (tests/golden/make_golden.py), and the same bits however the batch is dealt.
#include "comm/thread/thread_ranks.hpp"
#include "common/safetensors.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/test_settings.hpp"
#include "trainer/ranks/device_choice.hpp"
#include "trainer/setup/job_setup.hpp"
#include "trainer/setup/strategies.hpp"
#include "trainer/training/data_parallel.hpp"

namespace lockstep {
namespace {

constexpr std::int64_t kTrainSamples = 64;
constexpr int kBatchNormSteps = 100, kClasses = 4;
constexpr ImageShape kImage{2, 6, 7};

constexpr char kBatchNormNetwork[] = R"(
layers:
  - conv2d: {out: 5, kernel: 3, padding: 1}
  - batch_norm
  - tanh: {name: start}
  - conv2d: {out: 5, kernel: 3, padding: 1}
  - batch_norm: {eps: 0.01, momentum: 0.3, affine: false}
  - gelu
  - add: start
  - global_avg_pool
  - linear: 9
  - batch_norm: {eps: 1e-3}
  - tanh
  - linear: classes
)";

const SafetensorsFile& batch_norm_golden() {
  static const SafetensorsFile file =
      test::read_safetensors(test::source_path("tests/golden/batch_norm.safetensors"));
  return file;
}

template <typename T>
std::vector<T> golden_values(const std::string& name, const char* type,
                             const std::vector<std::size_t>& shape) {
  return test::values_of<T>(batch_norm_golden(), name, type, shape);
}

template <typename T>
std::vector<T> golden_state(const ParameterLayout& layout, const std::string& prefix, const char* type) {
  return test::weights_of<T>(batch_norm_golden(), layout.tensors(), prefix, type);
}

/// The golden samples, which are the test set, too.
std::shared_ptr<TrainTestData> golden_data() {
  auto data = std::make_shared<TrainTestData>();
  const auto features = golden_values<float>("images", "F32", {kTrainSamples, 2, 6, 7});
  for (Dataset* set : {&data->train, &data->test}) {
    set->shape = kImage;
    set->classes = kClasses;
    set->features = AlignedBuffer<float>(features.size());
    std::ranges::copy(features, set->features.data());
    set->labels = golden_values<std::int32_t>("labels", "I32", {kTrainSamples});
  }
  return data;
}

/// Placement of the computation, and its pieces.
struct Way {
  std::string device = "cpu";
  int grain = 8;
};

struct BatchNormRun {
  std::vector<float> first, last;  ///< weights after the first and after the last step
  std::vector<double> losses;
  double evaluated = 0;
};

Job job_of(const Way& way) {
  return parse_job(
      fmt::format("{{model: net, data: {{global_batch: 20, shuffle: false}}, train: {{epochs: 25, "
                  "optimizer: {{kind: sgd, lr: 0.05, momentum: 0.5}}}}, parallel: {{device: {}, "
                  "grain: {}, graph: off}}}}",
                  way.device, way.grain),
      "job.yaml");
}

std::vector<float> copy_of(std::span<const float> numbers) {
  return {numbers.begin(), numbers.end()};
}

/// One rank's engine with the golden weights.
struct Engine {
  JobSetup setup;
  std::unique_ptr<ParallelStrategy> engine;

  Engine(const Job& job, Communicator& comm, const std::shared_ptr<TrainTestData>& data)
      : setup(set_up(job, comm, data)), engine(make_data_parallel(setup, comm)) {
    std::ranges::copy(golden_state<float>(setup.network.parameters(), "initial.", "F32"),
                      engine->whole_state().weights.begin());
    engine->distribute();
  }

 private:
  static JobSetup set_up(const Job& job, Communicator& comm, const std::shared_ptr<TrainTestData>& data) {
    Network network = Network::parse(kBatchNormNetwork, "batch_norm", kImage, kClasses);
    DeviceChoice device = choose_device(job.parallel, comm);
    BucketPlan plan = plan_buckets(job, network, device, comm);
    return make_setup(job, data, std::move(device), std::move(network), std::move(plan));
  }
};

BatchNormRun train_rank(const Job& job, Communicator& comm, int steps) {
  const Engine rank(job, comm, golden_data());
  const auto& engine = rank.engine;
  BatchNormRun run;
  const std::int64_t epoch = engine->sampler().steps_per_epoch();
  for (std::int64_t step = 0; step < steps; ++step) {
    const StepSeries series = engine->run({step / epoch, step % epoch, step}, 1, false);
    EXPECT_EQ(series.steps, 1);
    run.losses.push_back(series.last.loss() / static_cast<double>(series.samples));
    engine->collect();
    if (step == 0) run.first = copy_of(engine->whole_state().weights);
  }
  run.last = copy_of(engine->whole_state().weights);
  run.evaluated = engine->evaluate(EvaluatedPart::kTest, never_leave).loss;
  return run;
}

BatchNormRun train_way(const Way& way, int steps) {
  const Job job = job_of(way);
  BatchNormRun run;
  run_thread_ranks(1, [&](Communicator& comm) { run = train_rank(job, comm, steps); });
  return run;
}

std::string layer_of(const Parameter& tensor) {
  return tensor.name.substr(0, tensor.name.find('.'));
}

/// Relative to the largest number of the layer: a bias begins as zero.
void expect_state(const std::vector<float>& actual, const std::string& prefix, double tolerance) {
  const Network network = Network::parse(kBatchNormNetwork, "batch_norm", kImage, kClasses);
  const ParameterLayout& layout = network.parameters();
  const auto expected = golden_state<double>(layout, prefix, "F64");
  std::map<std::string, double> largest;
  for (const Parameter& tensor : layout.tensors()) {
    for (std::size_t i = tensor.offset; i < tensor.offset + tensor.size; ++i)
      largest[layer_of(tensor)] = std::max(largest[layer_of(tensor)], std::abs(expected[i]));
  }
  for (const Parameter& tensor : layout.tensors()) {
    for (std::size_t i = tensor.offset; i < tensor.offset + tensor.size; ++i)
      ASSERT_NEAR(actual[i], expected[i], tolerance * largest[layer_of(tensor)]) << prefix << tensor.name;
  }
}

void expect_golden(const Way& way) {
  const BatchNormRun run = train_way(way, kBatchNormSteps);
  const auto losses = golden_values<double>("losses", "F64", {kBatchNormSteps});
  EXPECT_NEAR(run.losses.front(), losses.front(), 1e-6 * losses.front());
  for (std::size_t step = 0; step < losses.size(); ++step)
    ASSERT_NEAR(run.losses[step], losses[step], 1e-5 * losses.front()) << "step " << step + 1;
  expect_state(run.first, "once.", 1e-6);
  expect_state(run.last, "final.", 1e-5);
  EXPECT_NEAR(run.evaluated, golden_values<double>("evaluated", "F64", {1}).front(), 1e-5);
}

/// One bad number anywhere spoils the statistics of all samples. The step fails for all of them, on every
/// rank, and nothing of it is kept.
TEST(BatchNormTest, NanOfOneSampleIsTheUsualFailureEverywhere) {
  for (const std::string device : {"cpu", "emulated"}) {
    const Job job = job_of({.device = device, .grain = 5});
    run_thread_ranks(2, [&](Communicator& comm) {
      const auto data = golden_data();
      data->train.features.data()[17 * kImage.features()] = NAN;
      const Engine rank(job, comm, data);
      const std::vector<float> before = copy_of(rank.engine->whole_state().weights);
      const StepSeries series = rank.engine->run({0, 0, 0}, 1, false);
      rank.engine->collect();
      EXPECT_EQ(series.steps, 0) << device;
      ASSERT_TRUE(series.failure) << device;
      EXPECT_EQ(series.failure->losses, 20) << device;
      EXPECT_EQ(copy_of(rank.engine->whole_state().weights), before) << device;
    });
  }
}

TEST(BatchNormTest, CpuTrainsAsPytorchDoes) {
  expect_golden({});
}

TEST(BatchNormTest, DeviceTrainsAsPytorchDoes) {
  expect_golden({.device = "emulated"});
}

/// Only the rounding of a grain's own part may show.
TEST(BatchNormTest, GrainsHardlyMatter) {
  const BatchNormRun whole = train_way({.grain = 20}, 4), cut = train_way({.grain = 3}, 4);
  for (std::size_t i = 0; i < whole.last.size(); ++i) EXPECT_NEAR(whole.last[i], cut.last[i], 2e-6) << i;
}

}  // namespace
}  // namespace lockstep
