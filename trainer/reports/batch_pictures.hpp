// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A look at what a job trains on: the pictures of its first batch on one sheet.
#pragma once

#include "data/pictures/picture.hpp"
#include "trainer/config/job.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace lockstep {

struct BatchPictures {
  Picture sheet;
  std::size_t columns = 0;           ///< images in a row of the sheet
  std::size_t shown = 0, batch = 0;  ///< images: on the sheet, and in the batch
  /// One an image: "cat", or mixed "0.81 cat + 0.19 dog"; empty: none mixed.
  std::vector<std::string> labels = {};
};

/// Draws the job's first batch, augmented and mixed, in order and row by row; at most 256 images.
/// @throws ConfigError  the set has no images that a picture can show; as load_dataset
BatchPictures picture_first_batch(const Job& job);

}  // namespace lockstep
