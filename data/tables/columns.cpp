// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Cells to numbers, and the recipe for that as JSON.
#include "data/tables/columns.hpp"

#include "common/error.hpp"
#include "common/json_text.hpp"
#include "common/printable.hpp"
#include "data/sets/names.hpp"
#include "data/tables/table.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace lockstep {

// The recipe.

std::size_t TableColumns::numbers() const {
  return std::accumulate(all.begin(), all.end(), std::size_t{0},
                         [](std::size_t sum, const TableColumn& column) {
                           return sum + (column.is_one_hot ? column.values.size() : 1);
                         });
}

std::string to_text(const TableColumns& columns) {
  auto json = nlohmann::ordered_json::array();
  for (const TableColumn& column : columns.all) {
    nlohmann::ordered_json entry = {{"name", column.name}};
    if (column.is_one_hot) entry["values"] = column.values;
    if (column.filler) entry["missing"] = *column.filler;
    json.push_back(entry);
  }
  return json_text_in_ascii(json);
}

namespace {

bool is_printable(const std::string& text) {
  return printable_line(text) == text;
}

bool may_be_values(const std::vector<std::string>& values) {
  return !values.empty() && values.size() <= ColumnReader::kMostValues &&
         std::ranges::is_sorted(values, std::less_equal()) &&
         std::ranges::none_of(values,
                              [](const std::string& value) { return trouble_with_class_name(value); });
}

/// Nothing: it says no column.
std::optional<TableColumn> read_column(const nlohmann::json& json) {
  if (!json.is_object() || !json.value("name", nlohmann::json()).is_string()) return std::nullopt;
  TableColumn column{.name = json["name"].get<std::string>()};
  if (!is_printable(column.name)) return std::nullopt;
  if (json.contains("values")) {
    const nlohmann::json& values = json["values"];
    column.is_one_hot = true;
    if (!values.is_array() || !std::ranges::all_of(values, &nlohmann::json::is_string)) return std::nullopt;
    column.values = values.get<std::vector<std::string>>();
    if (!may_be_values(column.values)) return std::nullopt;
  }
  if (json.contains("missing")) {
    const double filler = json["missing"].is_number() ? json["missing"].get<double>() : NAN;
    column.filler = static_cast<float>(filler);
    if (!std::isfinite(*column.filler)) return std::nullopt;
  }
  return column;
}

}  // namespace

TableColumns parse_table_columns(std::string_view text, const std::string& file) {
  const auto json = parse_json_or_discard(text);
  TableColumns columns;
  bool is_good = json.is_array() && !json.empty();
  if (is_good)
    for (const nlohmann::json& entry : json)
      if (auto column = read_column(entry)) columns.all.push_back(*std::move(column));
  is_good = is_good && columns.all.size() == json.size() &&
            std::ranges::all_of(columns.all, [&](const TableColumn& column) {
              return column.name.empty() != columns.have_names();
            });
  if (!is_good)
    throw DataError(
        fmt::format("{}: its columns are not a list of names, values and numbers for empty cells; "
                    "convert the table again",
                    file));
  return columns;
}

// From cells to numbers.

ColumnReader::ColumnReader(const TableOptions& options, TableColumns columns, std::vector<std::string> shown)
    : learns_(options.columns == nullptr),
      missing_(options.missing),
      columns_(std::move(columns)),
      shown_(std::move(shown)),
      values_(learns_ ? columns_.all.size() : 0),
      texts_(values_.size()) {}

void ColumnReader::read(std::span<const std::string_view> cells, TableRow& row) {
  row.features.clear();
  row.lacks_cells = false;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (is_missing(cells[i]))
      take_missing(i, cells[i], row);
    else if (columns_.all[i].is_one_hot)
      read_value(i, cells[i], row);
    else
      read_number(i, cells[i], row);
  }
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
    if (texts.texts == 0 || 4 * texts.texts < texts.cells) continue;
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
void ColumnReader::take_missing(std::size_t i, std::string_view cell, TableRow& row) const {
  const TableColumn& column = columns_.all[i];
  row.lacks_cells = row.lacks_cells || !column.filler;
  if (!column.filler && missing_ == MissingCells::kRefused) complain(i, cell, "is missing", row);
  row.features.insert(row.features.end(), column.is_one_hot ? column.values.size() : 1,
                      column.filler.value_or(std::numeric_limits<float>::quiet_NaN()));
}

void ColumnReader::read_number(std::size_t i, std::string_view cell, TableRow& row) {
  float& value = row.features.emplace_back(0.0F);
  const char* trouble = read_feature(cell, value);
  if (learns_) ++texts_[i].cells;
  if (trouble == nullptr) return;
  complain(i, cell, trouble, row);
  if (!learns_) return;
  Texts& texts = texts_[i];
  if (texts.texts++ == 0) texts.example = cell;
  if (texts.different.size() < TextColumn::kMostTexts) texts.different.emplace(cell);
}

/// 1 in the column of the value, and 0 in those of the others.
void ColumnReader::read_value(std::size_t i, std::string_view cell, TableRow& row) {
  if (learns_) {
    if (values_[i].contains(cell)) return;
    if (const char* trouble = trouble_with_class_name(cell)) return complain(i, cell, trouble, row);
    if (values_[i].size() == kMostValues)
      throw DataError(
          fmt::format("{}: {} has more than {} different values, too many for --one-hot; leave it "
                      "out with --drop",
                      row.place, shown_[i], kMostValues));
    values_[i].emplace(cell);
    return;
  }
  const std::vector<std::string>& values = columns_.all[i].values;
  const auto value = std::ranges::lower_bound(values, cell, std::less());
  const std::size_t first = row.features.size();
  row.features.resize(first + values.size(), 0.0F);
  if (value != values.end() && *value == cell)
    row.features[first + static_cast<std::size_t>(value - values.begin())] = 1.0F;
  else
    complain(i, cell, "is no value that this column had when the set was made", row);
}

}  // namespace lockstep
