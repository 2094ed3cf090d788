// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// lockstep convert, in this process: samples as it describes them, and refusals.
#include "common/json_text.hpp"
#include "data/sets/duplicates.hpp"
#include "tests/support/drawn_text.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/test_settings.hpp"
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
  const std::string said = answer_to(convert);
  EXPECT_TRUE(said.starts_with(fmt::format(
      "labels: column 3 (kind)\n{}: 2 classes (x, y), 2 samples to train on, 2 to test with, 2 numbers "
      "each\n  x     {:>9} {:>9}\n  y     {:>9} {:>9}\ntrain on it with   data: {{set: table, root: ",
      set, 1, 1, 1, 1)))
      << said;
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

TEST(ConvertCommandTest, ARowOfNamesIsNoRowOfNumbers) {
  const testing::TemporaryDirectory directory;
  std::ofstream(directory.path("t.csv")) << "a,b,kind\n1,2,x\n3,4,x\n5,6,y\n7,8,y\n";
  said_to({"convert", directory.path("t.csv"), directory.path("set"), "--label", "3", "--header", "no"}, 65);
}

TEST(ConvertCommandTest, HalfOfARoundNumberIsHalf) {
  const testing::TemporaryDirectory directory;
  std::ofstream table(directory.path("t.csv"));
  table << "a,kind\n";
  for (int row = 0; row < 400; ++row) table << row << (row % 2 == 0 ? ",x\n" : ",y\n");
  table.close();
  test::expect_words(answer_to({"convert", directory.path("t.csv"), directory.path("set"), "--label", "kind",
                                "--test", "50%"}),
                     {"200 samples to train on, 200 to test with, 1 number each\n"});
}

TEST(ConvertCommandTest, EqualRowsAndEmptyCellsAreTold) {
  const testing::TemporaryDirectory directory;
  std::ofstream(directory.path("t.csv")) << "a,b,kind\n1,2,x\n1,2,x\n1,,x\n5,2,y\n5,2,y\n5,2,y\n";
  const Printed printed = said_to({"convert", directory.path("t.csv"), directory.path("set"), "--missing",
                                   "mean", "--test", "1", "--validation", "1", "--label", "kind"});
  test::expect_words(printed.out,
                     {"\nb: 1 empty cell with 2, the mean of the training half\n", ", validation: files}\n"});
  test::expect_words(printed.err, {"warning: 2 test samples are in another half, too",
                                   "warning: 2 validation samples are in another half, too"});
}

TEST(ConvertCommandTest, AColumnOfManyWordsIsToBeLeftOut) {
  const testing::TemporaryDirectory directory;
  for (const auto& [words, said] :
       {std::pair(100,
                  "holds text: 100 different values, such as 'word0'; --one-hot w makes a column of "
                  "each, --drop w leaves it out\n"),
        {101, "holds text: 101 different values, such as 'word0'; --drop w leaves it out\n"},
        {1000, "holds text: at least 1,000 different values, such as 'word0'; --drop w leaves it out\n"}}) {
    std::ofstream table(directory.path("t.csv"));
    table << "w,kind\n";
    for (int row = 0; row < words; ++row) table << "word" << row << (row % 2 == 0 ? ",x\n" : ",y\n");
    table.close();
    test::expect_words(
        said_to({"convert", directory.path("t.csv"), directory.path("set"), "--label", "kind"}, 65).err,
        {said});
  }
}

class ConvertPicturesTest : public ::testing::Test {
 protected:
  /// Pixels of so many bytes, which begin with another one for each name.
  void write(const std::string& name, const std::string& head, std::size_t bytes) const {
    const std::filesystem::path path = photos_ + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << head << name.front() << name[2]
                        << std::string("0123456789abcdefghijklmn").substr(2, bytes - 2);
  }
  Printed convert(const std::string& fit, int code = 0) const {
    return said_to({"convert", photos_, set_, "--size", "4x2", "--fit", fit, "--test", "1", "--force"}, code);
  }

  const testing::TemporaryDirectory directory_;
  const std::string photos_ = directory_.path("photos"), set_ = directory_.path("set");
};

TEST_F(ConvertPicturesTest, ChangesAreCounted) {
  write("a/1.pgm", "P5 4 2 255\n", 8);
  write("a/2.pgm", "P5 2 2 255\n", 4);
  write("b/1.ppm", "P6 4 2 255\n", 24);
  write("b/2.pgm", "P5 4 2 65535\n", 16);
  for (const auto& [fit, how] :
       {std::pair("squeeze", "squeezed: --fit crop or --fit pad keeps their proportions"),
        {"crop", "cropped: their middle is kept"},
        {"pad", "padded with black"}}) {
    const std::string out = convert(fit).out;
    EXPECT_EQ(out.substr(0, out.find(set_)),
              fmt::format("1 picture of other proportions than 4 x 2 was {}\n1 colour picture became grey: "
                          "--colour keeps it\n1 picture of 16 bits a channel: rounded to 8\n",
                          how));
  }
}

