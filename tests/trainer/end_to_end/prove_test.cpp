// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Trails and `lockstep prove`, as users meet them.
#include "common/json_text.hpp"
#include "common/machine.hpp"
#include "tests/data/idx_fixture.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/set_variable.hpp"
#include "tests/trainer/end_to_end/program.hpp"
#include "tests/trainer/support/forged_run.hpp"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

/// A run of six steps, with a checkpoint behind each second one.
class ProveTest : public JobTest {
 protected:
  std::string train_arguments(const std::string& run, const std::string& more = "") {
    return "train " + write_small_job(directory_) +
           " run.checkpoint_every_steps=2 run.keep.last=9 run.dir=" + path(run) + " " + more;
  }
  void train(const std::string& run, const std::string& more = "", int code = 0) {
    expect_says(lockstep(train_arguments(run, more)), code);
  }
  Outcome prove(const std::string& run, const std::string& more = "") {
    return lockstep("prove " + path(run) + " " + more);
  }
  std::int64_t correct_at(const std::string& run, std::int64_t step) const {
    const auto manifest = path(run) + "/checkpoints/step-0000000" + std::to_string(step) + "/manifest.json";
    return parse_json(read_text(manifest)).at("epoch_correct");
  }
  std::string trail(const std::string& run) const { return read_text(path(run) + "/trail.bin"); }

  const test::SetVariable allows_faults_{"LOCKSTEP_ALLOW_INJECT", "1"};
};

TEST_F(ProveTest, TrailsAreEqualForProcessesAndStartsThatLostTheirMetrics) {
  train("one");
  const auto two = ended_well(lockstep_on_ranks(2, train_arguments("two")));
  train("resumed", "train.max_steps=1");
  fs::remove(path("resumed/metrics.jsonl"));
  const auto resumed = succeed(train_arguments("resumed", "parallel.threads=2"));
  expect_words(resumed.err, {"metrics.jsonl is gone: its 2 lines up to step 1 are lost"});
  ASSERT_GT(trail("one").size(), 1000U);
  for (const char* other : {"two", "resumed"}) EXPECT_TRUE(trail("one") == trail(other)) << other;
  EXPECT_EQ(correct_at("resumed", 2), correct_at("one", 2))
      << "in the middle of an epoch that was interrupted";
  EXPECT_GT(correct_at("one", 2), 0);
  expect_says(prove("resumed"), 0);
}

TEST_F(ProveTest, RunOfTwoRanksIsProvedByTwoAndOnAnotherPlaceByOneAndByFour) {
  ASSERT_EQ(lockstep_on_ranks(2, train_arguments("run")).exit_code, 0);
  const auto two = lockstep_on_ranks(2, "prove " + path("run") + " --json");
  expect_says(two, 0);
  EXPECT_EQ(parse_json(two.out).at("ranks"), 2);
  const std::string moved = "moved\xc2\x9f";  // a control character
  std::filesystem::rename(path("run"), path(moved));
  expect_says(prove(moved), 0, {"proved: steps 1 to 6\n"});
  const auto four = prove(moved, "--ranks 4 --json");
  expect_says(four, 0, {"\"format\":1"});
  EXPECT_EQ(parse_json(four.out).at("steps_proved"), 6);
  EXPECT_EQ(parse_json(four.out).at("run"), path(moved));
  const auto some = prove(moved, "--sample 2 --seed 5 --json");
  EXPECT_EQ(parse_json(some.out).at("steps_asked"), 2) << some.everything();
  // Whatever is drawn, the last step is, and what it came to is compared.
  forge_checkpoint(path(moved), 6, [](CheckpointState& state) { state.weights[7] += 1; });
  const auto forged = prove(moved, "--sample 1 --json");
  expect_says(forged, 1);
  EXPECT_EQ(parse_json(forged.out).at("refuted").at(0).at("what"), "checkpoint");
}

