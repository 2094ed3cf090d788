// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Faults on purpose: once in a run, and seen by what is there to see them. Ranks that are not of one job.
#include "tests/data/idx_fixture.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/set_variable.hpp"
#include "tests/trainer/end_to_end/program.hpp"

namespace lockstep::testing {
namespace {

class FaultTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return directory_.path(name); }
  std::string faulty(const std::string& what, int rank = 1) const {
    return train_ + path("run") + " inject.step=3 inject.rank=" + std::to_string(rank) +
           " 'inject.what=" + what + "'";
  }

  const test::SetVariable allowed_{"LOCKSTEP_ALLOW_INJECT", "1"};
  const TemporaryDirectory directory_;
  const std::string train_ = "train " + write_small_job(directory_) + " run.dir=";
};

TEST_F(FaultTest, StrikesOnceInARunWhichThenEndsAsIfUndisturbed) {
  const std::string right = lockstep(train_ + path("whole")).last_line();
  const std::string sums = faulty("flip-bits sums 5:3");
  expect_says(lockstep_on_ranks(2, sums), 72, {"lockstep: step 3: rank 1 on ", "its memory changed them"});
  EXPECT_EQ(lockstep_on_ranks(2, sums).last_line(), right);
}

TEST_F(FaultTest, ARankWithoutSamplesHasNoneToChange) {
  const std::string half_a_batch_in_step_2 =
      " inject.step=2 data.train_samples=72 data.test_samples=8 data.global_batch=48 parallel.grain=24 "
      "parallel.backend=thread parallel.ranks=2";
  expect_says(lockstep(faulty("flip-bit data 3:2", 0) + half_a_batch_in_step_2), 2,
              {"inject.rank: this rank has no sample in that step"});
}

TEST_F(FaultTest, FlippedBitIsFoundAndItsRankNamed) {
  expect_says(lockstep_on_ranks(2, faulty("flip-bit") + " parallel.check_replicas_every_steps=4"), 72,
              {"step 3: rank 0 on ", " and rank 1 on "});
}

TEST_F(FaultTest, WrongNumbersStopTheRunBeforeTheyMoveAWeight) {
  const std::string replays = " parallel.replay_every_steps=3";
  expect_says(lockstep_on_ranks(2, faulty("wrong-forward") + replays), 72,
              {"lockstep: step 3: ", "rank 1 on ", "its processor computed wrongly"});
  std::filesystem::remove_all(path("run"));
  expect_says(lockstep_on_ranks(3, faulty("flip-bit weights 5:3") + replays), 72,
              {"its weights are not those of the others"});
}

/// Ranks as threads, each of which computes little.
std::string few_samples(int ranks, const std::string& more) {
  return " data.train_samples=72 data.test_samples=8 data.global_batch=24 parallel.grain=4 run.resume=never "
         "parallel.backend=thread parallel.ranks=" +
         std::to_string(ranks) + " " + more;
}

void expect_named(const Outcome& outcome, int rank, const std::string& in_front, const std::string& behind) {
  const std::string named = "lockstep: step 3: " + in_front + "rank " + std::to_string(rank) + " on ";
  expect_says(outcome, 72, {named});
  EXPECT_NE(outcome.err.find(behind, outcome.err.find(named)), std::string::npos) << behind << outcome.err;
}

TEST_F(FaultTest, ReplaysOfNetworksWithBatchNormUseTheSumsOfTheStep) {
  const std::string job = train_ + path("run") + " model=resnet8";
  const auto alone = lockstep(job + few_samples(1, ""));
  const auto honest = succeed(job + few_samples(3, "parallel.replay_every_steps=1"));
  EXPECT_EQ(honest.last_line(), alone.last_line());
  expect_named(
      lockstep(faulty("wrong-forward") + " model=resnet8" + few_samples(3, "parallel.replay_every_steps=1")),
      1, "", "its processor computed wrongly");
}

TEST_F(FaultTest, RanksOfPipelinesAreNamed) {
  const std::string pipelines = "parallel.strategy=pipeline parallel.stages=2 parallel.replay_every_steps=1 ";
  const auto wrong = [&](const std::string& fault, int rank, int ranks) {
    return lockstep(faulty(fault, rank) + few_samples(ranks, pipelines));
  };
  for (int rank = 0; rank < 4; ++rank) {
    expect_named(wrong("wrong-forward", rank, 4), rank, "", "its processor computed wrongly");
    expect_named(wrong("flip-bit message 7:9", rank, 4), rank, "what arrived at ",
                 rank % 2 == 0 ? "is not the gradients of" : "is not the activations of");
  }
  expect_named(wrong("flip-bit sums 5:3", 3, 4), 3, "", "sent other sums of");
  expect_named(wrong("flip-bit weights 5:3", 5, 6), 5, "", "its weights are not those of the others");
}

