// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Faults on purpose in the second of two steps, whose rate moves no weight. They change bits, or end the run.
#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/set_variable.hpp"
#include "tests/trainer/run/short_run.hpp"
#include "trainer/ranks/checks.hpp"
#include "trainer/run/fault_injector.hpp"
#include "trainer/setup/strategies.hpp"

namespace lockstep {
namespace {

constexpr const char* kTwoSteps =
    "model: linear\n"
    "data: {set: synthetic, train_samples: 32, test_samples: 16, global_batch: 16}\n"
    "train: {epochs: 1, optimizer: {lr: 1.0e-30}}\n"
    "parallel: {device: cpu, grain: 16, threads: 1}\n";

std::vector<std::string> fault(const std::string& what, int step = 2, int rank = 0) {
  return {"inject.what=" + what, fmt::format("inject.step={}", step), fmt::format("inject.rank={}", rank)};
}

class InjectedFaultTest : public RunOfAFewSteps {
 protected:
  /// Gives `test` the injector of each rank, before the first series, and whether it is the one of the fault.
  /// @returns standard error
  std::string with_injectors(int ranks, const std::string& what, int step,
                             const std::function<void(FaultInjector&, bool)>& test) const {
    std::vector<std::string> overrides = fault(what, step);
    if (ranks > 1)
      overrides.insert(overrides.end(), {"parallel.backend=thread", "data.global_batch=32",
                                         fmt::format("parallel.ranks={}", ranks)});
    const Job job = job_of("run", kTwoSteps, overrides);
    std::filesystem::create_directory(path("run"));
    const DatasetFuture data = load_in_advance(job);
    ::testing::internal::CaptureStderr();
    run_thread_ranks(ranks, [&](Communicator& comm) {
      const StrategyEntry& entry = find_strategy(job);
      const JobSetup setup = set_up(job, comm, data, entry.setup);
      const auto strategy = entry.make(setup, comm);
      FaultInjector injector(job, setup, *data.get().sets, comm, *strategy);
      test(injector, comm.rank() == 0);
    });
    std::filesystem::remove_all(path("run"));
    return ::testing::internal::GetCapturedStderr();
  }

