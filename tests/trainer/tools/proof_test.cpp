// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Parts of a proof: ranges of steps, intervals, results, claims.
#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "tests/support/drawn_text.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/temporary_directory.hpp"
#include "trainer/tools/prove_claims.hpp"
#include "trainer/tools/prove_replay.hpp"
#include "trainer/tools/prove_result.hpp"

namespace lockstep {
namespace {

TEST(StepRangeTest, ParsesWhatTheHelpSays) {
  EXPECT_EQ(parse_steps("7"), (StepRange{7, 7}));
  EXPECT_EQ(parse_steps("1..100"), (StepRange{1, 100}));
  EXPECT_EQ(parse_steps("400.."), (StepRange{400, 0}));
  EXPECT_EQ(parse_steps("..100"), (StepRange{0, 100}));
  for (const char* wrong : {"", "..", "0", "x", "5..3", "-1", "1...3", "1..x", "99999999999999999999"})
    EXPECT_THROW(parse_steps(wrong), UsageError) << wrong;
  EXPECT_EQ(parse_steps("5..5"), (StepRange{5, 5}));
  EXPECT_EQ(
      message_of<UsageError>([] { parse_steps("5..3"); }),
      "--steps: '5..3' is not a range of steps, which are counted from 1; for example 7, 1..100, 400.. or "
      "..100");
}

TEST(StepRangeTest, RangesAreMergedSubtractedAndNamed) {
  const auto a = merged({{5, 9}, {1, 3}, {4, 4}, {12, 11}, {20, 30}});
  EXPECT_EQ(a, (std::vector<StepRange>{{1, 9}, {20, 30}}));
  EXPECT_EQ(without(a, {{3, 4}, {9, 25}}), (std::vector<StepRange>{{1, 2}, {5, 8}, {26, 30}}));
  EXPECT_EQ(describe(without(a, {{3, 4}, {9, 25}})), "steps 1 to 2, 5 to 8 and 26 to 30");
  EXPECT_EQ(without({{1, 5}}, {{2, 3}}), (std::vector<StepRange>{{1, 1}, {4, 5}}));
  EXPECT_EQ(without({{1, 5}}, {{1, 5}}), std::vector<StepRange>{});
  EXPECT_EQ(without({{5, 5}}, {{1, 4}, {6, 9}}), (std::vector<StepRange>{{5, 5}}));
  EXPECT_EQ(without({{1, 3}, {7, 9}}, {{3, 7}}), (std::vector<StepRange>{{1, 2}, {8, 9}}));
  EXPECT_EQ(merged({{1, 9}, {2, 3}, {11, 12}}), (std::vector<StepRange>{{1, 9}, {11, 12}}));
  EXPECT_EQ(describe(std::vector<StepRange>{}), "none");
  EXPECT_EQ(describe(std::vector<StepRange>{{1000, 1000}}), "step 1,000");
  EXPECT_EQ(describe(std::vector<StepRange>{{1, 2000}}), "steps 1 to 2,000");
  EXPECT_EQ(count_steps({{2, 1}, {3, 3}, {5, 9}}), 6);
}

TEST(ProofResultTest, ExitCodeSaysWhetherAllIsProvedAndWhatIsMissing) {
  ProofResult result{.asked = {{1, 10}}, .proved = {{1, 4}, {5, 12}}, .findings = {}, .not_proved = {}};
  EXPECT_EQ(result.exit_code(), 0);
  result.proved.back() = {6, 12};
  EXPECT_EQ(result.exit_code(), 66);
  result.lacks_arithmetic = true;
  EXPECT_EQ(result.exit_code(), 69);
  result.findings.emplace_back();
  EXPECT_EQ(result.exit_code(), 1);
}

/// A finding with all that there can be.
Discrepancy flipped_weight() {
  return {.step = 1500,
          .what = "weights",
          .parameter = "conv1.weight",
          .bucket = 2,
          .flipped = FlippedBit{{1, 0}, 9},
          .text = "bit 9 flipped",
          .cause = "memory",
          .first_replayed = true,
          .rank = WrongRank{3, {.host = "node1", .device = "GPU 0", .uuid = "GPU-a"}}};
}

const ProofCircumstances kCircumstances{.run = "runs/a", .device = "cpu", .ranks = 2, .seconds = 1.5};

TEST(ProofResultTest, TextHasFindingsAndOpenStepsBeforeTheVerdict) {
  ProofResult result{.asked = {{1, 10}},
                     .proved = {{1, 4}, {9, 12}},
                     .findings = {},
                     .not_proved = {{{5, 8}, "not in the trail"}},
                     .replayed = 1200};
  const std::string open = "not proved: steps 5 to 8: not in the trail\nproved: steps 1 to 4 and 9 to 12\n";
  const std::string work = ", 6 of 10 steps proved; 1,200 replayed on cpu, 2 ranks, in 1.5 s\n";
  EXPECT_EQ(to_text(result, kCircumstances), open + "runs/a: not proved" + work);
  result.findings = {flipped_weight(), {.step = 2, .what = "job", .text = "another job"}};
  EXPECT_EQ(to_text(result, kCircumstances),
            "refuted at step 1,500, bucket 2, conv1.weight: bit 9 flipped\n  likely cause: memory\n"
            "refuted at step 2: another job\n" +
                open + "runs/a: refuted" + work);
}

TEST(ProofResultTest, JsonHasEveryFactOfAFinding) {
  const ProofResult result{
      .asked = {{1, 10}},
      .proved = {{1, 4}},
      .findings = {flipped_weight(), {.step = 2, .what = "job", .text = "another", .cause = "changed"}},
      .not_proved = {{{5, 8}, "why"}},
      .replayed = 7};
  const auto report = report_json(result, kCircumstances);
  EXPECT_EQ(report, nlohmann::ordered_json::parse(R"({"format": 1, "run": "runs/a", "verdict": "refuted",
    "steps_asked": 10, "steps_proved": 4, "steps_replayed": 7, "proved": [{"from": 1, "to": 4}],
    "refuted": [{"step": 1500, "what": "weights", "parameter": "conv1.weight", "bucket": 2, "element": [1, 0],
                 "bit": 9, "rank": 3, "host": "node1", "device": "GPU 0", "uuid": "GPU-a",
                 "text": "bit 9 flipped", "cause": "memory"},
                {"step": 2, "what": "job", "text": "another", "cause": "changed"}],
    "not_proved": [{"from": 5, "to": 8, "why": "why"}], "device": "cpu", "ranks": 2, "seconds": 1.5})"));
  const ProofResult sent = nlohmann::json(result).get<ProofResult>();
  EXPECT_EQ(report_json(sent, kCircumstances), report);
  EXPECT_TRUE(sent.findings[0].first_replayed);
  EXPECT_FALSE(sent.findings[1].first_replayed) << "where nobody says so";
}

TEST(ProofResultTest, ResultsOfRanksAreAddedUpInTheOrderOfSteps) {
  ProofResult all{.asked = {{1, 5}}, .proved = {{1, 2}}, .findings = {}, .not_proved = {}};
  all.replayed = 2;
  refute(all, 9, "trail", "text", "cause");
  all.not_proved = {{{4, 5}, "b"}};
  ProofResult more{.asked = {{6, 9}}, .proved = {{3, 3}}, .findings = {}, .not_proved = {}};
  more.replayed = 5;
  more.lacks_arithmetic = true;
  refute(more, 3, "job", "other", "why");
  more.not_proved = {{{1, 3}, "a"}};
  add(all, more);
  EXPECT_EQ(all.asked, (std::vector<StepRange>{{1, 9}}));
  EXPECT_EQ(all.proved, (std::vector<StepRange>{{1, 3}}));
  EXPECT_EQ(all.replayed, 7);
  EXPECT_TRUE(all.lacks_arithmetic);
  ASSERT_EQ(all.findings.size() + all.not_proved.size(), 4U);
  EXPECT_EQ(all.findings[0].what + all.findings[0].text + all.findings[0].cause, "jobotherwhy");
  EXPECT_EQ(all.findings[1].step, 9);
  EXPECT_EQ(all.not_proved[0].why + all.not_proved[1].why, "ab");
  add(all, {});
  EXPECT_TRUE(all.lacks_arithmetic);
}

TEST(StepRangeTest, SamplesHaveTheirSizeAndWhatIsAlwaysAmongThem) {
  std::vector<StepRange> seen;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto sample = sample_steps({11, 60}, 5, seed, {60, 52, 7});
    EXPECT_EQ(count_steps(sample), 5) << seed;
    EXPECT_TRUE(without({{52, 52}, {60, 60}}, sample).empty()) << seed << ": " << describe(sample);
    EXPECT_TRUE(without(sample, {{11, 60}}).empty()) << seed << ": " << describe(sample);
    seen.insert(seen.end(), sample.begin(), sample.end());
  }
  EXPECT_EQ(merged(seen), (std::vector<StepRange>{{11, 60}})) << "each step has its turn";
  EXPECT_EQ(sample_steps({1, 9}, 1, 3, {9, 6}), (std::vector<StepRange>{{6, 6}, {9, 9}}));
  // By the C++ standard's generator; a seed names the same steps for ever.
  EXPECT_EQ(sample_steps({1, 100}, 4, 1, {}), (std::vector<StepRange>{{1, 1}, {3, 3}, {36, 36}, {47, 47}}));
}

/// "1 to 40, c40; 41 to 60, ; ": first and last steps, and the checkpoint at the end.
std::string planned(const std::vector<StartPoint>& starts, const std::vector<StepRange>& reachable,
                    const std::vector<StepRange>& wanted) {
  std::string text;
  for (const Interval& interval : plan_intervals(starts, reachable, wanted))
    text += fmt::format("{} to {}, {}; ", interval.steps().first, interval.last, interval.end);
  return text;
}

TEST(IntervalTest, EachStepIsReplayedFromTheNearestStart) {
  EXPECT_EQ(planned({{0, ""}, {40, "c40"}, {80, "c80"}}, {{1, 95}}, {{30, 60}}),
            "1 to 40, c40; 41 to 60, ; ");
  EXPECT_EQ(planned({{0, ""}, {40, "c40"}, {80, "c80"}}, {{1, 95}}, {{50, 60}}), "41 to 60, ; ");
}

TEST(IntervalTest, NothingIsReplayedAcrossStepsOfAnotherArithmetic) {
  const std::vector<StartPoint> starts = {{0, ""}, {40, "c40"}};
  EXPECT_EQ(planned(starts, {{1, 50}, {70, 90}}, {{1, 90}}), "1 to 40, c40; 41 to 50, ; ");
  EXPECT_EQ(planned({{0, ""}, {60, "c60"}}, {{1, 50}, {70, 90}}, {{1, 90}}), "1 to 50, ; ");
  EXPECT_EQ(planned(starts, {{1, 50}}, {{51, 60}}), "");
}

TEST(IntervalTest, WorkIsSharedOutEvenly) {
  const auto intervals = plan_intervals({{0, ""}, {10, "a"}, {20, "b"}, {50, "c"}}, {{1, 60}}, {{1, 60}});
  const auto worker_of = share_intervals(intervals, 2);
  EXPECT_NE(worker_of[2], worker_of[0]);
  EXPECT_EQ(worker_of[0], worker_of[1]);
  EXPECT_EQ(worker_of[0], worker_of[3]);
  EXPECT_EQ(share_intervals(intervals, 3), (std::vector<std::size_t>{1, 2, 0, 1}));
}

/// Others waited for a long evaluation no longer than their timeout.
TEST(ProofMeetingsTest, ARankThatEvaluatesAloneMeetsTheOthersBetweenGrains) {
  run_thread_ranks(
      2,
      [](Communicator& comm) {
        const auto alone = comm.split(comm.rank());
        if (comm.rank() == 1) {
          for (const std::int64_t expected : {1, 0}) {
            std::int64_t working = 0;
            comm.all_reduce(std::span(&working, 1));
            EXPECT_EQ(working, expected);
          }
          return;
        }
        ProofMeetings meetings(comm, /*every=*/0);
        EXPECT_FALSE(meetings.between_grains(comm)()) << "of a group of two";
        const LeaveEvaluation leave = meetings.between_grains(*alone);
        std::thread([&] { EXPECT_FALSE(leave()); }).join();  // one that computes, and must not wait
        EXPECT_FALSE(leave());
        meetings.wait_for_all();
      },
      std::chrono::seconds(20));
}

TEST(ProofProgressTest, ATerminalShowsHowManyOfTheStepsAreReplayed) {
  const auto drawn = [](std::int64_t steps) {
    return test::drawn_by(100, [&] {
      ProofProgress progress(true, "proving", 2010);
      progress.leave_out(10);
      progress.add(steps);
    });
  };
  test::expect_words(drawn(500),
                     {"\rproving  ######..................  500/2,000 steps  ", " steps/s  ETA "});
  test::expect_words(drawn(2000),
                     {"\rproving  " + std::string(24, '#') + "  2,000/2,000 steps  ", " steps/s  ETA 0:00"});
}

const std::string kLines = R"({"event":"start","seed":7})"
                           "\n"
                           R"({"event":"step","step":1,"loss":0.5})"
                           "\n"
                           R"({"event":"straggler","step":1})"
                           "\n"
                           R"({"event":"epoch","step":2})"
                           "\n";

TEST(MetricsClaimsTest, LinesAreFoundByTheirStep) {
  const MetricsClaims claims(kLines + R"({"event":"step","st)");
  EXPECT_TRUE(claims.problems().empty()) << "a torn end is no lie";
  EXPECT_EQ(claims.lines().size(), 3U);
  EXPECT_EQ(claims.of_step(0).front().event, "start");
  EXPECT_EQ(claims.of_step(2).front().number, 4);
  EXPECT_EQ(claims.event(claims.of_step(1).front()).at("loss"), 0.5);
  EXPECT_TRUE(claims.of_step(3).empty());
  EXPECT_EQ(claims.next_step(-1), 0);
  EXPECT_EQ(claims.next_step(0), 1);
  EXPECT_EQ(claims.next_step(2), INT64_MAX);
  EXPECT_EQ(claims.lost_up_to(), 0);
  const MetricsClaims lost(
      "{\"event\":\"lost\",\"step\":9}\n{\"event\":\"lost\",\"step\":5}\n{\"event\":\"straggler\",\"step\":"
      "12}\n");
  EXPECT_EQ(lost.lost_up_to(), 9);
  EXPECT_TRUE(lost.problems().empty());
}

TEST(MetricsClaimsTest, LinesThatNoRunWritesAreProblems) {
  const std::string no_event = "is not an event", after = " after those of step 2";
  for (const auto& [line, why] :
       {std::pair<const char*, std::string>("[]", no_event),
        {"nonsense", no_event},
        {R"({"event":3})", no_event},
        {R"({"event":"end","step":2,"test_accuracy":1,"test_\u0061ccuracy":0.5})", no_event},
        {R"({"event":"step","step":1})", "has step 1" + after},
        {R"({"event":"step"})", "has step null" + after},
        {R"({"event":"end","step":18446744073709551615})", "has step 18446744073709551615" + after},
        {R"({"event":"start"})", "has step 0" + after}}) {
    const MetricsClaims claims(kLines + line + "\n");
    ASSERT_EQ(claims.problems().size(), 1U) << line;
    EXPECT_EQ(claims.problems()[0].text, "line 5 of metrics.jsonl " + why);
    EXPECT_EQ(claims.problems()[0].step, 2) << line;
    EXPECT_EQ(claims.lines().size(), 3U) << line;
  }
}

TEST(MetricsClaimsTest, ARunWithoutTheFileClaimsNothing) {
  const testing::TemporaryDirectory directory;
  EXPECT_TRUE(read_claims(Env::posix(), directory.path()).text().empty());
  std::ofstream(directory.path("metrics.jsonl")) << kLines;
  EXPECT_EQ(read_claims(Env::posix(), directory.path()).lines().size(), 3U);
}

/// A replay has evaluated nothing and has no loss before the first step.
TEST(MetricsClaimsTest, OnlyTheStartIsOfStep0) {
  for (const char* event : {"step", "loss", "epoch", "end"}) {
    const MetricsClaims claims(fmt::format("{{\"event\":\"{}\",\"step\":0}}\n", event));
    ASSERT_EQ(claims.problems().size(), 1U) << event;
    EXPECT_EQ(claims.problems()[0].text, "line 1 of metrics.jsonl tells of step 0, and steps count from 1");
    EXPECT_TRUE(claims.of_step(0).empty()) << event;
  }
}

TEST(ClaimsTest, NumbersThatBothHaveAreCompared) {
  const nlohmann::ordered_json own = {{"loss", 0.1}, {"seconds", 3}, {"test_loss", std::nan("")}};
  EXPECT_TRUE(
      differing_numbers({{"loss", 0.1}, {"seconds", 9}, {"test_loss", nullptr}}, own, {"seconds"}).empty());
  EXPECT_TRUE(differing_numbers({{"more", 1}}, own, {}).empty());
  EXPECT_EQ(differing_numbers({{"loss", std::nextafter(0.1, 1)}}, own, {}),
            std::vector<std::string>{"loss is 0.10000000000000002, and came to 0.1"});
  EXPECT_EQ(differing_numbers({{"test_loss", 1.5}}, own, {}),
            std::vector<std::string>{"test_loss is 1.5, and came to null"});
  for (const std::size_t size : {78, 79}) {  // with its quotes 80 and 81
    const std::string text(size, 'x'), shown = "\"" + text + (size == 78 ? "\"" : "...");
    EXPECT_EQ(differing_numbers({{"loss", text}}, own, {}),
              std::vector<std::string>{"loss is " + shown + ", and came to 0.1"});
  }
}

TEST(ClaimsTest, KeysThatAReplayComputesAndDoesNotComeToAreRefuted) {
  const nlohmann::ordered_json own = {{"event", "end"}, {"step", 6}, {"weights_sha256", "ab"}};
  std::istringstream keys(
      "epoch loss steps mean_loss learning_rate train_loss train_accuracy accuracy_steps "
      "train_samples test_loss test_accuracy test_samples validation_loss validation_accuracy "
      "validation_samples ema_test_loss swa_test_loss ema_test_accuracy swa_test_accuracy "
      "ema_validation_loss swa_validation_loss ema_validation_accuracy swa_validation_accuracy "
      "rounded_to_zero initial_weights initial_tensors initial_sha256 new_tensors unused_tensors "
      "stopped_early published_hash");
  for (std::string key; keys >> key;) {
    nlohmann::json said = {{"step", 6}};
    said[key] = true;
    EXPECT_EQ(differing_event(said, own, {}),
              std::vector<std::string>{fmt::format("a run of this job writes no {} here", key)});
    EXPECT_TRUE(differing_event(said, own, {key}).empty()) << key;
  }
  for (const char* key :
       {"time", "seconds", "from_step", "pipeline", "gradient_norm", "of_a_later_version"}) {
    nlohmann::json said = {{"step", 6}};
    said[key] = 1;
    EXPECT_TRUE(differing_event(said, own, {}).empty()) << key;
  }
  const nlohmann::json other = {{"step", 7}, {"loss", 1}};
  EXPECT_EQ(differing_event(other, own, {}),
            (std::vector<std::string>{"step is 7, and came to 6", "a run of this job writes no loss here"}));
}

TEST(ClaimsTest, EachFactOfAManifestIsCompared) {
  CheckpointFacts facts;
  facts.epoch_loss_units = {{1, 2, 3, 0, 0, 0}};
  facts.unprinted = {3, 192, 0, {{7, 0, 0, 0, 0, 0}}};
  facts.unlogged = {2, 128, 100, {}};
  facts.gradient_units = {{-40, -38}, 2};
  facts.test_accuracy = 0.5;
  facts.parameters = {{"a", {2, 3}}};
  facts.model = {{"yaml", "layers"}};
  EXPECT_TRUE(differing_facts(facts, facts).empty());
  const std::function<void(CheckpointFacts&)> forgeries[] = {
      [](auto& f) { ++f.step; },
      [](auto& f) { ++f.epoch; },
      [](auto& f) { ++f.step_in_epoch; },
      [](auto& f) { ++f.seed; },
      [](auto& f) { ++f.epoch_samples; },
      [](auto& f) { ++f.epoch_correct; },
      [](auto& f) { f.epoch_loss_sum += 1e-9; },
      [](auto& f) { ++f.epoch_loss_units.limbs[5]; },
      [](auto& f) { ++f.unprinted.value().steps; },
      [](auto& f) { ++f.unprinted.value().samples; },
      [](auto& f) { ++f.unprinted.value().loss_units.limbs[0]; },
      [](auto& f) { ++f.unlogged.steps; },
      [](auto& f) { ++f.unlogged.samples; },
      [](auto& f) { ++f.unlogged.correct; },
      [](auto& f) { ++f.gradient_units.exponents[1]; },
      [](auto& f) { ++f.gradient_units.changed_at; },
      [](auto& f) { ++f.arithmetic.version; },
      [](auto& f) { ++f.arithmetic.since; },
      [](auto& f) { f.patience.value().best = 0.5; },
      [](auto& f) { f.test_accuracy = 0.6; },
      [](auto& f) {
        f.parameters[0].shape = {3, 2};
      },
      [](auto& f) {
        f.kept = {{"b", {1}}};
      },
      [](auto& f) { f.model["yaml"] = "other"; }};
  for (std::size_t i = 0; i < std::size(forgeries); ++i) {
    CheckpointFacts forged = facts;
    forgeries[i](forged);
    EXPECT_EQ(differing_facts(forged, facts).size(), 1U) << i;
  }
  CheckpointFacts same = facts;  // equal sums, with a digit that was not carried
  for (WideSum* sum : {&same.epoch_loss_units, &same.unprinted.value().loss_units})
    sum->limbs[0] += std::int64_t{1} << 32, --sum->limbs[1];
  EXPECT_TRUE(differing_facts(same, facts).empty());
  same.replayed = 7, same.bucket_plan = "other", same.world = {{"ranks", "9"}};
  EXPECT_TRUE(differing_facts(same, facts).empty()) << "for people";
}

}  // namespace
}  // namespace lockstep
