// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How large a data set is and what it looks like, without loading its images.
#pragma once

#include "kernels/shapes.hpp"

#include <cstdint>
#include <string>

namespace lockstep {

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

}  // namespace lockstep
