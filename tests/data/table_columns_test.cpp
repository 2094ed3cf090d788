// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Tables with words and empty cells: what a set records of its columns, and that new rows are read alike.
#include "data/sets/table_columns.hpp"

#include "common/env.hpp"
#include "common/error.hpp"
#include "data/dataset.hpp"
#include "data/sets/hold_out.hpp"
#include "data/sets/set_loading.hpp"
#include "data/sets/shards.hpp"
#include "data/tables/table.hpp"
#include "data/tables/table_conversion.hpp"
#include "tests/data/idx_fixture.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::table_columns_test {
namespace {

using Rows = std::vector<std::vector<float>>;
using Texts = std::vector<std::string>;

class TableColumnsTest : public test::DirectoryTest {
 protected:
  TableConversion convert(const std::string& text) {
    write_text("t.csv", text);
    TableConversionOptions options{
        .table = table_, .to = path("set"), .split = split_, .replace = true, .skip_damaged = skip_damaged_};
    options.table.from = path("t.csv");
    return convert_table(Env::posix(), options);
  }
  TrainTestData load() const {
    return load_dataset({.set = "table", .root = path("set"), .mean = {0}, .std = {1}});
  }
  /// The rows of both halves, sorted.
  Rows rows() const {
    const TrainTestData data = load();
    Rows rows;
    const auto each = static_cast<std::size_t>(data.train.shape.features());
    for (const Dataset* half : {&data.train, &data.test})
      for (std::size_t i = 0; i < half->labels.size(); ++i) {
        const auto row = half->features.span().subspan(i * each, each);
        rows.emplace_back(row.begin(), row.end());
      }
    std::ranges::sort(rows);
    return rows;
  }
  /// As predict reads them. Of a row with trouble that alone.
  std::vector<std::string> read_new(const std::string& text,
                                    const std::vector<std::string>& drop = {}) const {
    write_text("new.csv", text);
    const auto columns = std::make_shared<const TableColumns>(parse_table_columns(load().columns, "run"));
    const auto table =
        open_table({.from = path("new.csv"), .has_labels = false, .drop = drop, .columns = columns});
    EXPECT_EQ(table->shape().channels, load().train.shape.channels);
    std::vector<std::string> read;
    for (TableRow row; table->next(row);) {
      std::string numbers;
      for (const float number : row.features) numbers += fmt::format("{:.1f} ", number);
      read.push_back(row.trouble.empty() ? numbers : row.trouble);
    }
    return read;
  }

