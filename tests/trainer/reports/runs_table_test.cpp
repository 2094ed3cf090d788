// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Runs found, chosen, sorted and shown.
#include "common/error.hpp"
#include "common/json_text.hpp"
#include "common/output.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/reports/run_folder.hpp"
#include "trainer/reports/runs.hpp"

#include <sys/time.h>

namespace lockstep {
namespace {

using namespace testing;

class RunsTableTest : public ::testing::Test {
 protected:
  std::vector<RunHistory> find() const { return find_runs(Env::posix(), folders_.root()); }
  std::vector<std::string> names(const std::vector<RunHistory>& runs) const {
    std::vector<std::string> result;
    for (const RunHistory& run : runs) result.push_back(run.path.substr(folders_.root().size() + 1));
    return result;
  }
  using Names = std::vector<std::string>;

  RunFolders folders_;
};

TEST_F(RunsTableTest, RunsAreFoundThreeLevelsDeepInTheOrderOfTheirNumbers) {
  for (const char* name : {"mnist-10", "mnist-2", "mnist", "sweep/lr/a", "sweep/lr/b/too-deep", ".hidden"})
    folders_.run(name, {start_line()});
  folders_.write("notes/readme.txt", "");
  folders_.write("file", "");
  EXPECT_EQ(names(find()), (Names{"mnist", "mnist-2", "mnist-10", "notes", "sweep/lr/a"}));
  EXPECT_EQ(find()[3].status, RunStatus::kNoRun);
  const auto one = find_runs(Env::posix(), folders_.path("mnist-2/"));
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].path, folders_.path("mnist-2"));
}

TEST_F(RunsTableTest, LinksThatLeadInCirclesEnd) {
  folders_.run("a", {start_line()});
  std::filesystem::create_directory_symlink(folders_.root(), folders_.path("round"));
  std::filesystem::create_directory_symlink(folders_.path("a"), folders_.path("b"));
  std::filesystem::create_directory_symlink("self", folders_.path("self"));
  EXPECT_EQ(names(find()), (Names{"a", "b"}));
}

TEST_F(RunsTableTest, FolderThatIsNotThereIsNamed) {
  EXPECT_EQ(
      message_of<MissingDataError>([&] { find_runs(Env::posix(), folders_.path("none")); }),
      folders_.path("none") +
          ": there is no such folder; name the one that your runs are in, or start a run: 'lockstep train "
          "JOB.yaml' puts it into runs/");
}

TEST_F(RunsTableTest, ConditionsCompareNumbersAsNumbers) {
  folders_.run("a", {start_line()}, "0.05");
  folders_.run("b", {start_line(), end_line(1, 0.5, 0.5)}, "1e-2");
  const auto runs = find();
  EXPECT_TRUE(meets(runs[0], parse_run_condition("train.optimizer.lr=5e-2")));
  EXPECT_FALSE(meets(runs[1], parse_run_condition("train.optimizer.lr=0.05")));
  EXPECT_TRUE(meets(runs[1], parse_run_condition("state=finished")));
  EXPECT_TRUE(meets(runs[1], parse_run_condition("model=net")));
  EXPECT_FALSE(meets(runs[1], parse_run_condition("train.seed=1")));
  for (const char* text : {"run.tensorboard=false", "run.tensorboard=no", "data.micro_batch=0"})
    EXPECT_TRUE(meets(runs[0], parse_run_condition(text))) << text;
  for (const char* text : {"run.tensorboard=yes", "run.tensorboard=perhaps"})
    EXPECT_FALSE(meets(runs[0], parse_run_condition(text))) << text;
  for (const char* text : {"=net", "", "model"})
    EXPECT_EQ(
        message_of<UsageError>([&] { parse_run_condition(text); }),
        fmt::format("--where '{}': give key=value, such as train.optimizer.lr=0.05 or state=finished", text));
  EXPECT_EQ(message_of<UsageError>([] { parse_run_condition("stat=x"); }),
            "--where: a job has no key 'stat' (did you mean 'state'?); 'lockstep help keys' lists them");
  EXPECT_EQ(message_of<UsageError>([] { parse_run_condition("state=finishd"); }),
            "--where: no run is 'finishd' (did you mean 'finished'?); states are running, finished, "
            "interrupted, failed, lost, damaged, no run");
  for (const char* text : {"train.lr=1", "learning_rate=1", "train.optimizer.rl=1"})
    test::expect_error<UsageError>([&] { parse_run_condition(text); }, {"did you mean 'train.optimizer.lr'"});
}

