// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The formats that data sets are stored in, or the ways in which they are made: one table.
#pragma once

#include "data/dataset.hpp"
#include "data/set_files.hpp"
#include "data/set_outline.hpp"

#include <string_view>
#include <vector>

namespace lockstep {

/// Sets of either kind come named "SET train" and "SET test", and not normalised yet.
struct SetFormat {
  std::string_view name;  ///< in data/catalogue.txt

  /// What a directory must hold to be taken for a set of this format; null: it is made in memory.
  std::vector<FileNames> (*files)(const SetEntry& set);
  /// From files found so. @throws DataError
  TrainTestData (*load)(const SetEntry& set, const SetFiles& files);
  /// What the files' headers say, for sets of which nothing else is known; null: there are none in this
  /// format.
  SetOutline (*outline)(const SetEntry& set, const SetFiles& files);
  /// Without files.
  TrainTestData (*make)(const DatasetOptions& options);

  bool is_made() const { return make != nullptr; }
};

/// @throws ConfigError  the catalogue names a format that there is not
const SetFormat& format_of(const SetEntry& set);

}  // namespace lockstep
