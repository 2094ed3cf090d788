// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The commands around training, on one small trained model.
#include "tests/support/prelude.hpp"
#include "tests/support/test_settings.hpp"
#include "tests/trainer/end_to_end/program.hpp"
#include "tests/trainer/support/forged_run.hpp"
#include "trainer/checkpoint/checkpoint.hpp"

#include <regex>

namespace lockstep::testing {
namespace {

/// Trains once for all tests of this file.
class CommandsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new TemporaryDirectory;
    trained_ = lockstep_on_ranks(
        2, "train " + write_small_job(*directory_) + " run.log_every_steps=0 'data.augment=[]'");
    ASSERT_EQ(trained_.exit_code, 0) << trained_.everything();
  }
  static void TearDownTestSuite() { delete directory_; }
  static std::string run_dir() { return directory_->path("run"); }
  /// By validate and by train, in the same words.
  static void expect_refused_alike(const std::string& keys) {
    const std::string job = directory_->path("job.yaml") + " run.dir=" + directory_->path("new") + " " + keys;
    const Outcome validated = lockstep("validate " + job), trained = lockstep("train " + job);
    expect_says(validated, 2);
    expect_says(trained, 2);
    EXPECT_EQ(validated.err, trained.err) << keys;
  }

  static TemporaryDirectory* directory_;
  static Outcome trained_;
};

TemporaryDirectory* CommandsTest::directory_ = nullptr;
Outcome CommandsTest::trained_;

TEST_F(CommandsTest, TrainingPrintsTheHashAndLeavesItsCommandAndWhatExpertsReadToFiles) {
  EXPECT_EQ(lockstep("hash " + run_dir()).last_line(), trained_.last_line());
  const std::string log = read_text(run_dir() + "/log/rank-0.log"), said = trained_.everything();
  EXPECT_NE(log.find("expected wait for gradients after the backward pass: "), std::string::npos) << log;
  for (const char* words : {"expected wait", "exposed", "speed of each rank"})
    EXPECT_EQ(said.find(words), std::string::npos) << said;
  const std::string command = read_metrics(run_dir()).front().at("command");
  EXPECT_TRUE(command.ends_with("/job.yaml run.log_every_steps=0 'data.augment=[]'")) << command;
}

/// The first row of launch/jobs/hashes.txt.
TEST(PublishedHashTest, AKnownJobSaysThatItComesToWhatWasPublished) {
  const TemporaryDirectory directory;
  const std::string train =
      "train " + test::source_path("launch/jobs/mnist.yaml") +
      " data.set=synthetic data.train_samples=2000 data.test_samples=500 parallel.device=cpu run.dir=" +
      directory.path("run") + " train.epochs=";
  const std::string yes = "the published hash: yes (mnist.yaml on 2,000 synthetic digits, 2 epochs)\n";
  const auto half = lockstep_on_ranks(2, train + "1");
  EXPECT_EQ(half.everything().find("published"), std::string::npos) << half.everything();
  const auto whole = lockstep_on_ranks(3, train + "2");
  EXPECT_NE(whole.everything().find(yes), std::string::npos) << whole.everything();
  EXPECT_EQ(read_metrics(directory.path("run")).back().at("published_hash"), true);
  EXPECT_NE(lockstep(train + "2").everything().find(yes), std::string::npos)
      << "said again of a finished run";
  EXPECT_EQ(lockstep("hash " + directory.path("run")).out, yes + whole.last_line() + "\n");
  FoundCheckpoint found = open_checkpoint(Env::posix(), directory.path("run"), {});
  found.state.weights[0] += 1;
  save_checkpoint(Env::posix(), directory.path("run"), found.state);
  expect_says(lockstep("hash " + directory.path("run")), 0,
              {"the published hash: no; mnist.yaml on 2,000 synthetic digits, 2 epochs comes to " +
               whole.last_line().substr(std::strlen("weights sha256 ")) + ": this machine, "});
}

