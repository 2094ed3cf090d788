// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Commands that need no ranks, in this process: what they print, and their exit codes.
#include "trainer/commands/command_line.hpp"

#include "common/json_text.hpp"
#include "common/machine.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"
#include "tests/trainer/commands/answers.hpp"
#include "tests/trainer/reports/run_folder.hpp"
#include "trainer/checkpoint/inspect.hpp"
#include "trainer/checkpoint/run_lock.hpp"
#include "trainer/reports/runs.hpp"

#include <CLI/CLI.hpp>

namespace lockstep {
namespace {

std::string completed(std::vector<std::string> words) {
  words.insert(words.begin(), std::string("--"));
  words.insert(words.begin(), std::string("complete"));
  return answer_to(words);
}

TEST(CompletionTest, AnswersGoOnFromTheLastWord) {
  EXPECT_EQ(completed({"tra"}), "train\tTrain as a job file says, alone or under mpirun or srun\n");
  EXPECT_EQ(completed({"train"}), completed({"tra"}));
  EXPECT_EQ(completed({"compl"}), "") << "it is hidden";
  EXPECT_EQ(completed({"runs", "--so"}),
            "--sort\tThe best or newest first; accuracy is the best, last the last\n");
  EXPECT_EQ(completed({"hash", "--h"}), "--help\twhat this command does, and its options\n");
  EXPECT_EQ(completed({"prove", "x", "--kernels", "v"}), "vendor\t\n");
  EXPECT_EQ(completed({"prove", "x", "--kernels", ""}), "native\t\nvendor\t\n");
  EXPECT_EQ(completed({"eval", "x", "--device", "em"}), "emulated\t\n");
  EXPECT_EQ(completed({"eval", "x", "--dev"}),
            "--device\tauto, cpu, cuda, cuda:N or emulated, as parallel.device of a job file\n");
  EXPECT_EQ(completed({"eval", "x", "--data", ""}), ":folders\n");
  EXPECT_EQ(completed({"burn", "--level", ""}), "") << "a number";
  EXPECT_EQ(completed({"bench", "allreduce", "-b", ""}), "") << "bytes";
  EXPECT_EQ(completed({"prove", "x", "--timeout", ""}), "") << "seconds";
  EXPECT_EQ(completed({"bench", "allreduce", "--wa"}), "--warmup\tAll-reduces before those, not timed\n");
  EXPECT_EQ(completed({"doctor", "--li"}), "") << "it is hidden";
  EXPECT_EQ(completed({"export", "x", ""}), "") << "there is no second argument";
  EXPECT_EQ(completed({"import", "a", "b", ""}), ":folders\n");
  EXPECT_EQ(completed({"predict", "run", "a"}), ":files\n");
  EXPECT_EQ(completed({"predict", "run", "a", "b"}), ":files\n");
  EXPECT_EQ(completed({"train", "job", "run.trail=f"}), "run.trail=false\t\n");
  EXPECT_EQ(completed({"train", "job", "train.seed="}), "");
  EXPECT_EQ(completed({"help", "keys"}), "keys\tall keys of a job file\n");
}

TEST(CompletionTest, RunsAndCheckpointsAreThoseOfTheFolderThatWasTypedOrOfRuns) {
  const testing::RunFolders folders;
  folders.run("runs/mnist", {});
  folders.run("runs/a", {});
  const auto checkpoints = [](const std::string& run) {
    return fmt::format(
        "{0}\ta run: its newest checkpoint\n{0}@best\tits checkpoint of the highest accuracy\n"
        "{0}@last\tits newest checkpoint\n",
        run);
  };
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folders.root());
  EXPECT_EQ(completed({"eval", "runs/m"}), checkpoints("runs/mnist") + ":folders\n");
  EXPECT_EQ(completed({"eval", "--classes", "runs/m"}), checkpoints("runs/mnist") + ":folders\n");
  EXPECT_EQ(completed({"eval", ""}), checkpoints("runs/a") + checkpoints("runs/mnist") + ":folders\n");
  EXPECT_EQ(completed({"eval", "m"}), ":folders\n");
  EXPECT_EQ(completed({"prove", "runs/"}), "runs/a\ta run\nruns/mnist\ta run\n:folders\n");
  EXPECT_EQ(completed({"train", "job", "train.initial_weights=runs/m"}),
            checkpoints("train.initial_weights=runs/mnist") + ":folders\n:files\n");
  std::filesystem::current_path(before);
}

TEST(HelpTest, KeysAreExplainedBeforeAndAfterTheOption) {
  EXPECT_EQ(answer_to({"-h"}), answer_to({"--help"}));
  EXPECT_EQ(answer_to({"train", "train.seed", "--help"}), answer_to({"train", "--help", "train.seed"}));
}

TEST(BenchCommandTest, SizesAreFrom8BytesTo1TiBAndTheSmallestComesFirst) {
  const auto refusal = [](const std::string& least) {
    return said_to({"bench", "allreduce", "-b", least, "-e", "8"}, 2).err;
  };
  test::expect_words(refusal("1T"), {"--min-bytes 1099511627776 is more than --max-bytes 8\n"});
  for (const std::string beyond : {"7", "1099511627777"})
    test::expect_words(refusal(beyond), {"Value " + beyond + " not in range 8 to 1099511627776"});
}

/// A wait of NaN seconds has no end.
TEST(ProveCommandTest, TheTimeLimitIsANumberInItsRange) {
  const auto refusal = [](const std::string& limit) {
    return said_to({"prove", "/dev/null/a", "--timeout=" + limit}, 2).err;
  };
  for (const std::string none : {"nan", "-nan", "nan(7)"})
    test::expect_words(refusal(none), {"--timeout: '" + none + "' is not a number such as 60"});
  for (const std::string beyond : {"0", "-1", "inf"})
    test::expect_words(refusal(beyond), {"--timeout: Value " + beyond + " not in range"});
}

TEST(BurnCommandTest, EachLevelHasItsTime) {
  for (const char* level : {"1", "2", "3"})
    test::expect_words(said_to({"burn", "--level", level, "--inject", "nonsense"}, 2).err, {"--inject"});
}

TEST(BurnCommandTest, ABlockForPeopleIsNoJson) {
  test::expect_words(said_to({"burn", "--json", "--share", "--inject", "nonsense"}, 2).err,
                     {"--json", "--share"});
}

/// Others leave the environment as it is.
TEST(NcclDefaultsTest, AreSetForCommandsOfAllRanks) {
  unsetenv("NCCL_GRAPH_REGISTER");
  completed({"tra"});
  EXPECT_EQ(environment_variable("NCCL_GRAPH_REGISTER"), "");
  said_to({"bench", "allreduce", "-b", "16", "-e", "8"}, 2);
  EXPECT_EQ(environment_variable("NCCL_GRAPH_REGISTER"), "0");
}

TEST(HelpTest, ExcludedOptionsFollowTheMeaning) {
  const std::string help = answer_to({"report", "--help"});
  EXPECT_EQ(test::count_of("Excludes:", help), 0);
  test::expect_words(help, {"(not"});
}

TEST(CompareCommandTest, OneRunIsRefused) {
  test::expect_words(said_to({"compare", "/dev/null/a"}, 2).err,
                     {"compare takes 2 to 26 runs, these are 1; 'lockstep runs' lists them"});
}

TEST(CompareCommandTest, CurvesInAFileHaveTheWidthOfAUsualTerminal) {
  const testing::RunFolders folders;
  std::vector<std::string> words = {"compare"};
  for (const char* name : {"a", "b"})
    words.push_back(folders.run(name, {testing::start_line(), testing::epoch_line(1, 2, 1.5, 0.5),
                                       testing::epoch_line(2, 4, 1, 0.75), testing::end_line(4, 1, 0.75)}));
  const RunComparison comparison = compare_runs(Env::posix(), {words.begin() + 1, words.end()});
  const std::string answer = answer_to(words);
  const auto ends_with_curves = [&](bool unicode) {
    const std::string curves =
        comparison_curves(comparison, {.columns = 79, .unicode = unicode, .colours = false});
    return !curves.empty() && answer.ends_with(curves);
  };
  EXPECT_TRUE(ends_with_curves(false) || ends_with_curves(true)) << answer;
}

TEST(PredictCommandTest, ASummaryIsNoCsv) {
  test::expect_words(said_to({"predict", "run", "a.png", "--csv", "--summary"}, 2).err,
                     {"--csv", "--summary"});
}

TEST(DoctorCommandTest, HostsOfAFileAreListedWithTheirSlots) {
  const testing::TemporaryDirectory directory;
  std::ofstream(directory.path("hosts")) << "node1 slots=12\nnode2\n";
  EXPECT_EQ(answer_to({"doctor", "--list-hosts", directory.path("hosts")}), "node1 12\nnode2 1\n");
}

TEST(DoctorCommandTest, ALogWithAKnownCauseIsNotWell) {
  const testing::TemporaryDirectory directory;
  std::ofstream(directory.path("log")) << "mpirun has detected an attempt to run as root.\n";
  const std::string answer = answer_to({"doctor", "--log", directory.path("log"), "--json"}, 69);
  EXPECT_EQ(answer.find('\n'), answer.size() - 1) << "one object on one line";
  const auto found = parse_json(answer);
  EXPECT_EQ(found["ok"], false);
  EXPECT_EQ(found["checks"][0]["id"], "root");
  std::ofstream(directory.path("log")) << "epoch 1/2\n";
  EXPECT_EQ(answer_to({"doctor", "--log", directory.path("log")}), "no known cause\n");
}

TEST(DoctorCommandTest, ALockIsTakenOverOnceItsJobIsGone) {
  const testing::TemporaryDirectory directory;
  const std::string run = directory.path(), lock = directory.path("lock");
  test::expect_words(said_to({"doctor", "--take-over", run}, 66).err, {run});
  test::expect_words(said_to({"doctor", "--take-over", run + "/misspelt"}, 66).err, {run + "/misspelt"});
  std::ofstream(directory.path("metrics.jsonl")) << "";
  EXPECT_EQ(answer_to({"doctor", "--take-over", run}), run + ": no job holds it\n");
  std::ofstream(lock) << R"({"host":"no)";
  EXPECT_EQ(answer_to({"doctor", "--take-over", run}), run + ": freed; its lock was damaged\n");
  EXPECT_EQ(answer_to({"doctor", "--take-over", run}), run + ": no job holds it\n");
  std::ofstream(lock) << nlohmann::json{
      {"host", host_name()}, {"boot_id", "another"},    {"pid", 1},
      {"start_ticks", 1},    {"started", "2026-01-01"}, {"job", "old.yaml"}};
  EXPECT_EQ(answer_to({"doctor", "--take-over", run}), run + ": freed; job old.yaml is gone\n");
  EXPECT_EQ(std::filesystem::file_size(lock), 0U);
  const RunLock held(Env::posix(), run, "mine.yaml", {});
  test::expect_words(said_to({"doctor", "--take-over", run}, 74).err, {"job mine.yaml", "still running"});
}

