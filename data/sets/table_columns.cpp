// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The recipe as JSON, and back.
#include "data/sets/table_columns.hpp"

#include "common/error.hpp"
#include "common/json_text.hpp"
#include "common/printable.hpp"
#include "data/sets/names.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace lockstep {

std::size_t TableColumns::numbers() const {
  std::size_t sum = 0;
  for (const TableColumn& column : all) sum += column.numbers();
  return sum;
}

std::vector<std::string> names_of_numbers(const TableColumns& columns) {
  std::vector<std::string> names;
  if (!columns.have_names()) return names;
  for (const TableColumn& column : columns.all) {
    if (!column.is_one_hot) names.push_back(column.name);
    for (const std::string& value : column.values) names.push_back(column.name + "=" + value);
  }
  return names;
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

bool may_be_values(const std::vector<std::string>& values) {
  return !values.empty() && values.size() <= TableColumn::kMostValues &&
         std::ranges::is_sorted(values, std::less_equal()) &&
         std::ranges::none_of(values,
                              [](const std::string& value) { return trouble_with_class_name(value); });
}

/// Nothing: it says no column.
std::optional<TableColumn> read_column(const nlohmann::json& json) {
  if (!json.is_object() || !json.value("name", nlohmann::json()).is_string()) return std::nullopt;
  TableColumn column{.name = json["name"].get<std::string>()};
  if (printable_line(column.name) != column.name) return std::nullopt;
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
  if (json.is_array())
    for (const nlohmann::json& entry : json)
      if (auto column = read_column(entry)) columns.all.push_back(*std::move(column));
  const auto is_like_first = [&](const TableColumn& column) {
    return column.name.empty() != columns.have_names();
  };
  if (!columns.all.empty() && columns.all.size() == json.size() &&
      std::ranges::all_of(columns.all, is_like_first))
    return columns;
  throw DataError(
      fmt::format("{}: its columns are not a list of names, values and numbers for empty cells; "
                  "convert the table again",
                  file));
}

}  // namespace lockstep