TEST_F(CommandsTest, EvalCountsEveryTestSampleOnAnyNumberOfRanks) {
  constexpr int kSamples = 333;  // the job's: ten grains and a rest
  const auto metrics = read_metrics(run_dir());
  const auto& end = metrics.back();
  EXPECT_EQ(end.at("test_samples"), kSamples);
  const auto epoch = std::find_if(metrics.rbegin(), metrics.rend(),
                                  [](const auto& event) { return event["event"] == "epoch"; });
  ASSERT_NE(epoch, metrics.rend());
  for (const char* key : {"test_samples", "test_accuracy", "test_loss"})
    EXPECT_EQ(epoch->at(key), end.at(key));
  EXPECT_NE(trained_.out.find(" % of 333 test samples"), std::string::npos) << trained_.out;
  const double accuracy = end.at("test_accuracy").get<double>();
  const auto correct = std::lround(accuracy * kSamples);
  EXPECT_DOUBLE_EQ(accuracy * kSamples, static_cast<double>(correct));
  char expected[128];
  std::snprintf(expected, sizeof(expected), "synthetic test: loss %.4f, accuracy %.2f %% (%ld of %d)\n",
                end.at("test_loss").get<double>(), 100 * accuracy, correct, kSamples);
  for (const int ranks : {1, 3}) {
    const auto outcome = lockstep_on_ranks(ranks, "eval " + run_dir());
    expect_says(outcome, 0, {expected});
    EXPECT_EQ(outcome.last_line(), trained_.last_line());
  }
}

TEST_F(CommandsTest, InitialWeightsMayBeARunACheckpointOrAFile) {
  const auto job = write_small_job(*directory_);
  std::string checkpoint;
  for (const auto& entry : std::filesystem::directory_iterator(run_dir() + "/checkpoints"))
    checkpoint = std::max(checkpoint, entry.path().string());
  std::vector<std::string> hashes;
  for (const std::string& from : {run_dir(), checkpoint, checkpoint + "/model.safetensors"}) {
    const auto outcome = succeed("train " + job + " train.max_steps=1 run.resume=never run.dir=" +
                                 directory_->path("started") + " train.initial_weights=" + from);
    hashes.push_back(outcome.last_line());
  }
  EXPECT_EQ(hashes[0], hashes[2]);
  EXPECT_EQ(hashes[1], hashes[2]);
  expect_says(lockstep("train " + job + " run.dir=" + directory_->path("x") +
                       " train.initial_weights=" + directory_->path()),
              66);
}

TEST_F(CommandsTest, PredictRefusesWhatIsNoPictureAndNamesTheRunsThatThereAre) {
  write_text(directory_->path("text.png"), "not a picture");
  expect_says(lockstep("predict " + run_dir() + " " + directory_->path("text.png")), 65, {"text.png"});
  EXPECT_EQ(lockstep("predict " + run_dir() + " /nonexistent.png").exit_code, 66);
  const std::string all = directory_->path();
  for (const std::string& command : {"predict " + all + "/rnu x.png", "verify " + all, "prove " + all}) {
    expect_says(lockstep(command), 66, {run_dir()});
  }
}

TEST_F(CommandsTest, VerifyNamesADamagedFile) {
  const auto copy = directory_->path("copy");
  std::filesystem::copy(run_dir(), copy, std::filesystem::copy_options::recursive);
  succeed("verify " + copy);
  for (const auto& entry : std::filesystem::directory_iterator(copy + "/checkpoints")) {
    auto bytes = read_text(entry.path() / "model.safetensors");
    bytes[bytes.size() - 5] ^= 1;
    write_text(entry.path() / "model.safetensors", bytes);
  }
  const auto outcome = lockstep("verify " + copy);
  expect_says(outcome, 65);
  expect_words(outcome.out, {"model.safetensors", "fc2.bias"});
}