TEST_F(ProveTest, FlippedBitIsLocatedByAnyNumberOfRanks) {
  train("run", "inject.step=4 'inject.what=flip-bit momentum 5:12'");
  for (const char* more : {"--json", "--json --ranks 3"}) {
    const auto outcome = prove("run", more);
    expect_says(outcome, 1);
    const auto first = parse_json(outcome.out).at("refuted").at(0);
    EXPECT_EQ(first.at("step"), 4);
    EXPECT_EQ(first.at("what"), "optimizer");
    EXPECT_EQ(first.at("parameter"), "conv1.weight");
    EXPECT_EQ(first.at("bit"), 12);
  }
  // A GPU replays several steps before one of them is compared.
  train(
      "series",
      "model=linear data.train_samples=192 data.global_batch=16 parallel.grain=16 train.epochs=1 "
      "run.checkpoint_every_steps=0 run.log_every_steps=0 inject.step=7 'inject.what=flip-bit weights 9:20'");
  const auto outcome = prove("series", "--device emulated --json");
  EXPECT_EQ(parse_json(outcome.out).at("refuted").at(0).at("step"), 7) << outcome.everything();
}

/// A CPU takes data.micro_batch for any network; a GPU refuses it where a layer looks at the whole batch.
TEST_F(ProveTest, MicroBatchesThatACpuTookForABatchNormAreLeftOutOnAGpu) {
  write_text(path("normed.yaml"),
             "layers:\n  - avg_pool: 7\n  - conv2d: {out: 3, kernel: 2}\n  - batch_norm\n  - relu\n"
             "  - linear: classes\n");
  train("run", "model=" + path("normed.yaml") +
                   " data.train_samples=192 data.test_samples=20 data.global_batch=64 data.micro_batch=32 "
                   "train.epochs=1");
  expect_says(prove("run", "--device emulated"), 0, {"proved: steps 1 to 3\n"});
}

TEST_F(ProveTest, ASecondFaultMayFollowFromTheFirst) {
  const std::string flip = " 'inject.what=flip-bit weights 9:20'";
  train("run", "train.max_steps=3 inject.step=2" + flip);
  train("run", "inject.step=5" + flip);
  const auto outcome = prove("run");
  expect_says(outcome, 1,
              {"refuted at step 2", "refuted at step 5",
               "likely cause: it may follow from step 2: later steps were computed from its result\n",
               "not proved: step 6: they follow from step 5\n"});
  EXPECT_EQ(count_of("they follow from", outcome.out), 1) << "step 2 is the last of its interval";
  // No step follows from a line.
  train("line", "inject.step=5" + flip);
  forge_metrics(path("line"), [](std::vector<nlohmann::json>& events) {
    std::ranges::find(events, "step", [](const auto& event) { return event.at("event"); })->at("loss") = 0.5;
  });
  const auto line = prove("line");
  expect_says(line, 1,
              {"refuted at step 1: line ", "refuted at step 5, ",
               "likely cause: a flipped bit in the memory of rank 0, before this step"});
  EXPECT_EQ(count_of("it may follow from", line.out), 0) << line.out;
}

/// Weights are so large that no loss of the next step, the second of its epoch, is a number.
TEST_F(ProveTest, AStepThatCannotBeTakenHereIsRefuted) {
  train("run", "model=linear");
  forge_checkpoint(path("run"), 4, [](CheckpointState& state) { std::ranges::fill(state.weights, 3e38F); });
  expect_says(prove("run"), 1,
              {"refuted at step 4, fc.weight: in its checkpoint, 7,840 elements of the weights are not what "
               "the step left\n",
               "refuted at step 5: 512 losses and ",
               " terms of its gradient are NaN or infinite here\n  likely cause: the run was computed from "
               "other data or weights, or wrongly; or this machine computes wrongly\n",
               "not proved: step 6: they follow from step 5\n", "proved: steps 1 to 4\n"});
}