TEST_F(FaultTest, SlowRankIsNamedAndChangesNoBit) {
  const std::string steps = " data.global_batch=128 train.epochs=4 run.checkpoint_every_steps=0";
  const auto slow = ended_well(lockstep_on_ranks(2, faulty("slow 400%") + steps));
  EXPECT_EQ(slow.last_line(), lockstep(train_ + path("whole") + steps).last_line());
  const auto metrics = read_metrics(path("run"));
  const auto last = std::ranges::find_if(metrics, [](const nlohmann::json& line) {
    return line.at("event") == "epoch" && line.at("epoch") == 4;
  });
  ASSERT_NE(last, metrics.end()) << slow.everything();
  EXPECT_EQ(last->at("slowest_rank"), 1);
  EXPECT_GT(last->at("rank_skew"), 0.1);
}

// Processes that were started as ranks of one job and are not: refused before the first step, by name.

/// `mpirun` with one group of ranks for each command: "-np N COMMAND".
Outcome launch(const std::vector<std::string>& groups) {
  std::string line = "mpirun --bind-to none";
  for (std::size_t i = 0; i < groups.size(); ++i) line += (i == 0 ? " -np " : " : -np ") + groups[i];
  return run_shell(line);
}

class RanksDifferTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return directory_.path(name); }
  void expect_refusal(const std::vector<std::string>& groups, int exit_code,
                      const std::vector<std::string>& mentions) const {
    const Outcome outcome = launch(groups);
    expect_says(outcome, exit_code, mentions);
    EXPECT_EQ(count_of("lockstep: ", outcome.err), 1) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(path("run"))) << "something was written";
  }
  /// A small image set of that name, and the end of a command that trains on it.
  std::string make_set(const std::string& name) const {
    test::write_image_set(path(name), 40, 10);
    return " model=linear data.set=mnist data.train_samples=0 data.test_samples=0 data.global_batch=16 "
           "parallel.grain=4 data.root=" +
           path(name);
  }

  const TemporaryDirectory directory_;
  const std::string arguments_ = " train " + write_small_job(directory_),
                    train_ = "$LOCKSTEP_PROGRAM" + arguments_;
};

TEST_F(RanksDifferTest, AnotherSetOnOneOfFour) {
  expect_refusal({"2 " + train_, "1 " + train_ + " data.set=random", "1 " + train_}, 2,
                 {"data.set is synthetic on ranks 0-1, 3, but random on rank 2"});
}

TEST_F(RanksDifferTest, OneByteOfOneRanksImages) {
  const std::string good = make_set("good"), bad = make_set("bad");
  std::string images = read_text(path("bad/train-images-idx3-ubyte"));
  images.back() ^= 1;
  write_text(path("bad/train-images-idx3-ubyte"), images);
  expect_refusal({"2 " + train_ + good, "1 " + train_ + bad}, 65,
                 {"the digest of mnist train samples is ", path("good") + ") on ranks 0-1",
                  path("bad") + ") on rank 2"});
}

TEST_F(RanksDifferTest, EqualDataMayLieInOtherPlacesOnOtherHosts) {
  const std::string here = make_set("here"), there = make_set("there");
  expect_says(launch({"1 " + train_ + here, "1 " + train_ + there}), 0);
}

TEST_F(RanksDifferTest, DataThatOneRankLacksAreItsOwn) {
  const std::string here = make_set("here");
  expect_refusal({"1 " + train_ + here, "1 " + train_ + here + "/nowhere"}, 66, {"rank 1 on ", "/nowhere"});
}

TEST_F(RanksDifferTest, AnotherModelFileUnderTheSameName) {
  for (const std::string size : {"32", "33"}) {
    std::filesystem::create_directory(path(size));
    write_text(path(size + "/my.yaml"),
               "name: mine\nlayers:\n  - linear: {out: " + size + "}\n  - linear: {out: classes}\n");
  }
  const auto in = [&](const std::string& folder) {
    return "1 -wdir " + path(folder) + " " + train_ + " model=./my.yaml";
  };
  expect_refusal({in("32"), in("33")}, 2,
                 {"the network's text line 3", "out: 32} on rank 0", "out: 33} on rank 1"});
}

TEST_F(RanksDifferTest, OtherOptionsOfOtherCommands) {
  const std::string bench_step = "bench step " + write_small_job(directory_);
  for (const auto& [command, one, other] :
       {std::tuple<std::string, std::string, std::string>{"bench allreduce", "-n 1", "-n 2"},
        {bench_step, "--rounds 1", "--rounds 2"},
        {bench_step, "train.seed=1", "train.seed=2"},
        {"burn", "--time 1s", "--time 2s"}}) {
    const std::string start = "1 $LOCKSTEP_PROGRAM " + command + " ";
    expect_refusal({start + one, start + other}, 2, {" on rank 0, but ", " on rank 1"});
  }
}

TEST_F(RanksDifferTest, AnotherProgram) {
  const std::string program = std::getenv("LOCKSTEP_PROGRAM");
  std::filesystem::copy(program, path("other"));
  write_text(path("other"), read_text(program) + "x");
  expect_refusal({"1 " + program + arguments_, "1 " + path("other") + arguments_}, 69,
                 {"the program is ", "on rank 0", path("other") + ") on rank 1"});
}

}  // namespace
}  // namespace lockstep::testing