/// As Trainer::save writes it of a network with a layer of the program's own, and save_checkpoint() of other weights.
TEST_F(CommandsTest, InspectShowsWhatProgramsOfTheLibrarySave) {
  const auto copy = directory_->path("of-the-library");
  std::filesystem::copy(run_dir(), copy, std::filesystem::copy_options::recursive);
  const std::int64_t step = checkpoint_steps(copy).back();
  const auto forge = [&](const std::function<void(CheckpointFacts&)>& change) {
    forge_checkpoint(copy, step, [&](CheckpointState& state) {
      state.facts.world = {{"library", "lockstep"}};
      change(state.facts);
    });
  };
  forge([](CheckpointFacts& facts) { facts.data.clear(); });
  const std::string layers = "\nconv1  ";
  expect_says(lockstep("inspect " + copy), 0, {"conv1.weight", layers});
  const auto expect_tensors_alone = [&] {
    const Outcome said = lockstep("inspect " + copy);
    expect_says(said, 0, {"conv1.weight", trained_.last_line()});
    EXPECT_EQ(said.out.find(layers), std::string::npos) << said.out;
    EXPECT_EQ(answer_of("inspect " + copy)["tensors"][0]["tensor"], "conv1.weight");
  };
  forge([](CheckpointFacts& facts) { facts.model["yaml"] = "layers: [mine]"; });
  expect_tensors_alone();
  forge([](CheckpointFacts& facts) { facts.model.clear(); });
  expect_tensors_alone();
}

TEST_F(CommandsTest, ExportedOnnxIsImportedWithTheSameWeightsAndAccuracy) {
  const auto onnx = directory_->path("net.onnx"), imported = directory_->path("imported");
  const std::string exported = succeed("export " + run_dir() + " --onnx " + onnx).out;
  EXPECT_EQ(exported, fmt::format("{0}: {1} bytes; onnxruntime.InferenceSession(\"{0}\") reads it\n", onnx,
                                  std::filesystem::file_size(onnx)));
  expect_words(read_text(onnx),
               {"weights_sha256", "image: float32 [N, 1, 28, 28], pixels / 255 as torchvision's",
                "logits: float32 [N, 10]; softmax"});
  const auto command = "import " + onnx + " " + write_small_job(*directory_) + " " + imported;
  std::filesystem::create_directory(imported);  // one that is empty will do
  const Outcome said = lockstep(command);
  expect_says(said, 0, {"net.onnx: 8 tensors by name\n"});
  EXPECT_EQ(lockstep("hash " + imported).last_line(), trained_.last_line());
  const auto before = lockstep("eval " + run_dir()).out, after = lockstep("eval " + imported).out;
  const std::size_t at = before.find(": loss");
  EXPECT_EQ(before.substr(at), after.substr(after.find(": loss")));
  expect_words(said.out, {before.substr(at, before.find('\n', at) - at) + "\nsaved as " + imported +
                          "/checkpoints/step-00000000\n"});
  EXPECT_EQ(answer_of("inspect " + imported)["test_accuracy"], answer_of("eval " + run_dir())["accuracy"]);
  EXPECT_EQ(lockstep(command).exit_code, 2) << "the directory is there already";
  EXPECT_EQ(lockstep(command + "-lenet model=lenet").exit_code, 65);
  expect_says(lockstep_on_ranks(2, command + "-on-ranks"), 2,
              {"import: runs on one rank; start it without mpirun"});
  EXPECT_FALSE(std::filesystem::exists(imported + "-lenet"));
  EXPECT_EQ(lockstep("export " + run_dir()).exit_code, 2);
  const auto both = directory_->path("both");
  expect_says(lockstep("export " + run_dir() + " --npz " + both + " --onnx " + directory_->path("./both") +
                       " --force"),
              2, {"--npz and --onnx both name " + both});
  EXPECT_FALSE(std::filesystem::exists(both));
}

TEST_F(CommandsTest, AJobThatTrainsOtherWeightsIsNotContinued) {
  expect_says(lockstep("train " + directory_->path("job.yaml") + " train.seed=8"), 2, {"train.seed"});
}

TEST_F(CommandsTest, ValidatePrintsTheWholeJobAndTheModelWithoutData) {
  expect_says(
      lockstep("validate " + directory_->path("job.yaml") + " data.set=mnist data.root=/nonexistent " +
               "data.train_samples=0 data.test_samples=0"),
      0, {"nesterov", "21,840", "memory of one rank: about "});
}

