// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Recipe by which the cells of a table's row became the numbers of a set's sample. It has what was more than reading
/// numbers: words that became columns of 0 and 1, and numbers for empty cells. A set and its runs record it, and
/// predict reads new rows alike (data/tables/cells.hpp).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// A column of a table.
struct TableColumn {
  static constexpr std::size_t kMostValues = 10'000;

  std::string name = {};  ///< as the first row has it, printable; empty: the table has no names
  bool is_one_hot = false;
  std::vector<std::string> values = {};  ///< in a one-hot column, sorted: the set has a column for each
  std::optional<float> filler = {};      ///< put in for an empty cell, in each of its columns

  /// Numbers of a sample that its cell becomes.
  std::size_t numbers() const { return is_one_hot ? values.size() : 1; }
  friend bool operator==(const TableColumn&, const TableColumn&) = default;
};

struct TableColumns {
  std::vector<TableColumn> all;  ///< in the order of the set

  /// Numbers of a sample.
  std::size_t numbers() const;
  bool have_names() const { return !all.empty() && !all.front().name.empty(); }
};

/// A name for each number of a sample: "age", "colour=blue". Empty: columns have no names.
std::vector<std::string> names_of_numbers(const TableColumns& columns);

/// A line of JSON: [{"name":"age","missing":31.5},{"name":"colour","values":["blue","red"]}]
std::string to_text(const TableColumns& columns);
/// @throws DataError  it says nothing that can be. @param file  for messages
TableColumns parse_table_columns(std::string_view text, const std::string& file);

}  // namespace lockstep