TEST(CheckpointCommandsTest, AnswerInLinesUnlessJsonIsAskedFor) {
  const testing::TemporaryDirectory directory;
  const CheckpointState state = make_state(100);
  const std::string path = save_checkpoint(Env::posix(), directory.path(), state),
                    digest = weights_sha256(state.weights);
  EXPECT_EQ(answer_to({"hash", path}), "weights sha256 " + digest + "\n");
  EXPECT_EQ(parse_json(answer_to({"hash", path, "--json"}))["weights_sha256"], digest);
  EXPECT_EQ(answer_to({"diff", path, path}), "no difference: the same bits\n");
  EXPECT_EQ(parse_json(answer_to({"diff", path, path, "--json"}))["same"], true);
  const std::string good = verify(Env::posix(), path).report;
  EXPECT_EQ(answer_to({"verify", path}), good);
  EXPECT_EQ(parse_json(answer_to({"verify", path, "--json"}))["checkpoints"][0]["report"], good);
}

TEST(RunsCommandTest, AnEmptyListSaysWhy) {
  const testing::TemporaryDirectory directory;
  EXPECT_EQ(answer_to({"runs", directory.path()}),
            directory.path() + ": holds no runs; 'lockstep train JOB.yaml' makes one and says where\n");
  std::filesystem::create_directory(directory.path("a"));
  std::ofstream(directory.path("a/metrics.jsonl")) << "";
  EXPECT_EQ(answer_to({"runs", "--where", "state=finished", directory.path()}),
            directory.path() + ": none of its runs is as --where asks\n");
}

