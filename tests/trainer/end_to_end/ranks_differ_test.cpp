// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Processes that were started as ranks of one job and are not: refused before the first step, by name.
#include "tests/data/idx_fixture.hpp"
#include "tests/trainer/end_to_end/program.hpp"
#include "tests/trainer/support/forged_run.hpp"
#include "trainer/config/job_schema.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::testing::ranks_differ_test {
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
  EXPECT_EQ(outcome.exit_code, exit_code) << outcome.everything();
  EXPECT_EQ(outcome.err.find("lockstep: "), outcome.err.rfind("lockstep: ")) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(directory.path("run"))) << "something was written";
  for (const auto& text : mentions)
    EXPECT_NE(outcome.err.find(text), std::string::npos) << "no '" << text << "' in\n" << outcome.err;
}

/// A small image set in DIRECTORY/NAME and the end of a command that trains on it.
std::string make_set(const TemporaryDirectory& directory, const std::string& name) {
  test::write_image_set(directory.path(name), 40, 10);
  return " model=linear data.set=mnist data.train_samples=0 data.test_samples=0 data.global_batch=16 "
         "parallel.grain=4 data.root=" +
         directory.path(name);
}

TEST(RanksDifferTest, EveryKeyOfTheJobIsNamedAtOnce) {
  const TemporaryDirectory directory;
  const std::string train = program() + " train " + write_small_job(directory);
  const Job job = parse_job(read_text(directory.path("job.yaml")), "job.yaml");
  std::string others;
  std::vector<std::string> paths;
  for (const JobKey& key : job_schema()) {
    const std::string value = other_value(key, job);
    // A rank with another backend, or with ranks of its own, is refused before it meets the others.
    if (value.empty() || key.path == "parallel.backend" || key.path == "parallel.ranks") continue;
    // What does not go together with the rest.
    if (key.path == "data.set" || key.path == "train.initial_scale") continue;
    // Another choice would have other keys, and a warm-up is in steps or in epochs.
    if (!choice_path(key).empty() && (key.path == choice_path(key) || !belongs(key, job))) continue;
    if (key.path.starts_with("train.schedule.warmup_")) continue;
    others += " " + key.path + "=" + value;
    paths.push_back(key.path + " is " + key.write(job) + " on ranks 0-1, but ");
  }
  expect_refusal(directory, launch({"2 " + train, "1 env LOCKSTEP_ALLOW_INJECT=1 " + train + others}), 2,
                 paths);
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
  const Outcome outcome = launch({"1 " + train + here, "1 " + train + there});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.everything();
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
