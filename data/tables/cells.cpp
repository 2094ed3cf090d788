// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Cells to numbers, and what empty cells get.
#include "data/tables/cells.hpp"

#include "common/buffers.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "common/printable.hpp"
#include "data/sets/names.hpp"
#include "data/tables/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace lockstep {

ColumnReader::ColumnReader(const TableOptions& options, TableColumns columns, std::vector<std::string> shown)
    : learns_(options.columns == nullptr),
      missing_(options.missing),
      columns_(std::move(columns)),
      shown_(std::move(shown)),
      values_(learns_ ? columns_.all.size() : 0),
      texts_(values_.size()) {}

void ColumnReader::read(std::span<const std::string_view> cells, TableRow& row, bool has_no_label) {
  row.features.clear();
  row.lacks_cells = false;
  new_values_.clear();
  ++rows_;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (columns_.all[i].is_one_hot)
      read_value(i, cells[i], row);
    else
      read_number(i, cells[i], row);
  }
  const bool is_dropped = row.lacks_cells && missing_ == MissingCells::kDropped;
  if (has_no_label || is_dropped || !row.trouble.empty()) return;
  for (const auto& [column, value] : new_values_) values_[column].emplace(value);
}

TableColumns ColumnReader::learnt() const {
  TableColumns columns = columns_;
  for (std::size_t i = 0; i < values_.size(); ++i)
    columns.all[i].values.assign(values_[i].begin(), values_[i].end());
  return columns;
}

std::vector<TextColumn> ColumnReader::text_columns(std::span<const std::string> arguments) const {
  std::vector<TextColumn> columns;
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    const Texts& texts = texts_[i];
    if (texts.texts == 0 || 4 * texts.texts < rows_ - texts.missing) continue;
    columns.push_back({.column = shown_[i],
                       .argument = arguments[i],
                       .different = texts.different.size(),
                       .example = texts.example});
  }
  return columns;
}

void ColumnReader::complain(std::size_t i, std::string_view cell, const std::string& trouble,
                            TableRow& row) const {
  if (!row.trouble.empty()) return;
  row.trouble = fmt::format("{}: '{}' {}", shown_[i], printable_line(cell.substr(0, 40)), trouble);
}

/// In the order of the set. Numbers that are not known yet are NaN.
void ColumnReader::take_missing(std::size_t i, std::string_view cell, TableRow& row) {
  if (learns_) ++texts_[i].missing;
  const TableColumn& column = columns_.all[i];
  row.lacks_cells = row.lacks_cells || !column.filler;
  if (!column.filler && missing_ == MissingCells::kRefused) complain(i, cell, "is missing", row);
  row.features.insert(row.features.end(), column.numbers(),
                      column.filler.value_or(std::numeric_limits<float>::quiet_NaN()));
}

void ColumnReader::read_number(std::size_t i, std::string_view cell, TableRow& row) {
  float value = 0;
  const char* trouble = read_feature(cell, value);
  if (trouble != nullptr && is_missing(cell)) return take_missing(i, cell, row);
  row.features.push_back(value);
  if (trouble == nullptr) return;
  complain(i, cell, trouble, row);
  if (!learns_ || trouble == kBeyondFp32) return;
  Texts& texts = texts_[i];
  if (texts.texts++ == 0) texts.example = cell;
  if (texts.different.size() < TextColumn::kMostTexts) texts.different.emplace(cell);
}

/// 1 in the column of the value, and 0 in those of the others.
void ColumnReader::read_value(std::size_t i, std::string_view cell, TableRow& row) {
  if (is_missing(cell)) return take_missing(i, cell, row);
  if (learns_) {
    if (values_[i].contains(cell)) return;
    if (const char* trouble = trouble_with_class_name(cell)) return complain(i, cell, trouble, row);
    if (values_[i].size() == TableColumn::kMostValues)
      throw DataError(
          fmt::format("{}: {} has more than {} different values, too many for --one-hot; leave it "
                      "out with --drop",
                      row.place, shown_[i], TableColumn::kMostValues));
    new_values_.emplace_back(i, cell);
    return;
  }
  const std::vector<std::string>& values = columns_.all[i].values;
  const auto value = std::ranges::lower_bound(values, cell, std::less());
  const std::size_t first = row.features.size();
  row.features.resize(first + values.size(), 0.0F);
  if (value != values.end() && *value == cell)
    row.features[first + static_cast<std::size_t>(value - values.begin())] = 1.0F;
  else
    complain(i, cell, "is not a value that this column had when the set was made", row);
}

