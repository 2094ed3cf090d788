// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Files of a run, and what a proof says and plans before any step is replayed.
#include "common/digest.hpp"
#include "common/error.hpp"
#include "tests/support/messages.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"
#include "trainer/setup/job_setup.hpp"
#include "trainer/tools/prove.hpp"

namespace lockstep {
namespace {

/// Steps asked for, findings, open steps and the plan, a line each.
std::string lines_of_survey(const Survey& survey) {
  std::string text = "asked: " + describe(survey.verdict.asked) + "\n";
  for (const Discrepancy& found : survey.verdict.findings)
    text += fmt::format("{} at {}: {}; {}\n", found.what, found.step, found.text, found.cause);
  for (const NotProved& open : survey.verdict.not_proved)
    text += fmt::format("open: {}: {}\n", describe({open.steps}), open.why);
  for (const Interval& interval : survey.intervals)
    text += fmt::format("replay: {} to {}{}\n", interval.start.step, interval.last,
                        interval.end.empty() ? "" : ", saved");
  return text;
}

/// A job of ten steps, and a trail of eight of them.
class SurveyTest : public ::testing::Test {
 protected:
  SurveyTest() {
    job_.run.dir = "run";
    job_.data.global_batch = 10;
    job_.train.epochs = 1;
    head_ = {.trained = {{"a", {2}}}, .kept = {}, .buffers = {}, .facts = {{"data.train_samples", "100"}}};
  }

  std::vector<std::byte> trail_up_to(std::int64_t last, std::int64_t vendor_up_to = 0) const {
    auto bytes = write_trail_head(head_);
    TrailPosition position = trail_start(bytes);
    for (std::int64_t step = 1; step <= last; ++step) {
      const auto arithmetic = step <= vendor_up_to ? Arithmetic::kVendor : Arithmetic::kCanonical;
      const auto more = write_trail_record(head_,
                                           {.step = step,
                                            .arithmetic = static_cast<std::uint32_t>(arithmetic),
                                            .apart = 0,
                                            .fingerprints = {1, 2}},
                                           position);
      bytes.insert(bytes.end(), more.begin(), more.end());
    }
    return bytes;
  }
  Survey survey_of(const std::vector<std::byte>& bytes, const StepRange& steps = {0, 0},
                   const std::string& why_no_beginning = "") const {
    const Trail trail(bytes, "trail.bin");
    const MetricsClaims metrics(metrics_);
    return survey_run(job_, {trail, metrics, checkpoints_}, Arithmetic::kCanonical, why_no_beginning,
                      {.steps = steps, .sample = sample_, .seed = 1});
  }
  std::string said(const StepRange& steps = {0, 0}) const {
    return lines_of_survey(survey_of(trail_up_to(8), steps));
  }

  /// A checkpoint of step 4 that is this run's but for `change`.
  void save(const std::function<void(CheckpointFacts&)>& change) {
    CheckpointState state = make_state(4);
    state.facts.job = {{"train.seed", "1234"}};
    state.facts.epoch_samples = 40;
    state.facts.unprinted = LossWindow();
    state.facts.unlogged = {};
    change(state.facts);
    checkpoints_ = {{4, save_checkpoint(Env::posix(), directory_.path(), state)}};
  }

