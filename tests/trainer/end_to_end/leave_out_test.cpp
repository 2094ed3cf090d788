// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Runs that leave samples out by a list, and what commands say of duplicates, words and empty cells.
#include "data/dataset.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/end_to_end/program.hpp"

namespace lockstep::testing {
namespace {

class LeaveOutTest : public JobTest {
 protected:
  void write_list(const std::string& list) const {
    write_text(path("out.txt"), list);
    write_job(
        "model: linear\n"
        "data: {set: synthetic, train_samples: 600, test_samples: 90, global_batch: 128, validation: 0.1,\n"
        "       leave_out: out.txt}\n"
        "train: {epochs: 1, optimizer: {lr: 0.05}}\n"
        "parallel: {device: cpu, grain: 16}\n"
        "run: {checkpoint_every_steps: 2, log_every_steps: 1, report: false}\n");
  }
};

TEST_F(LeaveOutTest, AListIsSaidAndHasOtherWeightsThanNone) {
  write_list("3\n# twice\n599\n5\n");
  const Outcome alone = train("alone"), all = train("all", "data.leave_out=");
  expect_says(alone, 0, {"(537 of 540 train, 3 left out, 60 validation, 90 test;"});
  expect_says(all, 0, {"(540 train, 60 validation, 90 test;"});
  EXPECT_NE(all.last_line(), alone.last_line());
  succeed("prove " + path("alone") + " --ranks 1");
  EXPECT_EQ(answer_of("eval " + path("alone") + " --train")["samples"], 537);
  EXPECT_EQ(answer_of("eval " + path("alone") + " --train --whole")["samples"], 540);
  EXPECT_EQ(answer_of("validate " + path("job.yaml"))["train_samples"], 537);
}

/// A list that says the same in other words is the same.
TEST_F(LeaveOutTest, AChangedListIsRefusedByName) {
  write_list("3\n5\n");
  expect_says(train("run"), 0);
  write_list("5 # first\n3\n");
  expect_says(train("run", "train.epochs=2"), 0, {"going on from step 5"});
  succeed("prove " + path("run"));
  write_list("5\n4\n");
  expect_says(train("run", "train.epochs=3"), 2, {"data.leave_out (was sha256:"});
  expect_says(lockstep("prove " + path("run")), 65, {"out.txt: names other samples", "data.leave_out"});
  expect_says(lockstep("eval " + path("run") + " --validation"), 65, {"out.txt: names other samples"});
  succeed("eval " + path("run"));  // the test half does not depend on it
}

/// Places in the run's own data say nothing of others. Its own may be moved.
TEST_F(LeaveOutTest, AListIsNotForOtherData) {
  const auto convert = [&](const std::string& set, const std::string& rows) {
    write_text(path(set + ".csv"), "a,y\n" + rows);
    succeed("convert " + path(set + ".csv") + " " + path(set) + " --test 1");
  };
  convert("own", "1,p\n2,p\n3,p\n4,q\n5,q\n6,q\n");
  convert("other", "7,p\n8,p\n9,p\n4,q\n5,q\n6,q\n");
  write_text(path("out.txt"), "0\n");
  write_job("model: linear\ndata: {set: table, root: " + path("own") +
            ", global_batch: 2, leave_out: out.txt}\ntrain: {epochs: 1}\n"
            "parallel: {grain: 2, device: cpu}\n");
  ended_well(train("run"));
  std::filesystem::rename(path("own"), path("moved"));
  const auto samples = [&](const std::string& set) {
    return answer_of("eval " + path("run") + " --train --data " + path(set))["samples"];
  };
  EXPECT_EQ(samples("moved"), 3);
  EXPECT_EQ(samples("other"), 4);
}

constexpr const char* kTable =
    "age,colour,y\n1,red,a\n,blue,a\n3,red,a\n4,red,a\n5,blue,b\n6,NA,b\n7,red,b\n8,blue,b\n4,red,b\n";

TEST_F(LeaveOutTest, WordsAndEmptyCellsOfNewRowsAreReadAsThoseOfTheSet) {
  write_text(path("t.csv"), kTable);
  const std::string convert = "convert " + path("t.csv") + " " + path("set") + " --test 1 --force ";
  expect_says(lockstep(convert), 65,
              {"column 2 (colour) holds text: 2 different values, such as 'red'; --one-hot colour",
               "a column holds text, and networks take numbers"});
  const auto made = lockstep(convert + "--one-hot colour --missing mean");
  expect_says(made, 0,
              {"colour: 2 columns: colour=blue, colour=red", "age: 1 empty cell with ",
               ", the mean of the training half", "colour: 1 empty cell with 0 in all of these"});
  expect_words(made.err, {"1 sample is under two labels", "labelled 'b' and 'a'"});
  write_job("model: linear\ndata: {set: table, root: " + path("set") +
            ", global_batch: 4}\ntrain: {epochs: 1}\nparallel: {grain: 4, device: cpu}\n");
  ended_well(train("run"));
  EXPECT_EQ(answer_of("validate " + path("job.yaml") + " --data")["duplicates"]["under_two_labels"], 1);
  expect_says(lockstep("validate " + path("job.yaml") + " --data"), 0, {", 1 under two labels\n"});
  run_shell("awk -F, -v OFS=, '{ print $2, $1, $3 }' " + path("t.csv") + " >" + path("turned.csv"));
  succeed("convert " + path("turned.csv") + " " + path("turned") +
          " --test 1 --one-hot colour --missing mean");
  const auto loss_on = [&](const std::string& set) {
    return answer_of("eval " + path("run") + " --data " + path(set))["loss"];
  };
  EXPECT_EQ(loss_on("turned"), loss_on("set")) << "columns go by their names";
  std::filesystem::rename(path("set"), path("gone"));  // the run has what it takes
  write_text(path("new.csv"), "colour,age\nred,4\nblue,\ngreen,4\n");
  write_text(path("same.csv"), "age,colour\n4,red\n");
  const auto predicted = lockstep("predict " + path("run") + " " + path("new.csv"));
  expect_says(predicted, 65, {"line 4: column 1 (colour): 'green' is not a value"});
  const auto answer = [](const Outcome& outcome) {
    const auto begin = outcome.out.find("line 2:");
    return outcome.out.substr(begin, outcome.out.find('\n', begin) - begin);
  };
  expect_words(predicted.out, {"line 3:"});
  EXPECT_EQ(answer(predicted), answer(succeed("predict " + path("run") + " " + path("same.csv"))));
  expect_says(lockstep("predict " + path("run") + " " + path("t.csv")), 65, {"column 3 (y)", "--drop y"});
  for (const char* option : {" --raw", " --invert yes"})
    expect_says(lockstep("predict " + path("run") + " " + path("same.csv") + option), 2,
                {"was trained on a table, and --raw and --invert are for pictures"});
  expect_says(lockstep("predict " + path("run") + " " + path("job.yaml")), 2,
              {"job.yaml: the network was trained on a table; give it files called .csv"});
}

}  // namespace
}  // namespace lockstep::testing
