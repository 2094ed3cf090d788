// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Network::summary: the layers as a table for people.
#include "common/text/text_layout.hpp"
#include "models/layer.hpp"
#include "models/network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace lockstep {
namespace {

using Row = std::array<std::string, 4>;

std::string aligned(const std::vector<Row>& rows) {
  std::array<std::size_t, 4> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string table;
  for (const Row& row : rows) {
    fmt::format_to(std::back_inserter(table), "{:<{}}  {:<{}}  {:<{}}  {:>{}}", row[0], widths[0], row[1],
                   widths[1], row[2], widths[2], row[3], widths[3]);
    table.erase(table.find_last_not_of(' ') + 1);
    table += '\n';
  }
  return table;
}

}  // namespace

std::string Network::summary() const {
  std::vector<Row> rows{{"layer", "kind", "output", "parameters"}, {"input", "", to_string(input_), ""}};
  for (const auto& layer : layers_) {
    const std::size_t count = layer->parameter_size();
    rows.push_back(
        {layer->name(), layer->describe(), to_string(layer->output()), count ? with_thousands(count) : ""});
  }
  rows.push_back({"total", "", "", with_thousands(parameters_.size)});
  return aligned(rows);
}

}  // namespace lockstep