/// Three starting points: the beginning, and two checkpoints.
TEST_F(ProveTest, GradientsThatDifferAfterEachStartingPointAreNoAccident) {
  train("run", "run.keep.best=false");
  const auto add_to_gradients = [this](const std::set<std::int64_t>& steps, std::uint64_t number) {
    forge_trail(path("run"), [&](TrailHead& head, std::vector<TrailRecord>& records) {
      for (TrailRecord& record : records)
        for (const std::size_t tensor : {0U, 1U})
          if (steps.contains(record.step)) record.fingerprints[head.layout().gradient(tensor)] += number;
    });
  };
  add_to_gradients({1, 3, 5}, 12345);
  const auto all = prove("run");
  expect_says(all, 1, {"refuted at step 1, ", "refuted at step 3, ", "refuted at step 5, "});
  EXPECT_EQ(
      count_of("\n  likely cause: it is so after every starting point: another program, other data, or a "
               "processor, there or here, that computes wrongly\n",
               all.out),
      3)
      << all.out;
  add_to_gradients({1}, std::uint64_t{0} - 12345);
  const auto later = prove("run");
  expect_says(later, 1, {"refuted at step 3, ", "refuted at step 5, ", "cause: it may follow from step 3: "});
  EXPECT_EQ(count_of("every starting point", later.out), 0) << later.out;
}

/// By proofs on other numbers of ranks. The run went on with other ranks than it began with.
TEST_F(ProveTest, RankThatComputedWronglyIsNamed) {
  const std::string on_threads = "parallel.backend=thread parallel.ranks=";
  for (const auto& [fault, rank, what] :
       {std::tuple("wrong-forward", 2, "gradient"), std::tuple("flip-bit weights 9:20", 2, "weights"),
        std::tuple("flip-bit gradient 9:20", 0, "gradient")}) {
    const std::string run = "run-" + std::to_string(rank) + what;
    train(run, "train.max_steps=2 " + on_threads + "4");
    train(run,
          on_threads + "3 parallel.check_replicas_every_steps=0 inject.step=5 inject.rank=" +
              std::to_string(rank) + " 'inject.what=" + fault + "'",
          fault == std::string("wrong-forward") ? 0 : 72);  // copies that differ are found before a save
    for (const char* more : {"--json", "--json --ranks 3", "--json --steps 5"}) {
      const auto outcome = prove(run, more);
      const auto first = parse_json(outcome.out).at("refuted").at(0);
      EXPECT_EQ(first.at("step"), 5) << outcome.everything();
      EXPECT_EQ(first.at("what"), what) << outcome.everything();
      ASSERT_TRUE(first.contains("rank")) << fault << outcome.everything();
      EXPECT_EQ(first.at("rank"), rank) << outcome.everything();
      EXPECT_EQ(first.at("host"), host_name());
    }
  }
  expect_says(prove("run-2gradient"), 1, {"likely cause: rank 2 on " + host_name() + " (cpu"});
  fs::remove(path("run-2gradient/ranks.jsonl"));
  expect_says(prove("run-2gradient"), 1, {"other data on some rank"});
}

/// Finds the rank of two pipelines by their copies; of one alone by what its ranks hold.
TEST_F(ProveTest, RankOfAPipelineIsNamedWhoseStateWasOther) {
  for (const auto& [ranks, rank, what] : {std::tuple(4, 3, "weights"), std::tuple(4, 1, "weights"),
                                          std::tuple(4, 2, "momentum"), std::tuple(2, 1, "momentum")}) {
    const std::string run = "pipelines-" + std::to_string(ranks) + "-" + std::to_string(rank);
    train(run,
          "parallel.strategy=pipeline parallel.stages=2 parallel.backend=thread "
          "parallel.check_replicas_every_steps=0 inject.step=5 parallel.ranks=" +
              std::to_string(ranks) + " inject.rank=" + std::to_string(rank) + " 'inject.what=flip-bit " +
              what + " 9:20'",
          ranks == 4 ? 72 : 0);  // copies that differ are found before a save
    const auto outcome = prove(run, "--json");
    const auto first = parse_json(outcome.out).at("refuted").at(0);
    EXPECT_EQ(first.at("step"), 5) << outcome.everything();
    EXPECT_EQ(first.value("rank", -1), rank) << outcome.everything();
  }
}

