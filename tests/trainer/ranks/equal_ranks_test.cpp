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
#include "tests/support/set_variable.hpp"
#include "tests/trainer/support/forged_run.hpp"
#include "trainer/ranks/rank_runner.hpp"

#include <yaml-cpp/yaml.h>

namespace lockstep {
namespace {

/// Compares the facts of so many ranks, which must differ.
/// @returns the message, if all ranks are stopped by the same, with this code
std::string refusal_of(int ranks, ExitCode code, const std::function<RankFacts(int)>& facts_of) {
  std::vector<std::string> messages(static_cast<std::size_t>(ranks));
  run_thread_ranks(ranks, [&](Communicator& comm) {
    try {
      expect_equal_ranks(comm, facts_of(comm.rank()));
    } catch (const AgreedError& error) {
      at(messages, comm.rank()) = error.what();
      EXPECT_EQ(error.code(), code);
      EXPECT_EQ(error.speaker(), 0);
    }
  });
  EXPECT_EQ(std::ranges::count(messages, messages[0]), ranks);
  return messages[0];
}

void expect_equal(int ranks, const std::function<RankFacts(int)>& facts_of) {
  run_thread_ranks(ranks, [&](Communicator& comm) { expect_equal_ranks(comm, facts_of(comm.rank())); });
}

Job job_with(const std::string& key, const std::string& value) {
  Job job = parse_job("model: net", "job.yaml");
  find_job_key(key)->read(YAML::Load(value), job);
  return job;
}

TEST(EqualRanksTest, EqualRanksGoOn) {
  const Job job = job_with("train.seed", "5");
  for (const int ranks : {1, 2, 13}) expect_equal(ranks, [&](int) { return job_facts(job); });
}

TEST(EqualRanksTest, EveryKeyOfTheJobIsComparedAndNamedWithBothValues) {
  const Job job = job_with("data.set", "synthetic");
  for (const JobKey& key : job_schema()) {
    const std::string value = testing::other_value(key, job);
    if (value.empty()) continue;
    Job other = job;
    ASSERT_TRUE(key.read(YAML::Load(value), other)) << key.path;
    const auto expected =
        key.path + " is " + key.write(job) + " on ranks 0, 2, but " + key.write(other) + " on rank 1";
    test::expect_words(
        refusal_of(3, ExitCode::kUsage, [&](int rank) { return job_facts(rank == 1 ? other : job); }),
        {expected});
  }
}

TEST(EqualRanksTest, WhereFilesLieIsEachHostsOwnBusiness) {
  expect_equal(2, [](int rank) { return job_facts(job_with("data.root", rank == 0 ? "/here" : "/there")); });
  EXPECT_EQ(job_facts(job_with("data.root", "/here")).size(), job_schema().size() - 1);
}

TEST(EqualRanksTest, AllDifferencesAreListedInOneLineAndTheProgramsComeFirst) {
  const std::string message = refusal_of(13, ExitCode::kDeviceUnavailable, [](int rank) {
    RankFacts facts = {{FactKind::kProgram, "the program", rank == 12 ? "b" : "a", "/bin/lockstep"}};
    return facts + job_facts(job_with("train.seed", rank < 4 ? "1" : "2")) +
           RankFacts{{FactKind::kData, "the data", rank == 7 ? "y" : "x"}};
  });
  expect_one_line_with(
      message,
      {": the program is a (/bin/lockstep) on ranks 0-11, but b (/bin/lockstep) on rank 12; train.seed is 1 "
       "on ranks 0-3, but 2 on ranks 4-12; the data is x on ranks 0-6, 8-12, but y on rank 7; install the "
       "same build of lockstep on every host and start that one"});
}

TEST(EqualRanksTest, OfLongTextsTheFirstLineThatDiffersIsShown) {
  const std::string yaml = "name: n\nlayers:\n  - conv2d: {out: 10}\n";
  const std::string other = "name: n\nlayers:\n  - conv2d: {out: 11}\n  - relu\n";
  const std::string message = refusal_of(2, ExitCode::kUsage, [&](int rank) {
    return RankFacts{{FactKind::kNetwork, "the network's text", rank == 0 ? yaml : other}};
  });
  test::expect_words(message,
                     {"text line 3 is - conv2d: {out: 10} on rank 0, but - conv2d: {out: 11} on rank 1"});
}

TEST(EqualRanksTest, AKeyThatSomeRanksDoNotKnowIsADifference) {
  const std::string message = refusal_of(2, ExitCode::kUsage, [](int rank) {
    return rank == 0 ? RankFacts{} : RankFacts{{FactKind::kJob, "train.new", "1"}};
  });
  test::expect_words(message, {"train.new is not there on rank 0, but 1 on rank 1"});
}

TEST(EqualRanksTest, HostsAreNamedWhereThereAreSeveral) {
  const RankFacts one = {{FactKind::kProgram, "the program", "a"}},
                  two = {{FactKind::kProgram, "the program", "b"}};
  const AgreedError difference = rank_difference({one, one, two}, {"node1", "node1", "node2"});
  test::expect_words(difference.what(), {"a on ranks 0-1 (node1), but b on rank 2 (node2)"});
}

TEST(EqualRanksTest, OneByteOfDataIsADifferenceAndSoAreAnotherShapeOfTheSameBytesAndOtherNames) {
  TrainTestData data = load_dataset({.set = "synthetic", .train_samples = 20, .test_samples = 5});
  const RankFacts good = data_facts(data);
  EXPECT_EQ(good.size(), 9U) << "four of each half";
  const auto refusal = [&] {
    const RankFacts bad = data_facts(data);
    return refusal_of(3, ExitCode::kDataDamaged, [&](int rank) { return rank == 2 ? bad : good; });
  };
  data.train.images[7] ^= 1;
  data.train.labels[3] ^= 1;
  data.train.quick = quick_fingerprint_of(data.train);
  test::expect_words(refusal(),
                     {"the digest of synthetic train samples is ", "on rank 2",
                      "the digest of synthetic train labels is ", "; give every host the same files; "});
  data.train.shape = {1, 14, 56};
  data.class_names.back() = "ten";
  test::expect_words(refusal(), {"the shape of synthetic train samples is 1 x 28 x 28", "but 1 x 14 x 56 ",
                                 "the names of the classes"});
  data.validation.labels = {7};
  EXPECT_EQ(data_facts(data).size(), 13U) << "and four of held-out samples";
}

TEST(EqualRanksTest, OfManyValuesHostsAndBytesSomeAreShown) {
  const auto said = [](const std::vector<std::string>& values, const std::vector<std::string>& hosts) {
    std::vector<RankFacts> facts;
    for (const std::string& value : values) facts.push_back(RankFacts{{FactKind::kNetwork, "it", value}});
    const std::string text = rank_difference(facts, hosts).what(),
                      begin = "the ranks differ, so nothing was started: it ";
    return text.substr(begin.size(), text.rfind("; ") - begin.size());
  };
  EXPECT_EQ(said({"0", "1", "2", "3", "4", "5"}, std::vector<std::string>(6, "n")),
            "is 0 on rank 0, but 1 on rank 1, but 2 on rank 2, but 3 on rank 3, but 2 other values");
  EXPECT_EQ(said({"0", "1", "2", "3"}, std::vector<std::string>(4, "n")),
            "is 0 on rank 0, but 1 on rank 1, but 2 on rank 2, but 3 on rank 3");
  EXPECT_EQ(said({"a", "a", "a", "b"}, {"n0", "n1", "n2", "n3"}),
            "is a on ranks 0-2 (n0, n1, n2), but b on rank 3 (n3)");
  EXPECT_EQ(said({"a", "a", "a", "a", "b"}, {"n0", "n1", "n2", "n3", "n4"}),
            "is a on ranks 0-3 (4 hosts), but b on rank 4 (n4)");
  const std::string much(120, 'x');
  EXPECT_EQ(said({much + "x", "y"}, {"n", "n"}), "is " + much + "... on rank 0, but y on rank 1");
  std::string umlauts = "x";
  for (int i = 0; i < 59; ++i) umlauts += "\u00e4";
  EXPECT_EQ(said({umlauts + "\u00e4", "y"}, {"n", "n"}), "is " + umlauts + "... on rank 0, but y on rank 1")
      << "no half character";
  EXPECT_EQ(said({std::string(64, 'a'), ""}, {"n", "n"}), "is aaaaaaaaaaaaaaaa on rank 0, but '' on rank 1")
      << "a digest";
  EXPECT_EQ(said({"a\nb", "c\nb"}, {"n", "n"}), "line 1 is a on rank 0, but c on rank 1");
  EXPECT_EQ(said({"a\nb", "a"}, {"n", "n"}), "line 2 is b on rank 0, but nothing on rank 1");
  EXPECT_EQ(said({"a\nnothing", "a"}, {"n", "n"}), "line 2 is nothing on rank 0, but nothing on rank 1");
}

/// As names of a hundred classes, one of which is another.
TEST(EqualRanksTest, OfLongValuesThePartThatDiffersIsShown) {
  const auto said = [](const std::string& begin, const std::string& end) {
    const auto of = [&](const char* middle) {
      return RankFacts{{FactKind::kData, "it", begin + middle + end}};
    };
    const std::string text = rank_difference({of("a"), of("b")}, {"n", "n"}).what();
    return text.substr(text.find("it is"), text.find("; give every host") - text.find("it is"));
  };
  const std::string x40(40, 'x'), x119(119, 'x'), y76(76, 'y');
  EXPECT_EQ(said(x119, ""), "it is " + x119 + "a on rank 0, but " + x119 + "b on rank 1");
  EXPECT_EQ(said(x119 + "x", ""), "it is ..." + x40 + "a on rank 0, but ..." + x40 + "b on rank 1");
  EXPECT_EQ(said(x119 + x40, y76 + "y"),
            "it is ..." + x40 + "a" + y76 + "... on rank 0, but ..." + x40 + "b" + y76 + "... on rank 1");
  std::string umlauts, some;
  for (int i = 0; i < 64; ++i) (i < 20 ? some : umlauts) += "\u00e4";
  EXPECT_EQ(said("x" + umlauts + some + "y", ""),
            "it is ..." + some + "ya on rank 0, but ..." + some + "yb on rank 1")
      << "no half character";
}

TEST(EqualRanksTest, TheFirstKindThatDiffersGivesTheCodeAndTheAdvice) {
  const std::tuple<FactKind, ExitCode, const char*> kinds[] = {
      {FactKind::kProgram, ExitCode::kDeviceUnavailable, "install the same build of lockstep on every host"},
      {FactKind::kLibrary, ExitCode::kDeviceUnavailable, "make every host load the same version of it"},
      {FactKind::kMachine, ExitCode::kDeviceUnavailable,
       "leave out the hosts that cannot compute the same bits"},
      {FactKind::kJob, ExitCode::kUsage, "start every rank with the same command line and job file"},
      {FactKind::kNetwork, ExitCode::kUsage, "give every rank the same model file"},
      {FactKind::kCheckpoint, ExitCode::kDataDamaged, "name one checkpoint, such as "},
      {FactKind::kData, ExitCode::kDataDamaged, "give every host the same files"}};
  for (const auto& [kind, code, advice] : kinds) {
    const auto of_rank = [kind = kind](const char* value) {
      return RankFacts{{FactKind::kData, "the data", value}, {kind, "it", value}};
    };
    const AgreedError error = rank_difference({of_rank("a"), of_rank("b")}, {"n", "n"});
    EXPECT_EQ(error.code(), code) << advice;
    test::expect_words(error.what(), {std::string("b on rank 1; ") + advice});
  }
}

TEST(EqualRanksTest, LoadedLibrariesAreFoundByTheBeginningsOfTheirNames) {
  const auto found = loaded_libraries({"libnone", "libc.so"});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(found[0].filename().string().starts_with("libc.so")) << found[0];
}

TEST(EqualRanksTest, DevicesMayDifferWhereNoBitsArePromised) {
  const TrainTestData data = load_dataset({.set = "synthetic", .train_samples = 20, .test_samples = 5});
  const Network network = Network::load("mlp", {1, 28, 28}, 10);
  const auto compares = [&](Determinism determinism, const std::shared_ptr<Gpu>& gpu) {
    Job job;
    job.parallel.determinism = determinism;
    DeviceChoice device;
    device.gpu = gpu;
    const RankFacts facts = setup_facts(job, network, data, device);
    return std::ranges::find(facts, "the kind of device", &RankFact::key) != facts.end();
  };
  EXPECT_TRUE(compares(Determinism::kWorld, nullptr));
  EXPECT_FALSE(compares(Determinism::kOff, nullptr));
  EXPECT_TRUE(compares(Determinism::kOff, std::make_shared<Gpu>()));
}

// Ranks that are threads of this process.

TEST(RunOnRanksTest, ThreadsEndWithTheCodeOfRank0OrOfTheirError) {
  ParallelSection parallel;
  parallel.backend = "thread";
  parallel.ranks = 3;
  parallel.timeout_seconds = 7;
  const auto timeout_on_rank_0 = [](Communicator& comm) {
    return comm.rank() == 0 ? static_cast<int>(comm.timeout().count()) : comm.size();
  };
  EXPECT_EQ(run_on_ranks(parallel, timeout_on_rank_0), 7);
  const auto fail_on_rank_1 = [](Communicator& comm) {
    agree(comm, [&] {
      if (comm.rank() == 1) throw IoError("disk full");
    });
    return 0;
  };
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run_on_ranks(parallel, fail_on_rank_1), 74);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "lockstep: rank 1 on " + host_name() + ": disk full\n");
  parallel.ranks = 0;
  EXPECT_EQ(run_on_ranks(parallel, [](Communicator& comm) { return comm.size(); }), 1);
}

