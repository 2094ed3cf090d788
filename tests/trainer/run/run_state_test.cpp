// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The position and the numbers of a run: how they add up, and their way into a checkpoint and back.
#include "trainer/run/run_state.hpp"

#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/run/short_run.hpp"
#include "trainer/training/weight_update.hpp"

namespace lockstep {
namespace {

TEST(RunStateTest, SpacingOfLogsGrowsWithTheStepsTaken) {
  Job job;
  std::int64_t before = 1;
  EXPECT_EQ(log_spacing(job, 0), before);
  for (const auto& [from, spacing] :
       {std::pair{100, 2}, {200, 5}, {500, 10}, {1000, 20}, {2000, 50}, {5000, 100}}) {
    EXPECT_EQ(log_spacing(job, from - 1), before) << from;
    EXPECT_EQ(log_spacing(job, from), spacing) << from;
    before = spacing;
  }
  for (const std::int64_t spacing : {0, 7}) {
    job.run.log_every_steps = spacing;
    EXPECT_EQ(log_spacing(job, 5000), spacing);
  }
}

TEST(RunStateTest, TheShorterLimitCounts) {
  Job job;
  job.train.epochs = 3;
  for (const auto& [most, steps] : {std::pair{0, 12}, {5, 5}, {12, 12}, {20, 12}}) {
    job.train.max_steps = most;
    EXPECT_EQ(steps_asked(job, 4), steps) << most;
  }
}

TEST(RunStateTest, StepsAddUpUntilTheNextEpoch) {
  RunState state;
  state.test_accuracy = state.validation_accuracy = 0.5;
  state.add({});
  EXPECT_EQ(state.test_accuracy, 0.5);
  state.add({2, 32, 5, units_of(0.25)});
  state.add({1, 8, 4, units_of(0.5)});
  const LossWindow both{3, 40, 9, units_of(0.75)};
  EXPECT_EQ(state.step, 3);
  EXPECT_EQ(state.epoch_so_far(), both);
  EXPECT_EQ(state.unprinted, both);
  EXPECT_EQ(state.unlogged, both);
  EXPECT_EQ(state.epoch_loss(), 0.75);
  EXPECT_EQ(state.accuracy(), std::nullopt);
  state.start_next_epoch();
  RunState next;
  next.step = 3;
  next.epoch = 1;
  EXPECT_EQ(state, next);
}

/// Three steps of 16, 16 and 8 samples an epoch.
TEST(RunStateTest, APositionIsOneOfTheJob) {
  const DistributedSampler sampler({.samples = 40, .global_batch = 16, .grain = 8});
  const auto at = [](std::int64_t epoch, std::int64_t step_in_epoch, std::int64_t samples) {
    CheckpointFacts facts;
    facts.epoch = epoch;
    facts.step_in_epoch = step_in_epoch;
    facts.step = 3 * epoch + step_in_epoch;
    facts.epoch_samples = facts.epoch_correct = samples;
    facts.unprinted = facts.unlogged = LossWindow{step_in_epoch, samples, samples, {}};
    return facts;
  };
  for (const auto& [steps, samples] : {std::pair{0, 0}, {1, 16}, {2, 32}, {3, 40}})
    EXPECT_NO_THROW(require_possible_position(at(1, steps, samples), sampler)) << steps;
  CheckpointFacts first;
  first.step = first.step_in_epoch = 1;
  first.epoch_samples = 16;
  const DistributedSampler two_steps({.samples = 24, .global_batch = 16, .grain = 8});
  EXPECT_NO_THROW(require_possible_position(first, two_steps)) << "the last step is smaller";
  const std::function<void(CheckpointFacts&)> changes[] = {
      [](auto& facts) { facts.step_in_epoch = 4, facts.step = 7, facts.epoch_samples = 40; },
      [](auto& facts) { facts.step += 1; },
      [](auto& facts) { facts.step += 3; },
      [](auto& facts) { facts.epoch = 2; },
      [](auto& facts) { facts.step = INT64_MAX; },
      [](auto& facts) { facts.epoch = INT64_MAX; },
      [](auto& facts) { facts.step_in_epoch = INT64_MAX; },
      [](auto& facts) { facts.epoch = -1, facts.step = -1; },
      [](auto& facts) { facts.epoch_samples = 33; },
      [](auto& facts) { facts.epoch_correct = 33; },
      [](auto& facts) { facts.epoch_correct = -1, facts.unlogged.correct = -1; },
      [](auto& facts) { facts.epoch_loss_sum = std::numeric_limits<double>::infinity(); },
      [](auto& facts) { facts.unprinted->steps = 3; },
      [](auto& facts) { facts.unprinted->samples = 33; },
      [](auto& facts) { facts.unlogged.steps = 3; },
      [](auto& facts) { facts.unlogged.samples = 33; },
      [](auto& facts) { facts.unlogged.correct = 33; }};
  for (const auto& change : changes) {
    CheckpointFacts facts = at(1, 2, 32);
    change(facts);
    EXPECT_THROW(require_possible_position(facts, sampler), DataError) << &change - changes;
  }
  CheckpointFacts facts = at(1, 2, 32);
  facts.epoch_samples = 31;
  EXPECT_EQ(
      message_of<DataError>([&] { require_possible_position(facts, sampler); }),
      "the checkpoint of step 5 is after 1 epoch, 2 steps and 31 samples, where a run with 3 steps an "
      "epoch in batches of 16 cannot be: the data set has changed its size, or the manifest is damaged; "
      "bring the data back as they were, or start afresh with run.resume=never or another run.dir");
}

/// Four steps an epoch, of which the last has 4 samples.
Job job_of_100_samples() {
  Job job;
  job.data.set = "synthetic";
  job.data.global_batch = 32;
  job.data.train_samples = 100;
  job.data.test_samples = 20;
  job.parallel.device = "cpu";
  job.parallel.grain = 16;
  job.run.print_loss_every_steps = 3;
  return job;
}

/// A run on one rank, behind the second step of its second epoch, and its checkpoint.
struct MiddleOfARun {
  explicit MiddleOfARun(Communicator& comm)
      : setup(set_up(job, comm, load_in_advance(job), kDataParallelSetup,
                     [](const Dataset&) {
                       return Network::parse("layers:\n  - flatten\n  - linear: classes\n", "test.yaml",
                                             {1, 28, 28}, 10);
                     })),
        sampler(sampler_options(setup, comm)) {
    state.epoch = 1, state.step_in_epoch = 2, state.step = 6;
    state.epoch_samples = 64, state.epoch_correct = 17;
    state.epoch_loss_units.add(0x1p70), state.unprinted->loss_units.add(0x1p60);
    state.unprinted->steps = 2, state.unprinted->samples = 64;
    state.unlogged.steps = 1, state.unlogged.samples = 32, state.unlogged.correct = 5;
    state.test_accuracy = 0.75;
    GradientUnits then = fresh_units();
    then.restore(std::vector<std::int16_t>{-7, 3}, 5);
    checkpoint.facts = checkpoint_facts(state, job, setup, comm, then);
    const std::size_t count = setup.network.parameters().weights_size();
    for (std::size_t i = 0; i < count; ++i) checkpoint.weights.push_back(static_cast<float>(i) + 0.5F);
    checkpoint.optimizer = {{"momentum", checkpoint.weights}};
  }
  GradientUnits fresh_units() const { return make_gradient_units(setup.network.parameters(), 2); }

