// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Matches classes by name, and renumbers labels.
#include "data/sets/class_names.hpp"

#include "common/error.hpp"
#include "data/sets/names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <unordered_map>

namespace lockstep {

bool are_only_numbers(const std::vector<std::string>& names) {
  return names == numbered_classes(static_cast<int>(names.size()));
}

std::string first_names(const std::vector<std::string>& names) {
  constexpr std::ptrdiff_t kMostNamesShown = 10;
  const auto shown = std::min(kMostNamesShown, std::ssize(names));
  const std::string text = fmt::format("{}", fmt::join(names.begin(), names.begin() + shown, ", "));
  return std::ssize(names) > shown ? text + ", ..." : text;
}

ClassMatch match_classes(const std::vector<std::string>& known, const std::vector<std::string>& names) {
  std::unordered_map<std::string_view, std::int32_t> place_of;
  for (const std::string& name : known) place_of.emplace(name, static_cast<std::int32_t>(place_of.size()));
  ClassMatch match;
  std::vector<bool> has(known.size());
  for (const std::string& name : names) {
    const auto found = place_of.find(name);
    const std::int32_t place = found == place_of.end() ? -1 : found->second;
    match.is_order_same &= place == std::ssize(match.places);
    match.places.push_back(place);
    if (place < 0)
      match.unknown.push_back(name);
    else
      has[static_cast<std::size_t>(place)] = true;
  }
  for (std::size_t i = 0; i < known.size(); ++i)
    if (!has[i]) match.missing.push_back(known[i]);
  return match;
}

namespace {

/// [rows, match.places.size()] becomes [rows, classes].
std::vector<std::uint8_t> renumbered_sets(const std::vector<std::uint8_t>& sets, const ClassMatch& match,
                                          std::size_t classes) {
  const std::size_t before = match.places.size();
  std::vector<std::uint8_t> result(sets.size() / before * classes);
  for (std::size_t i = 0; i < sets.size(); ++i)
    result[i / before * classes + static_cast<std::size_t>(match.places[i % before])] = sets[i];
  return result;
}

}  // namespace

void renumber_classes(TrainTestData& data, const std::vector<std::string>& known, const ClassMatch& match) {
  LOCKSTEP_CHECK(match.unknown.empty() && match.places.size() == data.class_names.size());
  for (Dataset* half : {&data.train, &data.test, &data.validation}) {
    half->classes = static_cast<int>(known.size());
    half->file_fingerprint.reset();  // its labels are no longer those of the file
    if (half->has_label_sets())
      half->label_sets = renumbered_sets(half->label_sets, match, known.size());
    else
      for (std::int32_t& label : half->labels) label = match.places[static_cast<std::size_t>(label)];
    half->quick.labels = quick_fingerprint_of(*half).labels;
  }
  data.class_names = known;
}

}  // namespace lockstep