TEST(RunOnRanksTest, RanksAreThreadsOrTheLaunchersProcesses) {
  ParallelSection parallel;
  parallel.ranks = 2;
  const auto run = [&] { run_on_ranks(parallel, [](Communicator&) { return 0; }); };
  for (const char* backend : {"mpi", "auto"}) {
    parallel.backend = backend;
    EXPECT_EQ(message_of<ConfigError>(run),
              "parallel.ranks is for parallel.backend=thread or nccl; with MPI the launcher says how many: "
              "mpirun -np N lockstep ...");
  }
  const test::SetVariable launched("OMPI_COMM_WORLD_SIZE", "2");
  for (const auto& [backend, key] :
       {std::pair("thread", "parallel.backend=thread"), {"nccl", "parallel.ranks"}}) {
    parallel.backend = backend;
    EXPECT_EQ(
        message_of<UsageError>(run),
        std::string("the launcher started 2 processes, and each of them would run all ranks as threads: "
                    "start one process, without mpirun or srun, or leave out ") +
            key);
  }
}

// Processes that leave a command to rank 0.

TEST(LaunchedRankTest, RepeatsRank0UnlessItMayHaveAnotherCommandLine) {
  struct Launched {
    const char *rank, *command, *arguments, *programs;
    bool repeats;
  };
  for (const auto& [rank, command, arguments, programs, repeats] :
       {Launched{"1", "lockstep", "hash run", "1", true},  // as mpirun -np 2 lockstep hash run sets it
        {"0", "lockstep", "hash run", "1", false},         // nobody is before rank 0
        {"1", "sh", "-c lockstep hash run", "1", false},   // behind a script
        {"1", "lockstep", "hash another", "1", false},
        {"1", "lockstep", "hash run", "2", false}}) {  // several programs in one launch
    const test::SetVariable variables[] = {{"OMPI_COMM_WORLD_RANK", rank},
                                           {"OMPI_COMMAND", command},
                                           {"OMPI_ARGV", arguments},
                                           {"OMPI_NUM_APP_CTX", programs}};
    const std::array<const char*, 3> argv = {"build/release/lockstep", "hash", "run"};
    EXPECT_EQ(std::to_string(this_launch().rank), rank);
    EXPECT_EQ(speaks_for_all(), this_launch().rank == 0);
    EXPECT_EQ(repeats_rank_0(3, argv.data()), repeats) << rank << ' ' << command << ' ' << arguments;
  }
}

}  // namespace
}  // namespace lockstep
