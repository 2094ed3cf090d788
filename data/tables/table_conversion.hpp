// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Makes a set of a table: data.set: table (docs/shard-format.md).
#pragma once

#include "common/env.hpp"
#include "common/error.hpp"
#include "data/sets/hold_out.hpp"
#include "data/tables/table.hpp"
#include "kernels/shapes.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace lockstep {

/// Columns that hold text, and no numbers: what() names them, and columns() says more of each.
class TextColumnsError : public DataError {
 public:
  TextColumnsError(const std::string& file, std::vector<TextColumn> columns);
  const std::vector<TextColumn>& columns() const { return columns_; }

 private:
  std::vector<TextColumn> columns_;
};

/// Labels become classes in the order of their numbers, or of their bytes if one is no whole number. If all are
/// whole numbers, 1.0 is 1.
struct TableConversionOptions {
  TableOptions table = {};
  std::string to = {};        ///< the directory of the new set
  SplitChoice split = {};     ///< for each class
  bool replace = false;       ///< the set that is in `to` already
  bool skip_damaged = false;  ///< go on without rows that cannot be used
};

struct TableConversion {
  ImageShape shape;
  std::vector<std::string> class_names;
  std::vector<std::int64_t> train, test, validation;  ///< [class] samples
  std::int64_t damaged = 0;                           ///< rows that were left out
  std::int64_t incomplete = 0;                  ///< rows left out for empty cells (MissingCells::kDropped)
  std::shared_ptr<const TableColumns> columns;  ///< recipe that the set records; null: none
  std::vector<std::int64_t> filled;             ///< [column] cells that were empty
  std::string label_column, warning;            ///< as of Table
  std::vector<std::string> troubles;            ///< the first kMostTroubles of them, each with file and line
};

inline constexpr std::size_t kMostTroubles = 10;

/// Labels become classes as they are read.
struct ClassNumbers {
  std::vector<std::string> names{};  ///< in the order in which they turned up
  std::unordered_map<std::string, std::uint32_t> numbers{};

  /// A name's index into `names`.
  std::uint32_t number_of(const std::string& name);
  /// Once all are there. By number where all are whole numbers, by their bytes otherwise.
  /// @returns [number] its place in that order
  std::vector<std::uint32_t> sort_names();
};

/// Reads the table twice, first its labels and then its numbers. With means or medians it reads it three times.
/// Writes data.set: table (docs/shard-format.md). Needs the memory of some rows, and 6 bytes for each; for medians
/// that of all numbers. The set is a function of the table's rows and the choice.
/// @throws TextColumnsError
/// @throws DataError   a row that cannot be used, unless skip_damaged; labels that are no classes, or one class; a
///                     class with too few samples to test with some of them
/// @throws UsageError, IoError  as ShardWriter
TableConversion convert_table(Env& env, const TableConversionOptions& options);

}  // namespace lockstep
