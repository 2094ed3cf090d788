// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Paths and faults in a job file, and options that are told as keys.
#include "common/error.hpp"
#include "data/sets/leave_out.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/set_variable.hpp"
#include "tests/support/temporary_directory.hpp"
#include "trainer/config/job.hpp"
#include "trainer/config/job_schema.hpp"
#include "trainer/config/job_values.hpp"

namespace lockstep::job_path_test {

namespace {

namespace fs = std::filesystem;

/// A home and a current directory of its own, both put back.
class JobPathTest : public ::testing::Test {
 protected:
  JobPathTest() {
    for (const char* folder : {"jobs", "elsewhere"}) fs::create_directory(root_ / folder);
    fs::current_path(root_ / "elsewhere");
  }
  ~JobPathTest() override { fs::current_path(before_); }

  std::string write(const std::string& path, const std::string& text) const {
    std::ofstream(root_ / path) << text;
    return (root_ / path).string();
  }

  const testing::TemporaryDirectory directory_;
  const fs::path root_ = directory_.path(), before_ = fs::current_path();
  const test::SetVariable home_{"HOME", "/home/me"};
};

TEST_F(JobPathTest, JobThatComesWithTheProgramHasAName) {
  const auto error = [](const std::string& path) {
    return test::error_of<MissingDataError>([&] { load_job(path, {}); });
  };
  EXPECT_EQ(load_job("mnist", {}).data.set, "mnist");
  write("elsewhere/mine.yaml", "model: net\n");
  EXPECT_EQ(error("mine"), "mine: no such file (did you mean mine.yaml?)");
  EXPECT_EQ(error("../elsewhere/mine"),
            "../elsewhere/mine: no such file (did you mean ../elsewhere/mine.yaml?)");
  EXPECT_EQ(error("yours").find("yours: no such file; jobs of the program: cifar10-resnet20, "), 0U);
  EXPECT_EQ(error("minst").find("minst: no such file (did you mean 'mnist'?); "), 0U);
  EXPECT_EQ(error("./mnist"), "./mnist: no such file; check the path");
  EXPECT_EQ(error("mine.yml"), "mine.yml: no such file (did you mean 'mine.yaml'?)");
  EXPECT_EQ(error("../elsewhere/mien.yaml"),
            "../elsewhere/mien.yaml: no such file (did you mean 'mine.yaml'?)");
  EXPECT_EQ(error("mnist.yml").find("mnist.yml: no such file (did you mean 'mnist'?); jobs of the program: "),
            0U)
      << error("mnist.yml");
  write("elsewhere/mnist-mine.yaml", "model: net\n");
  EXPECT_EQ(load_job("mnist", {}).data.set, "mnist");  // as before
}

TEST_F(JobPathTest, FileIsPreferredToTheJobOfItsName) {
  write("elsewhere/mnist.yaml", "model: lenet\n");
  EXPECT_THROW(load_job("mnist", {}), MissingDataError) << "which of the two is meant?";
  write("elsewhere/mnist", "model: lenet\n");
  EXPECT_EQ(load_job("mnist", {}).model, "lenet");
}

TEST_F(JobPathTest, TildeIsTheHomeInEveryPath) {
  const Job job =
      parse_job("model: ~/net.yaml\ndata: {root: ~/data}\ntrain: {initial_weights: ~/w.safetensors}\n",
                "job.yaml", {"run.dir=~/runs/a", "run.resume=~/runs/b"});
  EXPECT_EQ(job.model, "/home/me/net.yaml");
  EXPECT_EQ(job.data.root, "/home/me/data");
  EXPECT_EQ(job.train.initial_weights, "/home/me/w.safetensors");
  EXPECT_EQ(job.run.dir, "/home/me/runs/a");
  EXPECT_EQ(job.run.resume, "/home/me/runs/b");
  EXPECT_EQ(expand_home("~"), "/home/me");
  EXPECT_EQ(expand_home("a/~/b"), "a/~/b");
  EXPECT_EQ(expand_home(""), "");
  const test::SetVariable no_home("HOME", "");
  EXPECT_NE(expand_home("~"), "") << "that of the user database, if there is one";
}

TEST_F(JobPathTest, TheHomeOfAnotherUserIsKnownOrRefused) {
  EXPECT_EQ(expand_home("~root/x"), "/root/x");
  EXPECT_EQ(expand_home("~root"), "/root");
  EXPECT_EQ(expand_home("~nobody-of-that-name/x"), std::nullopt);
  EXPECT_EQ(message_of<ConfigError>(
                [] { parse_job("model: net", "job.yaml", {"run.dir=~nobody-of-that-name/x"}); }),
            "override 'run.dir=~nobody-of-that-name/x': run.dir: expected auto or a directory, got "
            "'~nobody-of-that-name/x'");
}

TEST_F(JobPathTest, AModelBesideTheJobHasOnePathHoweverTheJobIsTyped) {
  write("elsewhere/mine.yaml", "layers: []\n");
  write("elsewhere/job.yaml", "model: mine.yaml\n");
  for (const char* job : {"job.yaml", "./job.yaml", "././job.yaml"})
    EXPECT_EQ(load_job(job, {}).model, "mine.yaml") << job << ": or it would be another run's";
  for (const std::string folder : {"../elsewhere/", ".././elsewhere/"})
    EXPECT_EQ(load_job(folder + "job.yaml", {}).model, "../elsewhere/mine.yaml");
  EXPECT_EQ(load_job((root_ / "elsewhere/job.yaml").string(), {}).model, root_ / "elsewhere/mine.yaml");
}

TEST_F(JobPathTest, DataAreLookedForBesideTheJobFirst) {
  const std::string job = write("jobs/job.yaml", "model: net\ndata: {set: idx, root: my-set}\n");
  EXPECT_EQ(load_job(job, {}).data.root, "my-set");  // neither here nor there: as written
  fs::create_directory(root_ / "jobs/my-set");
  EXPECT_TRUE(fs::equivalent(load_job(job, {}).data.root, root_ / "jobs/my-set"));
  EXPECT_EQ(load_job(job, {"data.root=other"}).data.root, "other");
  EXPECT_EQ(load_job(job, {"data.root=" + root_.string()}).data.root, root_.string());
  fs::create_directory(root_ / "jobs/auto");
  EXPECT_EQ(load_job(write("jobs/plain.yaml", "model: net\n"), {}).data.root, "auto");
  fs::create_symlink("circle", root_ / "jobs/circle");
  const std::string circle = write("jobs/circle.yaml", "model: net\ndata: {set: idx, root: circle}\n");
  EXPECT_EQ(load_job(circle, {}).data.root, root_ / "jobs/circle") << "so that it is said that it is one";
}

TEST_F(JobPathTest, AListIsLookedForBesideTheJobFirstAndRead) {
  const std::string job = write("jobs/job.yaml", "model: net\ndata: {leave_out: list.txt}\n");
  EXPECT_EQ(test::error_of<MissingDataError>([&] { load_job(job, {}); }),
            job +
                ":2:19: data.leave_out: list.txt: no regular file of that name beside the job or in the "
                "current directory; bring the list back, or remove the key");
  const std::string here = write("elsewhere/list.txt", "3\n");
  EXPECT_TRUE(fs::equivalent(load_job(job, {}).data.leave_out_file, here));
  const std::string beside = write("jobs/list.txt", "3\n5\n");
  EXPECT_EQ(load_job(job, {}).data.leave_out_file, beside);
  EXPECT_EQ(load_job(job, {}).data.leave_out->entries.size(), 2U);
  EXPECT_EQ(load_job(job, {"data.leave_out=./list.txt"}).data.leave_out_file,
            fs::current_path() / "list.txt");
}

TEST_F(JobPathTest, AModelIsLookedForBesideTheJobFirst) {
  const std::string job = write("jobs/job.yaml", "model: ./m.yaml\n");
  EXPECT_EQ(load_job(job, {}).model, "./m.yaml");  // neither here nor there: as written
  write("elsewhere/m.yaml", "");
  EXPECT_EQ(load_job(job, {}).model, "./m.yaml");
  write("jobs/m.yaml", "");
  EXPECT_TRUE(fs::equivalent(load_job(job, {}).model, root_ / "jobs/m.yaml"));
}

TEST_F(JobPathTest, AModelOnTheCommandLineIsTheShellsPath) {
  const std::string job = write("jobs/job.yaml", "model: net\n");
  write("jobs/m.yaml", "");
  EXPECT_EQ(load_job(job, {"model=m.yaml"}).model, "m.yaml");
  EXPECT_EQ(load_job(job, {}).model, "net");
}

TEST_F(JobPathTest, TheJobOfARunIsThatOfItsFolder) {
  const std::string job = write("jobs/job.yaml", "# job 'digits'\nmodel: net\nrun: {dir: runs/digits}\n");
  const auto directory = [&](const std::vector<std::string>& overrides = {}) {
    return load_job(job, overrides).run.dir;
  };
  EXPECT_EQ(directory(), "runs/digits") << "a job file that was copied out of a run";
  write("jobs/metrics.jsonl", "");
  EXPECT_EQ(directory(), (root_ / "jobs").string());
  EXPECT_EQ(directory({"run.dir=other"}), "other");
  fs::create_directory("runs");
  fs::create_directory_symlink(root_ / "jobs", "runs/digits");
  EXPECT_EQ(directory(), "runs/digits") << "the same folder";
  fs::current_path(root_ / "jobs");
  EXPECT_EQ(load_job("job.yaml", {}).run.dir, ".");
  write("jobs/job.yaml", "model: net\nrun: {dir: runs/digits}\n");
  EXPECT_EQ(directory(), "runs/digits") << "without the first line it is a job of a user";
}

TEST_F(JobPathTest, TheJobOfARunThatBeganAnewGoesOnWithIt) {
  const std::string job =
      write("jobs/job.yaml", "# job 'digits'\nmodel: net\nrun: {dir: runs/digits, resume: never}\n");
  EXPECT_EQ(load_job(job, {}).run.resume, "never") << "there is no run";
  write("jobs/metrics.jsonl", "");
  EXPECT_EQ(load_job(job, {}).run.resume, "auto");
  for (const std::string resume : {"never", "elsewhere"})
    EXPECT_EQ(load_job(job, {"run.resume=" + resume}).run.resume, resume);
}

TEST(OptionTest, IsToldAsKeyAndValue) {
  const auto hint = [](const std::vector<std::string>& arguments) {
    return override_for_option(arguments, arguments);
  };
  EXPECT_EQ(hint({"train", "j.yaml", "--epochs", "3"}), "train.epochs=3");
  EXPECT_EQ(hint({"--lr=0.1"}), "train.optimizer.lr=0.1");
  EXPECT_EQ(hint({"--batch-size", "64"}), "data.global_batch=64");
  EXPECT_EQ(hint({"-np", "4"}), "parallel.ranks=4");
  EXPECT_EQ(hint({"--train.epochs", "3"}), "train.epochs=3");
  EXPECT_EQ(hint({"--momentum"}), "train.optimizer.momentum=VALUE");
  EXPECT_EQ(hint({"--momentum", "--lr"}), "train.optimizer.momentum=VALUE");
  EXPECT_EQ(hint({"--momentum", ""}), "train.optimizer.momentum=VALUE");
  EXPECT_EQ(hint({"--momentum", "a=b"}), "train.optimizer.momentum=VALUE");
  for (const char* option : {"--bucket-cap-mb=25", "--no-bias-decay", "--requires_grad", "--trainable"})
    EXPECT_TRUE(hint({option, "false"})->ends_with("=VALUE")) << option << ": false or 25 would be another";
  EXPECT_EQ(hint({"--nonsense", "3"}), std::nullopt);
  EXPECT_EQ(hint({"train", "-", "--"}), std::nullopt);
}

TEST(OptionTest, OneThatTheCommandKnowsIsNotMeantAsKey) {
  EXPECT_EQ(override_for_option({"--threads", "2", "--epochs", "3"}, {"--epochs", "3"}), "train.epochs=3");
  EXPECT_EQ(override_for_option({"--steps", "0"}, {}), std::nullopt);
}

TEST(FaultNameTest, AmountsHaveUnits) {
  EXPECT_EQ(parse_fault("delay 500ms"), (Fault{Fault::Kind::kDelay, 0.5}));
  EXPECT_EQ(parse_fault("delay 3s"), (Fault{Fault::Kind::kDelay, 3}));
  EXPECT_EQ(parse_fault("slow 10%"), (Fault{Fault::Kind::kSlow, 0.1}));
  EXPECT_EQ(parse_fault("slow 0.5%"), (Fault{Fault::Kind::kSlow, 0.005}));
  EXPECT_EQ(parse_fault("busy 25%"), (Fault{Fault::Kind::kBusy, 0.25}));
  EXPECT_EQ(parse_fault("slow 10000%"), (Fault{Fault::Kind::kSlow, 100}));
  EXPECT_EQ(parse_fault("delay 1000000s"), (Fault{Fault::Kind::kDelay, 1e6}));
  EXPECT_TRUE(parse_fault("delay 1000000000ms"));
  for (const char* wrong : {"slow 10001%", "busy 10001%", "delay 1000001s", "delay 1000000001ms", "delay 0s"})
    EXPECT_EQ(parse_fault(wrong), std::nullopt) << wrong;
  EXPECT_EQ(parse_fault("die"), Fault{Fault::Kind::kDie});
  EXPECT_EQ(parse_fault("none"), std::nullopt);
  for (const auto name : fault_names()) EXPECT_EQ(parse_fault(name).has_value(), name != kNoFault) << name;
}

TEST(FaultNameTest, FlippedBitsHaveATargetAndAPlace) {
  using Target = Fault::Target;
  const auto flip = [](Target target, Fault::Pattern pattern = Fault::Pattern::kOne) {
    return Fault{.kind = Fault::Kind::kFlipBit, .target = target, .pattern = pattern};
  };
  EXPECT_EQ(parse_fault("flip-bit"), flip(Target::kWeights));
  EXPECT_EQ(parse_fault("flip-bits"), flip(Target::kWeights, Fault::Pattern::kSeveral));
  EXPECT_EQ(parse_fault("stuck-bit link"), flip(Target::kLink, Fault::Pattern::kStuck));
  const std::vector<std::pair<std::string, Target>> targets = {
      {"weights", Target::kWeights},   {"momentum", Target::kOptimizer}, {"statistics", Target::kStatistics},
      {"gradient", Target::kGradient}, {"data", Target::kData},          {"sums", Target::kSums},
      {"link", Target::kLink},         {"message", Target::kMessage}};
  for (const auto& [word, target] : targets) {
    Fault fault = flip(target);
    EXPECT_EQ(parse_fault("flip-bit " + word), fault);
    fault.element = 12;
    fault.bit = 63;
    EXPECT_EQ(parse_fault("flip-bit " + word + " 12:63"), fault);
  }
  for (const char* wrong : {"12:64", "12", "12:", ":3", "12:x", "12 3", "12:3:4"})
    EXPECT_EQ(parse_fault(std::string("flip-bit weights ") + wrong), std::nullopt) << wrong;
  EXPECT_EQ(parse_fault("flip-bit nothing"), std::nullopt);
}

}  // namespace

}  // namespace lockstep::job_path_test
