// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// lockstep convert, in this process: samples as it describes them, and refusals.
#include "common/json_text.hpp"
#include "data/sets/duplicates.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/trainer/commands/answers.hpp"

#include <sys/stat.h>

namespace lockstep {
namespace {

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
  const std::string too = " in another half, too: accuracy looks better than it is\n";
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
      R"json({"format": 1, "classes": ["x", "y"], "train_samples": 2, "test_samples": 2,
        "validation_samples": 0, "train_by_class": [1, 1], "test_by_class": [1, 1], "validation_by_class": [0, 0],
        "channels": 2, "height": 1, "width": 1, "damaged_rows": 0, "incomplete_rows": 0,
        "label_column": "column 3 (kind)", "duplicates": {"test": 0, "validation": 0, "under_two_labels": 0}})json");
  for (const auto& [key, value] : expected.items()) EXPECT_EQ(report.at(key), value) << key;
  EXPECT_EQ(report["directory"], set);
}

TEST(ConvertCommandTest, AFirstRowOfNumbersHasNamesWhereThatIsSaid) {
  const testing::TemporaryDirectory directory;
  const std::string table = directory.path("t.csv");
  std::ofstream(table) << "1,2,kind\n3,4,x\n5,6,x\n7,8,y\n9,10,y\n";
  test::expect_words(
      answer_to({"convert", table, directory.path("set"), "--label", "3", "--test", "1", "--header", "yes"}),
      {"labels: column 3 (kind)\n", ": 2 classes (x, y), 2 samples to train on, 2 to test with"});
}

TEST(ConvertCommandTest, RowsThatAreLeftOutAreCounted) {
  const testing::TemporaryDirectory directory;
  const std::string table = directory.path("t.csv");
  for (const int damaged : {10, 12}) {
    std::ofstream file(table);
    file << "a,b,kind\n1,2,x\n3,4,x\n5,6,y\n7,8,y\n,9,y\n";
    for (int row = 0; row < damaged; ++row) file << "1\n";
    file.close();
    const Printed printed = said_to({"convert", table, directory.path("set"), "--label", "kind", "--force",
                                     "--skip-damaged", "--missing", "drop"});
    EXPECT_EQ(test::count_of("lockstep: " + table + ": ", printed.err), 10);
    EXPECT_EQ(test::count_of("lockstep: ...\n", printed.err), damaged == 10 ? 0 : 1);
    test::expect_words(printed.err,
                       {fmt::format("lockstep: left out {} rows that cannot be used\n", damaged)});
    test::expect_words(printed.out, {"left out 1 row with empty cells\n"});
  }
}

/// Each of these lists of options is refused with these words, in which {} is its first one.
void expect_refused(const std::string& what, const std::vector<std::vector<std::string>>& lists,
                    const std::string& words) {
  for (const std::vector<std::string>& options : lists) {
    std::vector<std::string> command = {"convert", what, "/dev/null/set"};
    command.insert(command.end(), options.begin(), options.end());
    test::expect_words(said_to(command, 2).err, {fmt::format(fmt::runtime(words), options[0])});
  }
}

TEST(ConvertCommandTest, OptionsThatDoNotFitAreRefused) {
  const std::string table = "/dev/null/t.csv";
  expect_refused(table, {{"--size", "8"}, {"--colour"}, {"--grey"}, {"--threads", "2"}},
                 "is a table, and {} is for pictures");
  expect_refused("/dev/null/pictures",
                 {{"--label", "x"},
                  {"--drop", "x"},
                  {"--separator", ";"},
                  {"--header", "yes"},
                  {"--missing", "mean"},
                  {"--one-hot", "x"}},
                 ": {} is for tables: files called");
  expect_refused(
      "synthetic",
      {{"--size", "8"}, {"--colour"}, {"--test", "1"}, {"--validation", "1"}, {"--skip-damaged"}, {"--json"}},
      "of the options only --force is for that");
  for (const std::string share : {"0", "0%", "100%", "2147483649", "x%", "1.5"})
    expect_refused(table, {{"--test", share}, {"--validation", share}},
                   "is neither a share such as 10% nor a number");
  expect_refused(table, {{"--test-share", "0"}, {"--test-share", "1"}}, "is not between 0 and 1");
}

TEST(ConvertCommandTest, PipesAreRefused) {
  const testing::TemporaryDirectory directory;
  const std::string pipe = directory.path("p.csv");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  test::expect_words(said_to({"convert", pipe, directory.path("set")}, 2).err, {"is a pipe or a device"});
}

/// Writes an array; its shape as "(4, 5, 4, 3)".
void write_array(const std::string& path, const std::string& type, const std::string& shape,
                 const std::string& elements) {
  const std::string head = "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }\n";
  std::ofstream(path) << "\x93NUMPY" << '\1' << '\0' << static_cast<char>(head.size()) << '\0' << head
                      << elements;
}

TEST(ConvertCommandTest, ArraysInTheOrderOfKerasAreWarnedOf) {
  const testing::TemporaryDirectory directory;
  const std::string samples = directory.path("x.npy"), labels = directory.path("y.npy");
  write_array(labels, "|u1", "(4,)", std::string("\0\0\1\1", 4));
  for (const auto& [channels, rows, columns, is_warned] :
       {std::tuple(5, 4, 3, true), {5, 4, 1, true}, {5, 4, 2, false}, {5, 1, 3, false}, {3, 4, 3, false}}) {
    write_array(samples, "<f4", fmt::format("(4, {}, {}, {})", channels, rows, columns),
                std::string(static_cast<std::size_t>(16 * channels * rows * columns), '\0'));
    const Printed printed =
        said_to({"convert", samples, directory.path("set"), "--label", labels, "--test", "1", "--force"});
    EXPECT_EQ(
        test::count_of(fmt::format("warning: {} channels of {} rows and {} column", channels, rows, columns),
                       printed.err),
        is_warned ? 1 : 0);
    EXPECT_EQ(test::count_of("where these are rows, columns and channels", printed.err), is_warned ? 1 : 0);
    test::expect_words(printed.out,
                       {fmt::format("2 samples to train on, 2 to test with, {} x {} x {} numbers each "
                                    "(channels x rows x columns)\n",
                                    channels, rows, columns)});
  }
}

}  // namespace
}  // namespace lockstep
