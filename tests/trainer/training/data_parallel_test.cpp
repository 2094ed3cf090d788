// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Promises of data parallelism on CPUs and devices: gradients leave while backward runs. A series does not
/// last, and what sums gradients outlives the strategy.
#include "trainer/training/data_parallel.hpp"

#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "kernels/cpu/ops.hpp"
#include "models/network.hpp"
#include "tests/support/forwarding_communicator.hpp"
#include "tests/support/held_device.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/small_disk.hpp"
#include "trainer/device/device_evaluator.hpp"
#include "trainer/setup/strategies.hpp"
#include "trainer/training/evaluator.hpp"
#include "trainer/training/setup.hpp"
#include "trainer/training/worker_pool.hpp"

namespace lockstep {

namespace {

constexpr ImageShape kImage = {1, 4, 4};
constexpr int kClasses = 2, kSamples = 16;

Dataset make_set(int samples = kSamples) {
  Dataset set;
  set.shape = kImage;
  set.classes = kClasses;
  set.images = AlignedBuffer<std::uint8_t>(static_cast<std::size_t>(samples * kImage.features()));
  set.labels.assign(static_cast<std::size_t>(samples), 1);
  set.scales = scales_of({.mean = {0}, .std = {1}}, kImage.channels);
  return set;
}

std::shared_ptr<TrainTestData> make_data() {
  auto data = std::make_shared<TrainTestData>();
  data->train = make_set();
  data->test = make_set();
  return data;
}

/// Queues nothing, takes its time, and tells when it goes.
class MortalAllReduce final : public DeviceAllReduce {
 public:
  explicit MortalAllReduce(bool& gone, double seconds = 0) : gone_(gone), time_(seconds) {}
  ~MortalAllReduce() override { gone_ = true; }
  MortalAllReduce(const MortalAllReduce&) = delete;
  MortalAllReduce& operator=(const MortalAllReduce&) = delete;

  std::string_view name() const override { return "mortal"; }
  bool on_stream() const override { return true; }
  void all_reduce_into(Stream&, const std::int64_t*, std::int64_t*, std::size_t) override {
    std::this_thread::sleep_for(time_);
  }
  void all_reduce_into(Stream&, const float*, float*, std::size_t) override {}
  void check() override {}

