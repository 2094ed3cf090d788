// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Ranks whose sums, labels or weights are wrong are named, where sums travel on streams too.
#include "common/error.hpp"
#include "kernels/device_buffer.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/saboteur.hpp"
#include "tests/trainer/training/data_parallel_fixture.hpp"

namespace lockstep {

namespace {

using namespace data_parallel_test;

using test::See;
using Saboteur = test::Saboteur<StepObserver>;

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
TEST(WrongSumsTest, SecondSumThatArrivesWronglyIsNamed) {
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

void expect_named_with_other_samples(const std::function<void(Dataset&)>& change) {
  run_thread_ranks(3, [&](Communicator& comm) {
    Job job = make_job();
    job.data.global_batch = 3;
    job.parallel.replay_every_steps = 1;
    auto data = make_data();
    if (comm.rank() == 1) change(data->train);
    const JobSetup setup = setup_of(job, kOneLayer, kOneBucket, nullptr, std::move(data));
    const std::unique_ptr<ParallelStrategy> strategy = make_data_parallel(setup, comm);
    check_ranks(*strategy, setup, comm);
    strategy->distribute();
    const WrongNumbers found = found_in([&] { strategy->run({}, 1, false); });
    EXPECT_EQ(found.ranks, std::vector{1});
    test::expect_words(found.what, {"its training samples are not those of the others"});
  });
}

TEST(WrongSumsTest, ARankWhoseLabelsOrPicturesChangedIsNamed) {
  expect_named_with_other_samples([](Dataset& set) { std::ranges::fill(set.labels, 0); });
  expect_named_with_other_samples(
      [](Dataset& set) { std::ranges::fill(set.images.span(), std::uint8_t{200}); });
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

TEST(WrongSumsTest, SumsOnStreamsAreComparedWhereTheHostLooks) {
  run_thread_ranks(3, [](Communicator& comm) {
    const auto change = [](const ShownSums& shown) { shown.sums.front() += 1; };
    const auto expect_named = [&](const char* model, const See& leaving, const See& arrived,
                                  const std::string& why) {
      const auto spoil = [&](ParallelStrategy& strategy) {
        strategy.observe(std::make_shared<Saboteur>(leaving, arrived));
      };
      const WrongNumbers found = found_in([&] { weights_after(comm, 3, model, spoil); });
      EXPECT_EQ(found.step, 3);
      test::expect_words(found.what, {"rank 1 on ", why});
    };
    for (const char* model : {"layers:\n  - linear: 3\n  - relu\n  - linear: classes\n", kWithBatchNorm}) {
      const auto none = [](ParallelStrategy&) {};
      EXPECT_EQ(weights_after(comm, 3, model, none), weights_after(comm, 0, model, none));
      expect_named(model, {}, change, "what arrived at ");
      expect_named(model, change, {}, "its memory changed them");
    }
  });
}

TEST(WrongSumsTest, ReplaysOfSumsOnStreamsNameTheRank) {
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

TEST(WrongSumsTest, ADeviceShowsSamplesStateAndComparedSums) {
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

}  // namespace

}  // namespace lockstep