/// Six steps, of 16 grains each.
TEST_F(CommandsTest, ValidateRefusesTheStepsAndRanksThatTrainingRefuses) {
  for (const char* keys :
       {"train.schedule.warmup_steps=6", "train.patience=1 train.max_steps=1", "run.trace=7..9",
        "parallel.backend=thread parallel.ranks=17", "parallel.backend=thread parallel.ranks=40"})
    expect_refused_alike(keys);
  succeed("validate " + directory_->path("job.yaml") +
          " train.schedule.warmup_steps=5 run.trace=6..9 parallel.backend=thread parallel.ranks=16");
}

/// The shape of its images is known without the set.
TEST_F(CommandsTest, ValidateRefusesKeysThatDoNotGoWithTheSetOrTheDeviceAsTrainingDoes) {
  for (const char* keys :
       {"'data.augment=[{crop: {padding: 29}}]'", "'data.augment=[{jitter: {saturation: 0.5}}]'",
        "train.recompute=true parallel.device=emulated"})
    expect_refused_alike(keys);
  succeed("validate " + directory_->path("job.yaml") +
          " 'data.augment=[{crop: {padding: 28}}]' train.recompute=true");
}

/// They may be on another machine, as the data may be.
TEST_F(CommandsTest, ValidateNotesFilesThatAreNotHere) {
  const std::string validate = "validate " + directory_->path("job.yaml");
  expect_says(
      lockstep(validate + " train.initial_weights=/nowhere"), 0,
      {"note: train.initial_weights is /nowhere, which is not there: a first start is refused here\n"});
  expect_says(lockstep(validate + " run.resume=/nowhere"), 0,
              {"note: run.resume: /nowhere holds no checkpoint to go on from; "});
  expect_says(lockstep(validate + " train.seed=8 run.resume=" + run_dir()), 2, {"train.seed (was 7, now 8)"});
}

TEST_F(CommandsTest, ValidateRefusesStagesAsTrainingDoes) {
  const std::string job = directory_->path("job.yaml") + " run.dir=" + directory_->path("stages");
  for (const char* keys : {" parallel.strategy=pipeline parallel.stages=300",
                           " parallel.strategy=pipeline 'parallel.stages=[[conv1, relu1]]'",
                           " parallel.strategy=hogwild parallel.determinism=off model=resnet8"})
    for (const char* command : {"validate ", "train "})
      expect_says(lockstep(command + job + keys), 2, {"override 'parallel.s"});
}

/// Found valid, and refused before anything is allocated or written: no machine has 70 TiB.
TEST_F(CommandsTest, AModelThatNoMachineHoldsIsRefusedInOneSentence) {
  const std::string model = directory_->path("large.yaml");
  write_text(model, "layers:\n  - linear: 1048576\n  - linear: 1000\n  - linear: classes\n");
  const std::string job = directory_->path("job.yaml") + " parallel.threads=1024 model=" + model +
                          " run.dir=" + directory_->path("large");
  expect_says(lockstep("validate " + job), 0, {"training would be refused here"});
  expect_says(lockstep("train " + job), 69, {"lockstep: not enough memory: training large "});
  EXPECT_FALSE(std::filesystem::exists(directory_->path("large")));
}

TEST_F(CommandsTest, MemoryOfAllRanksIsNoLessThanThatOfOneAndNoPeakIsBelowWhatThereIs) {
  static const std::regex line(R"(memory: at most (\d+) MiB resident, on rank \d; (\d+) MiB on all 2 ranks)");
  std::smatch found;
  ASSERT_TRUE(std::regex_search(trained_.out, found, line)) << trained_.everything();
  EXPECT_GE(std::stoi(found[2]), std::stoi(found[1])) << found[0];
  int epochs = 0;
  for (const auto& event : read_metrics(run_dir())) {
    if (event.at("event") != "epoch") continue;
    ++epochs;
    EXPECT_GE(event.at("peak_resident_bytes"), event.at("resident_bytes")) << event;
  }
  EXPECT_GT(epochs, 0);
}

