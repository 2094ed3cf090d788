// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Faults on purpose: refused unless allowed, once in a run, and seen by what is there to see them.
#include "tests/data/idx_fixture.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/end_to_end/program.hpp"

namespace lockstep::testing {

namespace {

/// Allows faults for as long as it lives.
class FaultsAllowed {
 public:
  FaultsAllowed() { setenv("LOCKSTEP_ALLOW_INJECT", "1", 1); }
  ~FaultsAllowed() { unsetenv("LOCKSTEP_ALLOW_INJECT"); }
  FaultsAllowed(const FaultsAllowed&) = delete;
  FaultsAllowed& operator=(const FaultsAllowed&) = delete;
};

std::string faulty(const TemporaryDirectory& directory, const std::string& what, int rank = 1) {
  return "train " + write_small_job(directory) + " run.dir=" + directory.path("run") +
         " inject.step=3 inject.rank=" + std::to_string(rank) + " 'inject.what=" + what + "'";
}

TEST(FaultTest, RefusedUnlessTheEnvironmentAllowsIt) {
  const TemporaryDirectory directory;
  expect_says(lockstep(faulty(directory, "die")), 2, {"set LOCKSTEP_ALLOW_INJECT=1"});
  EXPECT_FALSE(std::filesystem::exists(directory.path("run")));
}

TEST(FaultTest, RankThatIsNotThereIsNamed) {
  const FaultsAllowed allowed;
  const TemporaryDirectory directory;
  expect_says(lockstep_on_ranks(2, faulty(directory, "die", 2)), 2, {"there is no rank 2, only 0 to 1"});
}

TEST(FaultTest, StrikesOnceInARunWhichThenEndsAsIfUndisturbed) {
  const FaultsAllowed allowed;
  const TemporaryDirectory directory;
  const std::string right =
      lockstep("train " + write_small_job(directory) + " run.dir=" + directory.path("whole")).last_line();
  const std::string nan = faulty(directory, "nan", 0), sums = faulty(directory, "flip-bits sums 5:3");
  expect_says(lockstep(nan), 70, {"injected on purpose: rank 0, before step 3: nan", "step 3: "});
  EXPECT_EQ(succeed(nan).last_line(), right);
  std::filesystem::remove_all(directory.path("run"));
  expect_says(lockstep_on_ranks(2, sums), 72, {"lockstep: step 3: rank 1 on ", "its memory changed them"});
  EXPECT_EQ(lockstep_on_ranks(2, sums).last_line(), right);
}

TEST(FaultTest, FlippedBitIsFoundAndItsRankNamed) {
  const FaultsAllowed allowed;
  const TemporaryDirectory directory;
  expect_says(lockstep_on_ranks(2, faulty(directory, "flip-bit") + " parallel.check_replicas_every_steps=4"),
              72, {"step 3: rank 0 on ", " and rank 1 on "});
}

TEST(FaultTest, WrongNumbersStopTheRunBeforeTheyMoveAWeight) {
  const FaultsAllowed allowed;
  const TemporaryDirectory directory;
  const std::pair<std::string, std::string> faults[] = {{"stale-message", "is not the sum of"},
                                                        {"wrong-forward", "its processor computed wrongly"}};
  for (const auto& [fault, why] : faults) {
    expect_says(
        lockstep_on_ranks(2, faulty(directory, fault) + " run.resume=never parallel.replay_every_steps=3"),
        72, {"lockstep: step 3: ", "rank 1 on ", why});
  }
  expect_says(lockstep_on_ranks(3, faulty(directory, "flip-bit weights 5:3") +
                                       " run.resume=never parallel.replay_every_steps=3"),
              72, {"its weights are not those of the others"});
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

TEST(FaultTest, ReplaysOfNetworksWithBatchNormUseTheSumsOfTheStep) {
  const FaultsAllowed allowed;
  const TemporaryDirectory directory;
  const std::string job = "train " + write_small_job(directory) + " model=resnet8";
  const auto alone = lockstep(job + few_samples(1, ""));
  const auto honest = succeed(job + few_samples(3, "parallel.replay_every_steps=1"));
  EXPECT_EQ(honest.last_line(), alone.last_line());
  expect_named(lockstep(faulty(directory, "wrong-forward") + " model=resnet8" +
                        few_samples(3, "parallel.replay_every_steps=1")),
               1, "", "its processor computed wrongly");
}

TEST(FaultTest, RanksOfPipelinesAreNamed) {
  const FaultsAllowed allowed;
  const TemporaryDirectory directory;
  const std::string pipelines = "parallel.strategy=pipeline parallel.stages=2 parallel.replay_every_steps=1 ";
  const auto wrong = [&](const std::string& fault, int rank, int ranks) {
    return lockstep(faulty(directory, fault, rank) + few_samples(ranks, pipelines));
  };
  for (int rank = 0; rank < 4; ++rank) {
    expect_named(wrong("wrong-forward", rank, 4), rank, "", "its processor computed wrongly");
    expect_named(wrong("flip-bit message 7:9", rank, 4), rank, "what arrived at ",
                 rank % 2 == 0 ? "is not the gradients of" : "is not the activations of");
  }
  expect_named(wrong("flip-bit sums 5:3", 3, 4), 3, "", "sent other sums of");
  expect_named(wrong("flip-bit weights 5:3", 5, 6), 5, "", "its weights are not those of the others");
}

TEST(FaultTest, ReplaysWithoutExactSumsAreRefused) {
  const TemporaryDirectory directory;
  expect_says(lockstep("train " + write_small_job(directory) +
                       " parallel.determinism=off parallel.replay_every_steps=5"),
              2, {"compares exact sums"});
}

TEST(FaultTest, SlowRankIsNamedAndChangesNoBit) {
  const FaultsAllowed allowed;
  const TemporaryDirectory directory;
  const std::string steps = " data.global_batch=128 train.epochs=4 run.checkpoint_every_steps=0";
  const auto slow = lockstep_on_ranks(2, faulty(directory, "slow 400%") + steps);
  const auto undisturbed =
      lockstep("train " + write_small_job(directory) + " run.dir=" + directory.path("whole") + steps);
  EXPECT_EQ(slow.exit_code, 0) << slow.everything();
  EXPECT_EQ(slow.last_line(), undisturbed.last_line());
  const auto metrics = read_metrics(directory.path("run"));
  const auto last = std::ranges::find_if(metrics, [](const nlohmann::json& line) {
    return line.at("event") == "epoch" && line.at("epoch") == 4;
  });
  ASSERT_NE(last, metrics.end()) << slow.everything();
  EXPECT_EQ(last->at("slowest_rank"), 1);
  EXPECT_GT(last->at("rank_skew"), 0.1);
}

}  // namespace

}  // namespace lockstep::testing

namespace lockstep::testing::ranks_differ_test {

// Processes that were started as ranks of one job and are not: refused before the first step, by name.

namespace {

std::string program() {
  return std::getenv("LOCKSTEP_PROGRAM");
}

/// `mpirun` with one group of ranks for each command: "-np N COMMAND".
Outcome launch(const std::vector<std::string>& groups) {
  std::string line = "mpirun --bind-to none";
  for (std::size_t i = 0; i < groups.size(); ++i) line += (i == 0 ? " -np " : " : -np ") + groups[i];
  return run_shell(line);
}

void expect_refusal(const TemporaryDirectory& directory, const Outcome& outcome, int exit_code,
                    const std::vector<std::string>& mentions) {
  expect_says(outcome, exit_code, mentions);
  EXPECT_EQ(outcome.err.find("lockstep: "), outcome.err.rfind("lockstep: ")) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(directory.path("run"))) << "something was written";
}

/// A small image set in DIRECTORY/NAME and the end of a command that trains on it.
std::string make_set(const TemporaryDirectory& directory, const std::string& name) {
  test::write_image_set(directory.path(name), 40, 10);
  return " model=linear data.set=mnist data.train_samples=0 data.test_samples=0 data.global_batch=16 "
         "parallel.grain=4 data.root=" +
         directory.path(name);
}

TEST(RanksDifferTest, AnotherSetOnOneOfThirteen) {
  const TemporaryDirectory directory;
  const std::string train = program() + " train " + write_small_job(directory);
  expect_refusal(directory, launch({"4 " + train, "1 " + train + " data.set=random", "8 " + train}), 2,
                 {"data.set is synthetic on ranks 0-3, 5-12, but random on rank 4"});
}

TEST(RanksDifferTest, OneByteOfOneRanksImagesAndOneLabelOfAnothers) {
  const TemporaryDirectory directory;
  const std::string train = program() + " train " + write_small_job(directory);
  const std::string good = make_set(directory, "good"), bad = make_set(directory, "bad");
  std::string images = read_text(directory.path("bad/train-images-idx3-ubyte"));
  images.back() ^= 1;
  write_text(directory.path("bad/train-images-idx3-ubyte"), images);
  const std::string mislabelled = make_set(directory, "mislabelled");
  std::string labels = read_text(directory.path("mislabelled/train-labels-idx1-ubyte"));
  labels.back() = labels.back() == 3 ? 4 : 3;
  write_text(directory.path("mislabelled/train-labels-idx1-ubyte"), labels);
  expect_refusal(directory, launch({"2 " + train + good, "1 " + train + bad, "1 " + train + mislabelled}), 65,
                 {"the digest of mnist train samples is ", directory.path("good") + ") on ranks 0-1, 3",
                  directory.path("bad") + ") on rank 2", "the digest of mnist train labels is ",
                  directory.path("good") + ") on ranks 0-2", directory.path("mislabelled") + ") on rank 3"});
}

TEST(RanksDifferTest, EqualDataMayLieInOtherPlacesOnOtherHosts) {
  const TemporaryDirectory directory;
  const std::string train = program() + " train " + write_small_job(directory);
  const std::string here = make_set(directory, "here"), there = make_set(directory, "there");
  expect_says(launch({"1 " + train + here, "1 " + train + there}), 0);
}

TEST(RanksDifferTest, DataThatOneRankLacksAreItsOwn) {
  const TemporaryDirectory directory;
  const std::string train = program() + " train " + write_small_job(directory),
                    here = make_set(directory, "here");
  expect_refusal(directory, launch({"1 " + train + here, "1 " + train + here + "/nowhere"}), 66,
                 {"rank 1 on ", "/nowhere"});
}

TEST(RanksDifferTest, AnotherModelFileUnderTheSameName) {
  const TemporaryDirectory directory;
  const std::string train = program() + " train " + write_small_job(directory) + " model=./my.yaml";
  for (const std::string size : {"32", "33"}) {
    std::filesystem::create_directory(directory.path(size));
    write_text(directory.path(size + "/my.yaml"),
               "name: mine\nlayers:\n  - linear: {out: " + size + "}\n  - linear: {out: classes}\n");
  }
  const auto in = [&](const std::string& folder) {
    return "1 -wdir " + directory.path(folder) + " " + train;
  };
  expect_refusal(directory, launch({in("32"), in("33")}), 2,
                 {"the network's text line 3", "out: 32} on rank 0", "out: 33} on rank 1"});
}

TEST(RanksDifferTest, AnotherProgram) {
  const TemporaryDirectory directory;
  const std::string train = " train " + write_small_job(directory);
  std::filesystem::copy(program(), directory.path("other"));
  write_text(directory.path("other"), read_text(program()) + "x");
  expect_refusal(directory, launch({"1 " + program() + train, "1 " + directory.path("other") + train}), 69,
                 {"the program is ", "on rank 0", directory.path("other") + ") on rank 1"});
}

}  // namespace

}  // namespace lockstep::testing::ranks_differ_test
