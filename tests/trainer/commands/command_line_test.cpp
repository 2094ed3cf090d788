// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Commands that need no ranks, in this process: what they print, and their exit codes.
#include "trainer/commands/command_line.hpp"

#include "common/json_text.hpp"
#include "data/sets/duplicates.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/temporary_directory.hpp"

#include <CLI/CLI.hpp>

namespace lockstep {
namespace {

struct Printed {
  std::string out, err;
};

Printed printed_by(const std::function<void()>& call) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  call();
  std::string out = ::testing::internal::GetCapturedStdout();
  return {std::move(out), ::testing::internal::GetCapturedStderr()};
}

/// Standard output of the program, which must end with this exit code.
std::string answer_to(std::vector<std::string> words, int expected_code = 0) {
  words.insert(words.begin(), "lockstep");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int code = -1;
  const Printed printed =
      printed_by([&] { code = run_command_line(static_cast<int>(words.size()), arguments.data()); });
  EXPECT_EQ(code, expected_code) << printed.err;
  return printed.out;
}

TEST(CompletionTest, AnswersGoOnFromTheLastWord) {
  const auto completed = [](std::vector<std::string> words) {
    words.insert(words.begin(), std::string("--"));
    words.insert(words.begin(), std::string("complete"));
    return answer_to(std::move(words));
  };
  EXPECT_EQ(completed({"tra"}), "train\tTrain as a job file says, alone or under mpirun or srun\n");
  EXPECT_EQ(completed({"compl"}), "") << "it is hidden";
  EXPECT_EQ(completed({"runs", "--so"}),
            "--sort\tThe best or newest first; accuracy is the best, last the last\n");
  EXPECT_EQ(completed({"hash", "--h"}), "--help\twhat this command does, and its options\n");
  EXPECT_EQ(completed({"prove", "x", "--kernels", "v"}), "vendor\t\n");
  EXPECT_EQ(completed({"eval", "x", "--device", "em"}), "emulated\t\n");
  EXPECT_EQ(completed({"eval", "x", "--data", ""}), ":folders\n");
  EXPECT_EQ(completed({"burn", "--level", ""}), "") << "a number";
  EXPECT_EQ(completed({"predict", "run", "a"}), ":files\n");
  EXPECT_EQ(completed({"predict", "run", "a", "b"}), ":files\n");
  EXPECT_EQ(completed({"train", "job", "run.trail=f"}), "run.trail=false\t\n");
  EXPECT_EQ(completed({"help", "keys"}), "keys\tall keys of a job file\n");
}

TEST(DoctorCommandTest, HostsOfAFileAreListedWithTheirSlots) {
  const testing::TemporaryDirectory directory;
  std::ofstream(directory.path("hosts")) << "node1 slots=12\nnode2\n";
  EXPECT_EQ(answer_to({"doctor", "--list-hosts", directory.path("hosts")}), "node1 12\nnode2 1\n");
}

TEST(DoctorCommandTest, ALogWithAKnownCauseIsNotWell) {
  const testing::TemporaryDirectory directory;
  std::ofstream(directory.path("log")) << "mpirun has detected an attempt to run as root.\n";
  const auto found = parse_json(answer_to({"doctor", "--log", directory.path("log"), "--json"}, 69));
  EXPECT_EQ(found["ok"], false);
  EXPECT_EQ(found["checks"][0]["id"], "root");
  std::ofstream(directory.path("log")) << "epoch 1/2\n";
  EXPECT_EQ(answer_to({"doctor", "--log", directory.path("log")}), "no known cause\n");
}

TEST(OptionFactsTest, OptionsOfEachRankAreLeftOut) {
  CLI::App command;
  ParallelSection parallel;
  parallel.device = "cpu";
  std::string backend = "auto";
  add_parallel_options(command, parallel);
  add_backend_option(command, backend);
  command.add_flag("--quick");
  command.parse("--threads 2 --backend thread");
  std::vector<std::string> facts;
  for (const RankFact& fact : option_facts(command)) facts.push_back(fact.key + " " + fact.value);
  EXPECT_EQ(facts, (std::vector<std::string>{"--device cpu", "--backend thread", "--quick not given"}));
}

// Samples, as conversions describe them.

TEST(SamplesOfClassesTest, AFewClassesHaveALineEach) {
  EXPECT_EQ(judges_text(1500, 0), "1,500 to test with");
  EXPECT_EQ(judges_text(8, 4), "4 to validate and 8 to test with");
  const std::vector<std::string> names = {"ant", "longname"};
  const Printed two = printed_by([&] { say_samples_of_classes(names, {1, 1200}, {3, 0}, {0, 0}); });
  EXPECT_EQ(two.out, fmt::format("  ant      {:>9} {:>9}\n  longname {:>9} {:>9}\n", 1, 3, "1,200", 0));
  EXPECT_EQ(two.err, "lockstep: warning: class 'longname' has no samples to test with: add some\n");
  const Printed three = printed_by([&] { say_samples_of_classes({"a", "b"}, {1, 2}, {3, 4}, {5, 0}); });
  EXPECT_EQ(three.out,
            fmt::format("  a     {:>9} {:>9} {:>9}\n  b     {:>9} {:>9} {:>9}\n", 1, 5, 3, 2, 0, 4));
  EXPECT_EQ(three.err, "");
  for (const std::size_t classes : {20, 21}) {
    const std::vector<std::int64_t> ones(classes, 1);
    const Printed many = printed_by(
        [&] { say_samples_of_classes(std::vector<std::string>(classes, "name"), ones, ones, ones); });
    EXPECT_EQ(test::count_of("\n", many.out), classes == 20 ? 20 : 0);
  }
}

TEST(DuplicatesTest, EachKindIsWarnedOfWithItsExamples) {
  Duplicates found;
  EXPECT_EQ(printed_by([&] { say_duplicates(found); }).err, "");
  found.test = 1, found.validation = 2, found.under_two_labels = 3;
  found.of_parts = {"one and another"};
  found.of_labels = {"cat and dog"};
  EXPECT_EQ(duplicates_json(found),
            (nlohmann::ordered_json{{"test", 1}, {"validation", 2}, {"under_two_labels", 3}}));
  const std::string too = " in the training half, too: accuracy looks better than it is\n";
  EXPECT_EQ(printed_by([&] { say_duplicates(found); }).err,
            "lockstep: warning: 1 test sample is" + too + "lockstep: warning: 2 validation samples are" +
                too +
                "lockstep:   one and another\nlockstep: warning: 3 samples are under two labels\n"
                "lockstep:   cat and dog\n");
  found = {};
  found.under_two_labels = 1;
  EXPECT_EQ(printed_by([&] { say_duplicates(found); }).err,
            "lockstep: warning: 1 sample is under two labels\n");
}

TEST(ConvertCommandTest, ATablesSetIsDescribed) {
  const testing::TemporaryDirectory directory;
  const std::string table = directory.path("t.csv"), set = directory.path("set");
  std::ofstream(table) << "a,b,kind\n1,2,x\n3,4,x\n5,6,y\n7,8,y\n";
  const std::vector<std::string> convert = {"convert", table, set, "--label", "kind", "--test", "1"};
  test::expect_words(answer_to(convert),
                     {set + ": 2 classes (x, y), 2 samples to train on, 2 to test with, 2 numbers each\n",
                      fmt::format("\n  x     {:>9} {:>9}\n  y     {:>9} {:>9}\n", 1, 1, 1, 1),
                      "\ntrain on it with   data: {set: table, root: "});
  EXPECT_EQ(answer_to(convert, 2), "") << "it is there already";
  std::vector<std::string> again = convert;
  again.insert(again.end(), {"--force", "--json"});
  const auto report = parse_json(answer_to(again));
  const auto expected = parse_json(
      R"({"format": 1, "classes": ["x", "y"], "train_samples": 2, "test_samples": 2, "validation_samples": 0,
          "train_by_class": [1, 1], "test_by_class": [1, 1], "channels": 2, "height": 1, "width": 1,
          "damaged_rows": 0, "duplicates": {"test": 0, "validation": 0, "under_two_labels": 0}})");
  for (const auto& [key, value] : expected.items()) EXPECT_EQ(report.at(key), value) << key;
  EXPECT_EQ(report["directory"], set);
}

}  // namespace
}  // namespace lockstep
