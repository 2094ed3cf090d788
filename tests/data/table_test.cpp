// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Tables: rows of text and of arrays become equal sets, whatever the format; other cells are named.
#include "data/tables/table.hpp"

#include "common/env.hpp"
#include "common/error.hpp"
#include "data/batch_loader.hpp"
#include "data/dataset.hpp"
#include "data/sets/hold_out.hpp"
#include "data/sets/set_loading.hpp"
#include "data/sets/shards.hpp"
#include "data/tables/readers.hpp"
#include "data/tables/table_conversion.hpp"
#include "tests/data/idx_fixture.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/test_settings.hpp"

namespace lockstep::table_test {
namespace {

namespace fs = std::filesystem;
using test::Bytes;
using test::bytes_of;
using namespace std::string_literals;
using Rows = std::vector<std::vector<std::string>>;

Rows rows_of(const std::string& text, char separator = ',') {
  const Bytes bytes = bytes_of(text);
  MemorySource source(bytes, "text");
  CsvReader reader(source, separator);
  Rows rows;
  while (reader.next()) rows.emplace_back(reader.fields().begin(), reader.fields().end());
  return rows;
}

TEST(CsvTest, FieldsFollowRfc4180AndLinesAreCountedHoweverTheyEnd) {
  EXPECT_EQ(rows_of("a,b\r\n1,2\n\n3,\r4,5"), (Rows{{"a", "b"}, {"1", "2"}, {"3", ""}, {"4", "5"}}));
  EXPECT_EQ(rows_of("\xEF\xBB\xBF\"a,\"\"b\"\"\",\"two\r\nlines\"\n\"\"\n"),
            (Rows{{"a,\"b\"", "two\r\nlines"}, {""}}));
  EXPECT_EQ(rows_of("5\" pipe;x\n", ';'), (Rows{{"5\" pipe", "x"}}));
  expect_error<DataError>([] { rows_of("a,b\n1,\"2\n3,4\n"); }, {"text: line 2", "within quotes"});
  for (const std::string end : {"\n", "\r\n", "\r"})
    expect_error<DataError>([&] { rows_of("a,b" + end + "1,2" + end + "3,\"4"); },
                            {"text: line 3: the file ends within quotes"});
}

/// An empty column is one byte of the file and a string in memory.
TEST(CsvTest, ARowHasSoManyColumns) {
  const std::string full(CsvReader::kMostColumns - 1, ',');
  EXPECT_EQ(rows_of(full + "\n").front().size(), CsvReader::kMostColumns);
  expect_error<DataError>([&] { rows_of("1\n" + full + ","); }, {"text: line 2: more than 1048576 columns"});
}

TEST(CsvTest, NumbersAreRoundedOnceOrRefused) {
  float value = 0;
  for (const auto& [text, number] :
       {std::pair{" +0.1 ", 0.1F}, {"1e3", 1000.0F}, {"-16777217", -16777216.0F}}) {
    EXPECT_EQ(read_feature(text, value), nullptr) << text;
    EXPECT_EQ(value, number);
  }
  for (const char* text : {"", " ", "NaN", "?", "NA", "null"})
    EXPECT_STREQ(read_feature(text, value), "is missing");
  for (const char* text : {"inf", "1e39", "-1e400"})
    EXPECT_STREQ(read_feature(text, value), "is not a number that fp32 has");
  for (const char* text : {"1,5", "0x10", "1 2", "+-1", "$1", "5%", "True", "2026-11-01"})
    EXPECT_STREQ(read_feature(text, value), "is not a number");
}

/// A header as it is, after a version and its length.
Bytes with_header(const std::string& head, std::uint8_t version, std::size_t length) {
  return bytes_of("\x93NUMPY" + test::little_endian_text(version, 2) +
                  test::little_endian_text(length, version == 1 ? 2 : 4) + head);
}

/// An array as numpy.save writes it.
template <typename T>
Bytes npy(const std::string& descr, const std::string& shape, const std::vector<T>& elements,
          const char* fortran_order = "False") {
  std::string head =
      "{'descr': '" + descr + "', 'fortran_order': " + fortran_order + ", 'shape': (" + shape + "), }\n";
  Bytes bytes = with_header(head, 1, head.size());
  const auto* data = reinterpret_cast<const std::uint8_t*>(elements.data());
  bytes.insert(bytes.end(), data, data + elements.size() * sizeof(T));
  return bytes;
}

class TableTest : public test::DirectoryTest {
 protected:
  std::string index_of(const std::string& set) const { return test::text_in(path(set + "/shards.index")); }
  TableConversion convert(const std::string& table, const std::string& set, bool skip_damaged = false) const {
    TableConversionOptions options = options_;
    options.table.from = path(table);
    options.to = path(set);
    options.skip_damaged = skip_damaged;
    return convert_table(Env::posix(), options);
  }
  TrainTestData load(const std::string& set) const {
    return load_dataset({.set = "table", .root = path(set)});
  }

