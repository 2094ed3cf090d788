// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// People's own tables: a sample a row, its numbers and its label. From text (.csv, .tsv) and from numpy's arrays
/// (.npy, .npz), row after row, so that a file may be larger than memory.
#pragma once

#include "data/tables/cells.hpp"
#include "kernels/shapes.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// True if a name ends with .csv, .tsv, .txt, .data or these and .gz, .npy or .npz, in any case.
bool is_called_a_table(const std::filesystem::path& path);

/// Says if the first row of text has the columns' names. kAuto: if a feature in it is no number, or a column is asked
/// for that has no such number.
enum class TableHeader { kAuto, kYes, kNo };

/// Treatment of a feature's empty cell, in text, and of NA, NaN, null, None or ?.
enum class MissingCells {
  kRefused,
  kMean,    ///< the mean of its column in the training half is put in
  kMedian,  ///< the median is put in
  kDropped  ///< its row is left out
};

/// How a table is read.
struct TableOptions {
  std::string from = {};
  /// The column of text that has the labels. It is its name or its number, the first one being 1. Empty: the one that
  /// is called label, target, class, y or species, in letters of any case. In a .npz the name of the array; empty: y,
  /// labels or label. For a .npy the file of that array.
  std::string label = {};
  bool has_labels = true;                   ///< false: all columns are features, as predict reads them
  std::vector<std::string> drop = {};       ///< columns of text that are no features, by name or number
  TableHeader header = TableHeader::kAuto;  ///< for text
  std::string separator = {};  ///< for text, one character; empty: a comma, or a tabulator in .tsv
  std::vector<std::string> one_hot =
      {};  ///< columns of text, by name or number, of which each value becomes one
  MissingCells missing = MissingCells::kRefused;
  bool fills_cells() const { return missing == MissingCells::kMean || missing == MissingCells::kMedian; }
  /// The recipe for text: rows become what a set has, as this says, by name where both have names. Null: it is learnt
  /// as rows are read.
  std::shared_ptr<const TableColumns> columns = nullptr;
};

/// A sample as its file has it.
struct TableRow {
  std::vector<float> features;  ///< all finite; NaN where a cell is empty and nothing is put in yet
  std::string label;            ///< as text, without spaces around it
  std::string place;            ///< "line 12" or "row 3"
  std::string trouble;          ///< why it cannot be used, with column and value; empty: it can
  bool lacks_cells = false;     ///< some are empty, and nothing was put in
};

/// The rows of a table, once.
class Table {
 public:
  Table() = default;
  virtual ~Table() = default;
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  /// Shape of a sample. Each column has a channel; arrays of more dimensions are [channel][row][column].
  const ImageShape& shape() const { return shape_; }
  /// "column 5 (species)"; empty for arrays, and where there are no labels.
  const std::string& label_column() const { return label_column_; }
  /// Doubts about the rows read so far: a column without a name that only counts them. Empty: there are none.
  virtual std::string warning() const { return ""; }
  /// How its rows become numbers, as far as that was learnt from the rows read so far. Null: all are numbers.
  virtual std::shared_ptr<const TableColumns> columns() const { return nullptr; }
  /// Columns of the rows read so far that hold text rather than numbers.
  virtual std::vector<TextColumn> text_columns() const { return {}; }
  /// @returns false: there are no more. A row with trouble has its place; the next one can be read.
  /// @throws DataError  the next row cannot be read either: names file and offset or line; IoError
  virtual bool next(TableRow& row) = 0;

 protected:
  ImageShape shape_{0, 1, 1};
  std::string label_column_;
};

/// Opens one, and reads what is above its rows.
/// @throws DataError         it is no table, or has no such column or array; MissingDataError, IoError
/// @throws UsageError        an option that there is not for such a file; or the column of the labels has to be named
std::unique_ptr<Table> open_table(const TableOptions& options);
std::unique_ptr<Table> open_text_table(const TableOptions& options);
std::unique_ptr<Table> open_array_table(const TableOptions& options);

/// A number, from text, rounded to double and then to fp32, as numpy does it.
/// @returns what is wrong with it, or null. "is missing": empty, or NA, NaN, null, None, ?
const char* read_feature(std::string_view text, float& value);
/// One of its answers: it is a number all the same, and no text.
inline constexpr const char* kBeyondFp32 = "is not a number that fp32 has";

/// Empty, or NA, N/A, NaN, null, None, ? in the usual letters, without spaces around it.
bool is_missing(std::string_view text);

}  // namespace lockstep