 private:
  bool& gone_;
  std::chrono::duration<double> time_;
};

constexpr const char* kOneLayer = "layers:\n  - linear: classes\n";
constexpr std::size_t kOneBucket = std::size_t{1} << 20;  // bytes

/// @param bucket_bytes  kOneBucket, or 1: one for each layer
/// @param all_reduce    of an emulated device; none: of a CPU
JobSetup setup_of(const Job& job, const char* model, std::size_t bucket_bytes,
                  std::unique_ptr<DeviceAllReduce> all_reduce = nullptr,
                  std::shared_ptr<const TrainTestData> data = make_data()) {
  Network network = Network::parse(model, "test.yaml", kImage, kClasses);
  BucketPlan plan = plan_buckets_of_size(network, {}, bucket_bytes);
  DeviceChoice choice;
  if (all_reduce != nullptr) {
    choice.gpu = std::make_shared<Gpu>();
    choice.gpu->device = emulated::platform().make_device(0);
    choice.gpu->ops = emulated::platform().make_ops(*choice.gpu->device);
    choice.gpu->all_reduce = std::move(all_reduce);
  }
  return make_setup(job, std::move(data), std::move(choice), std::move(network), std::move(plan));
}

Job make_job() {
  Job job;
  job.data.global_batch = 2;
  job.parallel.grain = 1;
  return job;
}

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

/// One step after the other, as many at a time as the strategy likes.
std::int64_t longest_series_after(int series, double seconds_a_step) {
  std::int64_t steps = 0;
  run_thread_ranks(1, [&](Communicator& comm) {
    const Job job = make_job();
    bool gone = false;
    const JobSetup setup =
        setup_of(job, kOneLayer, kOneBucket, std::make_unique<MortalAllReduce>(gone, seconds_a_step));
    const std::unique_ptr<ParallelStrategy> strategy = make_data_parallel(setup, comm);
    strategy->distribute();
    EXPECT_EQ(strategy->longest_series(), 1) << "nothing is known of the steps yet";
    StepPosition position;
    for (; series > 0; --series) {
      strategy->run(position, strategy->longest_series(), false);
      position.global_step += strategy->longest_series();
    }
    steps = strategy->longest_series();
  });
  return steps;
}

TEST(DataParallelTest, ASeriesOfSlowStepsOnADeviceIsShort) {
  EXPECT_EQ(longest_series_after(4, 0), 4) << "on the emulator";
  EXPECT_EQ(longest_series_after(2, 0.3), 1);
}

TEST(SeriesLengthTest, FollowsTheTimeOfSteps) {
  run_thread_ranks(1, [](Communicator& comm) {
    SeriesLength length(64);
    for (const std::int64_t expected : {2, 4, 8, 16, 32, 64, 64}) {
      length.took(length.steps(), 1e-4 * static_cast<double>(length.steps()), comm);
      EXPECT_EQ(length.steps(), expected);
    }
    for (int series = 0; series < 16; ++series) length.took(64, 64 * 0.1, comm);
    EXPECT_EQ(length.steps(), 5) << "steps of 0.1 s";
    length.took(5, 5 * 3600.0, comm);
    EXPECT_EQ(length.steps(), 1);
    length.took(1, 0, comm);
    EXPECT_EQ(length.steps(), 2);
  });
}

/// Clocks of ranks differ; a series must not.
TEST(SeriesLengthTest, IsTheSameOnAllRanks) {
  std::vector<std::int64_t> steps(3);
  run_thread_ranks(3, [&](Communicator& comm) {
    SeriesLength length(64);
    for (int series = 0; series < 8; ++series) length.took(10, 0.3 * (comm.rank() + 1), comm);
    steps[static_cast<std::size_t>(comm.rank())] = length.steps();
  });
  EXPECT_EQ(steps, std::vector<std::int64_t>(3, 8)) << "0.06 s a step";
}

/// A request to stop is heard while the device works on two batches, not when all are queued.
TEST(DeviceEvaluatorTest, TheHostIsAtMostTwoBatchesAhead) {
  run_thread_ranks(1, [](Communicator& comm) {
    auto held = std::make_unique<testing::HeldDevice>();
    std::atomic<bool>& is_held = held->held;
    Gpu gpu;
    gpu.ops = emulated::platform().make_ops(held->inner());
    gpu.device = std::move(held);
    const Dataset set = make_set(4000);  // four batches
    const Network network = Network::parse("layers:\n  - linear: classes\n", "test.yaml", kImage, kClasses);
    const auto stream = gpu.device->make_stream();
    DeviceEvaluator evaluator(network, gpu, *stream, set, LossKind::kCrossEntropy);
    const DeviceBuffer<float> weights(*gpu.device, network.parameters().weights_size());
    is_held = true;
    std::atomic<int> asked = 0;
    int asked_while_held = 0;
    std::thread release([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      asked_while_held = asked;
      is_held = false;
    });
    const Evaluation evaluation = evaluator.evaluate(comm, weights.data(), [&] { return ++asked == 4; });
    release.join();
    EXPECT_LE(asked_while_held, 2);
    EXPECT_EQ(asked, 4);
    EXPECT_TRUE(evaluation.interrupted);
  });
}

/// Six batches a rank, which the ring has to take in turn, and that twice.
TEST(DeviceEvaluatorTest, AStreamedSetHasTheNumbersOfAWholeOne) {
  run_thread_ranks(2, [](Communicator& comm) {
    Gpu gpu;
    gpu.device = emulated::platform().make_device(0);
    gpu.ops = emulated::platform().make_ops(*gpu.device);
    Dataset set = make_set(53);
    for (std::size_t i = 0; i < set.images.size(); ++i)
      set.images.span()[i] = static_cast<std::uint8_t>(37 * i % 251);
    for (std::size_t i = 0; i < set.labels.size(); i += 3) set.labels[i] = 0;
    const Network network = Network::parse(kOneLayer, "test.yaml", kImage, kClasses);
    std::vector<float> weights(network.parameters().weights_size());
    network.initialise(5, weights);
    const auto stream = gpu.device->make_stream();
    const auto on_device = upload(*gpu.device, *stream, weights);
    std::vector<Evaluation> found;
    for (const Communicator* streams_to : {static_cast<const Communicator*>(nullptr), &std::as_const(comm)}) {
      DeviceEvaluator evaluator(network, gpu, *stream, set, LossKind::kCrossEntropy, 5, streams_to);
      for (int i = 0; i < 2; ++i) found.push_back(evaluator.evaluate(comm, on_device.data()));
    }
    for (const Evaluation& evaluation : found) {
      EXPECT_EQ(evaluation.samples, 53);
      EXPECT_EQ(evaluation.correct, found.front().correct);
      EXPECT_EQ(evaluation.loss, found.front().loss);
      EXPECT_FALSE(evaluation.interrupted);
    }
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
    strategy->run({}, 1, false);
    ASSERT_GE(comm.events.size(), 6);
    comm.events.resize(6);  // a step may be done again in other units
    EXPECT_EQ(comm.events, (Events{"start", "test", "start", "test", "start", "test"}));
  });
}

using See = std::function<void(const ShownSums&)>;

/// Changes sums as these two do, from when it is added.
class Saboteur final : public StepObserver {
 public:
  explicit Saboteur(See leaving, See arrived = {})
      : leaving_(std::move(leaving)), arrived_(std::move(arrived)) {}
  bool sees_sums() const override { return true; }
  void sums_leave(const ShownSums& sums) override {
    if (leaving_) leaving_(sums);
  }
  void sums_arrived(const ShownSums& sums) override {
    if (arrived_) arrived_(sums);
  }