TEST_F(ProveTest, GroupOfRanksStopsTogetherWhereOneIntervalIsRefuted) {
  train("run",
        "run.checkpoint_every_steps=0 run.keep.best=false inject.step=2 'inject.what=flip-bit weights 9:20'");
  expect_says(prove("run", "--ranks 3"), 1,
              {"conv1.weight: the weights on rank 0 on " + host_name() + " (cpu",
               std::string("went into it with bit 20 of element [0, 0, 1, 4] flipped")});
  // A batch has 16 grains: four ranks have no work, and the proof ends all the same.
  expect_says(prove("run", "--steps 1 --ranks 20"), 0);
}

/// Rank 1 stops itself for good once it has computed for 0.4 s: by then it replays.
TEST_F(ProveTest, StoppedRankIsNamedAfterTheUsualDeadline) {
  train("run", "train.epochs=60 run.checkpoint_every_steps=0 run.keep.best=false run.log_every_steps=0");
  const auto command = mpirun_command(1, "prove " + path("run") + " --timeout 2");
  const auto program = command.substr(command.find(" -np 1 ") + 7);
  expect_says(
      run_shell(
          command +
              " : -np 1 sh -c '(while [ $(cut -d\" \" -f14 /proc/$$/stat) -lt 40 ]; do sleep 0.05; done; "
              "kill -STOP $$) & exec " +
              program + "'",
          60),
      71, {"verdict: rank 1 on ", ": it is stopped, kill -CONT "});
}

TEST_F(ProveTest, DamagedFilesAreNamedAndWhatTheOthersSayIsProved) {
  train("run");
  const std::string file = path("run") + "/checkpoints/step-00000004/model.safetensors";
  auto bytes = read_text(file);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
  write_text(file, bytes);
  expect_says(prove("run"), 1, {"refuted at step 4: its checkpoint is damaged: ", "proved: steps 1 to 6\n"});
  auto records = trail("run");
  records[records.size() - 20] = static_cast<char>(records[records.size() - 20] ^ 4);
  write_text(path("run") + "/trail.bin", records);
  const auto of_trail = prove("run");
  expect_words(of_trail.out, {"refuted at step 6: the trail is damaged: ", "proved: steps 1 to 5\n"});
}

/// Every rank that replays sees it in the head, and rank 0 tells it.
TEST_F(ProveTest, TrailOfAnotherOptimiserIsRefutedOnceByAnyNumberOfRanks) {
  train("run");
  forge_trail(path("run"),
              [](TrailHead& head, std::vector<TrailRecord>&) { head.buffers.front() = "velocity"; });
  for (const char* more : {"", "--ranks 2"}) {
    const auto outcome = prove("run", more);
    expect_says(outcome, 1,
                {"refuted at step 1: the head of trail.bin is not that of this job: the optimiser's buffers "
                 "(velocity there, momentum here)\n"});
    EXPECT_EQ(count_of("refuted at", outcome.out), 1) << outcome.out;
  }
}

TEST_F(ProveTest, ANetworkThatCannotBeBuiltIsNamedAsInTraining) {
  train("run");
  const std::string run = path("run"), unknown = "layers:\n  - lin: 3\n";
  for (const std::int64_t step : checkpoint_steps(run))
    forge_checkpoint(run, step, [&](CheckpointState& state) { state.facts.model["yaml"] = unknown; });
  forge_trail(run, [&](TrailHead& head, std::vector<TrailRecord>&) { head.facts["model.yaml"] = unknown; });
  expect_says(prove("run"), 65,
              {"trail.bin: the network that it records is damaged: net.yaml:2:5: unknown layer 'lin'"});
}

