// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Turns the cells of a row into the numbers of a sample. It uses what a set records of its columns, or learns what
/// there is to record.
#pragma once

#include "data/dataset.hpp"
#include "data/sets/table_columns.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace lockstep {

struct TableOptions;
struct TableRow;
enum class MissingCells;

/// A column in which a quarter of the cells or more is not a number.
struct TextColumn {
  std::string column;         ///< "column 2 (colour)"
  std::string argument;       ///< for --drop and --one-hot: its name, or its number
  std::size_t different = 0;  ///< texts, at most kMostTexts
  std::string example;

  static constexpr std::size_t kMostTexts = 1000;
};

/// Reads rows as a recipe says, or learns what there is to say.
class ColumnReader {
 public:
  /// @param columns  options.columns, or where it is null names and which of them are one-hot
  /// @param shown    [column] "column 2 (colour)"
  ColumnReader(const TableOptions& options, TableColumns columns, std::vector<std::string> shown);

  /// @param cells         [column], without spaces around them
  /// @param row           its features, and what is wrong with the first cell that cannot be used
  /// @param has_no_label  the row is left out whatever its cells are: nothing is learnt of its words
  void read(std::span<const std::string_view> cells, TableRow& row, bool has_no_label = false);
  /// With the values of the rows that can be used.
  TableColumns learnt() const;
  /// Learns. @param arguments  [column] TextColumn::argument
  std::vector<TextColumn> text_columns(std::span<const std::string> arguments) const;

 private:
  /// The texts of a column.
  struct Texts {
    std::int64_t missing = 0, texts = 0;  ///< cells that are empty, and those of others that are no numbers
    std::unordered_set<std::string> different;
    std::string example;
  };

  void read_number(std::size_t i, std::string_view cell, TableRow& row);
  void read_value(std::size_t i, std::string_view cell, TableRow& row);
  void take_missing(std::size_t i, std::string_view cell, TableRow& row);
  void complain(std::size_t i, std::string_view cell, const std::string& trouble, TableRow& row) const;

  bool learns_;
  std::int64_t rows_ = 0;
  MissingCells missing_;
  TableColumns columns_;
  std::vector<std::string> shown_;
  std::vector<std::set<std::string, std::less<>>> values_;  ///< [column] of one-hot ones, while it learns
  std::vector<std::pair<std::size_t, std::string_view>> new_values_;  ///< the row has, with their columns
  std::vector<Texts> texts_;                                          ///< [column] likewise
};

/// Reads the table for the numbers that empty cells get. They are the means or medians of those rows that are trained
/// on.
/// @param columns  those with all values of the one-hot ones
/// @param halves   halves of the rows that can be used
/// @param filled   [column] appended: how many cells of all halves are empty
/// @throws DataError  a column has no number in the training half; MemoryError; as open_table
TableColumns measure_fillers(const TableOptions& options, TableColumns columns,
                             const std::vector<SetHalf>& halves, std::vector<std::int64_t>& filled);

}  // namespace lockstep