// Numbers for empty cells.

namespace {

/// Cells of a column.
struct ColumnCells {
  std::int64_t empty = 0, numbers = 0;  ///< in all rows; and in the training half
  double sum = 0;
  std::vector<float> values = {};  ///< for a median
};

void count_cells(const TableColumns& columns, std::span<const float> features, bool is_trained_on,
                 bool keeps_values, std::vector<ColumnCells>& cells) {
  for (std::size_t c = 0, next = 0; c < cells.size(); ++c) {
    const TableColumn& column = columns.all[c];
    const float value = features[next];
    next += column.numbers();
    if (std::isnan(value)) ++cells[c].empty;
    if (std::isnan(value) || !is_trained_on || column.is_one_hot) continue;
    ++cells[c].numbers;
    cells[c].sum += value;
    if (keeps_values) cells[c].values.push_back(value);
  }
}

/// No cell of the c-th column has a number or a word. @param where  of those that are looked at
[[noreturn]] void refuse_empty(const TableOptions& options, const TableColumns& columns, std::size_t c,
                               const char* where) {
  const std::string& name = columns.all[c].name;
  throw DataError(
      fmt::format("{}: all cells of {} {} are empty, so there is nothing to fill others with; "
                  "leave it out with --drop",
                  options.from,
                  name.empty() ? fmt::format("feature {}", c + 1) : fmt::format("column '{}'", name), where));
}

/// An empty cell has none of a one-hot column's values.
float filler_of(const TableColumns& columns, std::size_t c, ColumnCells& cells, const TableOptions& options) {
  if (columns.all[c].is_one_hot) return 0;
  if (cells.numbers == 0) refuse_empty(options, columns, c, "in the training half");
  if (options.missing == MissingCells::kMean)
    return static_cast<float>(cells.sum / static_cast<double>(cells.numbers));
  const auto middle = cells.values.begin() + std::ssize(cells.values) / 2;
  std::ranges::nth_element(cells.values, middle);
  const double upper = *middle;
  if (cells.values.size() % 2 == 1) return *middle;
  return static_cast<float>((upper + *std::max_element(cells.values.begin(), middle)) / 2);
}

}  // namespace

TableColumns measure_fillers(const TableOptions& options, TableColumns columns,
                             const std::vector<SetHalf>& halves, std::vector<std::int64_t>& filled) {
  const bool wants_medians = options.missing == MissingCells::kMedian;
  std::vector<ColumnCells> cells(columns.all.size());
  for (std::size_t c = 0; c < cells.size(); ++c)
    if (columns.all[c].numbers() == 0) refuse_empty(options, columns, c, "in rows that can be used");
  if (wants_medians)
    require_memory(checked_product(std::ranges::count(halves, SetHalf::kTrain), cells.size(), sizeof(float)),
                   "the medians of " + options.from, "take --missing mean, which needs none");
  const auto table = open_table(options);
  auto half = halves.begin();
  for (TableRow row; table->next(row);) {
    if (!row.trouble.empty() || trouble_with_class_name(row.label) != nullptr) continue;
    if (half == halves.end()) break;  // another file by now, as the last reading says
    count_cells(columns, row.features, *half++ == SetHalf::kTrain, wants_medians, cells);
  }
  for (std::size_t c = 0; c < cells.size(); ++c) {
    columns.all[c].filler = filler_of(columns, c, cells[c], options);
    filled.push_back(cells[c].empty);
  }
  return columns;
}

}  // namespace lockstep
