// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Pipelines of two stages: what they tell of themselves, evaluate and show.
#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/saboteur.hpp"
#include "trainer/config/job.hpp"
#include "trainer/setup/job_setup.hpp"
#include "trainer/setup/strategies.hpp"

#include <malloc.h>

namespace lockstep {
namespace {

/// Two ranks have a stage each. As many samples are for validation as for the test.
/// @param change  of the training set, before it is used
void with_pipeline(
    const std::function<void(ParallelStrategy&, Communicator&)>& check,
    const std::vector<std::string>& more = {}, int ranks = 2,
    const std::function<void(Dataset&)>& change = [](Dataset&) {}) {
  const Job job = parse_job(
      "model: mlp\n"
      "data: {set: synthetic, train_samples: 64, validation: 8, test_samples: 8, global_batch: 16}\n"
      "parallel: {device: cpu, grain: 4, strategy: pipeline}\n",
      "test.yaml", more);
  const DatasetFuture data = load_in_advance(job);
  change(data.get().sets->train);
  run_thread_ranks(ranks, [&](Communicator& comm) {
    const StrategyEntry& entry = find_strategy(job);
    const JobSetup setup = set_up(job, comm, data, entry.setup);
    const auto pipeline = entry.make(setup, comm);
    if (job.parallel.replay_every_steps > 0) check_ranks(*pipeline, setup, comm);
    if (comm.rank() == 0) setup.network.initialise(job.train.seed, pipeline->whole_state().weights);
    pipeline->distribute();
    check(*pipeline, comm);
  });
}

TEST(PipelineTest, EachStageIsDescribedWithItsRankAndItsShare) {
  with_pipeline([](const ParallelStrategy& pipeline, Communicator&) {
    EXPECT_EQ(pipeline.describe().sums, "pipeline of 2 stages on 2 ranks, 1f1b");
    EXPECT_FALSE(pipeline.describe().has_graphs);
    EXPECT_EQ(pipeline.teams().reads_pictures, 0);
    EXPECT_EQ(pipeline.teams().reads_labels, 1);
    EXPECT_EQ(
        pipeline.describe().lines,
        (std::vector<std::string>{"stage 0 (flatten1 to fc1) on rank 0: 200,960 parameters, 80 % of the work",
                                  "stage 1 (relu1 to fc3) on rank 1: 34,186 parameters, 20 % of the work"}));
  });
  const auto check_small_stage = [](const ParallelStrategy& pipeline, Communicator&) {
    EXPECT_EQ(pipeline.describe().lines,
              (std::vector<std::string>{
                  "stage 0 (flatten1) on rank 0: 0 parameters, 0.155 % of the work",
                  "stage 1 (fc1 to fc3) on rank 1: 235,146 parameters, 99.84 % of the work"}));
  };
  with_pipeline(check_small_stage, {"parallel.stages=[[flatten1], [fc1, relu1, fc2, relu2, fc3]]"});
  const auto check_two_pipelines = [](const ParallelStrategy& pipeline, Communicator&) {
    const StrategyDescription description = pipeline.describe();
    EXPECT_EQ(description.sums, "pipeline of 2 stages on 2 ranks, gpipe, 2 times");
    EXPECT_TRUE(description.lines[1].starts_with("stage 1 (relu1 to fc3) on ranks 1, 3: "))
        << description.lines[1];
    EXPECT_EQ(description.facts, (StrategyFacts{{"stages", "flatten1 to fc1; relu1 to fc3"},
                                                {"placement", "0, 1"},
                                                {"pipelines", "2"},
                                                {"pipeline_schedule", "gpipe"}}));
  };
  with_pipeline(check_two_pipelines, {"parallel.stages=2", "parallel.schedule=gpipe"}, 4);
  const auto check_neighbours = [](const ParallelStrategy& pipeline, Communicator&) {
    const std::string line = pipeline.describe().lines.front();
    EXPECT_EQ(line, "stage 0 (flatten1 to fc3) on ranks 0-2: 235,146 parameters, 100 % of the work");
  };
  with_pipeline(check_neighbours, {"parallel.stages=1"}, 3);
}

TEST(PipelineTest, TheWayOfMessagesIsToldWhereADeviceHasSome) {
  const auto last_line = [](const std::string& stages, int ranks) {
    std::string line;
    const auto describe = [&](const ParallelStrategy& pipeline, Communicator& comm) {
      EXPECT_EQ(test::error_of<ConfigError>([&] { pipeline.require_sight(Sight::kOutputs); }),
                "inject.what: outputs on a GPU cannot be reached; use parallel.device=cpu");
      if (comm.rank() == 0) line = pipeline.describe().lines.back();
    };
    with_pipeline(describe, {stages, "parallel.device=emulated", "parallel.backend=thread"}, ranks);
    return line;
  };
  const std::string way = "activations and their gradients: ";
  EXPECT_EQ(last_line("parallel.stages=2", 2), way + "through pinned host memory");
  EXPECT_EQ(last_line("parallel.stages=2", 1), way + "on the device");
  EXPECT_TRUE(last_line("parallel.stages=1", 1).starts_with("stage 0 (flatten1 to fc3) on rank 0: "));
}

TEST(PipelineTest, EvaluatesThePartThatIsAskedFor) {
  with_pipeline([](ParallelStrategy& pipeline, Communicator&) {
    const Evaluation test = pipeline.evaluate(EvaluatedPart::kTest, never_leave),
                     validation = pipeline.evaluate(EvaluatedPart::kValidation, never_leave);
    EXPECT_EQ(validation.samples, test.samples);
    EXPECT_NE(validation.loss, test.loss) << "they are other samples";
  });
}

TEST(PipelineTest, AnEvaluationAsksOnceForEachRound) {
  for (const int samples : {64, 65}) {
    const auto evaluate = [=](ParallelStrategy& pipeline, Communicator&) {
      int asked = 0;
      EXPECT_EQ(pipeline.evaluate(EvaluatedPart::kTest, [&] { return ++asked < 0; }).samples, samples);
      EXPECT_EQ(asked, samples - 63) << "rounds of 16 micro-batches";
    };
    with_pipeline(evaluate, {"data.test_samples=" + std::to_string(samples)});
  }
}

/// Two ranks ask before every 16 of the 50 micro-batches, the last of which has one sample.
TEST(PipelineTest, AnEvaluationEndsOnAllRanksWhereOneLeavesIt) {
  const auto leave_on_rank_1 = [](ParallelStrategy& pipeline, Communicator& comm) {
    int asked = 0;
    const Evaluation whole = pipeline.evaluate(EvaluatedPart::kTest, [&] { return ++asked < 0; });
    EXPECT_EQ(asked, 4);
    EXPECT_EQ(whole.samples, 197);
    EXPECT_FALSE(whole.interrupted);
    const Evaluation left =
        pipeline.evaluate(EvaluatedPart::kTest, [&] { return ++asked == 7 && comm.rank() == 1; });
    EXPECT_EQ(asked, 7);
    EXPECT_EQ(left.samples, 2 * 16 * 4);
    EXPECT_TRUE(left.interrupted);
  };
  with_pipeline(leave_on_rank_1, {"data.test_samples=197"});
}

/// Makes every forward pass of a rank's last stage so long, at least.
class LongPasses final : public StepObserver {
 public:
  static constexpr double kSeconds = 0.05;
  void outputs_computed(std::span<float> /*outputs*/, int /*lanes*/) override {
    std::this_thread::sleep_for(std::chrono::duration<double>(kSeconds));
  }
};

/// A time as the summary shows it.
std::string milliseconds(double seconds) {
  return 1000 * seconds < 1 ? fmt::format("{:.3g} ms", 1000 * seconds)
                            : fmt::format("{:.2f} ms", 1000 * seconds);
}

/// Four micro-batches pass 256 numbers of 16 columns of four bytes, and as many gradients come back.
TEST(PipelineTest, TheSummaryOfAStepIsRankZeros) {
  const auto take_a_step = [](ParallelStrategy& pipeline, Communicator& comm) {
    EXPECT_TRUE(pipeline.summary().lines.empty()) << "no step was taken";
    pipeline.observe(std::make_shared<LongPasses>());
    pipeline.run({}, 1, false);
    const StrategySummary summary = pipeline.summary();
    EXPECT_EQ(summary.lines.size(), comm.rank() == 0 ? 3U : 0U);
    if (summary.lines.empty()) return;
    std::map<std::string, double> numbers(summary.numbers.begin(), summary.numbers.end());
    EXPECT_EQ(numbers["bytes_sent"], 2 * 4 * 256 * 16 * 4);
    EXPECT_EQ(numbers["micro_batches"], 4);
    EXPECT_EQ(numbers["stage_0_in_flight"], 2);
    EXPECT_EQ(numbers["stage_1_in_flight"], 1);
    EXPECT_LT(numbers["bubble"], 1);
    EXPECT_GE(numbers["stage_0_forward_seconds"], LongPasses::kSeconds) << "the mean of its passes";
    EXPECT_GE(numbers["stage_1_forward_seconds"], LongPasses::kSeconds);
    EXPECT_EQ(summary.lines[0],
              fmt::format("pipeline: bubble {:.1f} % of the ranks' time in steps; 128 KiB of activations and "
                          "gradients sent",
                          100 * numbers["bubble"]));
    EXPECT_EQ(
        summary.lines[1],
        fmt::format("stage 0 (flatten1 to fc1) on rank 0: 200,960 parameters, 2 micro-batches in flight, "
                    "forward {}, backward {}",
                    milliseconds(numbers["stage_0_forward_seconds"]),
                    milliseconds(numbers["stage_0_backward_seconds"])));
  };
  with_pipeline(take_a_step, {"parallel.determinism=off", "data.train_samples=24", "data.validation=0"});
}

/// One micro-batch passes 784 numbers of 16 columns of four bytes.
TEST(PipelineTest, AStageThatIsNotTrainedHasNoBackwardPass) {
  const auto take_a_step = [](ParallelStrategy& pipeline, Communicator& comm) {
    EXPECT_TRUE(pipeline.run({}, 1, false).fingerprints.empty()) << "the run keeps none";
    const StrategySummary summary = pipeline.summary();
    if (comm.rank() != 0) return;
    std::map<std::string, double> numbers(summary.numbers.begin(), summary.numbers.end());
    EXPECT_EQ(numbers.size(), 3 + 2 * 3U);
    EXPECT_EQ(numbers["bytes_sent"], 784 * 16 * 4);
    EXPECT_GT(numbers["stage_0_forward_seconds"], 0);
    EXPECT_EQ(numbers["stage_0_backward_seconds"], 0);
    EXPECT_GT(numbers["stage_1_forward_seconds"], 0);
    EXPECT_GT(numbers["stage_1_backward_seconds"], 0);
    EXPECT_EQ(summary.lines[1],
              "stage 0 (flatten1) on rank 0: 0 parameters, 1 micro-batch in flight, forward " +
                  milliseconds(numbers["stage_0_forward_seconds"]) + ", backward 0 ms");
  };
  with_pipeline(take_a_step, {"parallel.stages=[[flatten1], [fc1, relu1, fc2, relu2, fc3]]",
                              "data.global_batch=4", "run.trail=false"});
}

/// All samples are of class 0, and class 9 is e^14 times as likely as any other. So of ten gradients of a sample eight
/// are below 2^-20. The other two are almost 1, and half a unit of that is 2^-15. No gradient passes weights of zero.
TEST(PipelineTest, AnEpochsLastStepSaysWhatInt16RoundsToZero) {
  const auto take_steps = [](ParallelStrategy& pipeline, Communicator& comm) {
    if (comm.rank() == 0) {
      const std::span<float> weights = pipeline.whole_state().weights;
      std::ranges::fill(weights, 0.0F);
      weights.back() = 14;  // the bias of class 9
    }
    pipeline.distribute();
    pipeline.run({.epoch = 0, .step_in_epoch = 1, .global_step = 1}, 1, false);
    EXPECT_EQ(pipeline.measures().rounded_to_zero, 0.8);
    pipeline.run({.epoch = 1, .step_in_epoch = 0, .global_step = 2}, 1, false);
    EXPECT_EQ(pipeline.measures().rounded_to_zero, std::nullopt) << "the epoch goes on";
  };
  const auto label = [](Dataset& train) { std::ranges::fill(train.labels, 0); };
  for (const int ranks : {1, 2, 4})
    with_pipeline(
        take_steps,
        {"train.precision=int16", "parallel.stages=2", "data.train_samples=32", "data.validation=0"}, ranks,
        label);
}

/// Passes of a replay are work of the step that is replayed. Ranks with all stages hardly wait for each other: a step
/// leaves no time that would do for these passes, too.
TEST(PipelineTest, NoRankIsBusierThanItsTime) {
  const auto take_steps = [](ParallelStrategy& pipeline, Communicator& comm) {
    pipeline.run({}, 4, false);
    const StrategySummary summary = pipeline.summary();
    if (comm.rank() == 0) {
      EXPECT_GE(summary.numbers.front().second, 0) << summary.numbers.front().first;
    }
  };
  with_pipeline(take_steps, {"parallel.stages=1", "parallel.replay_every_steps=1", "data.train_samples=256",
                             "data.validation=0", "data.global_batch=64"});
}

/// Images on a disk that a thread may find broken, once.
class BrokenOnce final : public SampleStore {
 public:
  static inline thread_local bool is_broken = false;