  TableOptions table_;
  SplitChoice split_ = {.test = {.samples = 1}};
  bool skip_damaged_ = false;
};

constexpr const char* kWords =
    "size,colour,y\n1,red,a\n2,blue,a\n3,red,a\n4,\"light, green\",b\n5,blue,b\n6,red,b\n";

TEST_F(TableColumnsTest, EachValueOfAOneHotColumnBecomesOneInSortedOrder) {
  table_.one_hot = {"colour"};
  const TableConversion done = convert(kWords);
  EXPECT_EQ(to_text(*done.columns),
            R"([{"name":"size"},{"name":"colour","values":["blue","light, green","red"]}])");
  EXPECT_EQ(load().columns, to_text(*done.columns));
  EXPECT_EQ(rows(),
            (Rows{{1, 0, 0, 1}, {2, 1, 0, 0}, {3, 0, 0, 1}, {4, 0, 1, 0}, {5, 1, 0, 0}, {6, 0, 0, 1}}));
  table_.one_hot = {"2"};
  EXPECT_EQ(to_text(*convert(kWords).columns), to_text(*done.columns));
}

TEST_F(TableColumnsTest, NewRowsAreReadByNameAndUnknownValuesAreNamed) {
  table_.one_hot = {"colour"};
  convert(kWords);
  EXPECT_EQ(
      read_new("colour,size\nred,7\n\"light, green\",8\npurple,9\n,9\n"),
      (std::vector<std::string>{"7.0 0.0 0.0 1.0 ", "8.0 0.0 1.0 0.0 ",
                                "column 1 (colour): 'purple' is not a value that this column had when the "
                                "set was made",
                                "column 1 (colour): '' is missing"}));
  EXPECT_EQ(read_new("7,red\n"), Texts{"7.0 0.0 0.0 1.0 "});  // without names, by place
  EXPECT_EQ(read_new(kWords, {"y"}).front(), "1.0 0.0 0.0 1.0 ");
  EXPECT_EQ(read_new("y,size,colour\na,1,red\n", {"y"}), Texts{"1.0 0.0 0.0 1.0 "});
  expect_error<DataError>([&] { read_new("colour,weight\nred,7\n"); }, {"has no column 'size'"});
  for (const auto& [name, drop] : std::map<std::string, std::string>{
           {"weight", "weight"}, {"a_b", "a_b"}, {"x-1", "x-1"}, {"a b", "3"}, {"-x", "3"}})
    expect_error<DataError>([&, name = name] { read_new("colour,size," + name + "\nred,7,1\n"); },
                            {"column 3 (" + name + ") is none of those", "--drop " + drop});
  EXPECT_EQ(read_new("colour,size\n" + std::string(50, 'z') + ",7\n").front(),
            "column 1 (colour): '" + std::string(40, 'z') +
                "' is not a value that this column had when the set was made");
  expect_error<DataError>([&] { read_new("7,red,1\n"); },
                          {"new.csv: 3 columns, and the set was made of 2; "});
  expect_error<DataError>([&] { read_new("weight,colour,size\n1,red,7\n"); },
                          {"column 1 (weight) is none of those", "--drop weight"});
  expect_error<DataError>([&] { read_new("7,colour\n8,red\n"); }, {"has no column 'size'"});
  table_ = {.label = "y", .missing = MissingCells::kMean};
  convert("0,1,y\n5,6,a\n5,7,a\n5,8,b\n5,9,b\n");  // names that are numbers
  EXPECT_EQ(read_new("1,7\n").front(), "1.0 7.0 ");
  EXPECT_EQ(read_new("1,0\n7,4\n").front(), "4.0 7.0 ");
}

TEST_F(TableColumnsTest, ANameThatIsAValueToo) {
  table_ = {.label = "kind", .one_hot = {"flag"}};
  convert("x,y,flag,kind\n1,2,y,a\n3,4,n,a\n5,6,y,b\n7,8,n,b\n");
  EXPECT_EQ(read_new("7,8,y\n8,9,n\n"), (Texts{"7.0 8.0 0.0 1.0 ", "8.0 9.0 1.0 0.0 "}));
  EXPECT_EQ(read_new("flag,y,x\ny,8,7\n"), Texts{"7.0 8.0 0.0 1.0 "});
  table_ = {.one_hot = {"v"}};
  EXPECT_EQ(convert("v,y\np,y\nq,n\np,y\nq,n\n").label_column, "column 2 (y)") << "y is a label, too";
}

TEST_F(TableColumnsTest, ValuesOfAOneHotColumnArePrintableAndNotTooMany) {
  table_.one_hot = {"c"};
  expect_error<DataError>([&] { convert("v,c,y\n1,\x07,a\n2,p,a\n3,q,b\n4,p,b\n"); },
                          {"t.csv: line 2: column 2 (c): '", "' is not printable UTF-8; mend it"});
  std::string many = "v,c,y\n";
  for (int i = 0; i <= 10'000; ++i) many += "1,x" + std::to_string(i) + ",a\n";
  expect_error<DataError>(
      [&] { convert(many); },
      {"line 10002: column 2 (c) has more than 10000 different values, too many for --one-hot"});
}

/// The mean of all rows would be another: rows that are tested with are those that the seed chooses.
TEST_F(TableColumnsTest, EmptyCellsBecomeTheMeanOrMedianOfTheTrainingHalfAlone) {
  std::string text = "v,w,y\n";
  for (int i = 0; i < 24; ++i)
    text += (i % 4 == 0 ? std::string(i % 8 == 0 ? "" : "NA") : std::to_string(i * i)) +
            (i % 4 == 0 ? ",1," : ",0,") + (i % 2 == 0 ? "a" : "b") + "\n";
  split_.test = {.samples = 5};
  for (const MissingCells missing : {MissingCells::kMean, MissingCells::kMedian}) {
    table_.missing = missing;
    const TableConversion done = convert(text);
    const float filler = *done.columns->all[0].filler;
    std::vector<float> trained;
    const TrainTestData data = load();
    for (std::int64_t i = 0; i < data.train.size(); ++i)
      if (const float* row = data.train.features.data() + 2 * i; row[1] == 0) trained.push_back(row[0]);
    ASSERT_GE(trained.size(), 8U);
    std::ranges::sort(trained);
    double sum = 0;
    for (const float number : trained) sum += number;
    const std::size_t half = trained.size() / 2;
    const double median = trained.size() % 2 == 1
                              ? trained[half]
                              : (static_cast<double>(trained[half - 1]) + trained[half]) / 2;
    const double expected =
        missing == MissingCells::kMean ? sum / static_cast<double>(trained.size()) : median;
    EXPECT_EQ(filler, static_cast<float>(expected));
    EXPECT_EQ(done.filled, (std::vector<std::int64_t>{6, 0}));
    const std::int64_t rows = data.train.size(),
                       gaps = rows - std::ssize(trained);  // w is 1 where v has a gap
    EXPECT_EQ(*done.columns->all[1].filler,
              missing == MissingCells::kMean
                  ? static_cast<float>(static_cast<double>(gaps) / static_cast<double>(rows))
                  : 0);
    const auto read = read_new("v,w\n,1\n3,0\n");
    EXPECT_EQ(read[1], "3.0 0.0 ");
    EXPECT_EQ(read[0], fmt::format("{:.1f} 1.0 ", filler));
  }
}

TEST_F(TableColumnsTest, DamagedRowsHaveNoPartInWhatEmptyCellsBecome) {
  table_.missing = MissingCells::kMean;
  skip_damaged_ = true;
  const TableConversion done = convert("v,y\n900,\n900,\n900,\n2,a\n2,a\n,a\n2,a\n2,b\n2,b\nx,b\n");
  EXPECT_EQ(done.damaged, 4);
  EXPECT_EQ(done.filled, std::vector<std::int64_t>{1});
  EXPECT_EQ(*done.columns->all[0].filler, 2);
}

/// Empty cells beside it, damage, no label, or an impossible one: no row of the set has the word.
TEST_F(TableColumnsTest, RowsThatAreLeftOutBringNoValues) {
  table_ = {.label = "y", .one_hot = {"c"}, .missing = MissingCells::kDropped};
  skip_damaged_ = true;
  const TableConversion done =
      convert("c,v,y\np,1,a\nq,2,a\np,3,b\nq,4,b\nr,,b\ns,x,b\nt,5,\nu,6,\x07\nr,?,a\n");
  EXPECT_EQ(done.incomplete, 2);
  EXPECT_EQ(done.damaged, 3);
  EXPECT_EQ(to_text(*done.columns), R"([{"name":"c","values":["p","q"]},{"name":"v"}])");
  EXPECT_EQ(rows(), (Rows{{0, 1, 2}, {0, 1, 4}, {1, 0, 1}, {1, 0, 3}}));
  EXPECT_EQ(read_new("c,v\nr,7\n").front(),
            "column 1 (c): 'r' is not a value that this column had when the set was made");
}

TEST_F(TableColumnsTest, EmptyCellsOfAOneHotColumnHaveNoneOfItsValues) {
  table_ = {.one_hot = {"c"}, .missing = MissingCells::kMean};
  convert("v,c,y\n1,p,a\n2,,a\n3,q,a\n4,p,b\n5,?,b\n6,q,b\n");
  EXPECT_EQ(rows(), (Rows{{1, 1, 0}, {2, 0, 0}, {3, 0, 1}, {4, 1, 0}, {5, 0, 0}, {6, 0, 1}}));
  EXPECT_EQ(read_new("c,v\n,7\n").front(), "7.0 0.0 0.0 ");
}

TEST_F(TableColumnsTest, RowsWithEmptyCellsAreDroppedOrRefused) {
  const std::string text = "v,w,y\n1,1,a\n,?,a\n3,1,a\n4,NaN,b\n5,1,b\n6,1,b\n";
  expect_error<DataError>([&] { convert(text); }, {"line 3: column 1 (v): '' is missing",
                                                   "line 5: column 2 (w): 'NaN'", "--missing mean"});
  table_.missing = MissingCells::kDropped;
  const TableConversion done = convert(text);
  EXPECT_EQ(done.incomplete, 2);
  EXPECT_EQ(done.damaged, 0);
  EXPECT_EQ(rows(), (Rows{{1, 1}, {3, 1}, {5, 1}, {6, 1}}));
  EXPECT_EQ(load().columns, R"([{"name":"v"},{"name":"w"}])");  // there is no more to record
  expect_error<DataError>([&] { convert("v,w,y\n1,1,a\n,1,a\n3,a\n"); },
                          {"2 columns, and the first row has 3; mend it, or leave"});  // it lacks no cell
  table_.missing = MissingCells::kMean;
  expect_error<DataError>([&] { convert("v,w,y\n1,,a\n2,,a\n3,,b\n4,,b\n"); },
                          {"all cells of column 'w' in the training half are empty, so", "--drop"});
}

/// Words of a one-hot column become columns, and this one has none.
TEST_F(TableColumnsTest, AOneHotColumnWithoutAWordIsNamed) {
  table_ = {.one_hot = {"c"}, .missing = MissingCells::kMean};
  expect_error<DataError>(
      [&] { convert("v,c,y\n1,,a\n2,?,a\n3,,b\n4,,b\n"); },
      {"t.csv: all cells of column 'c' in rows that can be used are empty, so", "leave it out with --drop"});
  table_ = {.label = "1", .one_hot = {"3"}, .missing = MissingCells::kMedian};
  expect_error<DataError>([&] { convert("a,1,\na,2,\nb,3,\nb,4,\n"); },
                          {"t.csv: all cells of feature 2 in rows that can be used are empty, so"});
}

TEST_F(TableColumnsTest, SetIsReadInTheOrderThatIsAskedFor) {
  table_ = {.one_hot = {"c"}};
  convert("v,c,w,y\n1,p,7,a\n2,q,7,a\n3,q,7,a\n4,p,7,b\n5,p,7,b\n6,q,7,b\n");
  const auto first_row_by = [&](const std::string& columns) {
    const TrainTestData data =
        load_dataset({.set = "table", .root = path("set"), .mean = {0}, .std = {1}, .columns = columns});
    const auto row = data.train.features.span().first(4);
    return std::vector<float>(row.begin(), row.end());
  };
  const auto own = first_row_by("");
  EXPECT_EQ(own[3], 7);
  EXPECT_EQ(first_row_by(R"([{"name":"w"},{"name":"c","values":["p","q"]},{"name":"v"}])"),
            (std::vector<float>{own[3], own[1], own[2], own[0]}));
  EXPECT_EQ(first_row_by(R"([{"name":"w"},{"name":"v"},{"name":"c","values":["p","q"]}])"),
            (std::vector<float>{own[3], own[0], own[1], own[2]}));
  expect_error<DataError>([&] { first_row_by(R"([{"name":"w"},{"name":"v"},{"name":"u"},{"name":"t"}])"); },
                          {"has no column u, t, only v, c=p, c=q, w"});
  expect_error<DataError>([&] { first_row_by(R"([{"name":"w"},{"name":"v"}])"); },
                          {"columns that are not asked for: c=p, c=q"});
}

TEST_F(TableColumnsTest, AllColumnsOfTextAreToldAtOnce) {
  const std::string text =
      "name,size,colour,y\nAnn B,1,red,a\nCarl,2,blue,a\nDora,3,red,b\nEd,4,red,b\nFay,5,blue,b\n";
  try {
    convert(text);
    FAIL() << "texts were taken for numbers";
  } catch (const TextColumnsError& error) {
    EXPECT_TRUE(contains(error.what(), {"2 columns hold text", "column 1 (name), column 3 (colour)",
                                        "--one-hot COLUMN", "--drop COLUMN"}));
    ASSERT_EQ(error.columns().size(), 2U);
    EXPECT_EQ(error.columns()[0].different, 5U);
    EXPECT_EQ(error.columns()[0].example, "Ann B");
    EXPECT_EQ(error.columns()[1].different, 2U);
    EXPECT_EQ(error.columns()[1].example, "red");
    EXPECT_EQ(error.columns()[1].argument, "colour");
  }
  table_ = {.drop = {"name"}, .one_hot = {"colour"}};
  EXPECT_EQ(convert(text).shape.channels, 3);
  table_.one_hot = {"name"};
  expect_error<UsageError>([&] { convert(text); }, {"--one-hot: column 1 (name) is not a feature"});
}

/// A quarter of the cells that are not empty. A text among more numbers is a mistake in its line.
TEST_F(TableColumnsTest, AColumnHoldsTextIfAQuarterOfItsCellsDoes) {
  const std::string four = "v,w,y\nred,1,a\n2,1,a\n3,1,b\n4,1,b\n";
  expect_error<TextColumnsError>([&] { convert(four); }, {"a column holds text", "column 1 (v)"});
  expect_error<DataError>([&] { convert(four + "5,1,b\n"); },
                          {"line 2: column 1 (v): 'red' is not a number; mend it"});
  table_.missing = MissingCells::kMean;
  expect_error<TextColumnsError>([&] { convert(four + ",1,b\n"); }, {"a column holds text"});
  expect_error<DataError>([&] { convert("v,w,y\n1e39,1,a\n1e400,1,a\n"); },
                          {"line 2: column 1 (v): '1e39' is not a number that fp32 has; "});
}

TEST_F(TableColumnsTest, ColumnsThatPredictCouldNotTellApartAreRefused) {
  table_.missing = MissingCells::kMean;
  expect_error<DataError>([&] { convert("v,v,y\n1,1,a\n2,1,a\n3,1,b\n4,1,b\n"); },
                          {"t.csv: column 2 (v): another column has the same name, so that predict could not "
                           "tell it from others; rename it, or leave it out with --drop 2"});
  expect_error<DataError>([&] { convert(",v,y\n1,1,a\n2,1,a\n3,1,b\n4,1,b\n"); },
                          {"t.csv: column 1 (): has no name, so"});
}

TEST_F(TableColumnsTest, AColumnOfAWordHasANameOfItsOwn) {
  const std::string two = "a,a=b,y\nb=c,c,p\nd,e,p\nb=c,e,q\nd,c,q\n";
  table_.one_hot = {"a", "a=b"};
  expect_error<DataError>(
      [&] { convert(two); },
      {"t.csv: two columns of the set would be called 'a=b=c', for a word of --one-hot is "
       "called COLUMN=word; rename a column, or leave one out with --drop"});
  table_.one_hot = {"a"};
  expect_error<DataError>([&] { convert("a,a=d,y\nb,1,p\nd,2,p\nb,3,q\nd,4,q\n"); },
                          {"would be called 'a=d'"});
  table_ = {.drop = {"a"}, .one_hot = {"a=b"}};
  EXPECT_EQ(convert(two).shape.channels, 2);
}

TEST_F(TableColumnsTest, ARecipeThatCannotBeIsRefused) {
  const TableColumns good =
      parse_table_columns(R"([{"name":"v","missing":0.5},{"name":"c","values":["p","q"]}])", "x");
  EXPECT_EQ(good.numbers(), 3U);
  EXPECT_EQ(parse_table_columns(to_text(good), "x").all, good.all);
  for (const char* text :
       {"", "{}", "[]", "[1]", R"([{"values":["p"]}])", R"([{"name":1}])", R"([{"name":"v"},{"name":""}])",
        R"([{"name":"c","values":[]}])", R"([{"name":"c","values":["q","p"]}])",
        R"([{"name":"c","values":["p","p"]}])", R"([{"name":"c","values":[1]}])",
        R"([{"name":"v","missing":1e39}])", R"([{"name":"v","missing":"1"}])", R"([{"name":"\u0007"}])"})
    expect_error<DataError>([&] { parse_table_columns(text, "x"); }, {"x: its columns"});
  ShardIndex index;
  index.shape = {2, 1, 1};
  index.is_fp32 = true;
  index.classes = 2;
  index.columns = to_text(good);
  for (ShardHalf* half : {&index.train, &index.test}) half->samples = 1;
  expect_error<DataError>([&] { parse_shard_index(to_text(index), "x"); }, {"3 numbers, and a sample has 2"});
  index.shape.channels = 3;
  EXPECT_EQ(parse_shard_index(to_text(index), "x").columns, index.columns);
}

}  // namespace
}  // namespace lockstep::table_columns_test