/// Its newest checkpoint is damaged, which is said where it is read.
TEST(ReportCommandTest, FollowingARunReadsNoCheckpoint) {
  const testing::RunFolders folders;
  const std::string run = folders.run(
      "a", {testing::start_line(), testing::epoch_line(1, 2, 1.5, 0.5), testing::end_line(2, 1.5, 0.5)});
  folders.write("a/checkpoints/step-00000002/manifest.json", "{");
  test::expect_words(said_to({"report", run, "--format", "json"}).err, {"step-00000002/manifest.json"});
  const Printed followed = said_to({"report", run, "--follow"});
  EXPECT_TRUE(followed.out.starts_with("a: finished, step 2, accuracy 50.00")) << followed.out;
  EXPECT_EQ(followed.err, "");
  test::expect_words(said_to({"report", run, "--follow", "-o", folders.path("curves")}, 2).err,
                     {"--follow", "--output"});
}

TEST(ReportCommandTest, AFileIsOpenedInABrowserOnlyIfItIsAPage) {
  const testing::RunFolders folders;
  const std::string run = folders.run("a", {testing::start_line(), testing::step_line(1, 1, 2.5)}),
                    file = folders.path("a.json");
  const std::string said = answer_to({"report", run, "--format", "json", "-o", file});
  EXPECT_TRUE(said.starts_with(file + ": ") && said.ends_with(" bytes, 1 run\n")) << said;
  EXPECT_TRUE(std::filesystem::exists(file));
  std::filesystem::create_symlink(file, run + "/report.html");
  test::expect_words(said_to({"report", run}, 74).err, {"/a/report.html: is a symbolic link; "});
}

