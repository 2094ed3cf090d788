// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Runs that hold samples out or take a part of them. What they train on, what they are judged by, and when
/// their patience ends them; and runs that balance classes.
#include "data/sets/hold_out.hpp"
#include "tests/data/idx_fixture.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/end_to_end/program.hpp"
#include "tests/trainer/support/forged_run.hpp"

namespace lockstep::testing {
namespace {

class ValidationTest : public JobTest {
 protected:
  std::vector<nlohmann::json> metrics(const std::string& run) const { return comparable_metrics(path(run)); }
  nlohmann::json weights(const std::string& run) const { return metrics(run).back()["weights_sha256"]; }
};

constexpr const char* kDigits =
    "model: linear\n"
    "data: {set: synthetic, train_samples: 600, test_samples: 90, global_batch: 128, validation: 0.1}\n"
    "train: {epochs: 2, evaluate_every_steps: 2, optimizer: {lr: 0.05}}\n"
    "parallel: {device: cpu, grain: 16}\n"
    "run: {checkpoint_every_steps: 2, log_every_steps: 1, report: false}\n";

TEST_F(ValidationTest, EpochsAreJudgedOnHeldOutSamplesAndTheEndOnTheTestSet) {
  write_job(kDigits);
  expect_says(train("run"), 0, {"(540 train, 60 validation, 90 test;", "best: validation accuracy"});
  std::string events;
  for (const auto& event : metrics("run")) {
    const auto name = event["event"].get<std::string>();
    if (name == "step" || name == "start") continue;
    events += name + ":" + event["step"].dump() + " ";
    EXPECT_EQ(event["validation_samples"], 60) << event;
    EXPECT_EQ(event.contains("test_accuracy"), name == "end") << event;
  }
  EXPECT_EQ(events, "evaluation:2 evaluation:4 epoch:5 evaluation:6 evaluation:8 epoch:10 end:10 ");
  const auto judged = answer_of("eval " + path("run") + " --validation");
  EXPECT_EQ(judged["accuracy"], metrics("run").back()["validation_accuracy"]);
  EXPECT_EQ(judged["loss"], metrics("run").back()["validation_loss"]);
  succeed("prove " + path("run"));
  auto text = read_text(path("run/metrics.jsonl"));
  text.replace(text.find("\"validation_accuracy\":0.") + 24, 1, "0");
  write_text(path("run/metrics.jsonl"), text);
  const auto forged = lockstep("prove " + path("run"));
  EXPECT_NE(forged.out.find("validation_accuracy is 0.0"), std::string::npos) << forged.everything();
}

/// 240 images of 4 x 4, whose labels can be seen in them.
void write_set(const std::string& directory, const std::vector<std::int32_t>& spoilt) {
  for (const auto& [half, count] : {std::pair{"train", 240U}, {"t10k", 30U}}) {
    std::mt19937 random(5);
    test::Bytes images = test::idx_header({count, 4, 4}), labels = test::idx_header({count});
    for (std::uint32_t i = 0; i < count; ++i) {
      const bool bad = count == 240 && std::ranges::binary_search(spoilt, static_cast<std::int32_t>(i));
      labels.push_back(static_cast<std::uint8_t>(bad ? 2 - i % 3 : i % 3));
      for (std::uint32_t pixel = 0; pixel < 16; ++pixel)
        images.push_back(static_cast<std::uint8_t>(random() % 64 + (bad                  ? 191
                                                                    : pixel % 3 == i % 3 ? 120
                                                                                         : 0)));
    }
    test::write_file(directory + "/" + half + "-images-idx3-ubyte", images);
    test::write_file(directory + "/" + half + "-labels-idx1-ubyte", labels);
  }
}

/// Other images and other labels in their places change no weight, and no mean of the set. Of any other sample they do.
TEST_F(ValidationTest, HeldOutSamplesAreNeverTrainedOn) {
  const auto held_out = held_out_samples(240, 48, 1234);
  std::int32_t other = 0;
  while (std::ranges::binary_search(held_out, other)) ++other;
  write_set(path("set"), {});
  write_set(path("spoilt"), held_out);
  write_set(path("other"), {other});
  write_job(
      "model: linear\ndata: {set: idx, global_batch: 64, validation: 48}\ntrain: {epochs: 3}\n"
      "parallel: {device: cpu, grain: 16}\nrun: {report: false}\n");
  for (const std::string how : {"", "data.per_rank_batch=32 parallel.backend=thread parallel.ranks=2"}) {
    const std::string name = how.empty() ? "-alone" : "-ranks";
    for (const std::string set : {"set", "spoilt", "other"})
      ended_well(train(set + name, "data.root=" + path(set) + " " + how));
    EXPECT_EQ(weights("spoilt" + name), weights("set" + name));
    EXPECT_NE(weights("other" + name), weights("set" + name));
    EXPECT_NE(metrics("spoilt" + name).back()["validation_loss"],
              metrics("set" + name).back()["validation_loss"]);
  }
}

/// At this rate no weight moves, and so no accuracy.
constexpr const char* kStandstill =
    "model: linear\n"
    "data: {set: synthetic, train_samples: 80, test_samples: 20, global_batch: 32, validation: 16}\n"
    "train: {epochs: 9, patience: 2, optimizer: {lr: 1e-30}}\n"
    "parallel: {device: cpu, grain: 16}\nrun: {log_every_steps: 1, report: false}\n";

TEST_F(ValidationTest, PatienceEndsARunThatGetsNoBetter) {
  write_job(kStandstill);
  expect_says(train("run"), 0, {"in 2 evaluations: ended by train.patience at step 6 of 18"});
  EXPECT_EQ(metrics("run").back()["step"], 6);
  EXPECT_EQ(metrics("run").back()["stopped_early"], true);
  expect_says(train("run"), 0, {"already finished", "set train.patience=3 or more"});
  EXPECT_EQ(train_in_parts("steps"), 7);
  EXPECT_EQ(metrics("steps"), metrics("run"));
  succeed("prove " + path("steps"));
  forge_checkpoint(path("steps"), 6,
                   [](CheckpointState& state) { ++state.facts.patience.value().without_better; });
  expect_says(lockstep("prove " + path("steps")), 1,
              {"refuted at step 6: the manifest", "patience.without_better is 3, and came to 2"});
  ended_well(train("run", "train.patience=4"));
  ended_well(train("four", "train.patience=4"));
  EXPECT_EQ(metrics("run"), metrics("four"));
  EXPECT_EQ(metrics("run").back()["step"], 10);
}

TEST_F(ValidationTest, PatienceGoesByEvaluationsWithinAnEpochToo) {
  write_job(kStandstill);
  ended_well(train("run", "train.evaluate_every_steps=1 data.validation=0"));
  EXPECT_EQ(metrics("run").back()["step"], 3);
  EXPECT_EQ(train_in_parts("steps", "train.evaluate_every_steps=1 data.validation=0"), 4);
  EXPECT_EQ(metrics("steps"), metrics("run"));
}

TEST_F(ValidationTest, ARunKeepsWhatItHeldOut) {
  write_job(kStandstill);
  ended_well(train("none", "data.validation=0 train.patience=0 train.epochs=1"));
  expect_says(train("none", "train.epochs=2"), 2, {"data.validation (was 0, now 16)"});
  expect_says(lockstep("eval " + path("none") + " --validation"), 2, {"held no samples out"});
}

// A part of the samples of a set in files, and classes in balance.

constexpr const char* kPart =
    "model: linear\ndata: {set: idx, root: set, global_batch: 32, validation: 48, train_samples: 70, "
    "test_samples: 12}\ntrain: {epochs: 3}\nparallel: {device: cpu, grain: 8}\n"
    "run: {checkpoint_every_steps: 2, log_every_steps: 1, report: false}\n";

TEST_F(ValidationTest, APartIsTrainedOnProvedAndJudged) {
  write_set(path("set"), {});
  write_job(kPart);
  const auto valid = answer_of("validate " + path("job.yaml") + " data.root=" + path("set"));
  EXPECT_EQ(valid["train_samples"], 70);
  EXPECT_EQ(valid["test_samples"], 12);
  expect_says(train("alone"), 0, {"(70 of 192 train, 48 validation, 12 of 30 test;"});
  EXPECT_EQ(metrics("alone").front()["train_samples"], 70);
  EXPECT_EQ(metrics("alone").back()["test_samples"], 12);
  succeed("prove " + path("alone"));
  const auto judged = [&](const std::string& options, std::int64_t samples) {
    const auto json = answer_of("eval " + path("alone") + " " + options);
    EXPECT_EQ(json["samples"], samples) << options;
    EXPECT_EQ(json["relation"], "what it was trained on");
    return json["accuracy"].get<double>();
  };
  EXPECT_EQ(judged("", 12), metrics("alone").back()["test_accuracy"]);
  EXPECT_EQ(judged("--validation", 48), metrics("alone").back()["validation_accuracy"]);
  judged("--train", 70);
  judged("--whole", 30);
  judged("--whole --train", 192);
}

/// The test set decides no weight: a run judged by all of it makes the same mistakes, and more.
TEST_F(ValidationTest, MistakesOfAPartAreShownAsTheyAreInTheFile) {
  write_set(path("set"), {});
  write_job(kPart);
  const std::string hardly = "train.epochs=1 train.optimizer.lr=1e-6";
  ended_well(train("part", hardly));
  ended_well(train("whole", hardly + " data.test_samples=0"));
  std::map<nlohmann::json, nlohmann::json> pictures;
  const auto mistakes_of = [&](const std::string& run) {
    return nlohmann::json::parse(
        succeed("report --format json " + path(run)).out)["runs"][0]["classes"]["mistakes"];
  };
  for (const auto& mistake : mistakes_of("whole")) pictures[mistake["sample"]] = mistake["picture"];
  const auto of_part = mistakes_of("part");
  EXPECT_GT(of_part.size(), 1U);
  EXPECT_GT(pictures.size(), of_part.size());
  for (const auto& mistake : of_part)
    EXPECT_EQ(mistake["picture"], pictures.at(mistake["sample"])) << mistake["sample"];
}

/// Left-out samples do not change even a mean of the set. They belong to the set, so a run does not go on
/// with others.
TEST_F(ValidationTest, OthersThanThePartAreNeverTrainedOnButCompared) {
  const auto held_out = held_out_samples(240, 48, 1234), part = training_subset(240, 70, 1234, held_out);
  std::vector<std::int32_t> others;
  for (std::int32_t i = 0; i < 240; ++i)
    if (!std::ranges::binary_search(part, i)) others.push_back(i);
  write_set(path("set"), {});
  write_set(path("spoilt"), others);
  write_set(path("other"), {part[5]});
  write_job(kPart);
  for (const std::string set : {"set", "spoilt", "other"})
    ended_well(train("of-" + set, "data.root=" + path(set)));
  EXPECT_EQ(weights("of-spoilt"), weights("of-set"));
  EXPECT_NE(weights("of-other"), weights("of-set"));
  expect_says(train("of-set", "train.epochs=4 data.root=" + path("spoilt")), 65,
              {"idx train samples (sha256"});
  expect_says(train("of-set", "train.epochs=4 data.train_samples=71"), 2,
              {"data.train_samples (was 70, now 71)"});
  ended_well(train("of-set", "train.epochs=4 data.test_samples=20"));
  EXPECT_EQ(metrics("of-set").back()["test_samples"], 20);
  // No share of 20.
  forge_checkpoint(path("of-set"), 9, [](CheckpointState& state) { state.facts.test_accuracy = 1.0 / 12; });
  const Outcome proof = lockstep("prove " + path("of-set"));
  expect_words(proof.out, {"measured on 12 samples, and data.test_samples is 20 here"});
  EXPECT_NE(proof.exit_code, 1) << proof.out;
}

TEST_F(ValidationTest, ClassesInBalanceAreSaidAndProved) {
  write_job(kDigits);
  const std::string balance = " data.balance_classes=true ";
  expect_says(train("alone", balance), 0, {"10 classes balanced, of ", "each is drawn 54 times an epoch"});
  succeed("prove " + path("alone"));
  ended_well(train(
      "hogwild",
      balance +
          "parallel.strategy=hogwild parallel.determinism=off parallel.backend=thread parallel.ranks=2"));
  expect_says(train("alone", "train.epochs=3"), 2, {"data.balance_classes (was true, now false)"});
}

}  // namespace
}  // namespace lockstep::testing
