// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Histories of run folders: whole ones, damaged ones, and those of runs without an end.
#include "trainer/reports/run_history.hpp"

#include "common/json_text.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/reports/run_folder.hpp"
#include "trainer/checkpoint/run_status.hpp"

#include <sys/stat.h>

namespace lockstep {
namespace {

using namespace testing;

class RunHistoryTest : public ::testing::Test {
 protected:
  RunHistory read(const std::string& name) const {
    return read_run_history(Env::posix(), folders_.path(name));
  }
  RunHistory run_of(const std::vector<std::string>& lines) const {
    return read_run_history(Env::posix(), folders_.run("a", lines));
  }

  RunFolders folders_;
};

const std::vector<std::string> kThreeEpochs = {start_line(),
                                               step_line(1, 100, 0.9),
                                               epoch_line(1, 469, 0.5, 0.61),
                                               epoch_line(2, 938, 0.25, 0.6894),
                                               epoch_line(3, 1407, 0.75, 0.4534),
                                               end_line(1407, 0.75, 0.4534)};

/// The test set is only looked at in the end: what it says there is not the best of anything.
TEST_F(RunHistoryTest, ARunThatHoldsSamplesOutIsJudgedByThem) {
  const auto line = [](const std::string& event, int step, const std::string& numbers) {
    return R"({"event":")" + event + R"(","epoch":1,"step":)" + std::to_string(step) + "," + numbers + "}";
  };
  const RunHistory run = run_of(
      {start_line(), line("evaluation", 200, R"("validation_loss":0.25,"validation_accuracy":0.75)"),
       line("epoch", 469, R"("validation_loss":0.5,"validation_accuracy":0.5)"),
       line("end", 469,
            R"("validation_loss":0.5,"validation_accuracy":0.5,"test_loss":0.1,"test_accuracy":0.9)")});
  EXPECT_EQ(run.accuracy(), 0.5);
  EXPECT_EQ(run.test_accuracy, 0.9);
  ASSERT_TRUE(run.best_accuracy.has_value());
  EXPECT_EQ(run.best_accuracy->value, 0.75);
  EXPECT_EQ(run.best_accuracy->epoch, 0);
  EXPECT_EQ(run.best_accuracy->step, 200);
  ASSERT_EQ(run.epochs.size(), 1U);
  EXPECT_EQ(run.epochs[0].loss(), 0.5);
}

/// Its lines begin with the checkpoint of another run.
TEST_F(RunHistoryTest, EpochsAreAsManyAsTheLastOneSays) {
  EXPECT_EQ(run_of({start_line(), epoch_line(15, 75, 0.5, 0.61)}).epochs_done(), 15);
  EXPECT_EQ(run_of({start_line()}).epochs_done(), 0);
}

TEST_F(RunHistoryTest, WhatAStartDoesNotSayIsZero) {
  const RunHistory run = run_of({R"({"event":"start"})"});
  EXPECT_EQ(run.ranks + run.hosts + run.parameters, 0);
  EXPECT_EQ(read("nowhere").ranks + read("nowhere").hosts + read("nowhere").parameters, 0);
}

/// Its numbers are those of runs_json().
TEST_F(RunHistoryTest, FinishedRunIsReadWhole) {
  const RunHistory run = run_of(kThreeEpochs);
  EXPECT_EQ(spelt(run.status), "finished");
  ASSERT_EQ(run.epochs.size(), 3U);
  EXPECT_EQ(run.epochs[1].step, 938);
  EXPECT_EQ(run.epochs[1].test_accuracy, 0.6894);
  EXPECT_EQ(run.train_loss, 0.75);
  EXPECT_EQ(run.key("train.optimizer.lr"), "0.01");
  EXPECT_EQ(run.key("data.augment"), "[{crop: {padding: 4}}]");
  EXPECT_EQ(run.key("data.none"), std::nullopt);
  EXPECT_TRUE(run.when.has_value());
}

TEST_F(RunHistoryTest, BestIsTheFirstAmongEquals) {
  const RunHistory run = run_of({start_line(), epoch_line(1, 10, 0.5, 0.7), epoch_line(2, 20, 0.4, 0.7)});
  ASSERT_TRUE(run.best_accuracy && run.best_loss);
  EXPECT_EQ(run.best_accuracy->epoch, 1);
  EXPECT_EQ(run.best_accuracy->value, 0.7);
  EXPECT_EQ(run.best_loss->epoch, 2);
}

/// Up to the step of the doubt they count; RUN@best passes the later ones over.
TEST_F(RunHistoryTest, AccuraciesInDoubtAreNeverTheBest) {
  const std::string run = folders_.run("a", {start_line(), epoch_line(1, 10, 0.5, 0.625),
                                             epoch_line(2, 20, 0.25, 0.75), epoch_line(3, 30, 0.375, 0.875)});
  EXPECT_EQ(read("a").best_accuracy->epoch, 3);
  write_doubt(Env::posix(), run, {.sure_step = 20, .found_step = 31, .what = "rank 1 on node2 was wrong"});
  const RunHistory history = read("a");
  ASSERT_TRUE(history.best_accuracy && history.best_loss);
  EXPECT_EQ(history.best_accuracy->epoch, 2);
  EXPECT_EQ(history.best_loss->value, 0.25);
  EXPECT_EQ(history.accuracy(), 0.875) << "the last one";
  EXPECT_EQ(spelt(history.status), "failed");
  EXPECT_EQ(history.remark, "what followed step 20 is in doubt: at step 31 rank 1 on node2 was wrong");
  folders_.write("a/doubt.json", "{");
  EXPECT_EQ(read("a").best_accuracy->epoch, 3) << "it cannot be read";
}

/// Two starts, the second without an end: 1.5 + 2.25 + 4 + 8.5 seconds.
TEST_F(RunHistoryTest, SecondsOfARunWithoutAnEndAreThoseOfAllEpochsOfAllStarts) {
  const auto epoch = [](int number, const std::string& seconds) {
    return fmt::format(R"({{"event":"epoch","epoch":{0},"step":{0},"train_loss":0.5{1}}})", number, seconds);
  };
  folders_.run("a", {start_line(3), epoch(1, R"(,"train_seconds":1.5)"), epoch(2, R"(,"train_seconds":2.25)"),
                     start_line(2), epoch(3, R"(,"train_seconds":4)"), epoch(4, R"(,"train_seconds":8.5)")});
  folders_.run("untimed", {start_line(), epoch(1, "")});
  EXPECT_EQ(read("a").seconds, 16.25);
  EXPECT_EQ(read("a").ranks, 2) << "of the last start";
  EXPECT_EQ(read("untimed").seconds, std::nullopt);
}

/// One start, and three of which the last began after step 20.
TEST_F(RunHistoryTest, SecondsOfARunWithAnEndAreThoseOfItsLastStart) {
  const std::vector<std::string> epochs = {R"({"event":"epoch","epoch":1,"step":10,"train_seconds":1.5})",
                                           R"({"event":"epoch","epoch":2,"step":20,"train_seconds":2.25})",
                                           R"({"event":"epoch","epoch":3,"step":30,"train_seconds":4})"};
  const auto with_end = [&](const char* end) {
    std::vector<std::string> lines = {start_line()};
    lines.insert(lines.end(), epochs.begin(), epochs.end());
    lines.emplace_back(end);
    return run_of(lines);
  };
  const RunHistory one = with_end(R"({"event":"end","step":30,"seconds":8.5})");
  EXPECT_EQ(one.seconds, 8.5);
  EXPECT_EQ(one.from_step, 0);
  const RunHistory three = with_end(R"({"event":"end","step":30,"seconds":4.5,"from_step":20})");
  EXPECT_EQ(three.seconds, 4.5);
  EXPECT_EQ(three.from_step, 20);
  const RunHistory open = with_end(R"({"event":"step","epoch":4,"step":31,"loss":0.5})");
  EXPECT_EQ(open.seconds, 7.75) << "1.5 + 2.25 + 4";
  EXPECT_EQ(open.from_step, 0);
}

TEST_F(RunHistoryTest, TornLastLineIsNoDamage) {
  folders_.run("a", {});
  folders_.write("a/metrics.jsonl", start_line() + "\n" + step_line(1, 100, 0.5).substr(0, 30));
  const RunHistory run = read("a");
  EXPECT_EQ(run.lines, (MetricsLines{1, 0}));
  EXPECT_EQ(run.step, 0);
  EXPECT_NE(run.status, RunStatus::kDamaged);
}

TEST_F(RunHistoryTest, DamagedLinesAreCountedAndTheOthersRead) {
  auto lines = kThreeEpochs;
  lines.insert(lines.begin() + 2, {"not json", std::string("\0\x1b[2J", 5), R"({"event":"step","step":1e})"});
  const RunHistory run = run_of(lines);
  EXPECT_EQ(run.status, RunStatus::kDamaged);
  EXPECT_EQ(run.lines, (MetricsLines{6, 3}));
  EXPECT_EQ(run.remark, "3 lines of metrics.jsonl damaged");
  EXPECT_EQ(run.epochs.size(), 3U);
}

TEST_F(RunHistoryTest, LineWithoutEndIsNotKept) {
  const RunHistory run =
      run_of({start_line(), std::string(3 * kLongestMetricsLine, 'x'), epoch_line(1, 5, 0.5, 0.25)});
  EXPECT_EQ(run.lines.damaged, 1);
  EXPECT_EQ(run.epochs.size(), 1U);
}

TEST_F(RunHistoryTest, NumbersThatAreNoneAreNothing) {
  const RunHistory run =
      run_of({R"({"event":"epoch","epoch":"x","step":-3,"test_accuracy":null,"test_loss":1e999})"});
  ASSERT_EQ(run.epochs.size(), 1U);
  EXPECT_EQ(run.epochs[0].epoch, 1);
  EXPECT_EQ(run.test_accuracy, std::nullopt);
  EXPECT_EQ(run.test_loss, std::nullopt);
  EXPECT_EQ(run.best_accuracy, std::nullopt);
}

TEST_F(RunHistoryTest, WhatBecameOfARunIsTold) {
  const auto begin = [&](const std::string& name, const std::string& file = "lock",
                         const std::string& text = "") {
    folders_.run(name, {start_line(), epoch_line(1, 10, 0.5, 0.7)});
    folders_.write(name + "/" + file, text);
  };
  const auto became = [&](const std::string& name) {
    return fmt::format("{}: {}", spelt(read(name).status), read(name).remark);
  };
  const auto goes_on = [&](const std::string& name) {
    return "; lockstep train " + folders_.path(name) + "/job.yaml goes on";
  };
  const std::string saved = "interrupted: saved on request",
                    failed = "failed: ended with an error, which it has printed";
  LockOwner here = LockOwner::self("net on mnist");
  const auto lock_of = [&] {
    return fmt::format(R"({{"host":"{}","boot_id":"{}","pid":{},"start_ticks":{},"started":"","job":"x"}})",
                       here.host, here.boot_id, here.pid, here.start_ticks);
  };
  begin("a", "lock", lock_of());
  EXPECT_EQ(became("a"), fmt::format("running: process {}", here.pid));
  here.start_ticks += 1;
  begin("a", "lock", lock_of());
  EXPECT_EQ(became("a"), "lost: its process ended without a message" + goes_on("a"));
  const auto [boot, host] = std::pair(here.boot_id, here.host);
  for (const auto& [its_boot, its_host] :
       {std::pair<std::string, std::string>("another", host), {boot, "elsewhere"}}) {
    here.boot_id = its_boot, here.host = its_host;
    if (!on_same_host(here, LockOwner::self())) continue;  // this machine has no boot id
    begin("a", "lock", lock_of());
    EXPECT_EQ(became("a"), "lost: its process ended without a message" + goes_on("a"))
        << "this machine's, or its copy's";
  }
  here.boot_id = "another";
  begin("a", "lock", lock_of());
  EXPECT_EQ(became("a"), "running: on elsewhere, says its lock");
  begin("a");
  EXPECT_EQ(became("a"), failed);
  std::filesystem::remove(folders_.path("a/lock"));
  EXPECT_EQ(became("a"), "interrupted: not at its end");

  begin("verdict", "log/verdict.txt", "rank 1 is lost\n");
  EXPECT_EQ(became("verdict"), "lost: a rank was lost: see its log/verdict.txt" + goes_on("verdict"));

  begin("noted");
  write_status(Env::posix(), folders_.path("noted"), {.state = "saved", .step = 10});
  EXPECT_EQ(became("noted"), saved + goes_on("noted"));
  write_status(Env::posix(), folders_.path("noted"), {.state = "running", .step = 10});
  EXPECT_EQ(became("noted"), "lost: ended before it could note how" + goes_on("noted"));
  write_status(Env::posix(), folders_.path("noted"), {.state = "failed", .step = 10});
  EXPECT_EQ(became("noted"), failed);
  folders_.write("noted/status.json", R"({"version": 2, "state": "saved"})");
  EXPECT_EQ(became("noted"), failed);

  begin("of-an-older-program", "checkpoints/step-00000010/x");
  EXPECT_EQ(became("of-an-older-program"), saved + goes_on("of-an-older-program"));
  std::filesystem::remove_all(folders_.path("of-an-older-program/checkpoints/step-00000010"));
  begin("of-an-older-program", "checkpoints/step-00000009/x");
  EXPECT_EQ(became("of-an-older-program"), failed) << "a step was lost";

  begin("other-job", "job.yaml", "model: net\nparallel: {graph: overlapped}\n");
  EXPECT_TRUE(became("other-job").starts_with("damaged: ")) << became("other-job");
  std::filesystem::remove(folders_.path("other-job/job.yaml"));
  EXPECT_EQ(became("other-job"), "damaged: it has no job.yaml");

  folders_.write("fresh/lock", "");
  EXPECT_EQ(became("fresh"), "failed: ended before its first step");
  folders_.run("empty", {});
  EXPECT_EQ(became("empty"), "failed: ended before its first step");
  std::filesystem::remove(folders_.path("empty/metrics.jsonl"));
  folders_.write("empty/checkpoints/step-00000010/x", "");
  EXPECT_EQ(became("empty"), "damaged: it has checkpoints and no metrics.jsonl");

  folders_.write("imported/checkpoints/step-00000000/x", "");
  EXPECT_EQ(became("imported"), "no run: checkpoints without a run, such as imported weights");
  folders_.write("other/notes.txt", "mine");
  for (const char* name : {"other", "nowhere"}) EXPECT_EQ(became(name), "no run: ");
}

TEST_F(RunHistoryTest, AFinishedRunIsNoneTheLessWhereThisProgramRefusesItsJob) {
  folders_.run("a", kThreeEpochs);
  folders_.write("a/job.yaml", "model: net\nparallel: {graph: overlapped}\n");
  const RunHistory run = read("a");
  EXPECT_EQ(run.status, RunStatus::kFinished);
  test::expect_words(run.remark, {"job.yaml:2:19: parallel.graph: expected "});
  EXPECT_TRUE(run.job.empty());
}

TEST_F(RunHistoryTest, WhatIsNoRegularFileIsNotWaitedFor) {
  folders_.run("a", {});
  std::filesystem::remove(folders_.path("a/metrics.jsonl"));
  ASSERT_EQ(mkfifo(folders_.path("a/metrics.jsonl").c_str(), 0600), 0);
  EXPECT_EQ(read("a").status, RunStatus::kDamaged);
  folders_.run("b", kThreeEpochs);
  std::filesystem::remove(folders_.path("b/job.yaml"));
  ASSERT_EQ(mkfifo(folders_.path("b/job.yaml").c_str(), 0600), 0);
  EXPECT_EQ(read("b").status, RunStatus::kDamaged);
  EXPECT_EQ(read("b").epochs.size(), 3U);
}

TEST(MetricsEventTest, LinesAreReadAsJsonParsersDo) {
  MetricsEvent event;
  EXPECT_TRUE(event.read(R"( {"event" : "x\u00e9\n", "a": [1, {"b": []}], "t": true, "n": -0.5e-3} )"));
  EXPECT_EQ(event.raw("a"), R"([1, {"b": []}])");
  EXPECT_EQ(event.truth("t"), true);
  EXPECT_EQ(event.number("n"), -0.5e-3);
  EXPECT_EQ(event.text("event"), "x\xC3\xA9\n");
  EXPECT_TRUE(event.read(R"({"a":1,"a":2})"));
  EXPECT_EQ(event.integer("a"), 2);
  EXPECT_FALSE(event.has_escaped_keys());
  EXPECT_TRUE(event.read(R"({"b":"\\","\u0061":1})"));
  EXPECT_TRUE(event.has_escaped_keys());
  EXPECT_TRUE(event.read("{}"));
  for (const char* line : {"", "[]", "{", R"({"a"})", R"({"a":01})", R"({"a":.5})", R"({"a":1,})",
                           R"({"a":+1})", R"({"a":nul})", R"({"a":"\x"})", "{\"a\":\"\t\"}", R"({"a":1} x)",
                           "{\"a\":\"\xff\"}", R"({"a":[1,]})", R"({"a":"\u12g4"})"}) {
    EXPECT_FALSE(event.read(line)) << line;
    EXPECT_EQ(event.raw("a"), "") << line;
  }
  EXPECT_FALSE(event.read(R"({"a":)" + std::string(100000, '[') + std::string(100000, ']') + "}"));
}

TEST(MetricsEventTest, ChangedLinesAreTakenAndRefusedAsTheParserDoes) {
  const std::string line =
      "{\"event\":\"step\",\"loss\":-2.5e-5,\"x\":[1,{\"a\":null}],\"t\":true,\"s\":"
      "\"a\\u00e9\\\"\xC3\xA9\"}";
  const std::string alphabet = "{}[]\",:\\u0e19-+.truefalsn \t\x01\xC3\xA9\x80/b";
  std::mt19937 random(1);
  MetricsEvent event;
  for (int i = 0; i < 50000; ++i) {
    std::string changed = line;
    for (std::size_t changes = 1 + random() % 3; changes > 0; --changes) {
      const std::size_t at = random() % changed.size();
      const char other = alphabet[random() % alphabet.size()];
      switch (random() % 3) {
        case 0:
          changed[at] = other;
          break;
        case 1:
          changed.erase(at, 1);
          break;
        default:
          changed.insert(at, 1, other);
      }
    }
    ASSERT_EQ(event.read(changed), parse_json_or_discard(changed).is_object()) << changed;
  }
}

}  // namespace
}  // namespace lockstep
