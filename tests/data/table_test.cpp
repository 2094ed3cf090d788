// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Tables of text: which columns there are, and what is said of rows that cannot be used.
#include "data/tables/table.hpp"

#include "common/error.hpp"
#include "data/dataset.hpp"
#include "tests/data/table_fixture.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::table_test {
namespace {

namespace fs = std::filesystem;
using test::bytes_of;

TEST_F(TableTest, NumbersOfColumnsSeparatorsAndArraysGiveTheSameSet) {
  write_text("t.csv", kTable);
  options_.table.label = "kind";
  convert("t.csv", "set");
  write_text("t.tsv", "0\t1\t\"b\"\t9\n0\t2\tb\t9\n0\t3\ta\t9\n0\t4\tb\t9\n0\t6\ta\t9\n0\t8\ta\t9\n");
  options_.table.drop = {"1"};
  options_.table.label = "3";
  convert("t.tsv", "tsv");
  const auto without_names = [&](const std::string& set) {
    const std::string index = index_of(set);
    return index.substr(0, std::min(index.find(",\"columns\""), index.rfind('}')));
  };
  EXPECT_EQ(without_names("tsv"), without_names("set"));
  write("x.npy", npy<double>("<f8", "6, 2", {1, 9, 2, 9, 3, 9, 4, 9, 6, 9, 8, 9}));
  write("y.npy", npy<char>("|S1", "6,", {'b', 'b', 'a', 'b', 'a', 'a'}));
  options_.table = {.label = path("y.npy")};
  convert("x.npy", "npy");
  EXPECT_EQ(without_names("npy"), without_names("set"));
}

TEST_F(TableTest, WholeNumbersAreSortedAsSuch) {
  options_.table.label = "2";
  write_text("t.csv", "1,10\n2,-1\n3,2\n4,1.0e+01\n5,-1.0\n6,2.\n");
  EXPECT_EQ(convert("t.csv", "set").class_names, (std::vector<std::string>{"-1", "2", "10"}));
  EXPECT_EQ(load("set").class_names, (std::vector<std::string>{"-1", "2", "10"}));
  expect_error<UsageError>([&] { convert("t.csv", "set"); }, {"is there already; --force replaces the set"});
  write_text("t.csv", "1,1\n2,9007199254740992.0\n3,1.0\n4,9007199254740992\n");
  EXPECT_EQ(convert("t.csv", "large").class_names, (std::vector<std::string>{"1", "9007199254740992"}));
  write_text("t.csv", "1,1.0\n2,x\n3,1.0\n4,x\n");
  EXPECT_EQ(convert("t.csv", "names").class_names, (std::vector<std::string>{"1.0", "x"}));
  write_text("t.csv", "1,0.5\n2,1.5\n");
  expect_error<DataError>([&] { convert("t.csv", "other"); }, {"labels such as 0.5", "--label"});
  write_text("t.csv", "1,10\n2,02\n3,10\n4,02\n5,01\n6,01\n");
  EXPECT_EQ(convert("t.csv", "padded").class_names, (std::vector<std::string>{"01", "02", "10"}));
}

/// The last column of Kaggle's digits is a pixel, which is 0 in all of them.
TEST_F(TableTest, TheColumnOfTheLabelsIsFoundByNameOrAskedFor) {
  struct Case {
    const char *rows, *column;  ///< column: "" asks
  };
  const Case cases[] = {{"label,pixel0,pixel1\n5,0,1\n5,0,2\n7,0,3\n7,0,4\n", "column 1 (label)"},
                        {"0,1,Target\n5,0,a\n6,0,a\n7,0,b\n8,0,b\n", "column 3 (Target)"},
                        {"x,y,class\n5,0,a\n6,0,a\n7,0,b\n8,0,b\n", ""},
                        {"x,z,kind\n5,0,a\n6,0,a\n7,0,b\n8,0,b\n", ""},
                        {"5,0,a\n6,0,a\n7,0,b\n8,0,b\n", ""}};
  for (const auto& [rows, column] : cases) {
    write_text("t.csv", rows);
    options_.replace = true;
    if (*column != '\0') {
      EXPECT_EQ(convert("t.csv", "set").label_column, column);
      EXPECT_EQ(load("set").train.shape.channels, 2);
    } else {
      expect_error<UsageError>([&] { convert("t.csv", "set"); },
                               {"t.csv: which of its 3 columns", "--label"});
    }
  }
  write_text("t.csv", "label,pixel0\n5,0\n7,0\n");
  options_.table.label = "pixel0";
  expect_error<DataError>([&] { convert("t.csv", "set"); },
                          {"t.csv: column 2 (pixel0) of all 2 rows is '0': one class"});
}

/// Its numbers may be names of columns, and its word the name of the labels.
TEST_F(TableTest, AFirstRowWithAWordThatIsALabelTooIsDoubted) {
  write_text("t.csv", "1,2,y\n3,4,n\n5,6,y\n7,8,n\n");
  expect_error<DataError>([&] { convert("t.csv", "set"); },
                          {"t.csv: line 1 has the names of the columns, or is a row with the label 'y', as "
                           "line 3 is; say --header yes, or --header no --label 3"});
  options_.table.header = TableHeader::kYes;
  expect_error<DataError>([&] { convert("t.csv", "set"); }, {"class 'y': 1 of its 1 sample would be"});
  options_.table = {.label = "3", .header = TableHeader::kNo};
  EXPECT_EQ(convert("t.csv", "set").train, (std::vector<std::int64_t>{1, 1}));
  options_.table = {};
  write_text("t.csv", "v,4,y\n3,4,n\n5,6,y\n7,8,n\n5,6,y\n");
  EXPECT_EQ(convert("t.csv", "words").label_column, "column 3 (y)") << "v is no number";
}

TEST_F(TableTest, AColumnOfTwoIsAskedForByItsNumber) {
  write_text("t.csv", "id,w,id,y\n1,2,3,a\n4,5,6,a\n7,8,9,b\n1,2,4,b\n");
  options_.table.drop = {"id"};
  expect_error<UsageError>([&] { convert("t.csv", "set"); },
                           {"t.csv: columns 1 and 3 are both called 'id'; say a number"});
  options_.table.drop = {"1", "3"};
  EXPECT_EQ(convert("t.csv", "set").shape.channels, 1);
}

/// An empty cell is no name of a column: the first row is a sample as the others are.
TEST_F(TableTest, AFirstRowOfNumbersWithAGapIsNoHeader) {
  write_text("t.csv", "5,,0\n6,1,0\n7,2,1\n8,3,1\n");
  options_.table.label = "3";
  expect_error<DataError>([&] { convert("t.csv", "set"); }, {"t.csv: line 1: column 2: '' is missing"});
  options_.table.missing = MissingCells::kMean;
  const TableConversion done = convert("t.csv", "set");
  EXPECT_EQ(done.label_column, "column 3");
  EXPECT_EQ(done.train, (std::vector<std::int64_t>{1, 1}));
  EXPECT_EQ(done.test, (std::vector<std::int64_t>{1, 1}));
}

TEST_F(TableTest, AnIndexWithoutANameIsDoubted) {
  for (const auto& [first, second] : {std::pair{"0", "1"}, {"0", "2"}, {"1", "2"}}) {
    write_text("t.csv", std::string(",w,y\n") + first + ",3,a\n" + second + ",4,b\n2,3,a\n3,4,b\n");
    options_.replace = true;
    const TableConversion done = convert("t.csv", "set");
    EXPECT_EQ(done.warning.empty(), std::string(second) != "1") << first;
    EXPECT_TRUE(done.columns == nullptr) << "one of them has no name";
  }
  write_text("t.csv", ",w,y\n0,3,a\n1,4,b\n");
  const auto table = open_table({.from = path("t.csv"), .label = "y"});
  TableRow row;
  for (const bool is_doubted : {false, true}) {
    ASSERT_TRUE(table->next(row));
    EXPECT_EQ(!table->warning().empty(), is_doubted) << row.place;
  }
  write_text("t.csv", "Unnamed: 0,w,y\n0,3,a\n1,4,b\n2,3,a\n3,4,b\n");
  EXPECT_EQ(
      convert("t.csv", "set").warning,
      "column 1 has no name and counts the rows from 0, as pandas' index does: leave it out with --drop 1");
  write_text("t.csv", "id,w,y\n0,3,a\n1,4,b\n2,3,a\n3,4,b\n");
  EXPECT_EQ(convert("t.csv", "set").warning, "") << "it has a name";
  write_text("t.csv", ",w,y\n5,0,a\n6,1,b\n7,2,a\n8,3,b\n");
  options_.table.drop = {"1"};
  EXPECT_EQ(convert("t.csv", "set").warning, "") << "it is left out, and another one counts";
  write_text("t.csv", "Unnamed: 0,c,w,y\n0,p,,a\n1,q,4,b\n2,p,3,a\n3,q,4,b\n");
  options_.table = {.one_hot = {"c"}, .missing = MissingCells::kMean};
  EXPECT_NE(convert("t.csv", "set").warning, "") << "whatever stands beside it";
}

TEST_F(TableTest, TablesAreKnownByTheirNamesInAnyCaseAndUncompressed) {
  for (const char* name : {"A.CSV", "iris.data", "t.txt", "t.csv.gz", "t.TSV.GZ", "x.npy"})
    EXPECT_TRUE(is_called_a_table(name)) << name;
  for (const char* name : {"csv", "t.gz", "t.zip", "x.npy.gz"}) EXPECT_FALSE(is_called_a_table(name)) << name;
  write_text("t.csv", kTable);
  write("t.csv.gz", test::gzip(bytes_of(kTable)));
  options_.table.label = "kind";
  convert("t.csv", "set");
  convert("t.csv.gz", "same");
  EXPECT_EQ(index_of("same"), index_of("set"));
  std::string tabs = kTable;
  std::ranges::replace(tabs, ',', '\t');
  write("t.TSV.gz", test::gzip(bytes_of(tabs)));
  convert("t.TSV.gz", "tabs");
  EXPECT_EQ(index_of("tabs"), index_of("set"));
}

TEST_F(TableTest, DamagedRowsAreNamedOrLeftOut) {
  options_.table.label = "kind";
  write_text("good.csv", "w,kind\n1,b\n2,b\n3,a\n4,a\n");
  write_text("bad.csv", "w,kind\n1,b\n2,b\n,a\n3,a\nx,a\n4,a,5\n\"4\"x,a\n4,a\n9,\n");
  expect_error<DataError>(
      [&] { convert("bad.csv", "set"); },
      {"bad.csv: line 4: column 1 (w): '' is missing", "line 6: column 1 (w): 'x' is not a number",
       "line 7: 3 columns", "line 8: text follows a closing quote",
       "line 10: column 2 (kind): the label is missing", "--skip-damaged"});
  EXPECT_FALSE(fs::exists(path("set")));
  EXPECT_EQ(convert("bad.csv", "set", true).damaged, 5);
  convert("good.csv", "good");
  EXPECT_EQ(index_of("set"), index_of("good"));
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  write("x.npy", npy<float>("<f4", "3, 2", {1, 1, kInfinity, -kInfinity, 3, 3}));
  write("y.npy", npy<std::int64_t>("<i8", "3,", {0, 0, 0}));
  options_.table.label = path("y.npy");
  expect_error<DataError>(
      [&] { convert("x.npy", "set"); },
      {"row 1: value 0 is inf, no number that fp32 has; mend it, or leave them out with"});
}

TEST_F(TableTest, TablesOfTextThatAreNoneAreRefused) {
  const auto refused = [&](const std::string& text, const std::string& label, const std::string& part) {
    write_text("t.csv", text);
    options_.table.label = label;
    expect_error<DataError>([&] { convert("t.csv", "set"); }, {part});
  };
  refused("", "kind", "t.csv: holds no rows; give a table with some");
  refused("w,kind\n", "kind", "t.csv: holds no rows that can be used; give a table with some");
  refused("5\n6\n", "",
          "t.csv: 1 column in the first row, and 2 to 1048576 are possible; is the separator another one "
          "(--separator ';')?");
  refused("w,kind\n1," + std::string(201, 'x') + "\n", "kind",
          "...' is longer than 200 bytes; mend it, or leave");
  std::string bad = "w,kind\n1,a\n2,a\n3,b\n4,b\n";
  for (int i = 0; i < 10; ++i) bad += "5,\n";
  const std::string tenth = "t.csv: line 15: column 2 (kind): the label is missing; ";
  refused(bad, "kind", tenth + "mend them, or leave them out with --skip-damaged");
  refused(bad + "5,\n", "kind",
          tenth + "... 11 rows in all; mend them, or leave them out with --skip-damaged");
  options_.table.drop = {"4"};
  refused("1,2,a\n3,4,b\n", "3", "t.csv: has no column '4'; line 1 has the names, or say its number");
  options_.table.header = TableHeader::kNo;
  for (const std::string column : {"4", "0"}) {
    options_.table.drop = {column};
    refused("1,2,a\n3,4,b\n", "3", "t.csv: has no column '" + column + "'; say its number, 1 to 3");
  }
}

TEST_F(TableTest, HeaderAndSeparatorCanBeGiven) {
  write_text("t.csv", "1;2\n3;a\n4;b\n5;a\n6;b\n");
  options_.table.label = "2";
  options_.table.separator = ";";
  options_.table.header = TableHeader::kYes;
  const TableConversion done = convert("t.csv", "set");
  EXPECT_EQ(done.label_column, "column 2 (2)");
  EXPECT_EQ(done.class_names, (std::vector<std::string>{"a", "b"}));
  for (const char* separator : {"ab", "\"", "\n"}) {
    options_.table.separator = separator;
    expect_error<UsageError>([&] { convert("t.csv", "other"); },
                             {"--separator: '", "is not one character that"});
  }
  options_.table = {.label = "2", .header = TableHeader::kNo};
  write_text("t.csv", "x,2\n3,a\n4,b\n5,a\n6,b\n");
  expect_error<DataError>([&] { convert("t.csv", "other"); },
                          {"t.csv: line 1: column 1: 'x' is not a number; mend it, or leave them out"});
  options_.table = {};
  const std::string eight = "'1', '2', '3', '4', '5', '6', '7', '8'";
  for (const auto& [row, shown] : std::map<std::string, std::string>{
           {"x,z,kind", "'x', 'z', 'kind'"},
           {"1,2", "'1', '2'"},
           {"1,2,3,4,5,6,7,8", eight},
           {"1,2,3,4,5,6,7,8,9", eight + ", ..."},
           {std::string(41, 'z') + ",1", "'" + std::string(40, 'z') + "', '1'"}}) {
    write_text("t.csv", row);
    const auto message = message_of<UsageError>([&] { convert("t.csv", "other"); });
    EXPECT_TRUE(message.ends_with("with --label; the first row is " + shown)) << message;
  }
}

}  // namespace
}  // namespace lockstep::table_test
