// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Turns a table into a set. Reads its labels first, which give the classes and the rows for testing, and then its
/// numbers.
#include "data/tables/table_conversion.hpp"

#include "common/error.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "common/yaml.hpp"
#include "data/sets/names.hpp"
#include "data/sets/shards.hpp"
#include "data/tables/table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 4> kTexts = {".csv", ".tsv", ".txt", ".data"};
constexpr std::array<std::string_view, 2> kArrays = {".npy", ".npz"};

bool is_one_of(std::span<const std::string_view> endings, const fs::path& path) {
  return std::ranges::find(endings, in_small_letters(path.extension().string())) != endings.end();
}

/// True for text, with or without .gz.
bool is_text(const fs::path& path) {
  return is_one_of(kTexts, in_small_letters(path.extension().string()) == ".gz" ? path.stem() : path);
}

/// Labels found in the first reading.
struct FoundLabels {
  ClassNumbers classes;
  std::vector<std::uint32_t> labels;  ///< [row that can be used] a class

  /// @param place  [class] what it is called from now on
  void renumber(const std::vector<std::uint32_t>& place) {
    for (std::uint32_t& label : labels) label = place[label];
  }
};

bool is_dropped(const TableRow& row, const TableOptions& options) {
  return row.lacks_cells && options.missing == MissingCells::kDropped;
}

class LabelReader {
 public:
  LabelReader(const TableConversionOptions& options, TableConversion& result)
      : options_(options), result_(result) {}

  FoundLabels read() {
    const auto table = open_table(options_.table);
    for (TableRow row; table->next(row);) take(row);
    result_.columns = table->columns();
    result_.shape = table->shape();
    if (result_.columns) result_.shape.channels = static_cast<int>(result_.columns->numbers());
    result_.label_column = table->label_column();
    result_.warning = table->warning();
    if (auto columns = table->text_columns();
        !columns.empty() && (!options_.skip_damaged || found_.labels.empty()))
      throw TextColumnsError(options_.table.from, std::move(columns));
    if (result_.damaged > 0 && !options_.skip_damaged)
      throw DataError(fmt::format("{}{}; mend {}{}, or leave them out with --skip-damaged",
                                  fmt::join(result_.troubles, "; "),
                                  result_.damaged > std::ssize(result_.troubles)
                                      ? fmt::format("; ... {} in all", counted(result_.damaged, "row"))
                                      : "",
                                  result_.damaged == 1 ? "it" : "them",
                                  lacks_cells_ ? ", fill empty cells with --missing mean or median" : ""));
    if (found_.labels.empty())
      throw DataError(
          fmt::format("{}: holds no rows that can be used; give a table with some", options_.table.from));
    return std::move(found_);
  }

 private:
  void take(TableRow& row) {
    if (row.trouble.empty())
      if (const char* trouble = trouble_with_class_name(row.label))
        row.trouble = fmt::format("the label {} {}", quoted_text(row.label), trouble);
    if (row.trouble.empty() && is_dropped(row, options_.table)) {
      ++result_.incomplete;
      return;
    }
    if (!row.trouble.empty()) {
      lacks_cells_ = lacks_cells_ || row.lacks_cells;
      if (std::size(result_.troubles) < kMostTroubles)
        result_.troubles.push_back(fmt::format("{}: {}: {}", options_.table.from, row.place, row.trouble));
      ++result_.damaged;
      return;
    }
    found_.labels.push_back(found_.classes.number_of(row.label));
    if (std::ssize(found_.classes.names) > kMostShardClasses || std::ssize(found_.labels) > kMostRows)
      throw DataError(
          fmt::format("{}: {}: more than {} classes or {} rows; are labels in another column (--label)?",
                      options_.table.from, row.place, kMostShardClasses, kMostRows));
  }

  static constexpr std::int64_t kMostRows = std::numeric_limits<std::int32_t>::max();

  const TableConversionOptions& options_;
  TableConversion& result_;
  bool lacks_cells_ = false;  ///< a damaged row does
  FoundLabels found_;
};

/// "1" of "1.0", which programs make of whole numbers beside missing ones, and of numpy's "1.000e+00". Nothing: `label`
/// is no such number.
std::optional<std::string> as_whole_number(const std::string& label) {
  constexpr double kLargest = 0x1p53;
  if (label.find_first_of(".eE") == label.npos) return std::nullopt;
  const auto number = parse_double(label);
  if (!number || std::trunc(*number) != *number || std::abs(*number) > kLargest) return std::nullopt;
  return std::to_string(static_cast<std::int64_t>(*number));
}

/// Joins numbers with a point to those without, if all labels are whole numbers.
void join_whole_numbers(FoundLabels& found) {
  const auto is_whole = [](const std::string& name) { return as_whole_number(name) || parse_int64(name); };
  if (!std::ranges::all_of(found.classes.names, is_whole)) return;
  ClassNumbers joined;
  std::vector<std::uint32_t> place;
  for (const std::string& name : found.classes.names)
    place.push_back(joined.number_of(as_whole_number(name).value_or(name)));
  found.renumber(place);
  found.classes = std::move(joined);
}