TEST_F(ProveTest, OtherDataAreRefused) {
  for (const std::string set : {"own", "other"}) test::write_image_set(path(set), 40, 10);
  std::string labels = read_text(path("other/train-labels-idx1-ubyte"));
  labels.back() = labels.back() == 3 ? 4 : 3;
  write_text(path("other/train-labels-idx1-ubyte"), labels);
  ended_well(run_shell("cd " + path("") + " && $LOCKSTEP_PROGRAM " +
                       train_arguments("images",
                                       "model=linear data.set=mnist data.train_samples=0 data.test_samples=0 "
                                       "data.global_batch=16 parallel.grain=4 data.root=own")));
  expect_says(prove("images"), 0);  // its job's data.root leads nowhere from here
  expect_says(prove("images", "--data " + path("other")), 65,
              {"was trained on other data than those found (" + path("other"), "data.train_labels_digest"});
  expect_says(prove("images", "--data " + path("own")), 0);
  // Mean and deviation of a set of one's own are measured, and change with a picture.
  train("measured",
        "model=linear data.set=idx data.train_samples=0 data.test_samples=0 data.global_batch=16 "
        "parallel.grain=4 data.root=" +
            path("own"));
  write_text(path("other/train-labels-idx1-ubyte"), read_text(path("own/train-labels-idx1-ubyte")));
  std::string pictures = read_text(path("other/train-images-idx3-ubyte"));
  pictures.back() = pictures.back() == 9 ? 8 : 9;
  write_text(path("other/train-images-idx3-ubyte"), pictures);
  expect_says(prove("measured", "--data " + path("other")), 65,
              {"model.mean (", "model.std (", "data.train_samples_digest (", "--data DIR names the place"});
  train("run");
  expect_says(prove("run", "--data " + path("")), 2,
              {"is made in memory, no directory holds it; leave --data out"});
}

TEST_F(ProveTest, StepsWithoutATrailAreNamed) {
  train("run", "train.max_steps=2 run.trail=false");
  expect_says(prove("run"), 66, {"this run left no trail"});
  train("run");
  const auto rest = prove("run");
  EXPECT_EQ(rest.exit_code, 66) << rest.everything();
  expect_words(rest.out, {"not proved: steps 1 to 2: not in the trail", "proved: steps 3 to 6\n"});
  expect_says(prove("run", "--steps 3.."), 0);
  expect_says(prove("run", "--steps 7"), 2);
  // Rank 0 alone knows the checkpoints, which go further than the trail.
  train("cut", "train.max_steps=4");
  const std::string cut = trail("cut");
  train("cut");
  write_text(path("cut/trail.bin"), cut);
  expect_says(prove("cut", "--steps 6 --ranks 2"), 1,
              {"refuted at step 6: its checkpoint says that the trail had 6 records and "});
}

/// Commands prefer an accuracy on held-out samples to the one on the test set.
TEST_F(ProveTest, AccuraciesOnSamplesThatTheRunDoesNotHoldOutAreRefuted) {
  train("run");
  forge_metrics(path("run"),
                [](std::vector<nlohmann::json>& events) { events.back()["validation_accuracy"] = 0.99; });
  expect_says(
      prove("run"), 1,
      {"(event end) differs from the computed values: a run of this job writes no validation_accuracy here"});
  train("label");
  forge_checkpoint(path("label"), 4, [](CheckpointState& state) { state.facts.validation_accuracy = 0.99; });
  expect_says(
      prove("label"), 1,
      {"refuted at step 4: the manifest", "validation_accuracy is of nothing that this run evaluates"});
  train("held-out", "data.validation=0.1");
  expect_says(prove("held-out"), 0);
}

/// Each start has another number of test samples, and the checkpoints of those before it are gone.
TEST_F(ProveTest, AccuraciesOnTestSetsOfEarlierStartsAreLeftOut) {
  const std::string job = "run.keep.last=1 run.keep.best=false train.evaluate_every_steps=1 ";
  for (const char* start : {"train.epochs=1 data.test_samples=50", "train.epochs=2 data.test_samples=60",
                            "train.epochs=3 data.test_samples=70"})
    train("run", job + start);
  expect_says(
      prove("run"), 0,
      {"not proved: step 1: its test accuracy was measured on 50 samples, and data.test_samples is 70 here",
       "proved: steps 1 to 9\n"});
  forge_metrics(path("run"), [](std::vector<nlohmann::json>& events) {
    for (nlohmann::json& event : events)
      if (event.at("event") == "evaluation" && event.at("step") == 5) event.at("test_samples") = 61;
  });
  expect_says(prove("run"), 1, {"(event evaluation) differs", "test_samples is 61, and came to 70"});
}

