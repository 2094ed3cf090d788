// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Counts of an evaluation, and its loss for people.
#include "trainer/training/evaluator.hpp"

#include "comm/thread/thread_ranks.hpp"
#include "models/network.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep {
namespace {

TEST(LossTextTest, MissingLossesAreCounted) {
  EXPECT_EQ(describe_loss({.samples = 10000, .correct = 12, .loss = 2.5}), "2.5000");
  StepCounters counters;
  counters.values[kSamples] = 10000;
  counters.values[kCorrect] = 12;
  counters.values[kRefused] = 1234;
  run_thread_ranks(1, [&](Communicator& comm) {
    const Evaluation broken = evaluation_over_all(comm, counters);
    EXPECT_EQ(describe_loss(broken), "not finite (1,234 of 10,000 samples)");
    EXPECT_TRUE(std::isnan(broken.loss));
    EXPECT_EQ(broken.accuracy(), 0.0012);
    const Evaluation nothing = evaluation_over_all(comm, {});
    EXPECT_EQ(nothing.loss, 0);
    EXPECT_EQ(nothing.accuracy(), 0);
    for (const std::int64_t few : {1, 3})
      EXPECT_EQ((Evaluation{.samples = few, .correct = few}.accuracy()), 1) << few;
    LossSums sums;
    sums.loss = 2.5;
    EXPECT_EQ(evaluation_over_all(comm, loss_counters(sums, 1, 0)).loss, 2.5);
  });
}

/// Two features, of which the larger one is the class; every third label is the other one.
Dataset thirds_are_wrong(std::int64_t samples) {
  Dataset set;
  set.shape = {2, 1, 1};
  set.classes = 2;
  set.features = AlignedBuffer<float>(static_cast<std::size_t>(2 * samples));
  for (std::int64_t i = 0; i < samples; ++i) {
    const auto larger = static_cast<std::size_t>(i % 2);
    set.features.data()[2 * static_cast<std::size_t>(i) + larger] = 1;
    set.labels.push_back(static_cast<std::int32_t>(i % 3 == 2 ? 1 - larger : larger));
  }
  return set;
}

/// Grains of 4: of 27 samples, the last has 3, and of 3 samples there are more ranks than grains.
TEST(EvaluationTest, EverySampleCountsOnceOnAnyNumberOfRanksAndThreads) {
  const Network network =
      Network::parse("layers:\n  - flatten\n  - linear: classes\n", "two.yaml", {2, 1, 1}, 2);
  const std::vector<float> weights = {1, 0, 0, 1, 0, 0};  // the features themselves are the logits
  ASSERT_EQ(network.parameters().size, weights.size());
  const double right = std::log(1 + std::exp(-1.0)), wrong = std::log(1 + std::exp(1.0));
  for (const std::int64_t samples : {27, 3}) {
    const Dataset set = thirds_are_wrong(samples);
    for (const auto& [ranks, thread_count] :
         std::vector<std::array<int, 2>>{{1, 1}, {1, 3}, {2, 1}, {3, 2}, {5, 1}}) {
      SCOPED_TRACE(fmt::format("{} samples, {} ranks of {} threads", samples, ranks, thread_count));
      run_thread_ranks(ranks, [&, threads_of_rank = thread_count](Communicator& comm) {
        WorkerPool pool(threads_of_rank);
        std::vector<ThreadContext> threads = make_threads(network, threads_of_rank, 4);
        for (const ThreadContext& thread : threads) EXPECT_EQ(thread.input_seconds, 0);
        const Evaluation found = evaluate(comm, pool, threads, set, LossRule(), 4, weights);
        EXPECT_EQ(found.samples, samples);
        EXPECT_EQ(found.correct, samples / 3 * 2);
        EXPECT_EQ(found.not_finite, 0);
        EXPECT_FALSE(found.interrupted);
        EXPECT_NEAR(found.loss, (2 * right + wrong) / 3, 1e-6);
        const bool last = comm.rank() + 1 == comm.size();
        EXPECT_TRUE(
            evaluate(comm, pool, threads, set, LossRule(), 4, weights, [&] { return last; }).interrupted);
      });
    }
  }
}

}  // namespace
}  // namespace lockstep
