// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The formats that data sets are stored in, or the ways in which they are made: one table.
#pragma once

#include "data/dataset.hpp"
#include "data/sets/set_files.hpp"
#include "kernels/shapes.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// How large a data set is and what it looks like, without loading its images.

struct SetOutline {
  ImageShape shape;
  int classes = 0;
  std::int64_t train_samples = 0, test_samples = 0;
  bool is_fp32 = false;  ///< its features; otherwise bytes
};

/// Of a set that is known by name what is published, whatever its files are, if they are there at all. Of
/// people's own data what the headers of their files and the labels say.
/// @throws ConfigError       unknown set; own data without a directory
/// @throws MissingDataError, DataError  own data that are not there, or damaged, as load_dataset
SetOutline outline_of(const std::string& set, const std::string& root);

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
