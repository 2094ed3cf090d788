// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Rows and fields of text, as RFC 4180 has them, and the numbers that they say.
#include "common/error.hpp"
#include "data/tables/readers.hpp"
#include "data/tables/table.hpp"
#include "tests/data/idx_fixture.hpp"
#include "tests/support/messages.hpp"

namespace lockstep::table_test {
namespace {

using test::Bytes;
using test::bytes_of;
using Rows = std::vector<std::vector<std::string>>;
using namespace std::string_literals;

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
  EXPECT_EQ(rows_of("a\n\0b\0,\"\0\"\n"s), (Rows{{"a"}, {"\0b\0"s, "\0"s}})) << "a zero ends nothing";
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

TEST(CsvTest, ARowHasSoManyBytes) {
  constexpr std::size_t kMost = std::size_t{64} << 20;
  Bytes bytes(2 * kMost + 1, 'x');
  bytes[kMost - 1] = '\n';
  MemorySource source(bytes, "text");
  CsvReader reader(source, ',');
  EXPECT_TRUE(reader.next());
  expect_error<DataError>([&] { reader.next(); },
                          {"text: line 2: the row that begins there is longer than 64 "
                           "MiB; look for a quote that is never closed"});
}

TEST(CsvTest, NumbersAreRoundedOnceOrRefused) {
  float value = 0;
  for (const auto& [text, number] : {std::pair{" +2.5 ", 2.5F},
                                     {"0.1", 0.1F},
                                     {"1e3", 1000.0F},
                                     {"-16777217", -16777216.0F},
                                     {"1e-400", 0.0F}}) {
    EXPECT_EQ(read_feature(text, value), nullptr) << text;
    EXPECT_EQ(value, number);
  }
  for (const char* text : {"", " ", "NaN", "?", "NA", "null"})
    EXPECT_STREQ(read_feature(text, value), "is missing");
  for (const char* text : {"inf", "1e39", "-1e400", "1e99999999999999999999"})
    EXPECT_STREQ(read_feature(text, value), "is not a number that fp32 has");
  for (const char* text :
       {"1,5", "0x10", "1 2", "+-1", "1e400x", "1e-400x", "$1", "5%", "True", "2026-11-01"})
    EXPECT_STREQ(read_feature(text, value), "is not a number");
}

}  // namespace
}  // namespace lockstep::table_test
