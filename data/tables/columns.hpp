// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How the cells of a table's row become a set's numbers, where that is more than reading numbers: texts that become
/// columns of 0 and 1, and numbers for empty cells. A set and its runs record it, so that predict reads new rows alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace lockstep {

struct TableOptions;
struct TableRow;
enum class MissingCells;

/// A column of a table.
struct TableColumn {
  std::string name = {};  ///< as the first row has it, printable; empty: the table has no names
  bool is_one_hot = false;
  std::vector<std::string> values = {};  ///< of a one-hot column, sorted: the set has a column for each
  std::optional<float> filler = {};      ///< put in for an empty cell, in each of its columns
  friend bool operator==(const TableColumn&, const TableColumn&) = default;
};

struct TableColumns {
  std::vector<TableColumn> all;  ///< in the order of the set

  /// Numbers of a sample.
  std::size_t numbers() const;
  bool have_names() const { return !all.empty() && !all.front().name.empty(); }
};

/// A line of JSON: [{"name":"age","missing":31.5},{"name":"colour","values":["blue","red"]}]
std::string to_text(const TableColumns& columns);
/// @throws DataError  it says nothing that can be. @param file  for messages
TableColumns parse_table_columns(std::string_view text, const std::string& file);

/// A column in which a quarter of the cells or more is no number.
struct TextColumn {
  std::string column;         ///< "column 2 (colour)"
  std::string argument;       ///< of --drop and --one-hot: its name, or its number
  std::size_t different = 0;  ///< texts, at most kMostTexts
  std::string example;

  static constexpr std::size_t kMostTexts = 1000;
};

/// Reads rows as a recipe says, or learns what there is to say.
class ColumnReader {
 public:
  static constexpr std::size_t kMostValues = 10'000;

  /// @param columns  options.columns, or where it is null names and which of them are one-hot
  /// @param shown    [column] "column 2 (colour)"
  ColumnReader(const TableOptions& options, TableColumns columns, std::vector<std::string> shown);

  /// @param cells  [column], without spaces around them
  /// @param row    its features, and what is wrong with the first cell that cannot be used
  void read(std::span<const std::string_view> cells, TableRow& row);
  /// With the values that were found.
  TableColumns learnt() const;
  /// Where it learns. @param arguments  [column] TextColumn::argument
  std::vector<TextColumn> text_columns(std::span<const std::string> arguments) const;

 private:
  /// The texts of a column.
  struct Texts {
    std::int64_t cells = 0, texts = 0;  ///< that are not empty, and those of them that are no numbers
    std::unordered_set<std::string> different;
    std::string example;
  };

  void read_number(std::size_t i, std::string_view cell, TableRow& row);
  void read_value(std::size_t i, std::string_view cell, TableRow& row);
  void take_missing(std::size_t i, std::string_view cell, TableRow& row) const;
  void complain(std::size_t i, std::string_view cell, const std::string& trouble, TableRow& row) const;

  bool learns_;
  MissingCells missing_;
  TableColumns columns_;
  std::vector<std::string> shown_;
  std::vector<std::set<std::string, std::less<>>> values_;  ///< [column] of one-hot ones, while it learns
  std::vector<Texts> texts_;                                ///< [column] likewise
};

}  // namespace lockstep
