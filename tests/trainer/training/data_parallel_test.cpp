// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Promises of data parallelism on CPUs and devices: gradients leave while backward runs, and what sums them
/// outlives the strategy.
#include "trainer/training/data_parallel.hpp"

#include "kernels/cpu/ops.hpp"
#include "tests/support/forwarding_communicator.hpp"
#include "tests/support/messages.hpp"
#include "tests/trainer/training/data_parallel_fixture.hpp"

namespace lockstep {

namespace {

using namespace data_parallel_test;

TEST(DataParallelTest, TheAllReduceStaysUntilTheStrategyIsGone) {
  run_thread_ranks(1, [](Communicator& comm) {
    const Job job = make_job();
    bool gone = false;
    JobSetup setup = setup_of(job, kOneLayer, kOneBucket, std::make_unique<MortalAllReduce>(gone));
    std::unique_ptr<ParallelStrategy> strategy = make_data_parallel(setup, comm);
    strategy->distribute();
    strategy->run({}, 2, false);
    setup.device.gpu.reset();
    EXPECT_FALSE(gone);
    strategy.reset();
    EXPECT_TRUE(gone);
  });
}

/// Two terms are too large: those of the only pixel that is not black, one for each class.
TEST(DataParallelTest, AStepThatADeviceRefusesForFewTermsIsTakenInLargerUnits) {
  run_thread_ranks(1, [](Communicator& comm) {
    Job job = make_job();
    job.data.global_batch = 1;
    auto data = make_data();
    data->train.scales = scales_of({.mean = {0}, .std = {1e-8}}, kImage.channels);
    const auto features = static_cast<std::size_t>(kImage.features());
    for (std::size_t i = 0; i < data->train.images.size(); i += features) data->train.images.span()[i] = 255;
    bool gone = false;
    JobSetup setup =
        setup_of(job, kOneLayer, kOneBucket, std::make_unique<MortalAllReduce>(gone), std::move(data));
    setup.device.gpu->all_reduce.reset();
    const std::unique_ptr<ParallelStrategy> strategy = make_data_parallel(setup, comm);
    std::ranges::fill(strategy->whole_state().weights, 0.0F);
    strategy->distribute();
    const StepSeries series = strategy->run({}, 1, false);
    EXPECT_FALSE(series.failure);
    EXPECT_EQ(series.steps, 1);
  });
}

/// By the one the ring has its steps, by the other the order.
TEST(DataParallelTest, AStreamedStepHasOnePlaceInTheRunAndInItsEpoch) {
  run_thread_ranks(1, [](Communicator& comm) {
    const Job job = make_job();
    bool gone = false;
    JobSetup setup = setup_of(job, kOneLayer, kOneBucket, std::make_unique<MortalAllReduce>(gone));
    setup.streams = true;
    const std::unique_ptr<ParallelStrategy> strategy = make_data_parallel(setup, comm);
    strategy->distribute();
    EXPECT_THROW(strategy->run({.epoch = 0, .step_in_epoch = 0, .global_step = 1}, 1, false), InternalError);
  });
}

using Events = std::vector<std::string>;

/// A rank's end of a group, which notes when sums over the host start and when they are tested.
class NotingCommunicator final : public test::ForwardingCommunicator, private AllReduce {
 public:
  explicit NotingCommunicator(Communicator& comm) : ForwardingCommunicator(comm) {}

  Events events;

  AllReduce& host_all_reduce() override { return *this; }

 private:
  class Noted final : public PendingCollective {
   public:
    Noted(std::unique_ptr<PendingCollective> inner, Events& events)
        : inner_(std::move(inner)), events_(events) {}
    bool test() override {
      if (events_.back() != "test") events_.emplace_back("test");
      return inner_->test();
    }

   private:
    std::unique_ptr<PendingCollective> inner_;
    Events& events_;
  };

