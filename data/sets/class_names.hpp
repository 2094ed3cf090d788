// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Matching of the classes of two sets, or of a set and a model: by name, with any numbers.
#pragma once

#include "data/dataset.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

/// True of the names of what has none: 0, 1, 2 ..., or no name at all.
bool are_only_numbers(const std::vector<std::string>& names);

/// "cat, dog, horse, ..."
std::string first_names(const std::vector<std::string>& names);

/// The places of the classes of one list in another.
struct ClassMatch {
  std::vector<std::int32_t> places;           ///< [class of `names`] in `known`; -1: it is not there
  std::vector<std::string> unknown, missing;  ///< only in `names`, only in `known`
  bool is_order_same = true;                  ///< each class of `names` is known, under its own number

  bool is_identity() const { return is_order_same && missing.empty(); }
};

/// @param known  each name once
ClassMatch match_classes(const std::vector<std::string>& known, const std::vector<std::string>& names);

/// Gives the labels of all halves their numbers in `known`.
/// @param match  match of `known` and the set's names; none of these is unknown
void renumber_classes(TrainTestData& data, const std::vector<std::string>& known, const ClassMatch& match);

}  // namespace lockstep