TEST(ReportCommandTest, EventFilesNeedTheNameOfAFolder) {
  const testing::RunFolders folders;
  const std::string run = folders.run("a", {testing::start_line()});
  test::expect_words(said_to({"report", run, "--format", "tensorboard"}, 2).err,
                     {"--format tensorboard writes a folder for each run: name one for them with -o DIR"});
}

TEST(ReportCommandTest, RunsOfOneNameHaveFoldersOfTheirOwn) {
  const testing::RunFolders folders;
  const std::string boards = folders.path("boards");
  std::vector<std::string> report = {"report", "--format", "tensorboard", "-o", boards};
  for (const char* name : {"one/a", "two/a", "three/a"})
    report.push_back(folders.run(name, {testing::start_line()}));
  EXPECT_EQ(answer_to(report), fmt::format("{0}/a: 0 logged steps for: tensorboard --logdir {0}\n"
                                           "{0}/a-2: 0 logged steps for: tensorboard --logdir {0}\n"
                                           "{0}/a-2-2: 0 logged steps for: tensorboard --logdir {0}\n",
                                           boards));
}

TEST(ReportCommandTest, ANumberThatNoDoubleHoldsEndsNoReport) {
  const testing::RunFolders folders;
  const std::string run = folders.run("a", {testing::start_line(), testing::step_line(1, 1, 2.5),
                                            R"({"event":"step","epoch":1,"step":2,"loss":1e999})"}),
                    boards = folders.path("boards");
  EXPECT_EQ(answer_to({"report", run, "--format", "tensorboard", "-o", boards}),
            fmt::format("{0}/a: 2 logged steps for: tensorboard --logdir {0}\n", boards));
}

