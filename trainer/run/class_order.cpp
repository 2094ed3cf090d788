// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Renumbers the labels of a set, or moves the rows of a layer.
#include "trainer/run/class_order.hpp"

#include "common/error.hpp"
#include "common/yaml.hpp"
#include "data/sets/class_names.hpp"
#include "models/layer.hpp"
#include "models/layer_ops.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <variant>

namespace lockstep {
namespace {

/// Labels of tables may be any whole numbers. In two such lists the numbers are the names.
bool are_named(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  const auto is_number = [](const std::string& name) { return parse_int64(name).has_value(); };
  return (!are_only_numbers(a) && !are_only_numbers(b)) ||
         (std::ranges::all_of(a, is_number) && std::ranges::all_of(b, is_number));
}

/// A class is a row of a linear layer or a convolution. After a norm it is a row of the layer before, too.
bool has_rows_of_classes(const Layer& layer, std::size_t classes) {
  const LayerOp op = layer.op();
  const auto* convolution = std::get_if<Conv2dShape>(&op);
  const bool has_rows =
      std::holds_alternative<LinearShape>(op) || (convolution != nullptr && convolution->groups == 1);
  return has_rows && std::ranges::all_of(layer.parameters(), [&](const Parameter& tensor) {
           return static_cast<std::size_t>(tensor.shape.front()) == classes;
         });
}

}  // namespace

std::string number_as(const std::vector<std::string>& classes, TrainTestData& data) {
  const ClassMatch match = match_classes(classes, data.class_names);
  if (match.is_identity() || classes.empty()) return "";
  if (!match.unknown.empty() && !are_named(classes, data.class_names))
    return "classes go by number, since one side has no names for them";
  if (!match.unknown.empty())
    throw UsageError(fmt::format(
        "{}: the model does not know {}, only {}; rename the classes that it knows, and leave others out",
        data.origin, first_names(match.unknown), first_names(classes)));
  if (!match.missing.empty() && data.test.has_label_sets())
    throw UsageError(
        fmt::format("{}: its samples have several labels, none of which says {}; label them, too",
                    data.origin, first_names(match.missing)));
  renumber_classes(data, classes, match);
  return "classes matched by name" +
         (match.missing.empty() ? "" : ", no samples of " + first_names(match.missing));
}

std::string order_last_layer(const Network& network, std::span<float> weights,
                             const std::vector<std::string>& known, const std::vector<std::string>& classes) {
  if (known.size() != classes.size() || are_only_numbers(known) || are_only_numbers(classes)) return "";
  const ClassMatch match = match_classes(known, classes);
  if (match.is_identity()) return "";
  if (!match.unknown.empty())
    return fmt::format(
        "note: they answer for {}, and the set's classes are {}; the last layer is taken as it is",
        first_names(known), first_names(classes));
  const Layer& last = *network.layers().back();
  if (!has_rows_of_classes(last, classes.size()))
    throw DataError(
        fmt::format("the weights answer for {}, the set has {}, and the last layer has no row for each "
                    "class; give the set's classes the order of the weights'",
                    first_names(known), first_names(classes)));
  for (const Parameter& tensor : last.parameters()) {
    const auto numbers = weights.subspan(tensor.offset, tensor.size);
    const std::vector<float> before(numbers.begin(), numbers.end());
    const std::size_t row = tensor.size / classes.size();
    for (std::size_t c = 0; c < classes.size(); ++c)
      std::copy_n(
          before.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(match.places[c]) * row), row,
          numbers.begin() + static_cast<std::ptrdiff_t>(c * row));
  }
  return "the last layer's rows are put in the order of the set's classes, by name";
}

}  // namespace lockstep