  BrokenOnce(AlignedBuffer<std::uint8_t> images, std::size_t image_bytes)
      : images_(std::move(images)), image_bytes_(image_bytes) {}
  std::int64_t size() const override { return static_cast<std::int64_t>(images_.size() / image_bytes_); }
  const PixelSums& sums() const override { return sums_; }
  void read(std::span<const std::int64_t> samples, std::span<std::uint8_t> to) const override {
    if (std::exchange(is_broken, false)) throw IoError("the disk");
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const std::size_t first = static_cast<std::size_t>(samples[i]) * image_bytes_;
      std::ranges::copy(images_.span().subspan(first, image_bytes_), to.subspan(i * image_bytes_).begin());
    }
  }
  void prefetch(std::vector<std::int64_t> /*samples*/) const override {}

 private:
  AlignedBuffer<std::uint8_t> images_;
  std::size_t image_bytes_;
  PixelSums sums_;
};

/// Breaks the disk of this rank's thread when it has read the two grains of its share.
class BreaksTheDisk final : public StepObserver {
 public:
  void outputs_computed(std::span<float> /*outputs*/, int /*lanes*/) override {
    BrokenOnce::is_broken = ++grains_ == 2;
  }

 private:
  int grains_ = 0;
};

/// The first rank of the second pipeline cannot read what it is to compute again.
TEST(PipelineTest, SamplesThatAReplayCannotReadAreNoWrongProcessor) {
  const auto put_on_disk = [](Dataset& set) {
    const std::size_t bytes = row_bytes_of(set);
    set.store = std::make_shared<BrokenOnce>(std::move(set.images), bytes);
    set.images = {};
  };
  const auto take_a_step = [](ParallelStrategy& pipeline, Communicator& comm) {
    pipeline.unread().keep();
    if (comm.rank() == 2) pipeline.observe(std::make_shared<BreaksTheDisk>());
    pipeline.run({}, 1, false);
  };
  for (const char* stages :
       {"parallel.stages=2", "parallel.stages=[[flatten1], [fc1, relu1, fc2, relu2, fc3]]"}) {
    const auto run = [&] {
      with_pipeline(take_a_step, {stages, "parallel.replay_every_steps=1", "data.validation=0"}, 4,
                    put_on_disk);
    };
    EXPECT_EQ(test::error_of<IoError>(run), "the disk") << stages;
  }
}

/// Sums of eight bytes a parameter, on each of two ranks that have all of them.
TEST(PipelineTest, ReplaysTakeMemoryWhereThereAreSome) {
  const auto bytes_with = [](const std::string& replays) {
    std::uint64_t bytes = 0;
    const auto measure = [&](ParallelStrategy&, Communicator& comm) {
      comm.barrier();
      if (comm.rank() == 0) {
        const struct mallinfo2 all = mallinfo2();
        bytes = all.uordblks + all.hblkhd;
      }
      comm.barrier();
    };
    with_pipeline(measure, {"parallel.stages=1", "parallel.replay_every_steps=" + replays});
    return bytes;
  };
  const std::uint64_t without = bytes_with("0");
  if (without == 0) GTEST_SKIP() << "sanitizers have a malloc of their own, which does not count";
  EXPECT_GT(bytes_with("100"), without + 3'500'000) << "of 2 x 8 x 235,146";
}

TEST(PipelineTest, WhatARankHasNotCannotBeShown) {
  const auto refusal = [](ParallelStrategy& pipeline, Sight part) {
    return test::error_of<ConfigError>([&] { pipeline.require_sight(part); });
  };
  const std::string sends_none =
      "inject.what: this rank sends no sums; use more replicas of a pipeline, or the strategy data";
  with_pipeline([&](ParallelStrategy& pipeline, Communicator&) {
    for (const Sight part : {Sight::kSamples, Sight::kState, Sight::kMessages, Sight::kOutputs})
      EXPECT_EQ(refusal(pipeline, part), "");
    EXPECT_EQ(refusal(pipeline, Sight::kSumsOnTheirWay), sends_none);
    test::expect_words(refusal(pipeline, Sight::kSums),
                       {"this parallel.strategy cannot reach what it trains"});
  });
  const auto check_two_pipelines = [&](ParallelStrategy& pipeline, Communicator& comm) {
    const bool has_none = comm.rank() % 2 == 0;
    EXPECT_EQ(refusal(pipeline, Sight::kSumsOnTheirWay), has_none ? sends_none : "");
    EXPECT_EQ(refusal(pipeline, Sight::kState),
              has_none ? "inject.rank: the stages of this rank have no weights" : "");
  };
  with_pipeline(check_two_pipelines, {"parallel.stages=[[flatten1], [fc1, relu1, fc2, relu2, fc3]]"}, 4);
  const auto check_one_rank = [&](ParallelStrategy& pipeline, Communicator&) {
    EXPECT_EQ(refusal(pipeline, Sight::kMessages),
              "inject.what: this rank takes no messages of other stages in host memory");
  };
  with_pipeline(check_one_rank, {"parallel.stages=2"}, 1);
  const auto check_device = [&](ParallelStrategy& pipeline, Communicator&) {
    EXPECT_EQ(refusal(pipeline, Sight::kOutputs),
              "inject.what: outputs on a GPU cannot be reached; use parallel.device=cpu");
    EXPECT_EQ(refusal(pipeline, Sight::kMessages), "");
    EXPECT_EQ(refusal(pipeline, Sight::kSumsOnTheirWay), "");
  };
  const std::vector<std::string> on_device = {"parallel.device=emulated", "parallel.stages=2"};
  with_pipeline(check_device, on_device, 4);
  const auto check_fp32 = [&](ParallelStrategy& pipeline, Communicator&) {
    test::expect_words(refusal(pipeline, Sight::kSumsOnTheirWay),
                       {"sums that do not go by way of the host cannot be reached"});
  };
  with_pipeline(check_fp32, {on_device[0], on_device[1], "parallel.determinism=off"}, 4);
}

/// Changes the first number of each message that arrives at this rank.
class BadLink final : public StepObserver {
 public:
  void message_arrived(std::span<float> message) override { message.front() += 1; }
};

/// Two pipelines, at whose last ranks activations arrive.
TEST(PipelineTest, WrongMessagesOfEachPipelineAreNamed) {
  const auto change_messages = [](ParallelStrategy& pipeline, Communicator& comm) {
    if (comm.rank() % 2 == 1) pipeline.observe(std::make_shared<BadLink>());
    WrongNumbers found;
    try {
      pipeline.run({}, 1, false);
    } catch (const WrongRankError& error) {
      found = error.numbers();
    }
    EXPECT_EQ(found.ranks, (std::vector{1, 3}));
    const std::string changed = " sent: a link or memory at its end changed it", &what = found.what;
    EXPECT_EQ(test::count_of(changed, what), 2) << what;
    EXPECT_TRUE(what.starts_with("what arrived at rank 1 on ")) << what;
    test::expect_words(what, {" is not the activations of stage 0 (flatten1 to fc1) that rank 0 on ",
                              changed + "; what arrived at rank 3 on ",
                              " is not the activations of stage 0 (flatten1 to fc1) that rank 2 on "});
  };
  with_pipeline(change_messages, {"parallel.stages=2"}, 4);
}

/// Two pipelines, of which the second one's first rank changes what it sends.
TEST(PipelineTest, ObserversOfADeviceSeeItsSums) {
  const auto change_sums = [](ParallelStrategy& pipeline, Communicator& comm) {
    if (comm.rank() == 2)
      pipeline.observe(std::make_shared<test::Saboteur<StepObserver>>(
          [](const ShownSums& shown) { shown.sums.front() += 1; }));
    const std::string found = test::error_of<WrongRankError>([&] { pipeline.run({}, 1, false); });
    test::expect_words(found, {"step 1: rank 2 on ", "sent other sums of "});
  };
  with_pipeline(change_sums, {"parallel.device=emulated", "parallel.stages=2", "data.global_batch=8"}, 4);
}

}  // namespace
}  // namespace lockstep