 private:
  See leaving_, arrived_;
};

/// Verdict of the ranks on the one that is wrong.
WrongNumbers found_in(const auto& steps) {
  try {
    steps();
    ADD_FAILURE() << "not seen";
  } catch (const WrongRankError& error) {
    return error.numbers();
  }
  return {};
}

/// Those of small tensors are summed twice where units become finer.
TEST(DataParallelTest, SecondSumThatArrivesWronglyIsNamed) {
  run_thread_ranks(2, [](Communicator& comm) {
    const Job job = make_job();
    const JobSetup setup = setup_of(job, kOneLayer, kOneBucket);
    const std::unique_ptr<ParallelStrategy> strategy = make_data_parallel(setup, comm);
    check_ranks(*strategy, setup, comm);
    int sums = 0;
    const auto change_the_second = [&](const ShownSums& shown) {
      if (++sums == 2) shown.sums.front() += 1;
    };
    if (comm.rank() == 1) strategy->observe(std::make_shared<Saboteur>(See(), change_the_second));
    const WrongNumbers found = found_in([&] { strategy->run({}, 1, false); });
    EXPECT_EQ(found.step, 1);
    test::expect_words(found.what, {"what arrived at rank 1 on "});
  });
}

TEST(DataParallelTest, ARankWhoseLabelsChangedIsNamed) {
  run_thread_ranks(3, [](Communicator& comm) {
    Job job = make_job();
    job.data.global_batch = 3;
    job.parallel.replay_every_steps = 1;
    auto data = make_data();
    if (comm.rank() == 1) std::ranges::fill(data->train.labels, 0);
    const JobSetup setup = setup_of(job, kOneLayer, kOneBucket, nullptr, std::move(data));
    const std::unique_ptr<ParallelStrategy> strategy = make_data_parallel(setup, comm);
    check_ranks(*strategy, setup, comm);
    strategy->distribute();
    const WrongNumbers found = found_in([&] { strategy->run({}, 1, false); });
    EXPECT_EQ(found.ranks, std::vector{1});
    test::expect_words(found.what, {"its training samples are not those of the others"});
  });
}

/// As NCCL sums, but at once.
class StreamAllReduce final : public DeviceAllReduce {
 public:
  explicit StreamAllReduce(Communicator& comm) : comm_(comm) {}
  std::string_view name() const override { return "on streams"; }
  bool on_stream() const override { return true; }
  void all_reduce_into(Stream& stream, const std::int64_t* terms, std::int64_t* sums,
                       std::size_t count) override {
    std::vector<std::int64_t> words = download(stream, terms, count);
    comm_.all_reduce(std::span(words));
    stream.copy_to_device(sums, words.data(), count * sizeof *sums);
    stream.synchronize();
  }
  void all_reduce_into(Stream&, const float*, float*, std::size_t) override { FAIL(); }
  void check() override {}

