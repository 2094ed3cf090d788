// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Ranks that differ are refused with one message, which names key, values and ranks.
#include "trainer/ranks/equal_ranks.hpp"

#include "comm/agreement.hpp"
#include "comm/launcher.hpp"
#include "comm/thread/thread_ranks.hpp"
#include "data/sets/set_loading.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/support/forged_run.hpp"
#include "trainer/ranks/rank_runner.hpp"

#include <yaml-cpp/yaml.h>

namespace lockstep {

namespace {

struct Refusal {
  int count = 0;  ///< ranks that were stopped
  std::set<std::string> messages;
  std::set<ExitCode> codes;
};

/// Refusal of `ranks` ranks with these facts.
Refusal compare(int ranks, const std::function<RankFacts(int)>& facts_of) {
  Refusal refusal;
  std::mutex mutex;
  run_thread_ranks(ranks, [&](Communicator& comm) {
    try {
      expect_equal_ranks(comm, facts_of(comm.rank()));
    } catch (const AgreedError& error) {
      const std::lock_guard lock(mutex);
      ++refusal.count;
      refusal.messages.insert(error.what());
      refusal.codes.insert(error.code());
      EXPECT_EQ(error.speaker(), 0);
    }
  });
  return refusal;
}

Job job_with(const std::string& key, const std::string& value) {
  Job job = parse_job("model: net", "job.yaml");
  find_job_key(key)->read(YAML::Load(value), job);
  return job;
}

TEST(EqualRanksTest, EqualRanksGoOn) {
  const Job job = job_with("train.seed", "5");
  for (const int ranks : {1, 2, 13}) EXPECT_EQ(compare(ranks, [&](int) { return job_facts(job); }).count, 0);
}

TEST(EqualRanksTest, EveryKeyOfTheJobIsComparedAndNamedWithBothValues) {
  const Job job = job_with("data.set", "synthetic");
  for (const JobKey& key : job_schema()) {
    const std::string value = testing::other_value(key, job);
    if (value.empty()) continue;
    Job other = job;
    ASSERT_TRUE(key.read(YAML::Load(value), other)) << key.path;
    const Refusal refusal = compare(3, [&](int rank) { return job_facts(rank == 1 ? other : job); });
    EXPECT_EQ(refusal.count, 3) << key.path;
    ASSERT_EQ(refusal.messages.size(), 1U) << key.path;
    EXPECT_EQ(refusal.codes, std::set{ExitCode::kUsage}) << key.path;
    const auto expected =
        key.path + " is " + key.write(job) + " on ranks 0, 2, but " + key.write(other) + " on rank 1";
    EXPECT_NE(refusal.messages.begin()->find(expected), std::string::npos) << *refusal.messages.begin();
  }
}

TEST(EqualRanksTest, WhereFilesLieIsEachHostsOwnBusiness) {
  const auto facts_of = [](int rank) {
    return job_facts(job_with("data.root", rank == 0 ? "/here" : "/there"));
  };
  EXPECT_EQ(compare(2, facts_of).count, 0);
}

TEST(EqualRanksTest, AllDifferencesAreListedInOneLineAndTheProgramsComeFirst) {
  const Refusal refusal = compare(13, [](int rank) {
    RankFacts facts = {{FactKind::kProgram, "the program", rank == 12 ? "b" : "a", "/bin/lockstep"}};
    return facts + job_facts(job_with("train.seed", rank < 4 ? "1" : "2")) +
           RankFacts{{FactKind::kData, "the data", rank == 7 ? "y" : "x"}};
  });
  ASSERT_EQ(refusal.messages.size(), 1U);
  const std::string message = *refusal.messages.begin();
  EXPECT_EQ(message.find('\n'), std::string::npos);
  EXPECT_EQ(refusal.codes, std::set{ExitCode::kDeviceUnavailable});
  const auto place = [&](const char* text) {
    EXPECT_NE(message.find(text), std::string::npos) << text << " is missing in: " << message;
    return message.find(text);
  };
  EXPECT_LT(place("the program is a (/bin/lockstep) on ranks 0-11, but b (/bin/lockstep) on rank 12"),
            place("train.seed is 1 on ranks 0-3, but 2 on ranks 4-12"));
  place("the data is x on ranks 0-6, 8-12, but y on rank 7");
}

TEST(EqualRanksTest, OfLongTextsTheFirstLineThatDiffersIsShown) {
  const std::string yaml = "name: n\nlayers:\n  - conv2d: {out: 10}\n";
  const std::string other = "name: n\nlayers:\n  - conv2d: {out: 11}\n  - relu\n";
  const Refusal refusal = compare(2, [&](int rank) {
    return RankFacts{{FactKind::kNetwork, "the network's text", rank == 0 ? yaml : other}};
  });
  ASSERT_EQ(refusal.messages.size(), 1U);
  EXPECT_NE(refusal.messages.begin()->find(
                "text line 3 is - conv2d: {out: 10} on rank 0, but - conv2d: {out: 11} on rank 1"),
            std::string::npos)
      << *refusal.messages.begin();
}

TEST(EqualRanksTest, AKeyThatSomeRanksDoNotKnowIsADifference) {
  const Refusal refusal = compare(2, [](int rank) {
    return rank == 0 ? RankFacts{} : RankFacts{{FactKind::kJob, "train.new", "1"}};
  });
  ASSERT_EQ(refusal.messages.size(), 1U);
  EXPECT_NE(refusal.messages.begin()->find("train.new is not there on rank 0, but 1 on rank 1"),
            std::string::npos)
      << *refusal.messages.begin();
}

TEST(EqualRanksTest, HostsAreNamedWhereThereAreSeveral) {
  const RankFacts one = {{FactKind::kProgram, "the program", "a"}},
                  two = {{FactKind::kProgram, "the program", "b"}};
  const AgreedError difference = rank_difference({one, one, two}, {"node1", "node1", "node2"});
  test::expect_words(difference.what(), {"a on ranks 0-1 (node1), but b on rank 2 (node2)"});
}

TEST(EqualRanksTest, OneByteOfDataIsADifference) {
  TrainTestData data = load_dataset({.set = "synthetic", .train_samples = 20, .test_samples = 5});
  const RankFacts good = data_facts(data);
  data.train.images[7] ^= 1;
  data.train.quick = quick_fingerprint_of(data.train);
  const RankFacts bad = data_facts(data);
  const Refusal refusal = compare(3, [&](int rank) { return rank == 2 ? bad : good; });
  EXPECT_EQ(refusal.codes, std::set{ExitCode::kDataDamaged});
  ASSERT_EQ(refusal.messages.size(), 1U);
  EXPECT_NE(refusal.messages.begin()->find("the digest of synthetic train samples is "), std::string::npos)
      << *refusal.messages.begin();
  EXPECT_NE(refusal.messages.begin()->find("on rank 2"), std::string::npos);
}

TEST(EqualRanksTest, AnotherShapeOfTheSameBytesIsADifferenceAndSoAreOtherNames) {
  TrainTestData data = load_dataset({.set = "synthetic", .train_samples = 20, .test_samples = 5});
  const RankFacts good = data_facts(data);
  data.train.shape = {1, 14, 56};
  data.class_names.back() = "ten";
  const RankFacts bad = data_facts(data);
  const Refusal refusal = compare(2, [&](int rank) { return rank == 1 ? bad : good; });
  ASSERT_EQ(refusal.messages.size(), 1U);
  const std::string& message = *refusal.messages.begin();
  test::expect_words(message,
                     {"the shape of synthetic train samples is 1 x 28 x 28", "the names of the classes"});
}

// Processes that leave a command to rank 0.

/// As mpirun -np 2 lockstep hash RUN sets it.
class LaunchedRankTest : public ::testing::Test {
 protected:
  LaunchedRankTest() { launch("1", "lockstep", "hash run", "1"); }
  ~LaunchedRankTest() override {
    for (const char* name : {"OMPI_COMM_WORLD_RANK", "OMPI_COMMAND", "OMPI_ARGV", "OMPI_NUM_APP_CTX"})
      unsetenv(name);
  }
  static void launch(const char* rank, const char* command, const char* arguments, const char* programs) {
    setenv("OMPI_COMM_WORLD_RANK", rank, 1);
    setenv("OMPI_COMMAND", command, 1);
    setenv("OMPI_ARGV", arguments, 1);
    setenv("OMPI_NUM_APP_CTX", programs, 1);
  }
  static bool repeats() {
    const std::array<const char*, 3> argv = {"build/release/lockstep", "hash", "run"};
    return repeats_rank_0(3, argv.data());
  }
};

TEST_F(LaunchedRankTest, ARankWithTheSameCommandLineRepeatsRank0) {
  EXPECT_EQ(this_launch().rank, 1);
  EXPECT_TRUE(repeats());
}

TEST_F(LaunchedRankTest, Rank0RepeatsNobody) {
  launch("0", "lockstep", "hash run", "1");
  EXPECT_FALSE(repeats());
}

TEST_F(LaunchedRankTest, BehindAScriptEachRankMayHaveArgumentsOfItsOwn) {
  launch("1", "sh", "-c lockstep hash run", "1");
  EXPECT_FALSE(repeats());
}

TEST_F(LaunchedRankTest, SeveralProgramsInOneLaunchMayDiffer) {
  launch("1", "lockstep", "hash run", "2");
  EXPECT_FALSE(repeats());
}

}  // namespace

}  // namespace lockstep