  template <typename... Data>
  std::unique_ptr<PendingCollective> note(Data... data) {
    events.emplace_back("start");
    return std::make_unique<Noted>(comm_.host_all_reduce().start(data...), events);
  }
  std::unique_ptr<PendingCollective> start(std::span<const std::int64_t> mine,
                                           std::span<std::int64_t> sum) override {
    return note(mine, sum);
  }
  std::unique_ptr<PendingCollective> start(std::span<float> data) override { return note(data); }
};

/// Between the gradients of two layers the strategy lets sums progress that are under way. There are none yet if
/// buckets leave when backward has ended.
TEST(DataParallelTest, OnACpuABucketLeavesBeforeTheBackwardPassOfEarlierLayers) {
  run_thread_ranks(2, [](Communicator& ranks) {
    NotingCommunicator comm(ranks);
    const Job job = make_job();
    const JobSetup setup =
        setup_of(job, "layers:\n  - linear: 3\n  - relu\n  - linear: 3\n  - relu\n  - linear: classes\n", 1);
    ASSERT_EQ(setup.plan.buckets.size(), 3);
    const std::unique_ptr<ParallelStrategy> strategy = make_data_parallel(setup, comm);
    comm.events.clear();
    const StepTimes before = strategy->times();
    for (const double seconds : {before.total, before.input, before.under_way, before.exposed,
                                 before.comparing, before.optimizer, before.queueing})
      EXPECT_EQ(seconds, 0);
    EXPECT_EQ(before.until_left, std::vector<double>(3));
    strategy->run({}, 1, false);
    ASSERT_GE(comm.events.size(), 6);
    comm.events.resize(6);  // a step may be done again in other units
    EXPECT_EQ(comm.events, (Events{"start", "test", "start", "test", "start", "test"}));
    const StepTimes times = strategy->times();
    for (const double seconds :
         {times.input, times.under_way, times.exposed, times.comparing, times.optimizer, times.until_left[0]})
      EXPECT_GT(seconds, 0);
    EXPECT_GE(times.total, times.exposed + times.optimizer);
    EXPECT_EQ(times.queueing, 0);
  });
}

/// Counts how often the outputs of a grain are computed.
class CountedOutputs final : public StepObserver {
 public:
  void outputs_computed(std::span<float> /*outputs*/, int /*lanes*/) override { ++count; }
  int count = 0;
};

/// Gradients of black images are all zero.
TEST(DataParallelTest, UnitsOfACpuBecomeFinerWithoutAnotherPass) {
  run_thread_ranks(1, [](Communicator& comm) {
    const Job job = make_job();
    const JobSetup setup = setup_of(job, kOneLayer, kOneBucket);
    const std::unique_ptr<ParallelStrategy> strategy = make_data_parallel(setup, comm);
    const auto outputs = std::make_shared<CountedOutputs>();
    strategy->observe(outputs);
    strategy->run({}, 1, false);
    EXPECT_LT(strategy->whole_state().units.exponents().front(), kExactExponent);
    EXPECT_EQ(outputs->count, 2) << "grains";
  });
}

TEST(DataParallelTest, OneRankAloneHasNoSumsOnTheirWayToShow) {
  for (const int ranks : {1, 2})
    run_thread_ranks(ranks, [&](Communicator& comm) {
      const JobSetup setup = setup_of(make_job(), kOneLayer, kOneBucket);
      const std::unique_ptr<ParallelStrategy> strategy = make_data_parallel(setup, comm);
      EXPECT_EQ(test::error_of<ConfigError>([&] { strategy->require_sight(Sight::kSumsOnTheirWay); }),
                ranks == 1 ? "inject.what: one rank alone sends no sums; use more ranks" : "");
    });
}

/// Before the first trained layer backward has no sums.
TEST(DataParallelTest, PartsOfAShareAreNamedInTheOrderInWhichTheyAreComputed) {
  run_thread_ranks(1, [](Communicator& comm) {
    const Job job = make_job();
    const JobSetup setup =
        setup_of(job,
                 "layers:\n  - batch_norm: {affine: false}\n  - linear: 3\n"
                 "  - batch_norm: {affine: false}\n  - tanh\n  - linear: 3\n"
                 "  - batch_norm: {affine: false}\n  - linear: {out: classes, bias: false}\n",
                 kOneBucket);
    const std::unique_ptr<ParallelStrategy> strategy = make_data_parallel(setup, comm);
    std::vector<std::string> names;
    for (const ComparedPart& part : strategy->teams().share_parts) names.push_back(part.name);
    EXPECT_EQ(names,
              (std::vector<std::string>{
                  "the sums of layer bn1 over the batch", "the sums of layer bn2 over the batch",
                  "the sums of layer bn3 over the batch", "the sums of layer bn3 over the batch, in backward",
                  "the sums of layer bn2 over the batch, in backward", "the gradients of fc1.weight",
                  "the gradients of fc1.bias", "the gradients of fc2.weight", "the gradients of fc2.bias",
                  "the gradients of fc3.weight"}));
  });
}

TEST(MeasuresTest, TheShareThatIsRoundedToZeroIsThatOfAllRanks) {
  run_thread_ranks(2, [](Communicator& comm) {
    using Count = cpu::int16::RoundingCount;
    const Count counted =
        comm.rank() == 0 ? Count{.nonzero = 5, .to_zero = 2} : Count{.nonzero = 3, .to_zero = 0};
    EXPECT_EQ(share_rounded_to_zero(comm, counted), 0.25);
    EXPECT_EQ(share_rounded_to_zero(comm, Count{}), 0.0);
    EXPECT_EQ(share_rounded_to_zero(comm, std::nullopt), std::nullopt);
  });
}

TEST(MeasuresTest, AnEpochsLastStepSaysWhatInt16RoundsToZero) {
  run_thread_ranks(1, [](Communicator& comm) {
    JobSetup setup = setup_of(make_job(), kOneLayer, kOneBucket);
    setup.network =
        Network::parse(kOneLayer, "test.yaml", kImage, kClasses, UnreadLayers::kRefused, Precision::kInt16);
    const std::unique_ptr<ParallelStrategy> strategy = make_data_parallel(setup, comm);
    strategy->run({.epoch = 0, .step_in_epoch = 7, .global_step = 7}, 1, false);
    EXPECT_TRUE(strategy->measures().rounded_to_zero.has_value());
    strategy->run({.epoch = 1, .step_in_epoch = 0, .global_step = 8}, 1, false);
    EXPECT_FALSE(strategy->measures().rounded_to_zero.has_value());
  });
}

/// Half of the samples are of class 1, which is e^12 times as likely: their gradients are below 2^-17. The others'
/// are almost 1, and half a unit of that is 2^-15.
TEST(MeasuresTest, GradientsBelowHalfAUnitOfTheLargestAreRoundedToZero) {
  run_thread_ranks(1, [](Communicator& comm) {
    Job job = make_job();
    job.data.global_batch = kSetSize;
    job.parallel.grain = kSetSize;
    auto data = make_data();
    std::fill_n(data->train.labels.begin(), kSetSize / 2, 0);
    JobSetup setup = setup_of(job, kOneLayer, kOneBucket, nullptr, std::move(data));
    setup.network =
        Network::parse(kOneLayer, "test.yaml", kImage, kClasses, UnreadLayers::kRefused, Precision::kInt16);
    const std::unique_ptr<ParallelStrategy> strategy = make_data_parallel(setup, comm);
    strategy->whole_state().weights.back() = 12;  // the bias of class 1; pictures are black
    strategy->run({}, 1, false);
    EXPECT_EQ(strategy->measures().rounded_to_zero, 0.5);
  });
}

/// With determinism off sums of four bytes travel, and twice as many fit into a bucket.
TEST(BucketChoiceTest, BytesAreThoseOfTheSumsThatTravel) {
  const Network network = Network::parse("layers:\n  - linear: 300\n  - linear: 20\n  - linear: classes\n",
                                         "test.yaml", kImage, kClasses);
  const auto plan = [&](Determinism determinism, std::size_t bytes) {
    StepOptions step;
    step.determinism = determinism;
    return plan_buckets_of_size(network, step, bytes).describe();
  };
  EXPECT_EQ(plan(Determinism::kOff, 4 * 7000), plan(Determinism::kWorld, 8 * 7000));
  EXPECT_NE(plan(Determinism::kOff, 4 * 7000), plan(Determinism::kWorld, 4 * 7000));
}

TEST(BucketChoiceTest, SumsAreTimedWhereThereAreOtherRanks) {
  const Network network = Network::parse(kOneLayer, "test.yaml", kImage, kClasses);
  for (const int ranks : {1, 2})
    run_thread_ranks(ranks, [&](Communicator& all) {
      NotingCommunicator comm(all);
      plan_buckets_by_latency(network, {}, comm);
      EXPECT_EQ(comm.events.empty(), ranks == 1);
    });
}

}  // namespace

}  // namespace lockstep
