// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Changes to a job that a resume must refuse, and what is advised then.
#include "common/error.hpp"
#include "data/sets/leave_out.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "trainer/config/job.hpp"
#include "trainer/config/job_schema.hpp"

namespace lockstep::job_resume_test {

namespace {

std::vector<std::string> changes(const std::string& override_text, const std::string& base = "model: net") {
  const Job before = parse_job(base, "job.yaml");
  const Job after = parse_job(base, "job.yaml", {override_text});
  return differing_keys(determining_keys(before), determining_keys(after));
}

std::string advice_for(const std::vector<std::string>& overrides, int ranks = 4) {
  const std::string start = "run the same command again: it goes on from the last checkpoint, on ";
  const std::string text = restart_advice(parse_job("model: net", "job.yaml", overrides), ranks);
  return text.starts_with(start) ? text.substr(start.size()) : text;
}

TEST(RestartRuleTest, AdvicePromisesWhatTheJobHolds) {
  const std::string others = "; the weights will be others than without this loss";
  EXPECT_EQ(advice_for({}), "any number of ranks");
  EXPECT_EQ(advice_for({"parallel.determinism=off"}), "any number of ranks" + others);
  EXPECT_EQ(advice_for({"data.per_rank_batch=1"}), "4 ranks as before (data.per_rank_batch)");
  EXPECT_EQ(advice_for({"data.per_rank_batch=8"}, 1), "1 rank as before (data.per_rank_batch)");
  EXPECT_EQ(advice_for({"parallel.strategy=pipeline"}),
            "4 ranks as before, or as many as its stages come out on");
  EXPECT_EQ(advice_for({"parallel.strategy=hogwild", "parallel.determinism=off"}),
            "any number of ranks of one host" + others);
  EXPECT_EQ(
      advice_for({"run.resume=never", "run.dir=runs/a b"}),
      "run lockstep train 'runs/a b/job.yaml': it goes on from the last checkpoint, on any number of ranks")
      << "the same command would begin anew";
}

/// Each key that determines the weights has a row of end_to_end/ways_test.cpp, where it changes them, and no other has.
TEST(JobHashTest, ADifferenceIsNamedWithBothValues) {
  EXPECT_EQ(changes("train.seed=1"), std::vector<std::string>{"train.seed (was 1234, now 1)"});
}

/// A schedule that ends where the run ends would be another one in a longer run.
TEST(JobHashTest, EpochsDetermineTheWeightsWhereAScheduleIsAsLongAsTheRun) {
  const std::string cosine = "{model: net, train: {schedule: {kind: cosine}}}";
  EXPECT_EQ(changes("train.epochs=20", cosine),
            std::vector<std::string>{"train.schedule.total (was 10, now 20)"});
  EXPECT_EQ(changes("train.epochs=20", "{model: net, train: {schedule: {kind: cosine, warmup_epochs: 2}}}"),
            std::vector<std::string>{"train.schedule.total (was 8, now 18)"});
  EXPECT_EQ(changes("train.epochs=20", "{model: net, train: {schedule: {kind: cosine, warmup_steps: 2}}}"),
            std::vector<std::string>{
                "train.schedule.total (was to the end of 10 epochs, now to the end of 20 epochs)"});
  EXPECT_TRUE(changes("train.schedule.total=10", cosine).empty());
  EXPECT_TRUE(changes("train.max_steps=7", cosine).empty());
  for (const std::string total : {"1", "10"})
    EXPECT_TRUE(
        changes("train.epochs=20", "{model: net, train: {schedule: {kind: cosine, total: " + total + "}}}")
            .empty());
  EXPECT_FALSE(changes("train.epochs=20", "{model: net, train: {schedule: {kind: one_cycle}}}").empty());
  EXPECT_TRUE(
      changes("train.epochs=20", "{model: net, train: {schedule: {kind: exponential, gamma: 0.9}}}").empty());
}

/// The keys that checkpoints had before there were others than sgd.
TEST(ResumeTest, CheckpointFromBeforeThereWereSchedulesGoesOn) {
  auto stored = determining_keys(parse_job("model: net", "job.yaml"));
  std::erase_if(stored, [](const auto& entry) {
    return entry.first.starts_with("train.schedule.") ||
           entry.first.starts_with("train.optimizer.lr_scaling") ||
           entry.first == "train.optimizer.decay_biases";
  });
  EXPECT_NO_THROW(require_same_job(stored, parse_job("model: net", "job.yaml"), "c"));
  EXPECT_THROW(
      require_same_job(stored, parse_job("model: net", "job.yaml", {"train.schedule.kind=cosine"}), "c"),
      ConfigError);
}

TEST(JobHashTest, GrainMayChangeWhenSumsAreNotExact) {
  EXPECT_TRUE(changes("parallel.grain=32", "{model: net, parallel: {determinism: off}}").empty());
}

TEST(JobHashTest, KeyThatOnlyOneSideHasIsADifference) {
  EXPECT_EQ(differing_keys({{"a", "1"}}, {{"b", "2"}}),
            (std::vector<std::string>{"a (was 1, now not given)", "b (was not given, now 2)"}));
}

TEST(ResumeTest, EveryDifferingKeyIsNamedWithBothValues) {
  const Job before = parse_job("{model: net, train: {seed: 1}}", "job.yaml");
  const Job now = parse_job("{model: net, train: {seed: 2}, data: {shuffle: no}}", "job.yaml");
  auto stored = determining_keys(before);
  stored["old"] = "x";
  const std::string why =
      test::error_of<ConfigError>([&] { require_same_job(stored, now, "runs/a/checkpoints/step-00000001"); });
  EXPECT_TRUE(why.starts_with("runs/a/checkpoints/step-00000001: ")) << why;
  test::expect_words(
      why, {"train.seed (was 1, now 2)", "old (was x, now not given)", "data.shuffle (was true, now false)"});
  EXPECT_EQ(why.find("model"), std::string::npos) << why;
}

TEST(ResumeTest, TheMessageSaysHowToGoOn) {
  const auto refusal = [](const Job& then, const Job& now, const std::string& checkpoint) {
    return test::error_of<ConfigError>([&] { require_same_job(determining_keys(then), now, checkpoint); });
  };
  const Job net = parse_job("model: net", "job.yaml");
  EXPECT_EQ(
      refusal(net, parse_job("model: lenet", "job.yaml"), "c"),
      "c: was written by a job that trains other weights; what differs: model (was net, now lenet). Set "
      "these back, choose another run.dir, or start afresh with run.resume=never. To train on from its "
      "weights with these: train.initial_weights=c train.partial=true and another run.dir");
  const Job each = parse_job("{model: net, data: {per_rank_batch: 8}}", "job.yaml");
  EXPECT_EQ(
      refusal(for_ranks(each, 4), for_ranks(each, 2), "runs/a/checkpoints/c"),
      "runs/a/checkpoints/c: was written by a job that trains other weights; what differs: "
      "data.global_batch (was 32, now 16). Set these back, choose another run.dir, or start afresh with "
      "run.resume=never; with data.per_rank_batch 8, start 4 ranks, as then. To train on from its "
      "weights with these: train.initial_weights=runs/a and another run.dir");
  const Job odd = parse_job("{model: net, data: {global_batch: 30}}", "job.yaml");
  test::expect_words(refusal(odd, net, "/checkpoints/runs/a/checkpoints/c"),
                     {"with these: train.initial_weights=/checkpoints/runs/a and another run.dir"});
  const Job other = parse_job("{model: lenet, data: {per_rank_batch: 8}}", "job.yaml");
  for (const auto& [then, now] :
       {std::pair(odd, for_ranks(each, 2)), {odd, net}, {for_ranks(each, 2), for_ranks(other, 2)}}) {
    const std::string said = refusal(then, now, "c");
    EXPECT_TRUE(said.starts_with("c: was written by") && said.find("as then") == said.npos) << said;
  }
}

TEST(ResumeTest, AListOfSamplesIsComparedByItsContents) {
  Job job = parse_job("model: net", "job.yaml");
  job.data.leave_out = std::make_shared<const LeaveOutList>(parse_leave_out("3\n", "list"));
  EXPECT_EQ(determining_keys(job).at("data.leave_out"), job.data.leave_out->contents());
}

TEST(ResumeTest, OfAScheduleAsLongAsTheRunTheKeyThatWasSetIsNamed) {
  const auto why = [](const std::string& schedule, const std::string& change) {
    const std::string yaml = "{model: net, train: {epochs: 10, schedule: {" + schedule + "}}}";
    return test::error_of<ConfigError>([&] {
      require_same_job(determining_keys(parse_job(yaml, "job.yaml")), parse_job(yaml, "job.yaml", {change}),
                       "c");
    });
  };
  const std::string length = "what differs: the length of the schedule, which ends with train.epochs ";
  const std::string by_epoch = why("kind: cosine", "train.epochs=12");
  test::expect_words(by_epoch, {length + "(was 10, now 12; train.schedule.total=10 keeps it). Set"});
  EXPECT_EQ(why("kind: cosine, total: 10", "train.epochs=12"), "");
  const std::string by_step = why("kind: cosine, by: step", "train.epochs=12");
  test::expect_words(by_step, {length + "(was to the end of 10 epochs, now to the end of 12 epochs). Set"});
  const std::string other_kind = why("kind: constant", "train.schedule.kind=cosine");
  test::expect_words(other_kind, {"what differs: train.schedule.kind (was constant, now cosine). Set"});
}

}  // namespace

}  // namespace lockstep::job_resume_test
