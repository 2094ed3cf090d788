// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// RUN@best, RUN@last, RUN@epoch:3, RUN@step:500, and what is said where there is no such checkpoint or run.
#include "common/error.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"
#include "trainer/checkpoint/directory.hpp"
#include "trainer/checkpoint/inspect.hpp"

namespace lockstep {
namespace {

/// Steps 100, 150, 200 and 300, of which 200, after epoch 2, is the best.
class CheckpointNamesTest : public ::testing::Test {
 protected:
  CheckpointNamesTest() : run_(directory_.path() + "/run") {
    std::filesystem::create_directory(run_);
    for (const auto& [step, accuracy] : {std::pair(100, 0.5), {150, -1.0}, {200, 0.6894}, {300, 0.4534}}) {
      CheckpointState state = make_state(step);
      if (accuracy >= 0) state.facts.test_accuracy = accuracy;
      save_checkpoint(env_, run_, state);
    }
    write_metrics({{1, 100, 0.5}, {2, 200, 0.6894}, {3, 300, 0.4534}});
  }

  struct Told {
    int epoch, step;
    double accuracy;
  };
  void write_metrics(const std::vector<Told>& epochs) const {
    std::ofstream file(run_ + "/metrics.jsonl");
    for (const Told& told : epochs)
      file << fmt::format("{{\"event\":\"epoch\",\"epoch\":{},\"step\":{},\"test_accuracy\":{}}}\n",
                          told.epoch, told.step, told.accuracy);
  }
  std::string name(const std::string& behind) { return named_checkpoint(env_, run_ + behind); }
  std::string step(std::int64_t number) const { return run_ + "/checkpoints/" + checkpoint_name(number); }
  void remove(std::int64_t number) const { std::filesystem::remove_all(step(number)); }

  /// Message about a name that has no checkpoint.
  template <typename Expected>
  std::string refused(const std::string& behind) {
    return test::error_of<Expected>([&] { name(behind); });
  }