TEST_F(RunsTableTest, WhatHasNoNumberComesLast) {
  folders_.run("a", {epoch_line(1, 1, 0.5, 0.25)});
  folders_.run("b", {});
  folders_.run("c", {epoch_line(1, 1, 0.7, 0.75)});
  auto runs = find();
  sort_runs(runs, "accuracy", false);
  EXPECT_EQ(names(runs), (Names{"c", "a", "b"}));
  sort_runs(runs, "accuracy", true);
  EXPECT_EQ(names(runs), (Names{"a", "c", "b"}));
  EXPECT_THROW(sort_runs(runs, "beauty", false), InternalError);
}

TEST_F(RunsTableTest, FoldersWithoutARunHaveNeitherEpochsNorRanks) {
  folders_.run("a", {start_line(2), epoch_line(1, 1, 0.5, 0.25)});
  folders_.run("b", {start_line(1)});
  folders_.write("c/notes.txt", "");
  for (const auto& [key, order] : {std::pair("epochs", Names{"a", "b", "c"}), {"ranks", {"b", "a", "c"}}})
    for (const bool reverse : {false, true}) {
      auto runs = find();
      sort_runs(runs, key, reverse);
      EXPECT_EQ(names(runs), reverse ? (Names{order[1], order[0], "c"}) : order) << key;
    }
  EXPECT_TRUE(find()[2].when.has_value());
  std::filesystem::remove(folders_.path("b/lock"));
  const std::string text = single_spaced(runs_text(find(), kAnyWidth));
  test::expect_words(text, {" when hash published\n", "/b interrupted 0/3 ", "/c no run - - - - - - "});
  EXPECT_EQ(text.find("not at its end"), text.npos) << "nothing to look into";
}

TEST_F(RunsTableTest, TheTableFitsATerminal) {
  folders_.run("mnist", {start_line(3), epoch_line(1, 100, 0.5, 0.6894), end_line(200, 0.75, 0.4534)});
  folders_.run("mnist-2", {"x"});
  test::expect_words(runs_text(find(), kAnyWidth), {" damaged ", "1 line of metrics.jsonl damaged\n"});
  for (const int width : {20, 40, 60, 79, 120}) {
    std::istringstream lines(runs_text(find(), width));
    for (std::string line; std::getline(lines, line);)
      EXPECT_LE(display_width(line), std::max(width, 30)) << line;
  }
  EXPECT_NE(runs_text(find(), 79).find("68.94 @1"), std::string::npos) << runs_text(find(), 79);
  for (const auto& [width, last] :
       {std::pair(70, " loss hash\n"), {69, " loss\n"}, {60, " loss\n"}, {59, "\n"}})
    EXPECT_TRUE(single_spaced(runs_text(find(), width))
                    .starts_with(std::string("run state epochs last % best % @") + last))
        << width;
  const auto runs = find();
  Names left = {"published", "ranks", "seconds", "when", "hash", "loss", "epochs", "last %", "best % @"},
        gone;
  const Names all = left;
  for (int width = 200; width >= 20; --width) {
    const std::string text = runs_text(runs, width), head = text.substr(0, text.find('\n'));
    std::erase_if(left, [&](const std::string& name) {
      if (head.find(name) == head.npos) gone.push_back(name);
      return head.find(name) == head.npos;
    });
  }
  EXPECT_EQ(gone, all) << "the least important one goes first";
}