/// Numbers with a fraction are measured values, which are no classes. Digits alone are, such as 01.
void require_classes(const FoundLabels& found, const std::string& column, const std::string& file) {
  const std::vector<std::string>& names = found.classes.names;
  const auto is_number = [](const std::string& name) { return parse_double(name).has_value(); };
  const auto fraction = std::ranges::find_if(names, [](const std::string& name) {
    return !parse_int64(name) && name.find_first_not_of("0123456789") != name.npos;
  });
  if (fraction != names.end() && std::ranges::all_of(names, is_number))
    throw DataError(
        fmt::format("{}: labels such as {} are not whole numbers; classes are wanted: name their column "
                    "with --label, or write names or whole numbers",
                    file, printable_line(*fraction)));
  if (names.size() == 1)
    throw DataError(fmt::format(
        "{}: {} of all {} is {}: one class cannot be distinguished from others; name the column of "
        "the labels with --label",
        file, column.empty() ? "the label" : column, counted(found.labels.size(), "row"),
        quoted_text(names.front())));
}

/// A word's column is called COLUMN=word, as another column may be.
void require_different_names(const TableColumns& columns, const std::string& file) {
  auto names = names_of_numbers(columns);
  std::ranges::sort(names);
  if (const auto twin = std::ranges::adjacent_find(names); twin != names.end())
    throw DataError(
        fmt::format("{}: two columns of the set would be called '{}', for a word of --one-hot is called "
                    "COLUMN=word; rename a column, or leave one out with --drop",
                    file, *twin));
}

void write_rows(const TableOptions& options, const FoundLabels& found, const std::vector<SetHalf>& halves,
                ShardWriter& writer) {
  const auto table = open_table(options);
  const std::vector<std::string>& names = found.classes.names;
  const auto require_same = [&](bool is_same) {
    if (!is_same)
      throw DataError(fmt::format("{}: changed while it was read; convert it again", options.from));
  };
  std::size_t i = 0;
  for (TableRow row; table->next(row);) {
    if (!row.trouble.empty() || is_dropped(row, options) || trouble_with_class_name(row.label) != nullptr)
      continue;
    require_same(i < halves.size() && (names[found.labels[i]] == row.label ||
                                       names[found.labels[i]] == as_whole_number(row.label)));
    const std::span bytes(reinterpret_cast<const std::uint8_t*>(row.features.data()),
                          row.features.size() * sizeof(float));
    writer.add(halves[i], bytes, found.labels[i]);
    ++i;
  }
  require_same(i == halves.size());
}

}  // namespace

std::uint32_t ClassNumbers::number_of(const std::string& name) {
  const auto [number, is_new] = numbers.try_emplace(name, static_cast<std::uint32_t>(names.size()));
  if (is_new) names.push_back(name);
  return number->second;
}

std::vector<std::uint32_t> ClassNumbers::sort_names() {
  const bool by_number =
      std::ranges::all_of(names, [](const std::string& name) { return parse_int64(name).has_value(); });
  std::ranges::sort(names, [&](const std::string& left, const std::string& right) {
    if (by_number && *parse_int64(left) != *parse_int64(right))
      return *parse_int64(left) < *parse_int64(right);
    return left < right;
  });
  std::vector<std::uint32_t> place(names.size());
  for (std::uint32_t i = 0; i < names.size(); ++i) place[numbers.at(names[i])] = i;
  return place;
}

bool is_called_a_table(const fs::path& path) {
  return is_text(path) || is_one_of(kArrays, path);
}

std::unique_ptr<Table> open_table(const TableOptions& options) {
  return is_one_of(kArrays, options.from) ? open_array_table(options) : open_text_table(options);
}

TextColumnsError::TextColumnsError(const std::string& file, std::vector<TextColumn> columns)
    : DataError([&] {
        std::vector<std::string_view> names;
        for (const TextColumn& column : columns) names.emplace_back(column.column);
        return fmt::format(
            "{}: {} text, and networks take numbers: {}; make a column of each value with "
            "--one-hot COLUMN, or leave them out with --drop COLUMN",
            file, names.size() == 1 ? "a column holds" : counted(names.size(), "column") + " hold",
            fmt::join(names, ", "));
      }()),
      columns_(std::move(columns)) {}

TableConversion convert_table(Env& env, const TableConversionOptions& options) {
  TableConversion result;
  FoundLabels found = LabelReader(options, result).read();
  join_whole_numbers(found);
  require_classes(found, result.label_column, options.table.from);
  found.renumber(found.classes.sort_names());
  result.class_names = found.classes.names;
  const std::vector<SetHalf> halves = split_classes(found.labels, result.class_names, options.split);
  for (auto* samples : {&result.train, &result.test, &result.validation})
    samples->resize(result.class_names.size());
  for (std::size_t i = 0; i < halves.size(); ++i) ++select_half(result, halves[i])[found.labels[i]];
  TableOptions table = options.table;
  if (result.columns) {
    require_different_names(*result.columns, options.table.from);
    table.header = result.columns->have_names() ? TableHeader::kYes : TableHeader::kNo;
    table.columns = result.columns;
    if (table.fills_cells())
      table.columns = result.columns = std::make_shared<const TableColumns>(
          measure_fillers(table, *result.columns, halves, result.filled));
  }
  ShardWriter writer(env, options.to, result.shape, result.class_names,
                     {.replace = options.replace,
                      .is_fp32 = true,
                      .columns = result.columns ? to_text(*result.columns) : ""});
  write_rows(table, found, halves, writer);
  writer.publish();
  return result;
}

}  // namespace lockstep
