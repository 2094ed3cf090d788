// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The events of a run as lines of metrics.jsonl, and the clocks and memory that they tell.
#include "trainer/run/run_events.hpp"

#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/run/short_run.hpp"
#include "trainer/run/progress.hpp"

namespace lockstep {
namespace {

RunState state_in_epoch_3() {
  RunState state;
  state.epoch = 2;
  state.step = 30;
  state.epoch_samples = 8;
  state.epoch_correct = 6;
  state.epoch_loss_units = units_of(16);
  return state;
}

const Evaluation kTested{.samples = 10, .correct = 9, .not_finite = 0, .loss = 0.5};
const Evaluation kValidated{.samples = 4, .correct = 1, .not_finite = 0, .loss = 1.5};

TEST(RunEventsTest, AStepHasWhatWasMeasured) {
  const RunState state = state_in_epoch_3();
  StepTotals totals;
  totals.samples = 4;
  totals.loss_units = units_of(10);
  LoggedStep step{.state = state, .totals = totals, .learning_rate = 0.5};
  EXPECT_EQ(step_event(step),
            Json::parse(R"({"event": "step", "epoch": 3, "step": 30, "loss": 2.5, "learning_rate": 0.5})"));
  step.answers = {2, 8, 6, {}};
  step.gradient_norm = 1.5;
  step.samples_per_second = 7;
  EXPECT_EQ(step_event(step),
            Json::parse(R"({"event": "step", "epoch": 3, "step": 30, "loss": 2.5, "learning_rate": 0.5,
                "train_accuracy": 0.75, "accuracy_steps": 2, "gradient_norm": 1.5, "samples_per_second": 7})"));
  EXPECT_EQ(loss_event(state, {3, 6, 0, units_of(12)}, 0.25),
            Json::parse(R"({"event": "loss", "epoch": 3, "step": 30, "steps": 3, "mean_loss": 2,
                "learning_rate": 0.25})"));
}

TEST(RunEventsTest, EvaluationsHaveTheirNames) {
  const RunState state = state_in_epoch_3();
  Evaluations evaluations{.test = kTested, .validation = kValidated};
  evaluations.averages = {
      {"ema", EvaluatedPart::kTest, {.samples = 10, .correct = 8, .not_finite = 0, .loss = 0.25}},
      {"swa", EvaluatedPart::kValidation, {.samples = 4, .correct = 3, .not_finite = 0, .loss = 0.75}}};
  EXPECT_EQ(evaluation_event(state, evaluations),
            Json::parse(R"({"event": "evaluation", "epoch": 3, "step": 30,
                "validation_loss": 1.5, "validation_accuracy": 0.25, "validation_samples": 4,
                "test_loss": 0.5, "test_accuracy": 0.9, "test_samples": 10,
                "ema_test_loss": 0.25, "ema_test_accuracy": 0.8,
                "swa_validation_loss": 0.75, "swa_validation_accuracy": 0.75})"));
  EXPECT_EQ(epoch_event({.state = state,
                         .evaluations = {.test = kTested, .validation = {}},
                         .learning_rate = 0.125,
                         .rounded_to_zero = 0.5}),
            Json::parse(R"({"event": "epoch", "epoch": 3, "step": 30, "train_loss": 2, "train_accuracy": 0.75,
                "train_samples": 8, "train_seconds": 0, "learning_rate": 0.125,
                "test_loss": 0.5, "test_accuracy": 0.9, "test_samples": 10, "rounded_to_zero": 0.5})"));
  EXPECT_EQ(end_event({.state = state,
                       .evaluations = {.test = kTested, .validation = {}},
                       .sha256 = "ab",
                       .published = {.same = false, .line = ""},
                       .seconds = 4,
                       .from_step = 20,
                       .stopped_early = true,
                       .strategy = "pipeline",
                       .numbers = {{"bubble", 0.5}}}),
            Json::parse(R"({"event": "end", "step": 30, "seconds": 4, "from_step": 20,
                "test_loss": 0.5, "test_accuracy": 0.9, "test_samples": 10, "stopped_early": true,
                "pipeline": {"bubble": 0.5}, "weights_sha256": "ab", "published_hash": false})"));
}

TEST(RunEventsTest, AHundredNamesOfUnusedTensorsAreListed) {
  Json start = Json::object();
  add_initial_weights(start, {});
  EXPECT_EQ(start, Json::object());
  StartingWeights initial{.source = "f", .lines = {}, .taken = 2, .sha256 = "cd"};
  add_initial_weights(start, initial);
  EXPECT_EQ(start, Json::parse(R"({"initial_weights": "f", "initial_tensors": 2, "initial_sha256": "cd"})"));
  initial.fresh = {"new"};
  for (int i = 0; i < 101; ++i) initial.left_over.push_back(std::to_string(i));
  add_initial_weights(start, initial);
  EXPECT_EQ(start["new_tensors"], Json::array({"new"}));
  EXPECT_EQ(start["unused_tensors"].size(), 100U);
  EXPECT_EQ(start["unused_tensors"][99], "99");
}

TEST(RunEventsTest, FieldsOfAnEpochGoByTheirImportance) {
  const RunState state = state_in_epoch_3();
  const Evaluations evaluations{.test = kTested, .validation = kValidated};
  const auto fields = epoch_fields({.state = state, .evaluations = evaluations}, 10, "ema 97.00 %", 1,
                                   std::numeric_limits<double>::infinity());
  EXPECT_EQ(join(fields),
            "epoch  3/10  train loss 2.0000  validation loss 1.5000  accuracy 25.00 %  ema 97.00 %  1.0 s "
            "(0 samples/s)");
  std::vector<int> importance;
  for (const LineField& field : fields) importance.push_back(field.importance);
  EXPECT_EQ(importance, (std::vector<int>{9, 2, 3, 8, 7, 4, 1}));
  const Evaluations tested{.test = kTested, .validation = {}};
  EXPECT_EQ(join(epoch_fields({.state = state, .evaluations = tested}, 10, "", 12.34, 4862.2)),
            "epoch  3/10  train loss 2.0000  test loss 0.5000  accuracy 90.00 %  12.3 s (4,862 samples/s)");
  const Evaluations nearly{.test = Evaluation{.samples = 50000, .correct = 49999}, .validation = {}};
  EXPECT_EQ(epoch_fields({.state = state, .evaluations = nearly}, 10, "", 1, 1)[3].text, "accuracy 99.99 %");
}

// Clocks and memory.

TEST(RankMemoryTest, RanksTogetherHaveWhatTheyShareOnce) {
  const std::vector<RankMemory> ranks = {{.peak = 85, .shared = 60}, {.peak = 84, .shared = 70}};
  EXPECT_EQ(resident_together(ranks), 25U + 14U + 70U);
  EXPECT_EQ(resident_together(std::span(ranks).first(1)), 85U);
  const std::vector<RankMemory> all_shared(3, {.peak = 85, .shared = 90});  // with other programs as well
  EXPECT_EQ(resident_together(all_shared), 85U) << "no less than one of them has";
  const std::vector<RankMemory> unshared(2, {.peak = 5, .shared = 0});
  EXPECT_EQ(resident_together(unshared), 10U);
}

TEST(EpochClockTest, APercentileCountsEachStepOfASeries) {
  EpochClock clock;
  EXPECT_EQ(clock.percentile(0.5), 0);
  for (const auto& [steps, seconds] : {std::pair{1, 5}, {8, 8}, {1, 2}}) clock.add(steps, seconds);
  Json event;
  clock.add_to(event, {RankClock()});
  EXPECT_EQ(event, Json::parse(R"({"step_seconds_p50": 1, "step_seconds_p90": 2, "step_seconds_p99": 5,
      "resident_bytes": 0, "peak_resident_bytes": 0})"));
}

TEST(EpochClockTest, RanksAreComparedAndTheLargestMemoryCounts) {
  Json event;
  EpochClock().add_to(event,
                      {{.busy_seconds = 0.25, .exposed_seconds = 2, .resident = 5, .peak_resident = 9},
                       {.busy_seconds = 0.75, .exposed_seconds = 0, .resident = 7, .peak_resident = 8}});
  EXPECT_EQ(event, Json::parse(
                       R"({"resident_bytes":7,"peak_resident_bytes":9,"exposed_seconds":1.0,"rank_skew":0.5,
                           "slowest_rank":1,"rank_busy_seconds":[0.25,0.75],"rank_exposed_seconds":[2.0,0.0]})"));
  event = Json::object();
  EpochClock().add_to(event, {{.device = 5, .peak_device = 9}, {.device = 7, .peak_device = 8}});
  EXPECT_EQ(event, Json::parse(R"({"resident_bytes":0,"peak_resident_bytes":0,"device_bytes":7,
      "peak_device_bytes":9})"))
      << "of GPUs, whose waiting nobody sees";
  for (const std::size_t ranks : {1U, 64U, 65U}) {
    event = Json::object();
    EpochClock().add_to(event, std::vector<RankClock>(ranks, {.busy_seconds = 1}));
    EXPECT_EQ(event.contains("rank_skew"), ranks > 1) << ranks;
    EXPECT_EQ(event.contains("rank_busy_seconds"), ranks == 64) << ranks;
  }
}

/// A strategy that only tells how long it took.
class TimedStrategy final : public ParallelStrategy {
 public:
  TimedStrategy() : ParallelStrategy({}, {}, {.samples = 1, .global_batch = 1}, 1) {}