  /// Brings it back to where nothing is yet.
  RunState come_back() {
    weights.assign(checkpoint.weights.size(), 0);
    return restore(checkpoint, job, setup, sampler, {weights, buffers.views(), units});
  }

  Job job = job_of_100_samples();
  JobSetup setup;
  DistributedSampler sampler;
  RunState state;
  CheckpointState checkpoint;
  std::vector<float> weights;
  OptimizerBuffers buffers{{"momentum"}, setup.network.parameters().size};
  GradientUnits units = fresh_units();
};

TEST(RunStateTest, EverythingOfTheMiddleOfARunComesBack) {
  run_thread_ranks(1, [](Communicator& comm) {
    MiddleOfARun run(comm);
    RunState expected = run.state;
    expected.patience->counted_from = 6;  // the checkpoint has none
    EXPECT_EQ(run.come_back(), expected);
    EXPECT_EQ(run.weights, run.checkpoint.weights);
    EXPECT_TRUE(std::ranges::equal(run.buffers.values(0), run.checkpoint.weights));
    EXPECT_TRUE(std::ranges::equal(run.units.exponents(), std::vector<std::int16_t>{-7, 3}));
    EXPECT_EQ(run.units.changed_at(), 5);
  });
}

TEST(RunStateTest, WhatIsOfAnotherRunOrCannotBeIsRefused) {
  run_thread_ranks(1, [](Communicator& comm) {
    MiddleOfARun run(comm);
    const CheckpointState good = run.checkpoint;
    const std::function<void(CheckpointFacts&)> changes[] = {
        [](auto& facts) { facts.model["mean"] += "1"; },
        [](auto& facts) { facts.parameters.back().name = "other"; },
        [](auto& facts) {
          facts.kept = {{"bn.running_mean", {2}}};
        },
        [](auto& facts) { facts.data["train_labels_sha256"][0] ^= 1; },
        [](auto& facts) { facts.data["test_labels_sha256"][0] ^= 1; },
        [](auto& facts) { facts.data["test_samples_sha256"][0] ^= 1; },
        [](auto& facts) { facts.epoch = 2; }};
    EXPECT_NO_THROW(run.come_back());
    for (const auto& change : changes) {
      run.checkpoint = good;
      change(run.checkpoint.facts);
      EXPECT_THROW(run.come_back(), Error) << &change - changes;
    }
    run.checkpoint = good;
    run.checkpoint.optimizer[0].name = "exp_avg";
    EXPECT_EQ(message_of<DataError>([&] { run.come_back(); }),
              "the checkpoint of step 6 holds of its optimiser: exp_avg; the job's optimiser remembers: "
              "momentum; start afresh with run.resume=never or another run.dir");
  });
}

TEST(RunStateTest, WhatACheckpointDoesNotSayBeginsHere) {
  run_thread_ranks(1, [](Communicator& comm) {
    MiddleOfARun run(comm);
    run.checkpoint.facts.unprinted.reset();
    run.checkpoint.facts.test_accuracy.reset();
    run.checkpoint.facts.arithmetic.version = 3;
    const RunState state = run.come_back();
    EXPECT_EQ(state.unprinted, LossWindow());
    EXPECT_EQ(state.patience->counted_from, 5) << "its evaluation is still to come";
    EXPECT_EQ(state.arithmetic.since, 6);
  });
}

TEST(RunStateTest, PatienceIsCountedAnewOnAnotherTestSet) {
  run_thread_ranks(1, [](Communicator& comm) {
    MiddleOfARun run(comm);
    CheckpointFacts& facts = run.checkpoint.facts;
    const CheckpointPatience then{.best = 1, .without_better = 2, .counted_from = 0};
    const auto patience = [&] {
      RunState state = facts;
      state.patience = then;
      restart_patience(state, facts, run.job, run.setup);
      return *state.patience;
    };
    EXPECT_EQ(patience(), then);
    facts.data["test_samples"] = "1";
    EXPECT_EQ(patience(), (CheckpointPatience{-1, 0, 6}));
    facts.test_accuracy.reset();
    EXPECT_EQ(patience(), (CheckpointPatience{-1, 0, 5})) << "its evaluation is still to come";
    facts.step = 0;
    EXPECT_EQ(patience(), (CheckpointPatience{-1, 0, 0}));
    run.job.data.validation.samples = 10;
    EXPECT_EQ(patience(), then) << "judged by held-out samples";
  });
}

TEST(RunStateTest, ACheckpointHasWhatItsJobAsksFor) {
  run_thread_ranks(1, [](Communicator& comm) {
    MiddleOfARun run(comm);
    const auto facts = [&] { return checkpoint_facts(run.state, run.job, run.setup, comm, run.units); };
    EXPECT_EQ(facts().unprinted, run.state.unprinted);
    EXPECT_EQ(facts().unlogged, run.state.unlogged);
    EXPECT_EQ(facts().patience, std::nullopt);
    run.job.run.print_loss_every_steps = 0;
    run.job.run.log_every_steps = 0;
    run.job.train.patience = 2;
    EXPECT_EQ(facts().unprinted, std::nullopt);
    EXPECT_EQ(facts().unlogged, LossWindow());
    EXPECT_EQ(facts().patience, run.state.patience);
    EXPECT_EQ(facts().epoch_loss_sum, run.state.epoch_loss());
    EXPECT_EQ(facts().world.at("ranks"), "1");
    EXPECT_EQ(facts().bucket_plan, run.setup.plan.describe());
    EXPECT_EQ(facts().bucket_sizes.size(), run.setup.plan.buckets.size());
    std::promise<bool> unreadable;
    unreadable.set_exception(std::make_exception_ptr(IoError("a disk")));
    run.setup.light_background = unreadable.get_future().share();
    EXPECT_EQ(facts().data.at("background"), "dark");
  });
}

TEST(RunStateTest, ATrailSaysWhatItIsOf) {
  run_thread_ranks(1, [](Communicator& comm) {
    MiddleOfARun run(comm);
    const auto facts = trail_head(run.job, run.setup, {"momentum"}).facts;
    const Fingerprint& train = run.setup.data->train.quick;
    EXPECT_EQ(facts.at("data.train_samples"), "100");
    EXPECT_EQ(facts.at("data.train_samples_digest"), train.samples);
    EXPECT_EQ(facts.at("data.train_labels_digest"), train.labels);
    EXPECT_EQ(facts.at("job.data.set"), "synthetic");
    EXPECT_EQ(facts.at("model.classes"), "10");
  });
}

}  // namespace
}  // namespace lockstep