/// Start, seconds, ranks and time of last change: each in another order.
TEST_F(RunsTableTest, TheTableIsToldToTheLastWordAndSortedByEachKey) {
  setenv("TZ", "UTC", 1);
  tzset();
  folders_.run("a", {start_line(1), epoch_line(1, 2, 0.5, 0.61)});
  folders_.run(
      "b", {start_line(3), epoch_line(1, 2, 0.5, 0.61), epoch_line(2, 4, 0.25, 0.7), end_line(4, 0.25, 0.7)});
  folders_.run("c", {start_line(2), epoch_line(1, 1, 0.7, 0.75), epoch_line(2, 2, 0.9, 0.1)});
  for (const auto& [name, day] : {std::pair{"a", 3}, {"b", 1}, {"c", 2}}) {
    const timeval time{1709640000 + 86400 * day, 0};
    const timeval both[] = {time, time};
    ASSERT_EQ(::utimes(folders_.path(std::string(name) + "/metrics.jsonl").c_str(), both), 0);
  }
  auto runs = find();
  std::string text = runs_text(runs, kAnyWidth);
  text.replace(3, folders_.root().size() + 1, "  ");
  for (std::size_t at = 0; (at = text.find(folders_.root() + "/")) != text.npos;)
    text.erase(at, folders_.root().size() + 1);
  EXPECT_EQ(
      text,
      R"(run  state     epochs  last %  best % @    loss  seconds  ranks  when        hash      published
a  failed       1/3   61.00  61.00 @1  0.5000    1.5 s      1  2024-03-08  -         -
b  finished     2/3   70.00  70.00 @2  0.2500   12.5 s      3  2024-03-06  aaaaaaaa  yes
c  failed       2/3   10.00  75.00 @1  0.9000    3.0 s      2  2024-03-07  -         -
a: failed: ended with an error, which it has printed
c: failed: ended with an error, which it has printed
)");
  unsetenv("TZ");
  EXPECT_EQ(run_sort_keys(),
            (Names{"name", "state", "epochs", "accuracy", "last", "loss", "seconds", "ranks", "when"}));
  for (const auto& [key, order] : std::vector<std::pair<std::string, Names>>{{"name", {"a", "b", "c"}},
                                                                             {"state", {"b", "a", "c"}},
                                                                             {"epochs", {"b", "c", "a"}},
                                                                             {"accuracy", {"c", "b", "a"}},
                                                                             {"last", {"b", "a", "c"}},
                                                                             {"loss", {"b", "a", "c"}},
                                                                             {"seconds", {"a", "c", "b"}},
                                                                             {"ranks", {"a", "c", "b"}},
                                                                             {"when", {"a", "c", "b"}}}) {
    runs = find();
    sort_runs(runs, key, false);
    EXPECT_EQ(names(runs), order) << key;
  }
  runs = find();
  sort_runs(runs, "name", true);
  EXPECT_EQ(names(runs), (Names{"c", "b", "a"}));
  sort_runs(runs, "seconds", true);
  EXPECT_EQ(names(runs), (Names{"b", "c", "a"}));
}

TEST_F(RunsTableTest, ARemarkOf300ColumnsStandsWhole) {
  RunHistory run;
  run.path = "a";
  run.status = RunStatus::kFailed;
  run.remark = std::string(300, 'x');
  EXPECT_TRUE(runs_text({run}, kAnyWidth).ends_with("\na: failed: " + run.remark + "\n"));
}

TEST_F(RunsTableTest, NumbersThatAreNotThereAreDashes) {
  RunHistory run;
  EXPECT_EQ(accuracy_text(std::nullopt) + loss_text(std::nullopt) + seconds_text(run), "---");
  EXPECT_EQ(accuracy_text(0.98765), "98.77");
  EXPECT_EQ(accuracy_text(0.99998), "99.99") << "49,999 of 50,000 are not all";
  for (const auto& [seconds, text] :
       {std::pair(-1.0, "-"), {2e12, "-"}, {0, "0.000 s"}, {59.5, "59.5 s"}, {60, "1:00"}}) {
    run.seconds = seconds;
    EXPECT_EQ(seconds_text(run), text);
  }
}

TEST_F(RunsTableTest, SecondsOfTheLastStartAreLessThanThoseOfTheRun) {
  folders_.run("a", {start_line(), R"({"event":"end","step":1000,"seconds":12.5,"from_step":1})"});
  test::expect_words(single_spaced(runs_text(find(), kAnyWidth)), {" > 12.5 s "});
  EXPECT_EQ(runs_json(find(), "runs").at("runs").at(0).at("from_step"), 1);
}

TEST_F(RunsTableTest, TheBestIsToldWithItsPlace) {
  folders_.run("a", {start_line(), epoch_line(1, 10, 0.5, 0.7), end_line(13, 0.4, 0.8)});
  folders_.run("b", {start_line(), R"({"event":"evaluation","epoch":1,"step":5,"test_accuracy":0.9})",
                     epoch_line(1, 10, 0.5, 0.7)});
  folders_.run("c", {start_line(), R"({"event":"evaluation","epoch":1,"step":5,"test_accuracy":0.95})"});
  const std::string text = runs_text(find(), kAnyWidth);
  test::expect_words(text, {" 80.00 end ", " 90.00 @step:5 ", " 95.00 @step:5 "});
}

/// On held-out samples where the run has some, as its other numbers.
TEST_F(RunsTableTest, AveragesHaveColumnsWhereARunHasSome) {
  folders_.run("a", {start_line(), epoch_line(1, 100, 0.5, 0.25)});
  EXPECT_EQ(runs_text(find(), kAnyWidth).find("ema %"), std::string::npos);
  folders_.run(
      "b",
      {R"({"event":"epoch","epoch":1,"step":9,"test_accuracy":0.5,"ema_test_accuracy":0.625})",
       R"({"event":"end","step":9,"test_accuracy":0.5,"ema_test_accuracy":0.125,"validation_accuracy":0.5,"ema_validation_accuracy":0.75})"});
  const std::string text = runs_text(find(), kAnyWidth);
  test::expect_words(text, {"ema %", "75.00"});
  EXPECT_EQ(text.find("swa %"), std::string::npos) << text;
  const auto json = runs_json(find(), "runs");
  for (const char* key : {"ema_accuracy", "published_hash"})
    EXPECT_TRUE(json.at("runs").at(0).at(key).is_null()) << key;
  EXPECT_EQ(json.at("runs").at(1).at("ema_accuracy"), 0.75);
}