  Env& env_ = Env::posix();
  TemporaryDirectory directory_;
  std::string run_;
};

TEST_F(CheckpointNamesTest, NamesMeanCheckpointsOfTheirRun) {
  EXPECT_EQ(name("@best"), step(200));
  EXPECT_EQ(name("@last"), run_);
  EXPECT_EQ(name("@epoch:1"), step(100));
  EXPECT_EQ(name("@epoch:3"), step(300));
  EXPECT_EQ(name("@step:150"), step(150));
  EXPECT_EQ(name(""), run_);
  EXPECT_EQ(open_checkpoint(env_, run_ + "@best", {}).state.facts.step, 200);
  EXPECT_EQ(open_checkpoint(env_, run_ + "@last", {}).state.facts.step, 300);
}

TEST_F(CheckpointNamesTest, AnAverageBehindACheckpointIsItsWeights) {
  CheckpointState state = make_state(400);
  state.optimizer.push_back({"ema", std::vector<float>(state.weights.size(), 0.25F)});
  state.optimizer.push_back({"swa", std::vector<float>(state.weights.size())});
  state.facts.kept = {{"bn.running_mean", {2}}};
  state.weights.insert(state.weights.end(), {7, 8});
  state.facts.test_accuracy = 0.9;
  state.facts.validation_accuracy = 0.8;
  save_checkpoint(env_, run_, state);
  for (const std::string& path : {run_ + "@ema", run_ + "@step:400@ema", step(400) + "@ema"}) {
    const FoundCheckpoint found = open_checkpoint(env_, path, {});
    EXPECT_EQ(found.path, step(400) + "@ema");
    EXPECT_EQ(found.state.weights.front(), 0.25F);
    EXPECT_EQ(found.state.weights.back(), 8) << "what is kept is that of the weights";
    EXPECT_EQ(found.state.facts.average, "ema");
    EXPECT_FALSE(found.state.facts.test_accuracy) << "measured of other weights";
    const std::string shown = inspect_checkpoint(found.path, found.state);
    test::expect_words(shown, {"their average ema"});
    EXPECT_EQ(shown.find("accuracy"), std::string::npos) << shown;
    EXPECT_EQ(load_manifest(env_, found.path).facts.step, 400);
  }
  EXPECT_EQ(
      message_of<MissingDataError>([&] { open_checkpoint(env_, run_ + "@swa", {}); }),
      step(400) +
          ": nothing is averaged yet: the first epoch that counts has not ended (train.swa.from_epoch=N)");
  state.optimizer[1].values.assign(state.optimizer[1].values.size(), 0);
  save_checkpoint(env_, run_, state);
  EXPECT_EQ(message_of<MissingDataError>([&] { open_checkpoint(env_, run_ + "@ema", {}); }),
            step(400) + ": nothing is averaged yet: no step was trained (train.ema=0.999)");
  EXPECT_EQ(message_of<MissingDataError>([&] { open_checkpoint(env_, step(200) + "@ema", {}); }),
            step(200) + ": it keeps no average of its weights named ema; a run with train.ema=0.999 does");
  EXPECT_THROW(open_checkpoint(env_, run_ + "@mean", {}), UsageError);
  state.optimizer[1].values.assign(state.optimizer[1].values.size(), NAN);
  save_checkpoint(env_, run_, state);
  EXPECT_THROW(open_checkpoint(env_, run_ + "@ema", {}), DataError);
  EXPECT_EQ(open_checkpoint(env_, run_ + "@ema", {}, Weights::kAny).path, step(400) + "@ema");
}

TEST_F(CheckpointNamesTest, OlderIsTheBestAmongEquals) {
  CheckpointState state = make_state(400);
  state.facts.test_accuracy = 0.6894;
  save_checkpoint(env_, run_, state);
  write_metrics({{2, 200, 0.6894}, {4, 400, 0.6894}});
  EXPECT_EQ(name("@best"), step(200));
  remove(200);
  EXPECT_EQ(name("@best"), step(400)) << "as good, and kept";
}

TEST_F(CheckpointNamesTest, TheBestIsTheBestOfTheNewestTestSet) {
  std::string lines;
  const auto evaluate = [&](std::int64_t step, double accuracy, int samples) {
    CheckpointState state = make_state(step);
    state.facts.test_accuracy = accuracy;
    state.facts.data["test_samples"] = std::to_string(samples);
    save_checkpoint(env_, run_, state);
    lines += fmt::format(R"({{"event":"epoch","epoch":{},"step":{},"test_accuracy":{},"test_samples":{}}})",
                         step / 100, step, accuracy, samples) +
             "\n";
    std::ofstream(run_ + "/metrics.jsonl") << lines;
  };
  evaluate(100, 1, 5);
  evaluate(200, 0.8, 5);
  EXPECT_EQ(name("@best"), step(100));
  evaluate(300, 0.6, 1000);
  EXPECT_EQ(name("@best"), step(300));
  EXPECT_EQ(best_line(env_, run_), "") << "of one evaluation there is no best";
  evaluate(400, 0.5, 1000);
  EXPECT_EQ(best_line(env_, run_), "best: accuracy 60.00 % after epoch 3, checkpoint " + run_ + "@epoch:3");
  for (const std::int64_t gone : {300, 400}) remove(gone);
  test::expect_words(refused<MissingDataError>("@best"), {"60.00 % after epoch 3, was not kept"});
}

TEST_F(CheckpointNamesTest, BestThatWasPrunedIsNamed) {
  remove(200);
  test::expect_words(
      refused<MissingDataError>("@best"),
      {"run@best: the best of this run, 68.94 % after epoch 2, was not kept",
       "there are step:300 (epoch 3, 45.34 %), step:150 (epoch 1 + 50 steps), step:100 (epoch 1",
       "run.keep.best=true keeps it"});
}

TEST_F(CheckpointNamesTest, WithoutMetricsManifestsTell) {
  std::filesystem::remove(run_ + "/metrics.jsonl");
  EXPECT_EQ(name("@best"), step(200));
  EXPECT_EQ(name("@epoch:2"), step(200));
  EXPECT_EQ(name("@epoch:1"), step(100)) << "its end, not step 150 of the epoch after it";
  remove(100);
  test::expect_words(refused<MissingDataError>("@epoch:1"), {"step:150 (epoch 1 + 50 steps)"});
  for (const std::int64_t evaluated : {200, 300}) remove(evaluated);
  EXPECT_EQ(refused<MissingDataError>("@best"),
            run_ + "@best: no checkpoint of this run was evaluated; there is step:150 (epoch 1 + 50 steps)");
}

TEST_F(CheckpointNamesTest, CheckpointSavedBeforeItsEvaluationCountsAll) {
  remove(200);
  CheckpointState state = make_state(200);
  state.facts.epoch = 1, state.facts.step_in_epoch = 100;
  save_checkpoint(env_, run_, state);
  EXPECT_EQ(name("@best"), step(200));
  EXPECT_EQ(name("@epoch:2"), step(200));
}

TEST_F(CheckpointNamesTest, NamesThatMeanNothingAreRefused) {
  for (const char* behind : {"@bset", "@", "@epoch:", "@step:-1", "@step:1x"})
    EXPECT_EQ(refused<UsageError>(behind),
              fmt::format("{}{}: after @ write best, last, epoch:N, step:N, ema or swa, not '{}'", run_,
                          behind, behind + 1));
  test::expect_words(refused<MissingDataError>("2@best"), {"there is no such run"});
  test::expect_words(refused<MissingDataError>("@epoch:0"), {"the run has no checkpoint of epoch 0; "});
}

TEST_F(CheckpointNamesTest, OneCheckpointIsNamedAndOfManyTheNewestSix) {
  for (const std::int64_t other : {100, 150, 200}) remove(other);
  const std::string more =
      "; run.keep.last and run.keep.every_steps keep more, run.checkpoint_every_steps saves more often";
  EXPECT_EQ(
      refused<MissingDataError>("@step:7"),
      run_ + "@step:7: the run has no checkpoint of step 7; there is step:300 (epoch 3, 45.34 %)" + more);
  for (const std::int64_t other : {401, 402, 403, 404, 405}) save_checkpoint(env_, run_, make_state(other));
  const std::string six =
      "step:405 (epoch 4 + 5 steps), step:404 (epoch 4 + 4 steps), step:403 (epoch 4 + 3 steps), "
      "step:402 (epoch 4 + 2 steps), step:401 (epoch 4 + 1 step), step:300 (epoch 3, 45.34 %)";
  EXPECT_EQ(refused<MissingDataError>("@epoch:9"),
            run_ + "@epoch:9: the run has no checkpoint of epoch 9; there are " + six + more);
  save_checkpoint(env_, run_, make_state(200));
  EXPECT_EQ(refused<MissingDataError>("@step:99999999999999"),
            run_ + "@step:99999999999999: the run has no checkpoint of step 99999999999999; there are " +
                six + " and 1 more" + more);
}

TEST_F(CheckpointNamesTest, WhatHasSuchANameIsItself) {
  std::filesystem::create_directory(run_ + "@best");
  EXPECT_EQ(name("@best"), run_ + "@best");
  EXPECT_EQ(name("2/weights@home.safetensors"), run_ + "2/weights@home.safetensors");
  EXPECT_EQ(named_checkpoint(env_, "@best"), "@best") << "of no run";
  EXPECT_THROW(named_checkpoint(env_, "no1@best"), MissingDataError);
  std::filesystem::create_directory(run_ + "@ema");
  for (const std::string& itself : {run_ + "@ema", std::string("@ema")})
    EXPECT_EQ(split_average(env_, itself).path, itself);
}

TEST_F(CheckpointNamesTest, DamagedManifestsAreNotTheBest) {
  std::ofstream(step(200) + "/manifest.json") << "{}";
  const auto checkpoints = summarise_checkpoints(env_, run_);
  ASSERT_EQ(checkpoints.size(), 4U);
  EXPECT_FALSE(checkpoints[1].damage.empty());
  EXPECT_EQ(best_checkpoint(checkpoints)->step, 100);
  EXPECT_EQ(name("@best"), step(200)) << "the run says so: opening it names the damage";
  test::expect_words(refused<MissingDataError>("@step:7"),
                     {"there are step:300 (epoch 3, 45.34 %), step:200 (damaged)"});
}

TEST_F(CheckpointNamesTest, AManifestOfAnotherVersionIsNotDamaged) {
  const std::string file = step(200) + "/manifest.json";
  std::string body = text_of(file);
  body.resize(body.size() - manifest_seal("").size());
  const std::string version = "\"version\": ";
  body.replace(body.find(version) + version.size(), 1, "9");
  std::ofstream(file) << body << manifest_seal(body);
  const auto checkpoints = summarise_checkpoints(env_, run_);
  EXPECT_EQ(checkpoints.at(1).damage, "");
  test::expect_words(checkpoints[1].unreadable, {": format version 9, this program reads versions 1 to 3"});
  test::expect_words(refused<MissingDataError>("@step:7"),
                     {"there are step:300 (epoch 3, 45.34 %), step:200 (unreadable)"});
}

TEST_F(CheckpointNamesTest, ACheckpointInDoubtIsNotSaidToBeMissing) {
  write_doubt(env_, run_, {.sure_step = 200, .found_step = 310, .what = "rank 1 erred"});
  for (const std::string what : {"step 300", "epoch 3"}) {
    const std::string behind = what == "epoch 3" ? "@epoch:3" : "@step:300";
    EXPECT_EQ(refused<DataError>(behind),
              run_ + behind + ": the checkpoint of " + what +
                  " is in doubt: it was saved after step 200, and at step 310 rank 1 erred; " + step(300) +
                  " names it all the same");
  }
  test::expect_words(refused<MissingDataError>("@step:301"),
                     {"no checkpoint of step 301; there are step:200"});
}

TEST_F(CheckpointNamesTest, InspectListsThemWithTheirAccuracies) {
  EXPECT_EQ(
      checkpoints_text("run", summarise_checkpoints(env_, run_), {.last = step(300), .best = step(200)}),
      "checkpoints of run\n"
      "checkpoint  epoch         test accuracy\n"
      "@step:300   3                   45.34 %  @last\n"
      "@step:200   2                   68.94 %  @best\n"
      "@step:150   1 + 50 steps              -\n"
      "@step:100   1                   50.00 %\n");
  EXPECT_EQ(checkpoints_text("run", {}, {}), "");
  auto all = summarise_checkpoints(env_, run_);
  all[0].validation_accuracy = 0.75;
  all[3].damage = "its manifest", all[3].test_accuracy.reset();
  EXPECT_EQ(checkpoints_text("run", all, {.last = step(300), .best = step(300)}),
            "checkpoints of run\n"
            "checkpoint  epoch         validation accuracy\n"
            "@step:300   3                         75.00 %  @last @best\n"
            "@step:200   2                         68.94 %\n"
            "@step:150   1 + 50 steps                    -\n"
            "@step:100   -                               -  damaged\n");
  all[0].damage = "its manifest", all[0].validation_accuracy.reset(), all[0].test_accuracy.reset();
  EXPECT_EQ(checkpoints_text("run", {all[0], all[2]}, {.last = step(150), .best = ""}),
            "checkpoints of run\n"
            "checkpoint  epoch         test accuracy\n"
            "@step:300   -                         -  damaged\n"
            "@step:150   1 + 50 steps              -  @last\n");
}

TEST(CheckpointSummaryTest, WhatCannotBeReadNowIsNotCalledDamaged) {
  RunEnv env;
  for (const std::int64_t step : {100, 200, 300}) save_checkpoint(env, kRun, make_state(step));
  const auto manifest_of = [](std::int64_t step) {
    return fmt::format("{}/checkpoints/{}/{}", kRun, checkpoint_name(step), kManifestFile);
  };
  env.file(manifest_of(100)).back() ^= std::byte{1};
  const std::string locked = manifest_of(200), why = locked + ": permission denied";
  env.on_call = [&](const std::string&, const std::string& path) {
    if (path == locked) throw IoError(why);
  };
  const auto checkpoints = summarise_checkpoints(env, kRun);
  EXPECT_EQ(checkpoints_text(kRun, checkpoints, {}),
            "checkpoints of run\n"
            "checkpoint  epoch  test accuracy\n"
            "@step:300   3                  -\n"
            "@step:200   -                  -  unreadable\n"
            "@step:100   -                  -  damaged\n");
  const auto json = checkpoints_json(checkpoints);
  EXPECT_EQ(json.at(1).at("unreadable"), why);
  EXPECT_EQ(json.at(1).at("damage"), "");
  EXPECT_EQ(json.at(2).at("unreadable"), "");
  EXPECT_NE(json.at(2).at("damage"), "");
}

TEST_F(CheckpointNamesTest, EndOfARunSaysWhichWasBestAndWhereItIs) {
  EXPECT_EQ(best_line(env_, run_), "best: accuracy 68.94 % after epoch 2, checkpoint " + run_ + "@epoch:2");
  remove(200);
  EXPECT_EQ(best_line(env_, run_),
            "best: accuracy 68.94 % after epoch 2, not kept (run.keep.best=true keeps it)");
  CheckpointState end = make_state(250);
  end.facts.test_accuracy = 0.75;
  save_checkpoint(env_, run_, end);
  EXPECT_EQ(best_line(env_, run_), "best: accuracy 75.00 % after step 250, checkpoint " + run_ + "@step:250")
      << "as @best: its line was the end of a run that went on";
  remove(250);
  write_metrics({{1, 100, 0.5}});
  EXPECT_EQ(best_line(env_, run_), "") << "of one evaluation there is no best";
  std::ofstream(run_ + "/metrics.jsonl", std::ios::app) << R"({"event":"end","step":100,"test_accuracy":0.5})"
                                                        << "\n";
  EXPECT_EQ(best_line(env_, run_), "") << "told twice it is one";
  write_metrics({{1, 100, 0.5}, {2, 200, 0.25}, {3, 300, 0.75}});
  write_doubt(env_, run_, {.sure_step = 200, .found_step = 300, .what = "rank 1 erred"});
  EXPECT_EQ(best_line(env_, run_), "best: accuracy 50.00 % after epoch 1, checkpoint " + run_ + "@epoch:1");
  remove_doubt(env_, run_);
  std::ofstream(run_ + "/metrics.jsonl")
      << R"({"event":"evaluation","epoch":2,"step":150,"validation_accuracy":0.75})"
      << "\n"
      << R"({"event":"epoch","epoch":2,"step":200,"validation_accuracy":0.5})"
      << "\n";
  EXPECT_EQ(best_line(env_, run_),
            "best: validation accuracy 75.00 % after step 150, checkpoint " + run_ + "@step:150");
}

/// Mistakes of a beginner: the message names the runs that there are.
TEST(MissingRunTest, IsToldApartFromAFolderOfRunsAndAFile) {
  MemoryEnv env;
  const auto file = [&](const std::string& path) { env.create(path)->close(); };
  env.make_directory("runs");
  env.make_directory("data");
  EXPECT_EQ(
      why_no_run(env, "runs/mnist"),
      "runs/mnist: there is no such run or checkpoint; 'lockstep train JOB.yaml' makes one and says where");
  const auto make_run = [&](const std::string& run) {
    env.make_directory(run);
    file(run + "/job.yaml");
    file(run + "/metrics.jsonl");
  };
  for (const char* run : {"runs/mnist", "runs/mnist-2"}) make_run(run);
  file("data/job.yaml");
  const std::string both = "runs/mnist, runs/mnist-2";
  EXPECT_EQ(why_no_run(env, "runs"), "runs: is not a run, but holds some; say which: " + both);
  EXPECT_EQ(why_no_checkpoint(env, "runs/mnst"),
            "runs/mnst: there is no such run or checkpoint; there are " + both);
  EXPECT_EQ(why_no_checkpoint(env, "mnist/"),
            "mnist/: there is no such run or checkpoint; there are " + both);
  EXPECT_EQ(why_no_checkpoint(env, "runs/mnist/job.yaml"),
            "runs/mnist/job.yaml: is a file; give the directory of a run; there are " + both);
  EXPECT_EQ(why_no_checkpoint(env, "data"),
            "data: is not a run, which has job.yaml and checkpoints; there are " + both);
  EXPECT_TRUE(
      why_no_checkpoint(env, "runs/mnist").starts_with("runs/mnist: this run holds no good checkpoint; "));
  for (int number = 3; number <= 7; ++number) make_run(fmt::format("runs/mnist-{}", number));
  EXPECT_EQ(why_no_run(env, "runs"),
            "runs: is not a run, but holds some; say which: runs/mnist-2, runs/mnist-3, runs/mnist-4, "
            "runs/mnist-5, runs/mnist-6, runs/mnist-7 and 1 more");
}

}  // namespace
}  // namespace lockstep