/// NCCL_GRAPH_REGISTER is set for other commands.
TEST(DoctorCommandTest, TellsOnlyWhatUsersHaveSet) {
  const auto told = run_shell("unset NCCL_GRAPH_REGISTER; NCCL_DEBUG=WARN $LOCKSTEP_PROGRAM doctor --json");
  expect_words(told.out, {R"("NCCL_DEBUG":"WARN")"});
  EXPECT_EQ(told.out.find("NCCL_GRAPH_REGISTER"), std::string::npos) << told.everything();
}

TEST(VersionTest, SaysWhatAReportOfABugAndAProgramNeed) {
  const auto brief = succeed("--version"), verbose = succeed("--version --verbose");
  EXPECT_TRUE(verbose.out.starts_with(brief.out)) << verbose.out;
  EXPECT_TRUE(brief.out.starts_with("lockstep ")) << brief.out;
  expect_words(verbose.out, {"\ncommit ", "\ncompiler ", "-ffp-contract=off\n", "\nMPI ", " in use, of ",
                             "\nmodels ", "/jobs\n"});
  EXPECT_EQ(lockstep("--verbose").exit_code, 2);
  const auto json = answer_of("--version");
  EXPECT_EQ(json["format"], 1);
  EXPECT_EQ("lockstep " + json["version"].get<std::string>() + "\n", brief.out);
  EXPECT_TRUE(std::filesystem::exists(json["models"].get<std::string>() + "/net.yaml")) << json;
  EXPECT_TRUE(std::filesystem::exists(json["jobs"].get<std::string>() + "/hashes.txt")) << json;
  EXPECT_TRUE(json["commit"] == "not known" || json["commit"].get<std::string>().size() >= 40) << json;
  EXPECT_FALSE(json["simd"]["choices"].empty()) << json;
  if (json["nccl"] != "ready")
    expect_words(json["nccl"].get<std::string>(), {"lockstep_nccl.so", " NCCL ", "do without it"});
  if (json["cudnn"] != "ready")
    expect_words(json["cudnn"].get<std::string>(),
                 {"lockstep_vendor.so", " cuDNN and cuBLAS ", "do without it"});
  expect_says(run_shell("LOCKSTEP_SIMD=none $LOCKSTEP_PROGRAM --version"), 2,
              {"LOCKSTEP_SIMD=none is not an instruction set"});
}

/// All follow from the time of a step, which two of them are. So each of the others is computed again here.
TEST_F(CommandsTest, BenchStepPrintsNumbersThatFollowFromEachOther) {
  std::string out = ended_well(lockstep_on_ranks(2, "bench step " + directory_->path("job.yaml") +
                                                        " parallel.threads=2 --rounds 1 --steps 2"))
                        .out;
  std::erase(out, ',');
  static const std::regex table(
      R"( parameters (\S+) MFLOP a sample; global batch 512 grain 32\n.*; peak (\S+) GFLOP/s a core\n)"
      R"(napkin limit: (\S+) us a step[\s\S]*\nworld +(\S+) +(\S+) +(\S+) %[^\n]*\noff +(\S+) +(\S+) +(\S+) %)"
      R"([\s\S]*\nworld costs )");
  std::smatch found;
  ASSERT_TRUE(std::regex_search(out, found, table)) << out;
  const auto number = [&](std::size_t at) { return std::stod(found[at]); };
  EXPECT_NEAR(number(1), 2.595, 0.001);
  const double napkin = number(1) * 512 / (number(2) * 1e3 * 2 * 2) * 1e6;  // 2 ranks of 2 threads
  EXPECT_NEAR(number(3), napkin, 1 + napkin / 100);
  for (const std::size_t row : {4, 7}) {  // samples/s, us/step, of peak
    EXPECT_NEAR(number(row), 512 / number(row + 1) * 1e6, number(row) / 100) << out;
    EXPECT_NEAR(number(row + 2), 100 * napkin / number(row + 1), 0.1 + number(row + 2) / 50) << out;
  }
}

}  // namespace
}  // namespace lockstep::testing