/// Zeros behind the end, as a file system leaves them, and a run's own claims. (tests/trainer/tools/survey_test.cpp has
/// what is seen before a step is replayed.)
TEST_F(ProveTest, FilesThatSayMoreThanWasComputedAreRefutedAtOnce) {
  train("run", "run.print_loss_every_steps=1");
  expect_says(prove("run"), 0);
  const std::string good = read_text(path("run/trail.bin"));
  fs::resize_file(path("run/trail.bin"), std::uintmax_t{1} << 33);
  const auto zeros = prove("run", "--json");
  expect_says(zeros, 1, {"goes on after step 6, the last of its job"});
  EXPECT_EQ(parse_json(zeros.out).at("steps_replayed"), 6);
  write_text(path("run/trail.bin"), good);
  forge_metrics(path("run"), [](std::vector<nlohmann::json>& events) {
    events.front().at("parameters") = 1;
    events.front()["initial_tensors"] = 2;
    events.back().at("weights_sha256") = std::string(64, '0');
    events.back()["published_hash"] = events.back()["stopped_early"] = true;
    std::ranges::find(events, "step", [](const auto& event) { return event.at("event"); })->at("loss") = 0.5;
    const auto at = [&](const char* name, std::int64_t step) -> nlohmann::json& {
      return *std::ranges::find_if(
          events, [&](const auto& event) { return event.at("event") == name && event.at("step") == step; });
    };
    // Leaves step 5 the one line that has its gradient norm.
    const auto is_loss_5 = [](const auto& event) {
      return event.at("event") == "loss" && event.at("step") == 5;
    };
    EXPECT_EQ(std::erase_if(events, is_loss_5), 1U);
    at("step", 5).at("train_accuracy") = 2;
    at("step", 5).at("gradient_norm") = 1;
    at("step", 4).at("accuracy_steps") = 0;
    at("loss", 4).at("steps") = 0;
    at("loss", 3).at("steps") = 2;  // from within the interval before
    auto early = *std::ranges::find(events, "epoch", [](const auto& event) { return event.at("event"); });
    early["step"] = 2;
    events.insert(std::ranges::find(events, 3, [](const auto& event) { return event.value("step", 0); }),
                  early);
  });
  forge_checkpoint(path("run"), 4, [](CheckpointState& state) { --state.facts.epoch_correct; });
  forge_checkpoint(path("run"), 6, [](CheckpointState& state) { *state.facts.test_accuracy *= 0.5; });
  const auto forged = prove("run");
  expect_says(
      forged, 1,
      {"refuted at step 0: line 1 of metrics.jsonl (event start) differs from the computed values: ",
       ": parameters is 1, and came to ", ", a run of this job writes no initial_tensors here",
       "refuted at step 1: line 3 of metrics.jsonl (event step) differs from the computed values: ",
       ": loss is 0.5, and came to ",
       "(event epoch) differs from the computed values: no epoch ends with this step",
       "refuted at step 4: the manifest of its checkpoint differs from the computed values: ",
       ": epoch_correct is ",
       ": accuracy_steps is not a number of steps after which an accuracy is told here",
       "(event step) differs from the computed values: gradient_norm is 1, and came to ",
       "train_accuracy is 2, and came to ",
       "refuted at step 6: the manifest of its checkpoint differs from the computed values: ",
       ": test_accuracy is ", "(event end) differs from the computed values: weights_sha256 is \"0000",
       ", a run of this job writes no published_hash here, a run of this job writes no stopped_early here",
       "proved: steps 1 to 6\n"});
  EXPECT_EQ(count_of(": steps is not a number of steps after which a loss is printed here", forged.out), 2);
}

}  // namespace
}  // namespace lockstep::testing