TEST(ReportCommandTest, EventFilesOfAnEarlierReportAreReplacedWhereThatIsAskedFor) {
  const testing::RunFolders folders;
  const std::string run = folders.run("a", {testing::start_line(), testing::step_line(1, 1, 2.5)}),
                    boards = folders.path("my boards");
  std::vector<std::string> report = {"report", run, "--format", "tensorboard", "-o", boards};
  EXPECT_EQ(answer_to(report), fmt::format("{0}/a: 1 logged step for: tensorboard --logdir '{0}'\n", boards));
  test::expect_words(said_to(report, 2).err, {boards + "/a/events.out.tfevents.", "--force"});
  folders.write("my boards/a/README", "");
  report.emplace_back("--force");
  answer_to(report);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(boards + "/a"), {}), 2) << "README stays";
}

TEST(ValidateCommandTest, NotesOnTheJobAreInItsJson) {
  const testing::TemporaryDirectory directory;
  std::ofstream(directory.path("job.yaml"))
      << "model: linear\ndata: {set: synthetic, train_samples: 100, test_samples: 10, global_batch: 200}\n";
  EXPECT_EQ(parse_json(answer_to({"validate", directory.path("job.yaml"), "--json"}))["notes"],
            nlohmann::json::array({"data.global_batch 200 is more than the 100 training samples: every step "
                                   "takes all of them"}));
}

/// No machine has 70 TiB.
TEST(ValidateCommandTest, MemoryThatIsNotHereIsNotedInItsJson) {
  const testing::TemporaryDirectory directory;
  std::ofstream(directory.path("large.yaml"))
      << "layers:\n  - linear: 1048576\n  - linear: 1000\n  - linear: classes\n";
  std::ofstream(directory.path("job.yaml"))
      << fmt::format("model: {}\nparallel: {{threads: 1024}}\n", directory.path("large.yaml"))
      << "data: {set: synthetic, train_samples: 100, test_samples: 10}\n";
  test::expect_words(
      parse_json(answer_to({"validate", directory.path("job.yaml"), "--json"}))["notes"].dump(),
      {": training would be refused here\""});
}

TEST(ValidateCommandTest, AHostHoldsSamplesOnceMoreThatStreamPastADevice) {
  const testing::TemporaryDirectory directory;
  std::ofstream(directory.path("job.yaml"))
      << "model: linear\ndata: {set: synthetic, train_samples: 100, test_samples: 10, global_batch: 20}\n";
  const auto host_bytes = [&](const std::string& on_device) {
    return parse_json(answer_to({"validate", directory.path("job.yaml"), "parallel.device=emulated",
                                 "data.on_device=" + on_device, "--json"}))["host_bytes"]
        .get<std::int64_t>();
  };
  EXPECT_GT(host_bytes("stream"), host_bytes("whole"));
}

TEST(ValidateCommandTest, NotesOnTheSetAreInItsJson) {
  const testing::RunFolders folders;
  for (const std::string name : {"a/1", "a/2", "a/3", "b/1", "b/2", "b/3"})
    folders.write("photos/" + name + ".pgm", "P5 4 2 255\n01234567");
  folders.write("photos/a/notes.txt", "mine");
  const std::string job = folders.write(
      "job.yaml", fmt::format("model: linear\ndata: {{set: pictures, global_batch: 2, root: {}}}\n",
                              folders.path("photos")));
  test::expect_words(answer_to({"validate", job}), {"\nnote: left out: 1 .txt file; the first is "});
  test::expect_words(parse_json(answer_to({"validate", job, "--json"}))["notes"].dump(),
                     {R"(["left out: 1 .txt file; the first is )", "/photos/a/notes.txt\""});
}

TEST(OptionFactsTest, OptionsOfEachRankAreLeftOut) {
  CLI::App command;
  ParallelSection parallel;
  parallel.device = "cpu";
  std::string backend = "auto";
  add_parallel_options(command, parallel);
  add_backend_option(command, backend);
  command.add_flag("--quick");
  std::string trace, data, job;
  command.add_option("--trace", trace);
  command.add_option("--data", data);
  command.add_option("job", job);
  command.parse("--threads 2 --backend thread --trace steps.json --data here mnist");
  std::vector<std::string> facts;
  for (const RankFact& fact : option_facts(command)) facts.push_back(fact.key + " " + fact.value);
  EXPECT_EQ(facts, (std::vector<std::string>{"--device cpu", "--backend thread", "--quick not given",
                                             "--trace given"}));
}

}  // namespace
}  // namespace lockstep