TEST_F(RunsTableTest, HostileNamesStayText) {
  const std::string evil = "a\x1b[2J\xE2\x80\xAE" + std::string(200, 'x');
  folders_.run(evil,
               {R"({"event":"end","step":1,"weights_sha256":"\u001b[2J)" + std::string(10000, 'y') + "\"}"});
  const std::string text = runs_text(find(), kAnyWidth);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find("\xE2\x80\xAE"), std::string::npos);
  EXPECT_LT(text.size(), 1000U);
  test::expect_words(text, {"\n" + clip_middle(printable_line(folders_.path(evil)), 48) + "  finished "});
  const auto json = parse_json(json_text_in_ascii(runs_json(find(), folders_.root())));
  EXPECT_EQ(json.at("runs").at(0).at("run"), folders_.path(evil));
}

TEST_F(RunsTableTest, JsonHasNumbersAndTheJob) {
  folders_.run("a", {start_line(), epoch_line(1, 2, 0.5, 0.75), end_line(4, 0.25, 0.5)});
  for (const char* step : {"3", "4"})
    folders_.write(std::string("a/checkpoints/step-0000000") + step + "/x", "");
  auto whole = runs_json(find(), "runs");
  EXPECT_EQ(whole.at("format"), 1);
  EXPECT_EQ(whole.at("directory"), "runs");
  auto& one = whole.at("runs").at(0);
  EXPECT_EQ(one.at("job").at("train.optimizer.lr"), "0.01");
  for (const char* key : {"job", "config", "when", "run"}) one.erase(key);
  EXPECT_EQ(one, nlohmann::ordered_json::parse(R"({"state": "finished", "remark": "", "model": "net",
      "data": "mnist", "device": "cpu", "version": "0.1.0", "ranks": 2, "hosts": 1, "parameters": 21840,
      "epochs": 1, "epochs_asked": 3, "steps": 4, "train_loss": 0.5, "test_loss": 0.25, "test_accuracy": 0.5,
      "validation_loss": null, "validation_accuracy": null, "ema_accuracy": null, "swa_accuracy": null,
      "best_accuracy": {"epoch": 1, "step": 2, "value": 0.75},
      "best_loss": {"epoch": 0, "step": 4, "value": 0.25}, "seconds": 12.5, "from_step": 0,
      "weights_sha256": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
      "published_hash": true, "checkpoints": [3, 4], "damaged_lines": 0})"));
}

TEST_F(RunsTableTest, JsonHasTheJobAsNestedValues) {
  folders_.run("a", {start_line()});
  folders_.write("a/job.yaml",
                 "model: net\ndata: {augment: [{flip: {horizontal: 0.5, vertical: 0}}], root: \"1\"}\n"
                 "train: {seed: 18446744073709551615, groups: [], swa: {from_epoch: 0},\n"
                 "        optimizer: {lr: 1.0e-05, nesterov: true}}\n"
                 "run: {trace: \"off\"}\n");
  const auto run = runs_json(find(), "runs").at("runs").at(0);
  EXPECT_EQ(run.at("job").at("data.augment"), "[{flip: {horizontal: 0.5, vertical: 0}}]");
  EXPECT_EQ(
      run.at("config"),
      nlohmann::ordered_json::parse(
          R"({"model": "net", "data": {"augment": [{"flip": {"horizontal": 0.5, "vertical": 0}}], "root": "1"},
        "train": {"seed": 18446744073709551615, "groups": [], "swa": {"from_epoch": 0},
                  "optimizer": {"lr": 1e-05, "nesterov": true}}, "run": {"trace": "off"}})"));
  EXPECT_TRUE(meets(find()[0], parse_run_condition("data.augment=[{flip: {horizontal: 0.5, vertical: 0}}]")));
  folders_.write("a/job.yaml", "model: [\n");
  EXPECT_TRUE(runs_json(find(), "runs").at("runs").at(0).at("config").is_null());
  EXPECT_FALSE(meets(find()[0], parse_run_condition("model=net")));
  test::expect_words(single_spaced(runs_text(find(), kAnyWidth)), {" damaged 0 - - "});
}

}  // namespace
}  // namespace lockstep