  void spend(const StepTimes& times) { times_ = times; }

  StepSeries run(const StepPosition&, std::int64_t, bool) override { throw InternalError("run"); }
  Evaluation evaluate(EvaluatedPart, const LeaveEvaluation&) override { throw InternalError("evaluate"); }
  TrainedState whole_state() override { throw InternalError("whole_state"); }
  void distribute() override {}
  void collect() override {}
  void visit_own_state(const StateVisit&) override { throw InternalError("visit_own_state"); }
  StrategyDescription describe() const override { return {}; }
};

/// Three ranks, after 100 seconds in earlier epochs. In this one they are busy for 2, 3 and 7 seconds, and wait 6, 5 and 1.
TEST(EpochClockTest, TimesOfRanksAreThoseOfTheirEpoch) {
  constexpr std::array kBusy = {2.0, 3.0, 7.0};
  run_thread_ranks(3, [&](Communicator& comm) {
    TimedStrategy strategy;
    strategy.spend({.total = 100, .exposed = 20});
    EpochClock clock;
    clock.start(strategy, 0);
    strategy.spend({.total = 108, .exposed = 20 + 8 - at(kBusy, comm.rank())});
    Json event;
    clock.add_to(event, clock.all_ranks(strategy, nullptr, comm));
    EXPECT_EQ(event["rank_busy_seconds"], Json({2.0, 3.0, 7.0}));
    EXPECT_EQ(event["rank_exposed_seconds"], Json({6.0, 5.0, 1.0}));
    EXPECT_DOUBLE_EQ(event["rank_skew"], 7.0 / 4 - 1);
    EXPECT_FALSE(event.contains("step_seconds_p50"));
    clock.add(1, 5);
    clock.start(strategy, 0);
    EXPECT_EQ(clock.all_ranks(strategy, nullptr, comm).front().busy_seconds, 0) << "another epoch";
    EXPECT_EQ(clock.percentile(0.5), 0);
  });
}

/// Two of the epoch's eight samples came in this start, ten seconds ago. Or none: the start before was stopped after the
/// last step.
TEST(EpochClockTest, AnEpochsSpeedIsOfTheStepsOfThisStart) {
  TimedStrategy strategy;
  EpochClock clock;
  const auto event_of = [&](std::int64_t samples_before) {
    clock.start(strategy, samples_before);
    clock.leave_out(-std::chrono::seconds(10));
    clock.end_steps();
    return epoch_event({.state = state_in_epoch_3(),
                        .evaluations = {.test = kTested, .validation = {}},
                        .clock = &clock,
                        .ranks = {RankClock()}});
  };
  const Json event = event_of(6);
  EXPECT_DOUBLE_EQ(event["samples_per_second"].get<double>() * event["train_seconds"].get<double>(), 2);
  EXPECT_EQ(event["train_samples"], 8);
  EXPECT_FALSE(event_of(8).contains("samples_per_second"));
  clock.leave_out(std::chrono::hours(10));
  clock.start(strategy, 0);
  clock.leave_out(std::chrono::hours(1));
  EXPECT_NEAR(clock.train_seconds(), -3600, 600) << "since another start";
}

/// An hour of evaluations is no time of the steps, and one of the epoch.
TEST(EpochClockTest, AnEpochsTimeHasWhatWasLeftOutOfThatOfItsSteps) {
  const TimedStrategy strategy;
  EpochClock clock;
  clock.start(strategy, 0);
  for (int i = 0; i < 2; ++i) clock.leave_out(std::chrono::minutes(30));
  EXPECT_NEAR(clock.train_seconds(), -3600, 600);
  EXPECT_NEAR(clock.seconds(), 0, 600);
  clock.end_steps();
  clock.leave_out(std::chrono::hours(1));
  EXPECT_NEAR(clock.train_seconds(), -3600, 600) << "no step follows";
}

}  // namespace
}  // namespace lockstep