TEST_F(ConvertPicturesTest, NothingIsSaidOfPicturesThatFit) {
  for (const char* name : {"a/1.pgm", "a/2.pgm", "b/1.pgm", "b/2.pgm"}) write(name, "P5 4 2 255\n", 8);
  const Printed printed = convert("squeeze");
  EXPECT_TRUE(printed.out.starts_with(set_ + ": 2 classes (a, b), 2 images to train on, 2 to test with, "))
      << printed.out;
  EXPECT_EQ(printed.err, "");
  const std::string copied = answer_to({"convert", set_, directory_.path("again")});
  EXPECT_TRUE(copied.starts_with(directory_.path("again") +
                                 ": 2 classes, 2 images to train on, 2 to test with\ntrain on it with "))
      << copied;
  EXPECT_EQ(test::count_of("validation", copied), 0);
}

TEST_F(ConvertPicturesTest, ANarrowTerminalShowsHowManyAreDone) {
  for (const char* name : {"a/1.pgm", "a/2.pgm", "b/1.pgm", "b/2.pgm"}) write(name, "P5 4 2 255\n", 8);
  int code = -1;
  const std::string drawn = test::drawn_by(20, [&] {
    code = run_program({"convert", photos_, set_, "--test", "1"});
  });
  EXPECT_EQ(code, 0);
  EXPECT_TRUE(drawn.starts_with("\r2/4 pictures\r")) << drawn;
}

TEST_F(ConvertPicturesTest, EachDamagedPictureHasOneLineAndSeveralHaveASummary) {
  for (const char* name : {"a/1.pgm", "a/2.pgm", "b/1.pgm"}) write(name, "P5 4 2 255\n", 8);
  write("b/2.pgm", "P5 4 2 255\n", 7);
  EXPECT_EQ(test::count_of("\n", convert("squeeze", 65).err), 1);
  write("a/1.pgm", "P5 4 2 255\n", 7);
  EXPECT_EQ(test::count_of("\n", convert("squeeze", 65).err), 3);
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
                  {"--one-hot", "x"},
                  {"--label", "x", "--test", "2147483648"},
                  {"--label", "x", "--test-count", "2147483648"}},
                 ": {} is for tables: files called");
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{"--drop", "x", "--one-hot", "y"}, {"--one-hot", "y", "--drop", "x"}}) {
    std::vector<std::string> before = {"convert"};
    before.insert(before.end(), options.begin(), options.end());
    before.insert(before.end(), {"/dev/null/pictures", "/dev/null/set"});
    test::expect_words(said_to(before, 2).err, {"/dev/null/pictures: --drop is for tables"});
  }
  expect_refused("synthetic",
                 {{"--size", "8"},
                  {"--colour"},
                  {"--grey"},
                  {"--threads", "2"},
                  {"--seed", "7"},
                  {"--test", "1"},
                  {"--validation", "1"},
                  {"--skip-damaged"},
                  {"--json"}},
                 "of the options only --force is for that");
  for (const std::string share : {"0", "0%", "100%", "2147483649", "x%", "1.5"})
    expect_refused(table, {{"--test", share}, {"--validation", share}},
                   "is neither a share such as 10% nor a number");
  expect_refused(table, {{"--test-share", "0"}, {"--test-share", "1"}}, "is not between 0 and 1");
}

TEST(ConvertCommandTest, ASetInNpzIsConvertedAsItIsOrNotAtAll) {
  const testing::TemporaryDirectory directory;
  const auto bytes = Env::posix().read(test::source_path("tests/fuzz/corpus/tables/npz-halves"));
  std::ofstream(directory.path("set.npz"), std::ios::binary) << as_text(bytes).substr(1);
  expect_refused(directory.path("set.npz"),
                 {{"--missing", "mean"}, {"--one-hot", "x"}, {"--drop", "x"}, {"--test", "10%"}},
                 "is a set with halves of its own, which is written as it is; leave {} out");
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
  for (const auto& [channels, rows, columns, is_warned] : {std::tuple(5, 4, 3, true),
                                                           {5, 4, 1, true},
                                                           {5, 4, 2, false},
                                                           {5, 2, 3, true},
                                                           {5, 1, 3, false},
                                                           {3, 4, 3, false}}) {
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