  test::SetVariable allowed_{"LOCKSTEP_ALLOW_INJECT", "1"};
};

/// {place: changed bits} of the numbers that differ.
std::map<std::size_t, std::uint32_t> changes(const std::vector<float>& before,
                                             const std::vector<float>& after) {
  std::map<std::size_t, std::uint32_t> found;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(before[i]) ^ std::bit_cast<std::uint32_t>(after.at(i));
    if (bits != 0) found[i] = bits;
  }
  return found;
}

TEST_F(InjectedFaultTest, AFaultChangesTheBitsThatItNames) {
  outcome_of(job_of("right", kTwoSteps));
  const CheckpointState right = saved("right", 2);
  const auto struck = [&](const std::string& what) {
    const auto [code, said] = outcome_of(job_of("run", kTwoSteps, fault(what)));
    EXPECT_EQ(code, 0) << said;
    EXPECT_NE(said.find("lockstep: injected on purpose: rank 0, before step 2: " + what + "\n"), said.npos);
    EXPECT_EQ(text_of(path("run/injected")), "rank 0, before step 2: " + what + "\n");
    CheckpointState state = saved("run", 2);
    std::filesystem::remove_all(path("run"));
    return state;
  };
  using Changes = std::map<std::size_t, std::uint32_t>;
  for (const auto& [what, expected] : {std::pair{"flip-bit weights 7850:3", Changes{{0, 0x8}}},
                                       {"flip-bit weights", Changes{{3925, 0x1}}},
                                       {"flip-bits weights 7855:30", Changes{{5, 0xC0000022}}}})
    EXPECT_EQ(changes(right.weights, struck(what).weights), expected) << what;
  Changes stuck;
  for (std::size_t i = 8; i < right.weights.size(); i += 32)
    if ((std::bit_cast<std::uint32_t>(right.weights[i]) & 2) == 0) stuck[i] = 2;
  EXPECT_EQ(changes(right.weights, struck("stuck-bit weights 40:33").weights), stuck);
  for (const auto& [what, place] :
       {std::pair{"flip-bit momentum 1:30", std::size_t{1}}, {"flip-bit gradient 7:40", std::size_t{7}}}) {
    const auto found = changes(right.optimizer.at(0).values, struck(what).optimizer.at(0).values);
    EXPECT_EQ(found.size(), 1U) << what;
    EXPECT_TRUE(found.contains(place)) << what;
  }
}

/// The loss of the second step, of what the fault makes of its samples and outputs.
TEST_F(InjectedFaultTest, AFaultInSamplesOrOutputsChangesTheLossOfItsStep) {
  for (const auto& [what, loss] : {std::pair{"none", 2.3686},
                                   {"delay 1ms", 2.3686},
                                   {"flip-bit data 3:2", 2.36853},
                                   {"flip-bits data 3:2", 2.36781},
                                   {"wrong-forward", 2.26185},
                                   {"wrong-lane", 2.37486}}) {
    outcome_of(
        job_of("run", kTwoSteps, what == std::string("none") ? std::vector<std::string>() : fault(what)));
    std::istringstream lines(text_of(path("run/metrics.jsonl")));
    std::vector<double> losses;
    for (std::string line; std::getline(lines, line);)
      if (const Json event = Json::parse(line); event["event"] == "step") losses.push_back(event["loss"]);
    ASSERT_EQ(losses.size(), 2U);
    EXPECT_NEAR(losses[0], 2.46085, 1e-5) << what;
    EXPECT_NEAR(losses[1], loss, 1e-5) << what;
    std::filesystem::remove_all(path("run"));
  }
}

TEST_F(InjectedFaultTest, AFaultStrikesOnceUnlessTheRunBeginsAnew) {
  const std::vector<std::string> nan = fault("nan");
  const auto [code, said] = outcome_of(job_of("run", kTwoSteps, nan));
  EXPECT_EQ(code, 70);
  test::expect_words(said,
                     {"lockstep: injected on purpose: rank 0, before step 2: nan\n"
                      "lockstep: step 2: the loss of 16 of 16 samples and the gradient of fc.bias are NaN "
                      "or infinite; fc.weight has a weight of nan. Try this: "});
  EXPECT_EQ(Json::parse(text_of(path("run/status.json")))["state"], "failed");
  EXPECT_EQ(Json::parse(text_of(path("run/status.json")))["step"], 1);
  const auto [code_again, said_again] = outcome_of(job_of("run", kTwoSteps, nan));
  EXPECT_EQ(code_again, 0);
  EXPECT_EQ(said_again.find("injected"), said_again.npos);
  outcome_of(job_of("right", kTwoSteps));
  EXPECT_EQ(saved("run", 2).weights, saved("right", 2).weights);
  std::vector<std::string> anew = nan;
  anew.emplace_back("run.resume=never");
  EXPECT_EQ(outcome_of(job_of("run", kTwoSteps, anew)).first, 70);
  EXPECT_EQ(outcome_of(job_of("run", kTwoSteps, fault("nan", 1))).first, 70) << "another fault";
  std::vector<std::string> staged = nan;
  staged.emplace_back("parallel.strategy=pipeline");
  test::expect_words(outcome_of(job_of("staged", kTwoSteps, staged)).second,
                     {"; fc.weight has a weight of nan. Try this: "});
  EXPECT_EQ(outcome_of(job_of("late", kTwoSteps, fault("nan", 3))).first, 0) << "after the last step";
}

TEST_F(InjectedFaultTest, AFaultThatCannotStrikeIsRefused) {
  const auto [code, said] = outcome_of(job_of("run", kTwoSteps, fault("nan", 2, 1)));
  EXPECT_EQ(code, 2);
  EXPECT_TRUE(said.ends_with("lockstep: inject.rank: there is no rank 1, only 0 to 0\n")) << said;
  std::filesystem::remove_all(path("run"));
  EXPECT_EQ(message_of<ConfigError>([&] { train(job_of("run", kTwoSteps, fault("flip-bit statistics"))); }),
            "inject.what: this network keeps no running statistics");
  std::vector<std::string> on_a_device = fault("flip-bit data");
  on_a_device.emplace_back("parallel.device=emulated");
  EXPECT_EQ(message_of<ConfigError>([&] { train(job_of("device", kTwoSteps, on_a_device)); }),
            "inject.what: data on a GPU cannot be reached; use parallel.device=cpu");
  EXPECT_EQ(outcome_of(job_of("run", kTwoSteps)).first, 0) << "its lock is given back";
  std::filesystem::remove_all(path("run"));
  for (const char* allowed : {"", "0", "11"}) {
    setenv("LOCKSTEP_ALLOW_INJECT", allowed, 1);
    EXPECT_EQ(
        message_of<ConfigError>([&] { train(job_of("run", kTwoSteps, fault("nan"))); }),
        "override 'inject.what=nan': inject makes a rank fail on purpose, and is only for tests: set "
        "LOCKSTEP_ALLOW_INJECT=1 if that is what you want (mpirun -x LOCKSTEP_ALLOW_INJECT=1 sets it on "
        "all hosts), or remove inject");
  }
  EXPECT_FALSE(std::filesystem::exists(path("run")));
}

/// Sixteen sums in two buckets, of which that of the arena's beginning comes last.
TEST_F(InjectedFaultTest, SumsOfOneStepAreHit) {
  const auto told = with_injectors(2, "flip-bit link 9:0", 2, [](FaultInjector& injector, bool is_hit) {
    injector.before_series(1);
    std::array<std::int64_t, 16> sums{};
    sums[9] = 1;
    EXPECT_EQ(injector.sees_sums(), is_hit);
    injector.sums_arrived({8, sums.size(), std::span(sums).subspan(8)});
    EXPECT_EQ(sums[9], is_hit ? 0 : 1);
    EXPECT_EQ(injector.sees_sums(), is_hit);
    injector.sums_arrived({0, sums.size(), std::span(sums).first(8)});
    EXPECT_FALSE(injector.sees_sums());
  });
  EXPECT_EQ(told, "lockstep: injected on purpose: rank 0, before step 2: flip-bit link 9:0\n") << "once";
  with_injectors(2, "swapped-message", 2, [](FaultInjector& injector, bool is_hit) {
    injector.before_series(1);
    std::array<std::int64_t, 4> sums{1, 2, 3, 4};
    injector.sums_arrived({0, sums.size(), sums});
    EXPECT_EQ(sums[0], is_hit ? 3 : 1);
  });
}

TEST_F(InjectedFaultTest, ASeriesEndsBeforeTheStepOfAFault) {
  for (const bool lasts : {false, true})
    with_injectors(1, lasts ? "slow 400%" : "nan", 5, [&](const FaultInjector& injector, bool) {
      for (const auto& [taken, most, series] :
           {std::tuple{0, 10, 4}, {0, 3, 3}, {3, 10, 1}, {4, 10, lasts ? 1 : 10}, {7, 10, lasts ? 1 : 10}})
        EXPECT_EQ(injector.series_from(taken, most), series) << taken;
    });
}

/// Times are the thread's own, which other threads do not change; a delay lasts no shorter than it says.
TEST_F(InjectedFaultTest, TimeIsLostOnceOrInEachStepByAShareOfTheTimeSinceTheLast) {
  with_injectors(1, "delay 200ms", 2, [](FaultInjector& injector, bool) {
    const auto start = Clock::now();
    injector.before_series(1);
    EXPECT_GE(seconds_since(start), 0.2);
  });
  with_injectors(1, "busy 400%", 2, [](FaultInjector& injector, bool) {
    std::array<float, 2> outputs{};
    const auto seconds_lost = [&] {
      const double before = thread_seconds();
      injector.outputs_computed(outputs, 1);
      return thread_seconds() - before;
    };
    constexpr double kShare = 4.0 / (1 + 4), kOfClock = 0.01;
    const auto start = Clock::now();
    injector.before_series(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const auto next = Clock::now();
    injector.before_series(2);
    const double taken = seconds_since(start), lost = seconds_lost();
    EXPECT_GE(lost, kShare * 0.2);
    EXPECT_LE(lost, kShare * taken + kOfClock);
    injector.before_series(3);
    const double taken_by_next = seconds_since(next);
    EXPECT_LE(seconds_lost(), kShare * taken_by_next + kOfClock);
    EXPECT_EQ(outputs, (std::array<float, 2>{}));
  });
  with_injectors(1, "slow 400%", 2, [](FaultInjector& injector, bool) {
    std::array<float, 2> outputs{};
    injector.before_series(7);  // a run may go on behind that step
    injector.outputs_computed(outputs, 1);
  });
}

TEST_F(InjectedFaultTest, OutputsAreHitOnce) {
  with_injectors(1, "wrong-lane", 2, [](FaultInjector& injector, bool) {
    std::array<float, 2> outputs{};
    injector.before_series(1);
    for (int time = 0; time < 2; ++time) injector.outputs_computed(outputs, 1);
    EXPECT_EQ(outputs, (std::array<float, 2>{1, 0}));
  });
}

/// Every step is replayed: what was saved before it is sure.
TEST_F(InjectedFaultTest, ARunGoesOnFromTheStepThatWasReplayedLast) {
  std::vector<std::string> overrides = fault("wrong-forward", 2, 1);
  overrides.insert(overrides.end(),
                   {"parallel.backend=thread", "parallel.ranks=2", "data.train_samples=64",
                    "data.global_batch=32", "parallel.replay_every_steps=1", "run.checkpoint_every_steps=1"});
  const auto [code, said] = outcome_of(job_of("run", kTwoSteps, overrides));
  EXPECT_EQ(code, 72);
  test::expect_words(said, {". The same command goes on from the checkpoint of step 1\n"});
}

TEST_F(InjectedFaultTest, WrongSumsAreLaidToTheirRank) {
  const char* const on_the_way = "what arrived at rank 1 on ";
  for (const auto& [what, words] : {std::pair{"stale-message", on_the_way},
                                    {"swapped-message", on_the_way},
                                    {"flip-bit link 5:3", on_the_way},
                                    {"stuck-bit link", on_the_way},
                                    {"flip-bits sums 5:3", "rank 1 on "},
                                    {"flip-bit weights 5:3", "rank 0 on "}}) {
    std::vector<std::string> overrides = fault(what, 2, 1);
    overrides.insert(overrides.end(), {"parallel.backend=thread", "parallel.ranks=2", "data.train_samples=64",
                                       "data.global_batch=32"});
    const auto [code, said] = outcome_of(job_of("run", kTwoSteps, overrides));
    EXPECT_EQ(code, 72) << what;
    test::expect_words(said, {std::string("lockstep: step 2: ") + words,
                              "Nothing was saved before: the same command begins anew"});
    const Json status = Json::parse(text_of(path("run/status.json")));
    EXPECT_EQ(status["state"], "failed");
    EXPECT_EQ(status["step"], 2);
    EXPECT_EQ(status["exclude_hosts"].size(), std::string(words) == "rank 0 on " ? 2U : 1U) << what;
    std::filesystem::remove_all(path("run"));
  }
}

}  // namespace
}  // namespace lockstep
