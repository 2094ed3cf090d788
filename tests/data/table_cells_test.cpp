// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Cells of a table: what is learnt of them one after the other, and the numbers that empty ones get.
#include "common/error.hpp"
#include "data/dataset.hpp"
#include "data/tables/table.hpp"
#include "tests/data/idx_fixture.hpp"
#include "tests/support/messages.hpp"

namespace lockstep {
namespace {

TableColumns columns_called(std::initializer_list<std::string> names, bool are_one_hot = false) {
  TableColumns columns;
  for (const std::string& name : names) columns.all.push_back({.name = name, .is_one_hot = are_one_hot});
  return columns;
}

void read(ColumnReader& reader, const std::vector<std::string>& cells, TableRow& row) {
  reader.read(std::vector<std::string_view>(cells.begin(), cells.end()), row);
}

TEST(ColumnReaderTest, AValueThatIsKnownIsNotOneTooMany) {
  ColumnReader reader({}, columns_called({"c"}, true), {"column 1 (c)"});
  TableRow row;
  row.place = "line 9";
  for (int i = 0; i < 10'000; ++i) read(reader, {"x" + std::to_string(i)}, row);
  EXPECT_NO_THROW(read(reader, {"x0"}, row));
  EXPECT_EQ(reader.learnt().all[0].values.size(), 10'000U);
  expect_error<DataError>([&] { read(reader, {"y"}, row); },
                          {"line 9: column 1 (c) has more than 10000 different values"});
}

TEST(ColumnReaderTest, AThousandDifferentTextsAreCountedAndTheFirstCellOfARowIsNamed) {
  ColumnReader reader({}, columns_called({"v", "w"}), {"v", "w"});
  TableRow row;
  read(reader, {"red", "x"}, row);
  EXPECT_EQ(row.trouble, "v: 'red' is not a number");
  for (int i = 0; i < 1001; ++i) read(reader, {"1", std::to_string(i) + " m"}, row);
  const std::vector<std::string> arguments = {"v", "w"};
  const auto texts = reader.text_columns(arguments);
  ASSERT_EQ(texts.size(), 1U);
  EXPECT_EQ(texts[0].argument, "w");
  EXPECT_EQ(texts[0].different, 1000U);
}

class FillersTest : public test::DirectoryTest {
 protected:
  std::vector<float> fillers(MissingCells missing) {
    options_.from = path("t.csv");
    options_.missing = missing;
    std::vector<std::int64_t> filled;
    const TableColumns measured = measure_fillers(options_, columns_, halves_, filled);
    EXPECT_EQ(filled, (std::vector<std::int64_t>{1, 1}));
    return {*measured.all.at(0).filler, *measured.all.at(1).filler};
  }

  TableOptions options_ = {.label = "y"};
  TableColumns columns_ = columns_called({"v", "w"});
  std::vector<SetHalf> halves_;
};

TEST_F(FillersTest, AreTheMeanOrMedianOfNumbersThatAreTrainedOnInAnyOrder) {
  write_text("t.csv", "v,w,y\n9,8,a\n1,1,a\n,4,a\n4,2,a\n100,,a\n6,7,a\n");
  halves_.assign(6, SetHalf::kTrain);
  halves_[4] = SetHalf::kTest;
  halves_.pop_back();  // the last row has come since
  EXPECT_EQ(fillers(MissingCells::kMean), (std::vector<float>{14.0F / 3, 3.75F}));
  EXPECT_EQ(fillers(MissingCells::kMedian), (std::vector<float>{4, 3}));
}

/// 4 TiB are refused before the table is read.
TEST_F(FillersTest, MediansAskForMemory) {
  halves_.assign(1 << 24, SetHalf::kTrain);
  columns_.all.resize(1 << 16);
  expect_error<MemoryError>([&] { fillers(MissingCells::kMedian); },
                            {"the medians of ", "t.csv would take", "take --missing mean, which needs none"});
}

}  // namespace
}  // namespace lockstep