  const TemporaryDirectory directory_;
  Job job_;
  TrailHead head_;
  std::string metrics_;
  std::vector<CheckpointEntry> checkpoints_;
  std::int64_t sample_ = 0;
};

TEST_F(SurveyTest, StepsAreAskedForUpToTheLastOnDisk) {
  EXPECT_EQ(said(), "asked: steps 1 to 8\nreplay: 0 to 8\n");
  EXPECT_EQ(said({3, 0}), "asked: steps 3 to 8\nreplay: 0 to 8\n");
  EXPECT_EQ(said({0, 4}), "asked: steps 1 to 4\nreplay: 0 to 4\n");
  EXPECT_EQ(said({8, 8}), "asked: step 8\nreplay: 0 to 8\n");
  for (const StepRange beyond : {StepRange{9, 9}, {9, 0}, {2, 9}})
    EXPECT_EQ(message_of<UsageError>([&] { survey_of(trail_up_to(8), beyond); }), "--steps: run has 8 steps");
  EXPECT_EQ(message_of<MissingDataError>([&] { survey_of(trail_up_to(0)); }),
            "run: no step of it is on disk: nothing to prove");
  EXPECT_EQ(
      lines_of_survey(survey_of(trail_up_to(8), {0, 0}, "no file")),
      "asked: steps 1 to 8\nopen: steps 1 to 8: there is no checkpoint to replay from, and the beginning "
      "is not at hand: no file\n");
}

TEST_F(SurveyTest, ASampleIsSmallerThanAllAndHasTheLastStepAndThatOfTheLastCheckpoint) {
  checkpoints_ = {{4, directory_.path("pruned")}};
  for (const std::int64_t all : {8, 9}) {
    sample_ = all;
    EXPECT_EQ(said(), "asked: steps 1 to 8\nreplay: 0 to 8\n");
  }
  sample_ = 7;
  EXPECT_EQ(count_steps(survey_of(trail_up_to(8)).verdict.asked), 7);
  sample_ = 1;
  EXPECT_EQ(said(), "asked: steps 4 and 8\nreplay: 0 to 8\n");
}

TEST_F(SurveyTest, AJobThatIsNotTheTrailsIsRefutedAlone) {
  head_.facts["job.train.seed"] = "1234";
  EXPECT_EQ(said(), "asked: steps 1 to 8\nreplay: 0 to 8\n");
  head_.facts["job.train.seed"] = "7";
  EXPECT_EQ(
      said({3, 0}),
      "asked: steps 3 to 8\njob at 3: job.yaml and trail.bin are not of one job: train.seed (was 7, now "
      "1234); one of the two was changed, or is of another run\n");
}

TEST_F(SurveyTest, ATrailThatGoesOnAfterTheJobIsNamedWithItsByte) {
  const auto bytes = trail_up_to(12);
  const auto end = Trail(bytes, "trail.bin").end_of(10);
  EXPECT_EQ(lines_of_survey(survey_of(bytes)),
            fmt::format("asked: steps 1 to 10\ntrail at 10: trail.bin goes on after step 10, the last of its "
                        "job, from byte {} on; something was added to the file, or job.yaml asks for fewer "
                        "steps than the run took\nreplay: 0 to 10\n",
                        end));
  EXPECT_EQ(lines_of_survey(survey_of(bytes, {0, 9})), "asked: steps 1 to 9\nreplay: 0 to 9\n");
}

TEST_F(SurveyTest, DamagedRecordsThatFollowOneAnotherAreOneFinding) {
  auto bytes = trail_up_to(8);
  const Trail good(bytes, "trail.bin");
  for (const std::int64_t record : {2, 3, 5}) bytes[good.end_of(record) + 30] ^= std::byte{1};
  const auto damaged = [&](const char* at, const char* steps, std::int64_t record) {
    return fmt::format(
        "trail at {}: the trail is damaged: what trail.bin says of {} (from byte {} on) is not what was "
        "written; a flipped bit in the file, or it was changed\n",
        at, steps, good.end_of(record));
  };
  const std::string two = damaged("3", "steps 3 to 4", 2), one = damaged("6", "step 6", 5);
  EXPECT_EQ(lines_of_survey(survey_of(bytes)), "asked: steps 1 to 8\n" + two + one + "replay: 0 to 8\n");
  EXPECT_EQ(lines_of_survey(survey_of(bytes, {4, 5})), "asked: steps 4 to 5\n" + two + "replay: 0 to 5\n");
  EXPECT_EQ(lines_of_survey(survey_of(bytes, {5, 5})), "asked: step 5\nreplay: 0 to 5\n");
  bytes = trail_up_to(12);  // two steps after the job's last one
  for (const std::int64_t record : {9, 10}) bytes[good.end_of(record) + 30] ^= std::byte{1};
  test::expect_words(lines_of_survey(survey_of(bytes)), {damaged("10", "step 10", 9)});
}

TEST_F(SurveyTest, StepsOfAnotherArithmeticAreLeftOutWithItsName) {
  const auto bytes = trail_up_to(8, 5);
  const std::string asked = "asked: steps 1 to 8\n", rest = "there is no checkpoint to replay from\n";
  const Survey all = survey_of(bytes);
  EXPECT_EQ(
      lines_of_survey(all),
      asked +
          fmt::format("open: steps 1 to 5: computed with another arithmetic than this (that of cuDNN and "
                      "cuBLAS, here {}): a proof takes --device cuda --kernels vendor, on such a GPU\n",
                      describe(Arithmetic::kCanonical)) +
          "open: steps 6 to 8: " + rest);
  EXPECT_TRUE(all.verdict.lacks_arithmetic);
  const Survey some = survey_of(bytes, {6, 8});
  EXPECT_EQ(lines_of_survey(some), "asked: steps 6 to 8\nopen: steps 6 to 8: " + rest);
  EXPECT_FALSE(some.verdict.lacks_arithmetic);
}

TEST_F(SurveyTest, LinesOfStepsThatTheRunHasNotAreNamed) {
  const std::string plan = "asked: steps 1 to 8\n", replay = "replay: 0 to 8\n";
  metrics_ = "{\"event\":\"step\",\"step\":9}\n";
  EXPECT_EQ(said(), plan + replay) << "a killed run's trail may end before it";
  for (const auto& [event, step] : {std::pair("end", 9), {"step", 11}}) {
    metrics_ =
        fmt::format("{{\"event\":\"step\",\"step\":8}}\n{{\"event\":\"{}\",\"step\":{}}}\n", event, step);
    EXPECT_EQ(said(),
              plan +
                  fmt::format("metrics at 8: line 2 of metrics.jsonl (event {}) tells of step {}, and "
                              "the run has 8; metrics.jsonl was changed, or is of another run\n",
                              event, step) +
                  replay);
    EXPECT_EQ(said({0, 7}), "asked: steps 1 to 7\nreplay: 0 to 7\n");
  }
  metrics_ = "{\"event\":\"end\",\"step\":9}\n{\"event\":\"step\",\"step\":9}\n";
  test::expect_words(said(), {"metrics at 8: line 1 of metrics.jsonl (event end) tells of step 9, "});
}

TEST_F(SurveyTest, BadLinesAreNamedWithTheStepsBesideThem) {
  const std::string found = ": line 2 of metrics.jsonl is not an event; metrics.jsonl was changed\n";
  metrics_ = "{\"event\":\"step\",\"step\":5}\nnonsense\n";
  EXPECT_EQ(said({0, 4}), "asked: steps 1 to 4\nreplay: 0 to 4\n");
  EXPECT_EQ(said({0, 5}), "asked: steps 1 to 5\nmetrics at 5" + found + "replay: 0 to 5\n");
  EXPECT_EQ(said({6, 8}), "asked: steps 6 to 8\nmetrics at 5" + found + "replay: 0 to 8\n");
  EXPECT_EQ(said({7, 8}), "asked: steps 7 to 8\nreplay: 0 to 8\n");
  metrics_ = "{\"event\":\"start\"}\nnonsense\n";
  EXPECT_EQ(said({1, 4}), "asked: steps 1 to 4\nmetrics at 1" + found + "replay: 0 to 4\n");
}

TEST_F(SurveyTest, ACheckpointAfterTheJobIsAForeignOne) {
  checkpoints_ = {{12, "12"}, {9, "9"}};
  EXPECT_EQ(
      said(),
      "asked: steps 1 to 10\ncheckpoint at 10: there is a checkpoint of step 12, and the job ends with "
      "step 10; it was put there from another run, or job.yaml was changed\nopen: steps 9 to 10: not in "
      "the trail\nreplay: 0 to 8\n");
  EXPECT_EQ(said({0, 8}), "asked: steps 1 to 8\nreplay: 0 to 8\n");
  checkpoints_ = {{9, "9"}};
  EXPECT_EQ(said({0, 8}), "asked: steps 1 to 8\nreplay: 0 to 8\n");
}

TEST_F(SurveyTest, AGoodCheckpointEndsAnIntervalAndBeginsAnother) {
  save([](auto&) {});
  const Survey survey = survey_of(trail_up_to(8));
  EXPECT_EQ(lines_of_survey(survey), "asked: steps 1 to 8\nreplay: 0 to 4, saved\nreplay: 4 to 8\n");
  EXPECT_EQ(survey.bucket_sizes, std::vector<std::size_t>{9});
}

TEST_F(SurveyTest, ACheckpointOfAnotherRunIsNotGoneOnFrom) {
  const auto expect_refused = [&](const char* why, const std::function<void(CheckpointFacts&)>& change) {
    save(change);
    const std::string text = said();
    test::expect_words(text, {fmt::format("\ncheckpoint at 4: {}", why),
                              "; it was put there from another run, or changed\nreplay: 0 to 8\n"});
  };
  expect_refused("its checkpoint is of another job: train.seed (was 8, now 1234);",
                 [](auto& facts) { facts.job["train.seed"] = "8"; });
  expect_refused("its checkpoint says step 4 and seed 5, and the job's seed is 1234;",
                 [](auto& facts) { facts.seed = 5; });
  expect_refused("its checkpoint says step 3 and seed 1234, and the job's seed is 1234;",
                 [](auto& facts) { facts.step = 3; });
  expect_refused("the checkpoint of step 4 is after 0 epochs, 4 steps and 39 samples, ",
                 [](auto& facts) { facts.epoch_samples = 39; });
  head_.facts["model.classes"] = "3";
  save([](auto&) {});
  EXPECT_EQ(
      said(),
      "asked: steps 1 to 8\ncheckpoint at 4: its checkpoint is of another network than trail.bin; it was "
      "put there from another run, or changed\nopen: steps 1 to 8: there is no checkpoint to replay "
      "from\n")
      << "the beginning may be of the other network, too";
}

TEST_F(SurveyTest, ACheckpointsNoteOfTheTrailMustHold) {
  const std::string chain = hex(Trail(trail_up_to(8), "trail.bin").position(4).chain);
  save([&](auto& facts) { facts.trail = {4, chain}; });
  EXPECT_EQ(said(), "asked: steps 1 to 8\nreplay: 0 to 4, saved\nreplay: 4 to 8\n");
  for (const CheckpointPosition& other : {CheckpointPosition{3, chain}, {4, std::string(64, 'a')}}) {
    save([&](auto& facts) { facts.trail = other; });
    EXPECT_EQ(said(),
              fmt::format("asked: steps 1 to 8\ntrail at 4: its checkpoint says that the trail had {} "
                          "records and the SHA-256 {}..., and it has 4 and {}...; trail and checkpoint "
                          "are not of one run, or the trail was written anew\nreplay: 0 to 8\n",
                          other.count, other.sha256.substr(0, 16), chain.substr(0, 16)));
  }
}

TEST_F(SurveyTest, ACheckpointsNoteOfTheMetricsMustHold) {
  const std::string start = "{\"event\":\"start\"}\n", good(hex(sha256(std::as_bytes(std::span(start)))));
  const auto noted = [&](std::int64_t lines, const std::string& digest) {
    save([&](auto& facts) { facts.metrics = {lines, digest}; });
    std::string text = said();
    for (const std::string plan : {"asked: steps 1 to 8\n", "replay: 0 to 4, saved\n", "replay: 4 to 8\n"})
      text.erase(text.find(plan), plan.size());
    return text;
  };
  metrics_ = start;
  const std::string cause = "; metrics.jsonl was changed, or is of another run\n";
  EXPECT_EQ(noted(1, good), "");
  EXPECT_EQ(noted(2, good),
            "metrics at 4: its checkpoint noted 2 lines of metrics.jsonl, and there are 1" + cause);
  EXPECT_EQ(noted(1, std::string(64, 'a')),
            "metrics at 4: its checkpoint noted 1 line of metrics.jsonl, and they are others now" + cause);
  for (const auto& [step, is_known] : {std::pair(3, true), {4, false}}) {
    metrics_ = start + fmt::format("{{\"event\":\"lost\",\"step\":{}}}\n", step);
    EXPECT_EQ(!noted(1, std::string(64, 'a')).empty(), is_known)
        << "lines up to step " << step << " are lost";
  }
}

TEST(TrainSamplesTest, AreThoseOfTheTrailIfTheyFit) {
  const auto samples = [](const std::string& text) {
    TrailHead head;
    head.facts = {{"data.train_samples", text}};
    return train_samples_of(head);
  };
  EXPECT_EQ(train_samples_of(TrailHead()), 0);
  EXPECT_EQ(samples("2147483647"), 2147483647);
  for (const char* wrong : {"2147483648", "0", "-1", "many"}) EXPECT_EQ(samples(wrong), 0) << wrong;
  EXPECT_EQ(samples("1"), 1);
}

}  // namespace
}  // namespace lockstep