 private:
  Communicator& comm_;
};

/// Seven steps on devices that sum on streams, and on rank 0 the weights in the end.
/// @param spoil  before the third one
std::vector<float> weights_after(Communicator& comm, std::int64_t replay_every, const char* model,
                                 const std::function<void(ParallelStrategy&)>& spoil) {
  Job job = make_job();
  job.data.global_batch = 4;
  job.parallel.replay_every_steps = replay_every;
  job.parallel.graph = GraphUse::kOff;  // such sums cannot be captured
  auto data = make_data();
  for (std::size_t i = 0; i < data->train.images.size(); ++i)
    data->train.images.span()[i] = static_cast<std::uint8_t>(37 * i % 251);
  const JobSetup setup = setup_of(job, model, 1, std::make_unique<StreamAllReduce>(comm), std::move(data));
  const std::unique_ptr<ParallelStrategy> strategy = make_data_parallel(setup, comm);
  check_ranks(*strategy, setup, comm);
  for (std::size_t i = 0; i < strategy->whole_state().weights.size(); ++i)
    strategy->whole_state().weights[i] = 0.01F * static_cast<float>(i % 17);
  strategy->distribute();
  for (std::int64_t step = 0; step < 7; ++step) {
    if (step == 2 && comm.rank() == 1) spoil(*strategy);
    const StepSeries series =
        strategy->run({.epoch = 0, .step_in_epoch = step % 4, .global_step = step}, 1, false);
    EXPECT_EQ(series.steps, 1);
  }
  strategy->collect();
  if (comm.rank() != 0) return {};
  const auto weights = strategy->whole_state().weights;
  return {weights.begin(), weights.end()};
}

constexpr const char* kWithBatchNorm =
    "layers:\n  - linear: 3\n  - batch_norm\n  - relu\n  - linear: classes\n";

TEST(DataParallelTest, SumsOnStreamsAreComparedWhereTheHostLooks) {
  run_thread_ranks(3, [](Communicator& comm) {
    const auto change = [](const ShownSums& shown) { shown.sums.front() += 1; };
    const auto expect_named = [&](const char* model, const See& leaving, const See& arrived,
                                  const std::string& why) {
      const auto spoil = [&](ParallelStrategy& strategy) {
        strategy.observe(std::make_shared<Saboteur>(leaving, arrived));
      };
      test::expect_words(found_in([&] { weights_after(comm, 3, model, spoil); }).what, {"rank 1 on ", why});
    };
    for (const char* model : {"layers:\n  - linear: 3\n  - relu\n  - linear: classes\n", kWithBatchNorm}) {
      const auto none = [](ParallelStrategy&) {};
      EXPECT_EQ(weights_after(comm, 3, model, none), weights_after(comm, 0, model, none));
      expect_named(model, {}, change, "what arrived at ");
      expect_named(model, change, {}, "its memory changed them");
    }
  });
}

TEST(DataParallelTest, ReplaysOfSumsOnStreamsNameTheRank) {
  run_thread_ranks(3, [](Communicator& comm) {
    const auto of_a_weight = [](ParallelStrategy& strategy) {
      strategy.visit_own_state([](const TrainedState& own) {
        own.weights.front() += 1;
        return true;
      });
    };
    const WrongNumbers found = found_in([&] { weights_after(comm, 3, kWithBatchNorm, of_a_weight); });
    EXPECT_EQ(found.step, 3);
    EXPECT_EQ(found.ranks, std::vector{1});
    test::expect_words(found.what, {"its weights are not those of the others"});
  });
}

/// All that two epochs leave, whose last batch is smaller.
struct Traces {
  std::vector<std::uint64_t> fingerprints;  ///< rows of the steps
  std::vector<double> numbers;              ///< sums of an epoch's steps, and those of its last one
  std::vector<std::vector<float>> state;    ///< weights, and what the optimiser and averages remember
};

Traces traces_of(bool on_device) {
  Traces traces;
  run_thread_ranks(1, [&](Communicator& comm) {
    Job job = make_job();
    job.data.global_batch = 6;
    job.parallel.grain = 2;
    job.run.trail = true;
    job.train.optimizer = {.lr = 0.1, .momentum = 0.5};
    job.train.clip_norm = 0.5;
    job.train.freeze = {"fc1.bias"};
    job.train.ema = 0.9;
    job.train.swa = {.from_epoch = 1};
    auto data = make_data();
    for (std::size_t i = 0; i < data->train.images.size(); ++i)
      data->train.images.span()[i] = static_cast<std::uint8_t>(37 * i % 251);
    for (std::size_t i = 0; i < data->train.labels.size(); i += 2) data->train.labels[i] = 0;
    bool gone = false;
    JobSetup setup =
        setup_of(job, "layers:\n  - linear: 70\n  - batch_norm\n  - relu\n  - linear: classes\n", kOneBucket,
                 on_device ? std::make_unique<MortalAllReduce>(gone) : nullptr, std::move(data));
    if (on_device) setup.device.gpu->all_reduce.reset();
    const std::unique_ptr<ParallelStrategy> strategy = make_data_parallel(setup, comm);
    setup.network.initialise(5, strategy->whole_state().weights);
    strategy->distribute();
    for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
      const StepSeries series =
          strategy->run({.epoch = epoch, .step_in_epoch = 0, .global_step = 3 * epoch}, 3, epoch == 1);
      EXPECT_EQ(series.steps, 3);
      EXPECT_EQ(series.samples, kSamples);
      EXPECT_EQ(series.last.samples, 4);
      EXPECT_EQ(series.last.stop_requested, epoch == 1);
      for (const double number : {static_cast<double>(series.correct), series.loss_units.value(),
                                  static_cast<double>(series.last.correct), series.last.loss()})
        traces.numbers.push_back(number);
      traces.fingerprints.insert(traces.fingerprints.end(), series.fingerprints.begin(),
                                 series.fingerprints.end());
    }
    EXPECT_EQ(strategy->times().queueing > 0, on_device) << "where no step is looked at";
    strategy->collect();
    const TrainedState state = strategy->whole_state();
    traces.state.emplace_back(state.weights.begin(), state.weights.end());
    for (const OptimizerBufferView& buffer : state.optimizer)
      traces.state.emplace_back(buffer.values.begin(), buffer.values.end());
  });
  return traces;
}

/// The first layer has more weights than a part of what no update reads.
TEST(DataParallelTest, FingerprintsAndAveragesOfADeviceAreThoseOfACpu) {
  const Traces cpu = traces_of(false), device = traces_of(true);
  EXPECT_FALSE(cpu.fingerprints.empty());
  EXPECT_EQ(device.fingerprints, cpu.fingerprints);
  EXPECT_EQ(device.numbers, cpu.numbers);
  EXPECT_EQ(cpu.state.size(), 4U);
  EXPECT_EQ(device.state, cpu.state);
}

TEST(DataParallelTest, ADeviceShowsSamplesStateAndComparedSums) {
  run_thread_ranks(2, [](Communicator& comm) {
    for (const std::int64_t replay_every : {0, 1}) {
      Job job = make_job();
      job.parallel.replay_every_steps = replay_every;
      const JobSetup setup = setup_of(job, kOneLayer, kOneBucket, std::make_unique<StreamAllReduce>(comm));
      const std::unique_ptr<ParallelStrategy> strategy = make_data_parallel(setup, comm);
      EXPECT_NO_THROW(strategy->require_sight(Sight::kSamples));
      EXPECT_NO_THROW(strategy->require_sight(Sight::kState));
      const auto refusal = [&](Sight part) {
        return message_of<ConfigError>([&] { strategy->require_sight(part); });
      };
      EXPECT_EQ(refusal(Sight::kSums),
                "inject.what: sums on a GPU cannot be reached; use parallel.device=cpu");
      EXPECT_EQ(refusal(Sight::kOutputs),
                "inject.what: outputs on a GPU cannot be reached; use parallel.device=cpu");
      EXPECT_EQ(refusal(Sight::kMessages),
                "inject.what: there are no messages between stages; use parallel.strategy=pipeline");
      if (replay_every == 1) {
        EXPECT_NO_THROW(strategy->require_sight(Sight::kSumsOnTheirWay));
      } else {
        EXPECT_TRUE(contains(refusal(Sight::kSumsOnTheirWay), {"or parallel.replay_every_steps=1"}));
      }
    }
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

TEST(WorkerPoolTest, EveryThreadWorksOnceInEachRound) {
  for (const int threads : {1, 2, 5}) {
    WorkerPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    std::vector<std::atomic<int>> calls(static_cast<std::size_t>(threads));
    for (int round = 0; round < 100; ++round) {
      pool.run([&](int thread) { ++calls[static_cast<std::size_t>(thread)]; });
    }
    for (const auto& count : calls) EXPECT_EQ(count, 100);
  }
}

TEST(WorkerPoolTest, AnExceptionOfAnyThreadReachesTheCallerAndThePoolGoesOn) {
  WorkerPool pool(3);
  for (int culprit = 0; culprit < 3; ++culprit) {
    const auto work = [&](int thread) {
      if (thread == culprit) throw std::runtime_error("out of paper");
    };
    EXPECT_THROW(pool.run(work), std::runtime_error);
  }
  std::atomic<int> calls = 0;
  pool.run([&](int) { ++calls; });
  EXPECT_EQ(calls, 3);
}

TEST(UnreadSamplesTest, KeepTheFirstErrorOfADiskOrOfItsDataAndNoOther) {
  UnreadSamples unread;
  const auto attempt = [&](const auto& error) { return unread.attempt([&] { throw error; }); };
  EXPECT_THROW(attempt(IoError("before it keeps any")), IoError);
  unread.keep();
  EXPECT_TRUE(unread.attempt([] {}));
  EXPECT_FALSE(unread.any());
  EXPECT_FALSE(attempt(DataError("the first")));
  EXPECT_FALSE(attempt(IoError("the second")));
  EXPECT_THROW(attempt(MissingDataError("gone")), MissingDataError);
  EXPECT_THROW(attempt(InternalError("ours")), InternalError);
  EXPECT_TRUE(unread.any());
  EXPECT_THROW(std::rethrow_exception(unread.take()), DataError);
  EXPECT_FALSE(unread.any());
  EXPECT_TRUE(unread.take() == nullptr);
}

TEST(WorkerPoolTest, ThreadThatTheSystemDoesNotGiveIsAnErrorWithItsReason) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer needs the memory that this takes away";
#else
  const NoMoreThreads few(NoMoreThreads::Spare::kTwoOrThree);
  EXPECT_THROW(WorkerPool(16), DeviceError) << "and those that have started end";
#endif
}

}  // namespace

}  // namespace lockstep
