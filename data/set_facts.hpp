// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What is known of a data set by its name alone, with none of its files at hand.
#pragma once

#include "data/picture_preparation.hpp"
#include "kernels/shapes.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

struct SetFacts {
  ImageShape shape;
  std::vector<std::string> class_names;              ///< one for each class, in label order
  std::int64_t train_samples = 0, test_samples = 0;  ///< as it is published, or made unless told otherwise
  bool is_fp32 = false;                              ///< its features; otherwise bytes
  PictureFrame frame{};                              ///< how its images were made from pictures

  int classes() const { return static_cast<int>(class_names.size()); }
};

/// @throws ConfigError  unknown set
SetFacts set_facts(const std::string& set);

}  // namespace lockstep
