// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Small runs of every strategy on devices whose copies are late leave the traces of one CPU. And what steps on a
/// device do not do again.
#include "comm/staged/staged.hpp"
#include "common/error.hpp"
#include "tests/trainer/training/data_parallel_fixture.hpp"

namespace lockstep::late_devices_test {
namespace {

using namespace data_parallel_test;

/// The first layer has more weights than a part of what no update reads.
constexpr const char* kNormed = "layers:\n  - linear: 70\n  - batch_norm\n  - relu\n  - linear: classes\n";
/// The second of three stages has no weights.
constexpr const char* kThreeStages =
    "layers:\n  - linear: 70\n  - relu\n  - dropout: 0.2\n  - linear: 5\n  - tanh\n  - linear: classes\n";
constexpr const char* kFlattened = "layers:\n  - flatten\n  - linear: 5\n  - tanh\n  - linear: classes\n";

std::shared_ptr<TrainTestData> varied_data() {
  auto data = make_data();
  data->validation = make_set(5);
  std::size_t turn = 0;
  for (Dataset* set : {&data->train, &data->test, &data->validation}) {
    ++turn;
    for (std::size_t i = 0; i < set->images.size(); ++i)
      set->images.span()[i] = static_cast<std::uint8_t>((36 + turn) * i % 251);
    for (std::size_t i = 0; i < set->labels.size(); i += 1 + turn) set->labels[i] = 0;
  }
  return data;
}

/// Three steps an epoch, the last one smaller.
Job job_of(const std::vector<Augmentation>& augment) {
  Job job = make_job();
  job.data.global_batch = 6;
  job.data.augment = augment;
  job.parallel.grain = 2;
  job.run.trail = true;
  job.train.optimizer = {.lr = 0.1, .momentum = 0.5};
  job.train.clip_norm = 0.5;
  job.train.freeze = {"fc1.bias"};
  job.train.ema = 0.9;
  job.train.swa = {.from_epoch = 1};
  if (augment.empty()) job.train.class_weights.numbers = {0.5, 2};
  return job;
}

/// Place of the computation.
struct Way {
  bool on_device = false;
  int ranks = 1;
  std::int64_t stages = 0;  ///< 0: no pipeline, each rank has the whole network
  bool streams = false;
  std::int64_t replay_every = 0;
  std::vector<std::vector<std::string>> layers = {};  ///< by stage, unless stages are balanced
};

/// All that two epochs leave.
struct Traces {
  std::vector<std::uint64_t> fingerprints;  ///< rows of the steps, of the whole network
  std::vector<double> numbers;              ///< sums of an epoch's steps, of its last one, and evaluations
  std::vector<std::vector<float>> state;    ///< weights, and what the optimiser and averages remember
};

JobSetup setup_of_rank(const Job& job, const char* model, const Way& way, Communicator& comm) {
  JobSetup setup = setup_of(job, model, kOneBucket, nullptr, varied_data());
  setup.augment = augment_plan_of(job, setup.data->train);
  setup.mixer = SampleMixer(job.data.augment, kImage, job.train.seed);
  setup.streams = way.streams;
  if (!way.on_device) return setup;
  setup.device.gpu = late_gpu();
  if (way.stages == 0 && way.ranks > 1)
    setup.device.gpu->all_reduce = make_staged_all_reduce(comm, *setup.device.gpu->device);
  return setup;
}

void train_epoch(ParallelStrategy& strategy, RankChecks& checks, const JobSetup& setup, Communicator& comm,
                 std::int64_t epoch, Traces& traces) {
  const std::int64_t steps = strategy.sampler().steps_per_epoch();
  const bool stops = epoch == 1 && comm.rank() + 1 == comm.size();
  StepSeries series =
      strategy.run({.epoch = epoch, .step_in_epoch = 0, .global_step = steps * epoch}, steps, stops);
  EXPECT_EQ(series.steps, steps);
  EXPECT_EQ(series.samples, kSetSize);
  EXPECT_EQ(series.last.samples, strategy.sampler().batch_samples(steps - 1));
  EXPECT_EQ(series.last.stop_requested, epoch == 1);
  for (const double number : {static_cast<double>(series.correct), series.loss_units.value(),
                              static_cast<double>(series.last.correct), series.last.loss()})
    traces.numbers.push_back(number);
  EXPECT_EQ(std::ssize(series.own_sums), strategy.teams().count() > 1 ? steps : 0);
  for (const std::uint64_t sums : series.own_sums) EXPECT_EQ(sums == 0, strategy.teams().held.empty());
  const std::size_t slots =
      fingerprint_layout(setup.network.parameters(), strategy.weight_update().buffer_names().size()).slots();
  ASSERT_EQ(series.fingerprints.size(), static_cast<std::size_t>(steps) * slots);
  const CombinedFingerprints all = checks.combine(series.fingerprints, slots, series.own_sums);
  if (comm.rank() == 0) {
    EXPECT_EQ(all.apart, std::vector<std::uint64_t>(static_cast<std::size_t>(steps)));
  }
  traces.fingerprints.insert(traces.fingerprints.end(), series.fingerprints.begin(),
                             series.fingerprints.end());
  for (const EvaluatedPart part : {EvaluatedPart::kTest, EvaluatedPart::kValidation}) {
    const Evaluation found = strategy.evaluate(part, never_leave);
    for (const double number :
         {static_cast<double>(found.samples), static_cast<double>(found.correct), found.loss})
      traces.numbers.push_back(number);
  }
}

Traces traces_of(Job job, const char* model, const Way& way = {}) {
  job.parallel.replay_every_steps = way.replay_every;
  job.parallel.stages = {way.stages, way.layers};
  if (way.stages > 0) job.parallel.strategy = "pipeline";
  Traces of_rank_0;
  run_thread_ranks(way.ranks, [&](Communicator& comm) {
    const JobSetup setup = setup_of_rank(job, model, way, comm);
    const std::unique_ptr<ParallelStrategy> strategy = find_strategy(job).make(setup, comm);
    if (way.stages > 0 && way.on_device) {
      EXPECT_EQ(strategy->describe().lines.back(),
                std::string("activations and their gradients: ") +
                    (way.ranks == 1 ? "on the device" : "through pinned host memory"));
    }
    const auto checks = check_ranks(*strategy, setup, comm);
    if (comm.rank() == 0) setup.network.initialise(5, strategy->whole_state().weights);
    strategy->distribute();
    Traces traces;
    for (std::int64_t epoch = 0; epoch < 2; ++epoch)
      train_epoch(*strategy, *checks, setup, comm, epoch, traces);
    if (way.stages == 0 && strategy->sampler().steps_per_epoch() > 1) {
      EXPECT_EQ(strategy->times().queueing > 0, way.on_device) << "where no step is looked at";
    }
    if (way.stages == 0) {
      EXPECT_GE(strategy->times().total, strategy->times().queueing);
    }
    strategy->collect();
    if (comm.rank() != 0) return;
    const TrainedState state = strategy->whole_state();
    traces.state.emplace_back(state.weights.begin(), state.weights.end());
    for (const OptimizerBufferView& buffer : state.optimizer)
      traces.state.emplace_back(buffer.values.begin(), buffer.values.end());
    of_rank_0 = std::move(traces);
  });
  return of_rank_0;
}

TEST(LateDevicesTest, RunsOfEveryStrategyLeaveTheTracesOfOneCpu) {
  const Augmentation mixup{.kind = AugmentKind::kMixup, .values = {{{1, 1}, {1, 1}}}},
      flip{.kind = AugmentKind::kFlip, .values = {{{0.5, 0.5}}}};
  const Job weighted = job_of({}), mixed = job_of({mixup, flip});
  Job whole = weighted;  // one step an epoch
  whole.data.global_batch = kSetSize;
  const std::vector<std::vector<std::string>> none_first = {{"flatten1"}, {"fc1", "tanh1", "fc2"}};
  struct Row {
    const char* model;
    const Job& job;
    std::vector<Way> ways;
  };
  const Row rows[] = {
      {kNormed, weighted, {{.on_device = true}, {.on_device = true, .ranks = 2, .replay_every = 3}}},
      {kThreeStages,
       weighted,
       {{.on_device = true, .stages = 3},
        {.on_device = true, .ranks = 3, .stages = 3},
        {.ranks = 4, .stages = 2, .replay_every = 3}}},
      {kThreeStages,
       mixed,
       {{.on_device = true, .ranks = 2, .streams = true, .replay_every = 3},
        {.on_device = true, .ranks = 2, .stages = 2, .streams = true},
        {.on_device = true, .ranks = 4, .stages = 2, .streams = true, .replay_every = 3}}},
      {kThreeStages, whole, {{.on_device = true, .ranks = 2}, {.on_device = true, .ranks = 2, .stages = 2}}},
      {kFlattened,
       weighted,
       {{.ranks = 4, .stages = 2, .replay_every = 3, .layers = none_first},
        {.on_device = true, .ranks = 4, .stages = 2, .replay_every = 3, .layers = none_first}}}};
  for (const Row& row : rows) {
    const Traces alone = traces_of(row.job, row.model);
    EXPECT_FALSE(alone.fingerprints.empty());
    EXPECT_EQ(alone.state.size(), 4U);
    for (const Way& way : row.ways) {
      SCOPED_TRACE(fmt::format("{}{}, ranks {}, stages {}, streams {}, replays {}", row.model,
                               way.on_device ? "device" : "cpu", way.ranks, way.stages, way.streams,
                               way.replay_every));
      const Traces found = traces_of(row.job, row.model, way);
      EXPECT_EQ(found.fingerprints, alone.fingerprints);
      EXPECT_EQ(found.numbers, alone.numbers);
      EXPECT_EQ(found.state, alone.state);
    }
  }
}

/// Looks at every step.
class SharePartsCounter final : public StepObserver {
 public:
  bool looks_at(std::int64_t /*global_step*/) const override { return true; }
  void before_update(ReducedStep& step) override { parts = step.own_share().size(); }
  std::size_t parts = 0;
};

/// A share's numbers are those of a cut in each direction, and of six tensors.
TEST(LateDevicesTest, AShareHasTheSumsThatARankAddedAtEachCut) {
  for (const bool on_device : {false, true}) {
    run_thread_ranks(2, [&](Communicator& comm) {
      const JobSetup setup = setup_of_rank(job_of({}), kNormed, {.on_device = on_device, .ranks = 2}, comm);
      const std::unique_ptr<ParallelStrategy> strategy = make_data_parallel(setup, comm);
      const auto counter = std::make_shared<SharePartsCounter>();
      strategy->observe(counter);
      if (comm.rank() == 0) setup.network.initialise(5, strategy->whole_state().weights);
      strategy->distribute();
      EXPECT_EQ(strategy->run({}, 1, false).steps, 1);
      EXPECT_EQ(counter->parts, 2 + 6U) << on_device;
      EXPECT_EQ(strategy->teams().share_parts.size(), counter->parts);
    });
  }
}

StepPosition step_at(std::int64_t step) {
  return {.epoch = step / 8, .step_in_epoch = step % 8, .global_step = step};
}

/// Units change in the first step. The host looks at steps 0, 1, 2, 4 and 8.
TEST(LateDevicesTest, GraphsOrdersAndEvaluatorsAreMadeOnce) {
  run_thread_ranks(1, [](Communicator& comm) {
    bool gone = false;
    auto all_reduce = std::make_unique<MortalAllReduce>(gone);
    const MortalAllReduce& sums = *all_reduce;
    const JobSetup setup = setup_of(make_job(), kOneLayer, kOneBucket, std::move(all_reduce), varied_data());
    auto& device = static_cast<testing::HeldDevice&>(*setup.device.gpu->device);
    const std::unique_ptr<ParallelStrategy> strategy = make_data_parallel(setup, comm);
    setup.network.initialise(5, strategy->whole_state().weights);
    strategy->distribute();
    strategy->unread().keep();
    strategy->unread().attempt([] { throw IoError("the disk, in a series that was halted"); });
    for (std::int64_t step = 0; step < 5; ++step)
      EXPECT_EQ(strategy->run(step_at(step), 1, false).steps, 1) << step;
    int calls = sums.calls;
    strategy->run(step_at(5), 3, false);
    EXPECT_EQ(sums.calls - calls, 1 + 8) << "graphs of a step and of eight";
    strategy->run(step_at(8), 1, false);
    calls = sums.calls;
    const int copies = device.copies_to_device, allocations = device.allocations;
    strategy->run(step_at(9), 1, false);
    EXPECT_EQ(sums.calls, calls) << "captured again";
    EXPECT_EQ(device.copies_to_device - copies, 1) << "its state";
    for (int i = 0; i < 2; ++i) strategy->evaluate(EvaluatedPart::kTest, never_leave);
    EXPECT_EQ(device.allocations - allocations, 0);
  });
}

/// The host does not look at step 3 before its end.
TEST(LateDevicesTest, FingerprintsOfAStepThatFailedAreNotTheNextOnes) {
  const auto own_sums_of_step = [](bool fails_first) {
    std::vector<std::uint64_t> own_sums;
    run_thread_ranks(2, [&](Communicator& comm) {
      const JobSetup setup = setup_of_rank(make_job(), kOneLayer, {.on_device = true, .ranks = 2}, comm);
      const std::unique_ptr<ParallelStrategy> strategy = make_data_parallel(setup, comm);
      const auto run_with = [&](float weight) {
        std::ranges::fill(strategy->whole_state().weights, weight);
        strategy->distribute();
        return strategy->run(step_at(3), 1, false);
      };
      if (fails_first) {
        EXPECT_TRUE(run_with(NAN).failure);
      }
      const StepSeries series = run_with(0);
      EXPECT_GT(strategy->times().queueing, 0);
      if (comm.rank() == 0) own_sums = series.own_sums;
    });
    EXPECT_EQ(own_sums.size(), 1U);
    return own_sums;
  };
  EXPECT_EQ(own_sums_of_step(true), own_sums_of_step(false));
}

}  // namespace
}  // namespace lockstep::late_devices_test
