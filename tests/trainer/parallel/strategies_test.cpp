// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Promises that strategies have in common: whose state all start from, what is told of a step, and its bits.
#include "trainer/setup/strategies.hpp"

#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/parallel/strict_link.hpp"
#include "trainer/config/job.hpp"
#include "trainer/setup/job_setup.hpp"

namespace lockstep::strategies_test {
namespace {

/// An epoch has two steps, of four grains and of two.
constexpr const char* kJob =
    "model: net\n"
    "data: {set: synthetic, train_samples: 24, test_samples: 10, global_batch: 16}\n"
    "train: {optimizer: {lr: 0.1, momentum: 0.5}}\n"
    "parallel: {device: cpu, backend: thread, grain: 4}\n";

/// Neither in it nor in the next one units are refined.
constexpr std::int64_t kUnrefinedStep = 5;

using Check = std::function<void(ParallelStrategy&, const JobSetup&, Communicator&)>;

/// @param normal_std  of the weights; 0: as they are by default
void with_strategy(int ranks, const std::vector<std::string>& keys, const Check& check,
                   double normal_std = 0) {
  const Job job = parse_job(kJob, "test.yaml", keys);
  const DatasetFuture data = load_in_advance(job);
  run_thread_ranks(ranks, [&](Communicator& comm) {
    const StrategyEntry& entry = find_strategy(job);
    const JobSetup setup = set_up(job, comm, data, entry.setup, [](const Dataset& train) {
      return Network::parse("layers:\n  - linear: 12\n  - relu\n  - dropout: 0.3\n  - linear: classes\n",
                            "test.yaml", train.shape, train.classes);
    });
    if (setup.device.gpu != nullptr) setup.device.gpu->make_link = test::make_strict_link;
    const auto strategy = entry.make(setup, comm);
    if (comm.rank() == 0) setup.network.initialise(7, strategy->whole_state().weights, normal_std);
    strategy->distribute();
    check(*strategy, setup, comm);
  });
}

TEST(StrategiesTest, TheStateOfRankZeroIsThatOfAllRanks) {
  for (const std::string name : {"data", "hogwild", "pipeline"}) {
    const auto change_and_distribute = [&](ParallelStrategy& strategy, const JobSetup&, Communicator& comm) {
      const TrainedState whole = strategy.whole_state();
      EXPECT_EQ(whole.weights.empty(), name == "pipeline" && comm.rank() != 0);
      EXPECT_EQ(whole.units.global_grains(), 4);
      if (comm.rank() == 0) {
        whole.units.restore(std::vector<std::int16_t>(whole.units.tensors(), -30), 7);
        std::ranges::fill(whole.optimizer.at(0).values, 0.5F);
      }
      strategy.distribute();
      EXPECT_EQ(whole.units.exponents().front(), -30);
      EXPECT_EQ(whole.units.changed_at(), 7);
      int visits = 0;
      strategy.visit_own_state([&](const TrainedState& own) {
        ++visits;
        EXPECT_EQ(own.optimizer.at(0).values.front(), 0.5F);
        return false;
      });
      EXPECT_EQ(visits, 1);
    };
    with_strategy(2,
                  {"parallel.strategy=" + name,
                   std::string("parallel.determinism=") + (name == "hogwild" ? "off" : "world")},
                  change_and_distribute);
  }
}

/// Notes step and phase of its rank when it is told something.
class Phases final : public StepObserver {
 public:
  explicit Phases(const RankActivity& activity) : activity_(activity) {}
  void outputs_computed(std::span<float> /*outputs*/, int /*lanes*/) override { note(); }
  void before_update(ReducedStep& /*step*/) override { note(); }
  void note() {
    const std::lock_guard lock(mutex_);
    const RankStatus now = activity_.status();
    seen.insert(fmt::format("{} {}", now.step, phase_name(now.phase)));
  }
  std::set<std::string> seen;

