// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Where the paths of a job file lead, and what options were meant as.
#include "tests/common/yaml/config_error_of.hpp"
#include "trainer/config/home_path.hpp"
#include "trainer/config/job.hpp"
#include "trainer/config/option_hint.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// A home and a current directory of its own, both put back.
class JobPathTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "lockstep-paths-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
    fs::create_directories(root_ / "jobs");
    fs::create_directories(root_ / "elsewhere");
    fs::current_path(root_ / "elsewhere");
    setenv("HOME", "/home/me", 1);
  }
  void TearDown() override {
    fs::current_path(before_);
    setenv("HOME", home_.c_str(), 1);
    fs::remove_all(root_);
  }

  std::string write(const std::string& path, const std::string& text) const {
    std::ofstream(root_ / path) << text;
    return (root_ / path).string();
  }

  fs::path root_;
  fs::path before_ = fs::current_path();
  std::string home_ = std::getenv("HOME") != nullptr ? std::getenv("HOME") : "";
};

TEST_F(JobPathTest, NameOfAJobIsToldItsFile) {
  const auto error = [](const std::string& path) -> std::string {
    try {
      load_job(path, {});
    } catch (const MissingDataError& missing) {
      return missing.what();
    }
    return "";
  };
  EXPECT_TRUE(error("mnist").starts_with("mnist: no such file (did you mean /")) << error("mnist");
  EXPECT_TRUE(error("mnist").ends_with("/jobs/mnist.yaml?)")) << error("mnist");
  write("elsewhere/mine.yaml", "model: net\n");
  EXPECT_EQ(error("mine"), "mine: no such file (did you mean mine.yaml?)");
  EXPECT_EQ(error("yours"), "yours: no such file; check the path");
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
}

TEST_F(JobPathTest, TheHomeOfAnotherUserIsKnownOrRefused) {
  EXPECT_EQ(expand_home("~root/x"), "/root/x");
  EXPECT_EQ(expand_home("~nobody-of-that-name/x"), std::nullopt);
  EXPECT_EQ(config_error_of([] { parse_job("model: net", "job.yaml", {"run.dir=~nobody-of-that-name/x"}); }),
            "override 'run.dir=~nobody-of-that-name/x': run.dir: expected auto or a directory, got "
            "'~nobody-of-that-name/x'");
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

TEST_F(JobPathTest, AnOptionIsToldAsKeyAndValue) {
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
  EXPECT_EQ(hint({"--nonsense", "3"}), std::nullopt);
  EXPECT_EQ(hint({"train", "-", "--"}), std::nullopt);
}

TEST_F(JobPathTest, AnOptionThatTheCommandKnowsIsNotMeantAsKey) {
  EXPECT_EQ(override_for_option({"--threads", "2", "--epochs", "3"}, {"--epochs", "3"}), "train.epochs=3");
  EXPECT_EQ(override_for_option({"--steps", "0"}, {}), std::nullopt);
}

}  // namespace
}  // namespace lockstep