  TableConversionOptions options_ = {.to = "", .split = {.test = {.samples = 1}}};
};

constexpr const char* kTable = "w,kind,h\n1,b,9\n2,b,9\n3,a,9\n4,b,9\n6,a,9\n8,a,9\n";

TEST_F(TableTest, RowsBecomeANormalisedSet) {
  write_text("t.csv", kTable);
  options_.table.label = "kind";
  const TableConversion done = convert("t.csv", "set");
  EXPECT_EQ(done.class_names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(done.train, (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(done.test, (std::vector<std::int64_t>{1, 1}));
  const TrainTestData data = load("set");
  EXPECT_EQ(data.train.shape.channels, 2);
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    sum += data.train.features.data()[2 * i];
    squares += std::pow(data.train.features.data()[2 * i], 2);
    EXPECT_EQ(data.train.features.data()[2 * i + 1], 0);  // a column of equal numbers
  }
  EXPECT_NEAR(sum, 0, 1e-6);
  EXPECT_NEAR(squares / 4, 1, 1e-6);
  EXPECT_EQ(data.normalisation.std[1], 1);
  const float tested = data.test.features.data()[0];
  const double number = tested * data.normalisation.std[0] + data.normalisation.mean[0];
  EXPECT_NEAR(number, std::round(number), 1e-5);  // normalised as those that are trained on
}

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
  write_text("t.csv", "1,0.5\n2,1.5\n");
  expect_error<DataError>([&] { convert("t.csv", "other"); }, {"labels such as 0.5", "--label"});
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
    EXPECT_EQ(convert("t.csv", "set").warning.empty(), std::string(second) != "1") << first;
  }
  write_text("t.csv", "Unnamed: 0,w,y\n0,3,a\n1,4,b\n2,3,a\n3,4,b\n");
  EXPECT_EQ(
      convert("t.csv", "set").warning,
      "column 1 has no name and counts the rows from 0, as pandas' index does: leave it out with --drop 1");
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
  write("x.npy", npy<float>("<f4", "3, 1", {1, std::numeric_limits<float>::infinity(), 3}));
  write("y.npy", npy<std::int64_t>("<i8", "3,", {0, 0, 0}));
  options_.table.label = path("y.npy");
  expect_error<DataError>([&] { convert("x.npy", "set"); }, {"row 1: value 0 is inf"});
}

TEST_F(TableTest, ArraysThatLieAreRefused) {
  const auto parse = [](const Bytes& bytes) { NpyRows(std::make_unique<MemorySource>(bytes, "x.npy")); };
  const std::vector<float> four(4);
  EXPECT_NO_THROW(parse(npy("<f4", "2, 2", four)));
  EXPECT_NO_THROW(parse(npy("=f4", "2, 2", four)));
  const std::vector<std::uint8_t> bytes(16);
  EXPECT_NO_THROW(parse(npy(">u1", "16,", bytes))) << "a byte has no order";
  const auto refused = [&](const char* shape, const char* part) {
    expect_error<DataError>([&] { parse(npy("|u1", shape, bytes)); }, {"x.npy: ", part});
  };
  refused("2, 9", "its header promises 18 bytes, and 16 follow it; save the array again");
  refused("2, 7", "its header promises 14 bytes, and 16 follow it");
  refused("2147483647,", "its header promises 2147483647 bytes, and 16 follow it");
  refused("2147483648,", "2147483648 rows of 1 numbers are more than 2147483647 and 16777216");
  refused("1, 16777216", "its header promises 16777216 bytes, and 16 follow it");
  refused("1, 16777217", "1 rows of 16777217 numbers are more than 2147483647 and 16777216");
  refused("4611686018427387904, 4", "rows of 4 numbers are more than");
  refused("4, 0", "an array of shape (4, 0) has no rows");
  refused("", "an array of shape () has no rows");
  for (const char* shape : {"-1, 4", "2; 8"})
    refused(shape, "its header is not that of an array of numbers with 1 to 4 dimensions, at '");
  expect_error<DataError>([&] { parse(npy(">f4", "2, 2", four)); }, {"little-endian"});
  expect_error<DataError>([&] { parse(npy("<f4", "2, 2", four, "True")); }, {"ascontiguousarray"});
  expect_error<DataError>([&] { parse(npy("|O", "2, 2", four)); }, {"'|O'"});
}

TEST_F(TableTest, HeadersOfArraysAreReadAsPythonWritesThem) {
  const auto size_of = [](const Bytes& bytes) {
    return NpyRows(std::make_unique<MemorySource>(bytes, "x.npy")).size();
  };
  const auto refused = [&](const Bytes& bytes, const char* part) {
    expect_error<DataError>([&] { size_of(bytes); }, {"x.npy: ", part});
  };
  const std::string good = "{\"descr\": \"|u1\", 'fortran_order': False, 'shape': (4, )}";
  for (const std::uint8_t version : {1, 2, 3})
    EXPECT_EQ(size_of(with_header(good + "wxyz", version, good.size())), 4);
  for (const std::uint8_t version : {0, 4})
    refused(with_header(good + "wxyz", version, good.size()), "is not a NumPy array");
  for (const std::string head : {"{'shape': (4,), 'fortran_order': False}", "{'descr': '|u1', 'kind': 1}",
                                 "{'descr': '|u1', 'shape': (4,)} x", "{'descr' '|u1'}",
                                 "{'fortran_order': 0}", "{'shape': (4", "{descr: 1}", "['descr']"})
    refused(with_header(head, 1, head.size()),
            "its header is not that of an array of numbers with 1 to 4 dimensions");
  refused(bytes_of("\x93NUMPY\1"), "ends before byte 8");
  refused(bytes_of("\x93NUMPX\1\1\1"), "is not a NumPy array");
  refused(with_header("", 2, 65'536), "ends before byte 65548");
  refused(with_header("", 2, 65'537), "a header of 65537 bytes");
}

/// Labels of an array as text, "-" for one that is none.
template <typename T>
std::vector<std::string> labels_in_array(const std::string& descr, const std::string& shape,
                                         const std::vector<T>& elements) {
  const Bytes bytes = npy(descr, shape, elements);
  NpyRows rows(std::make_unique<MemorySource>(bytes, "y.npy"));
  std::vector<std::string> labels;
  for (std::int64_t i = 0; i < rows.size(); ++i)
    if (std::string& label = labels.emplace_back(); !rows.next_label(label)) label = "-";
  return labels;
}
using Labels = std::vector<std::string>;

TEST_F(TableTest, LabelsOfFloatsAreWholeNumbersThatFloatsCanCount) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(labels_in_array<double>("<f8", "8,",
                                    {3, -2, 9007199254740992, 9007199254740994, 0.5, kInfinity, -kInfinity,
                                     std::numeric_limits<double>::quiet_NaN()}),
            (Labels{"3", "-2", "9007199254740992", "-", "-", "-", "-", "-"}));
  EXPECT_EQ(labels_in_array<float>("<f4", "2,", {7, std::numeric_limits<float>::infinity()}),
            (Labels{"7", "-"}));
}

TEST_F(TableTest, ArraysOfEveryTypeAreRead) {
  EXPECT_EQ(labels_in_array<std::int8_t>("|i1", "2,", {-1, 127}), (Labels{"-1", "127"}));
  EXPECT_EQ(labels_in_array<std::int16_t>("<i2", "2,", {-300, 300}), (Labels{"-300", "300"}));
  EXPECT_EQ(labels_in_array<std::int32_t>("<i4", "1,", {-70000}), (Labels{"-70000"}));
  EXPECT_EQ(labels_in_array<std::int64_t>("<i8", "1,", {-5'000'000'000}), (Labels{"-5000000000"}));
  EXPECT_EQ(labels_in_array<std::uint8_t>("|u1", "1,", {255}), (Labels{"255"}));
  EXPECT_EQ(labels_in_array<std::uint16_t>("<u2", "1,", {65535}), (Labels{"65535"}));
  EXPECT_EQ(labels_in_array<std::uint32_t>("<u4", "1,", {4294967295}), (Labels{"4294967295"}));
  EXPECT_EQ(labels_in_array<std::uint64_t>("<u8", "1,", {UINT64_MAX}), (Labels{"18446744073709551615"}));
  EXPECT_EQ(labels_in_array<std::uint8_t>("|b1", "2,", {0, 2}), (Labels{"0", "1"}));
  EXPECT_EQ(labels_in_array<char>("|S3", "2,", {'a', 'b', '\0', '\0', 'x', 'x'}), (Labels{"ab", "-"}));
  EXPECT_EQ(labels_in_array<char32_t>("<U3", "2,", {U'é', U'€', U'😀', U'a', U'\0', U'b'}),
            (Labels{"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", "a"}));
  for (const char* descr : {"<i3", "|i16", "<f2", "<f16", "|b2", "|S0", "|S4097", "<U4097", "<c8"})
    expect_error<DataError>([&] { labels_in_array<char>(descr, "1,", {'1'}); },
                            {"y.npy: elements of type", descr});
  EXPECT_EQ(labels_in_array<char>("|S1", "1, 1, 1, 1", {'a'}), (Labels{"a"}));
  EXPECT_EQ(labels_in_array<char>("|S4096", "1,", std::vector<char>(4096, 'a')),
            (Labels{std::string(4096, 'a')}));
  EXPECT_EQ(labels_in_array<char32_t>("<U4", "1,", {0x7F, 0x80, 0x800, 0x10000}),
            (Labels{"\x7F\xC2\x80\xE0\xA0\x80\xF0\x90\x80\x80"}));
  std::vector<std::int64_t> many(70'000);  // more than is read at once
  std::iota(many.begin(), many.end(), 0);
  EXPECT_EQ(labels_in_array("<i8", "70000,", many).back(), "69999");
  expect_error<DataError>([] { labels_in_array<char>("|S1", "1, 1, 1, 1, 1", {'a'}); },
                          {"1 to 4 dimensions"});
}

TEST_F(TableTest, OptionsOfTextAreNotForArrays) {
  const auto refused = [&](TableOptions options, const char* part) {
    options.from = path("x.npy");
    expect_error<UsageError>([&] { open_table(options); }, {part});
  };
  for (const TableOptions& options : {TableOptions{.drop = {"1"}},
                                      {.header = TableHeader::kYes},
                                      {.separator = ";"},
                                      {.one_hot = {"1"}},
                                      {.missing = MissingCells::kMean}})
    refused(options, "x.npy: --drop, --separator, --header, --missing and --one-hot are for text");
  refused({}, "x.npy: holds the features; say where the labels are: --label LABELS.npy");
  write("x.npy", npy<float>("<f4", "3, 1", {1, 2, 3}));
  write("y.npy", npy<std::int64_t>("<i8", "3,", {0, 0, 0}));
  options_.table.label = path("y.npy");
  expect_error<DataError>([&] { convert("x.npy", "set"); },
                          {"x.npy: the label of all 3 rows is '0': one class"});
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
  for (const auto& [row, shown] : {std::pair{"x,z,kind", "'x', 'z', 'kind'"},
                                   {"1,2,3,4,5,6,7,8,9", "'1', '2', '3', '4', '5', '6', '7', '8', ..."}}) {
    write_text("t.csv", row);
    const auto message = message_of<UsageError>([&] { convert("t.csv", "other"); });
    EXPECT_TRUE(message.ends_with(std::string("with --label; the first row is ") + shown)) << message;
  }
}

TEST_F(TableTest, ArchivesOfNumpyAreRead) {
  for (const char* name : {"stored", "deflated"}) {
    Bytes bytes =
        bytes_of(test::text_in(test::source_path("tests/fuzz/corpus/tables/npz-"s + name)).substr(1));
    const auto read = [&] {
      write("t.npz", bytes);
      const NpzArchive archive(path("t.npz"));
      EXPECT_EQ(archive.names(), (std::vector<std::string>{"x", "y"}));
      NpyRows x(archive.open("x")), y(archive.open("y"));
      std::vector<float> row(2);
      EXPECT_EQ(x.next(row), -1);
      EXPECT_EQ(row, (std::vector<float>{1, 2}));
      x.next(row);
      EXPECT_EQ(x.next(row), 1);  // NaN
      std::string label;
      EXPECT_TRUE(y.next_label(label) && y.next_label(label));
      EXPECT_EQ(label, "1");
      y.next_label(label);
    };
    read();
    const Bytes magic = bytes_of("NUMPY");
    const auto number = std::search(bytes.begin(), bytes.end(), magic.begin(), magic.end());
    if (number == bytes.end()) continue;  // it is deflated
    *(number + 128) ^= 1;
    expect_error<DataError>(read, {"t.npz:x: damaged", "CRC"});
  }
}

TEST_F(TableTest, ASetOfNumbersIsNoSetOfPictures) {
  write_text("t.csv", kTable);
  options_.table.label = "kind";
  convert("t.csv", "set");
  EXPECT_TRUE(contains(index_of("set"), {R"({"lockstep_shards":2,"sample":"float32","channels":2)"}));
  expect_error<DataError>([&] { load_dataset({.set = "shards", .root = path("set")}); }, {"data.set=table"});
  write_in_shards(Env::posix(), {.set = "synthetic", .train_samples = 4, .test_samples = 2}, path("digits"),
                  {});
  EXPECT_EQ(index_of("digits").find("sample\":"), std::string::npos);  // as version 1 has always been
  EXPECT_TRUE(contains(index_of("digits"), {R"({"lockstep_shards":1,"channels")"}));
  expect_error<DataError>([&] { load_dataset({.set = "table", .root = path("digits")}); },
                          {"data.set=shards"});
}

TEST_F(TableTest, AValidationHalfIsNormalisedAsTheOthers) {
  write_text("t.csv", kTable);
  options_.table.label = "kind";
  options_.split.validation = {.samples = 1};
  const TableConversion done = convert("t.csv", "set");
  EXPECT_EQ(done.train, (std::vector<std::int64_t>{1, 1}));
  EXPECT_EQ(done.validation, (std::vector<std::int64_t>{1, 1}));
  const TrainTestData data =
      load_dataset({.set = "table", .root = path("set"), .validation = {.is_files = true}});
  ASSERT_EQ(data.validation.size(), 2);
  const double number =
      data.validation.features.data()[0] * data.normalisation.std[0] + data.normalisation.mean[0];
  EXPECT_NEAR(number, std::round(number), 1e-5);
  EXPECT_TRUE(contains(index_of("set"), {R"({"lockstep_shards":3,"sample":"float32","channels":2)"}));
}

/// Whatever part of it: the numbers that a network sees.
std::vector<float> batch_of(const Dataset& set) {
  constexpr std::int32_t kSamples = 40;
  std::vector<std::int32_t> indices, labels(kSamples);
  for (std::int32_t i = 0; i < kSamples; ++i)
    indices.push_back(static_cast<std::int32_t>(i * (set.size() - 1) / (kSamples - 1)));
  std::vector<float> x(static_cast<std::size_t>(set.shape.features()) * 48);
  const BatchLoader loader(set);
  loader.prefetch(indices);
  loader.load(indices, 48, x.data(), labels.data(), 0);
  return x;
}

TEST_F(TableTest, ALargeOneStaysOnDiskAndHasTheSameBits) {
  constexpr int kFeatures = 1000, kRows = 17'000;  // 65 MiB
  std::vector<float> row(kFeatures);
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(row.data()), row.size() * sizeof(float));
  {
    ShardWriter writer(Env::posix(), path("set"), {kFeatures / 10, 2, 5}, {"one", "two"}, {.is_fp32 = true});
    for (int i = 0; i < kRows; ++i) {
      for (int k = 0; k < kFeatures; ++k)
        row[static_cast<std::size_t>(k)] = static_cast<float>((i * 31 + k * 17) % 1009) / 7;
      writer.add(i % 50 == 0 ? SetHalf::kTest : SetHalf::kTrain, bytes, static_cast<std::uint32_t>(i % 2));
    }
    writer.publish();
  }
  for (const HoldOut& held_out : {HoldOut{}, HoldOut{.samples = 3000}}) {
    DatasetOptions options{.set = "table", .root = path("set"), .test_samples = 100, .validation = held_out};
    const TrainTestData on_disk = load_dataset(options);
    options.in_memory = true;
    const TrainTestData in_memory = load_dataset(options);
    EXPECT_TRUE(on_disk.train.rows != nullptr && on_disk.train.features.size() == 0);
    EXPECT_TRUE(in_memory.train.rows == nullptr && in_memory.train.features.size() > 0);
    EXPECT_EQ(on_disk.normalisation, in_memory.normalisation);
    EXPECT_EQ(on_disk.train.quick, in_memory.train.quick);
    EXPECT_EQ(batch_of(on_disk.train), batch_of(in_memory.train));
    EXPECT_EQ(batch_of(on_disk.test), batch_of(in_memory.test));
    if (!held_out.is_given()) continue;
    EXPECT_EQ(batch_of(on_disk.validation), batch_of(in_memory.validation));
  }
  const Dataset train =
      load_dataset({.set = "table", .root = path("set"), .mean = {1e-3}, .std = {1e-38}}).train;
  const std::int32_t sample = 7;
  const auto read = [&] { FeatureRows(train, std::span(&sample, 1)); };
  expect_error<DataError>(read, {"table train: value", "of sample 7 is", "too far from the mean"});
}

TEST_F(TableTest, ShardsWithANumberThatIsNoneAreRefused) {
  const float row[] = {1, std::numeric_limits<float>::quiet_NaN()};
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(row), sizeof row);
  ShardWriter writer(Env::posix(), path("set"), {2, 1, 1}, {"one"}, {.is_fp32 = true});
  writer.add(SetHalf::kTrain, bytes, 0);
  writer.add(SetHalf::kTest, bytes, 0);
  writer.publish();
  expect_error<DataError>([&] { load("set"); }, {"value 1 of sample 0 is nan, no finite number"});
}

}  // namespace
}  // namespace lockstep::table_test