 private:
  std::mutex mutex_;
  const RankActivity& activity_;
};

TEST(StrategiesTest, TheActivityOfARankIsItsStepAndPhase) {
  for (const std::string name : {"data", "pipeline"}) {
    const auto take_a_step = [](ParallelStrategy& strategy, const JobSetup&, Communicator& comm) {
      const auto phases = std::make_shared<Phases>(comm.activity());
      strategy.observe(phases);
      strategy.run({.epoch = 0, .step_in_epoch = 1, .global_step = 41}, 1, false);
      phases->note();
      EXPECT_EQ(phases->seen,
                (std::set<std::string>{"42 computing", "42 reducing gradients", "42 updating weights"}));
    };
    with_strategy(2, {"parallel.strategy=" + name}, take_a_step);
  }
}

/// On three ranks one has no share to compute, and the others do not wait for it.
TEST(StrategiesTest, TheSharesOfTwoRanksWeighTheSameOnAnyRanks) {
  std::set<std::uint64_t> sums;
  for (const int ranks : {1, 2, 3}) {
    with_strategy(ranks, {}, [&](ParallelStrategy& strategy, const JobSetup& setup, Communicator& comm) {
      const DistributedSampler sampler(sampler_options(setup.options, setup.data->train, 0, 2));
      const auto weighing =
          std::make_shared<ShareWeighing>(std::vector{sampler.grains_of(0, 0), sampler.grains_of(1, 0)},
                                          setup.network.parameters().parameters.size(), comm);
      strategy.observe(weighing);
      strategy.run({}, 1, false);
      ASSERT_TRUE(weighing->sum());
      if (comm.rank() == 0) sums.insert(*weighing->sum());
    });
  }
  EXPECT_EQ(sums.size(), 1U);
}

TEST(StrategiesTest, TheShareThatIsRoundedToZeroIsThatOfAllRanks) {
  run_thread_ranks(2, [](Communicator& comm) {
    const std::int64_t rank = comm.rank();
    EXPECT_EQ(share_rounded_to_zero(comm, std::nullopt), std::nullopt);
    EXPECT_EQ(share_rounded_to_zero(comm, cpu::int16::RoundingCount{4 * rank, rank}), 0.25);
    EXPECT_EQ(share_rounded_to_zero(comm, cpu::int16::RoundingCount{rank, rank}), 1.0);
    EXPECT_EQ(share_rounded_to_zero(comm, cpu::int16::RoundingCount{}), 0.0) << "of none";
  });
}

/// All that an epoch leaves on rank 0.
struct Result {
  std::vector<double> numbers;
  std::optional<double> norm;  ///< nothing on devices
};

/// Beginning of a run.
struct Start {
  double normal_std = 0;
  std::vector<std::string> keys;
  std::vector<std::int16_t> exponents;  ///< none: the first ones
};

Result result_of(int ranks, const Start& start, const std::vector<std::string>& keys) {
  Result result;
  const auto take_steps = [&](ParallelStrategy& strategy, const JobSetup& setup, Communicator& comm) {
    if (!start.exponents.empty()) {
      if (comm.rank() == 0) strategy.whole_state().units.restore(start.exponents, 0);
      strategy.distribute();
    }
    const StepSeries series = strategy.run(
        {.epoch = 0, .step_in_epoch = 0, .global_step = start.exponents.empty() ? 0 : kUnrefinedStep}, 2,
        comm.rank() == 1);
    EXPECT_EQ(series.steps, 2);
    EXPECT_EQ(series.samples, 24);
    EXPECT_EQ(series.last.samples, 8);
    EXPECT_EQ(series.last.stop_requested, comm.size() > 1);
    EXPECT_EQ(series.own_sums.size(), strategy.teams().count() > 1 ? 2U : 0U);
    const Evaluation judged = strategy.evaluate(EvaluatedPart::kTest, never_leave);
    const std::optional<double> norm = strategy.measures().gradient_norm;
    EXPECT_EQ(norm.has_value(), setup.device.gpu == nullptr);
    strategy.visit_own_state([&](const TrainedState& own) {
      if (comm.rank() == 0) own.weights.front() += 1;
      return true;
    });
    strategy.collect();
    if (comm.rank() != 0) return;
    const TrainedState state = strategy.whole_state();
    result = {{series.last.loss(), judged.loss, static_cast<double>(series.correct + judged.correct)}, norm};
    for (const auto values : {state.weights, state.optimizer.at(0).values})
      result.numbers.insert(result.numbers.end(), values.begin(), values.end());
    for (const int exponent : state.units.exponents()) result.numbers.push_back(exponent);
  };
  std::vector<std::string> all = start.keys;
  all.insert(all.end(), keys.begin(), keys.end());
  with_strategy(ranks, all, take_steps, start.normal_std);
  return result;
}

/// In the second job gradients of both matrices are too large for the first units. In the third each has units of
/// its own.
TEST(StrategiesTest, EachEndsInTheBitsOfOneRank) {
  const std::string pipeline = "parallel.strategy=pipeline", to_and_fro = "parallel.placement=[0,1,0]";
  const std::vector<std::pair<int, std::vector<std::string>>> ways = {
      {2, {"parallel.threads=2"}},
      {2, {pipeline}},
      {4, {pipeline, "parallel.stages=2"}},
      {2, {pipeline, "parallel.stages=3", to_and_fro, "parallel.device=emulated"}}};
  const std::vector<Start> starts = {
      {0, {"data.augment=[{mixup: {alpha: 0.5}}]"}, {}},
      {1000, {"data.std=1e-4", "train.optimizer.lr=1e-9"}, {}},
      {0, {}, {kExactExponent, kExactExponent, kExactExponent + 20, kExactExponent + 20}}};
  for (const Start& start : starts) {
    const Result alone = result_of(1, start, {});
    ASSERT_TRUE(alone.norm);
    EXPECT_EQ(alone.numbers.at(alone.numbers.size() - 4) > kExactExponent, start.normal_std > 0);
    for (const auto& [ranks, way] : ways) {
      const Result found = result_of(ranks, start, way);
      EXPECT_TRUE(found.numbers == alone.numbers) << ranks << " ranks, " << way.back();
      EXPECT_EQ(found.norm.value_or(*alone.norm), *alone.norm);
    }
  }
}

}  // namespace
}  // namespace lockstep::strategies_test
