// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From folders of pictures to the files of a set that can be trained on: data.set idx.
#pragma once

#include "common/files/env.hpp"
#include "data/picture.hpp"
#include "data/picture_folders.hpp"
#include "kernels/shapes.hpp"

#include <optional>
#include <string>

namespace lockstep {

/// Pixels of every image.
struct PictureSize {
  int width = 0, height = 0;
};

struct ConversionOptions {
  std::string from, to;             ///< see find_sorted_pictures; the directory of the new set
  std::optional<PictureSize> size;  ///< to scale them to; nothing: they must all have the same
  PictureColour colour = PictureColour::kGrey;
  TestChoice test;
  bool replace = false;  ///< the set that is in `to` already
};

struct Conversion {
  SortedPictures pictures;
  ImageShape shape;
};

/// Writes images and labels to train on and to test with, and classes.txt, into `to`, which is made if it is
/// not there. Nothing appears under its final name before all of it is written; one conversion at a time
/// works in a directory. Needs the memory of one picture, whatever their number.
/// @throws UsageError        files of a set are there already, and shall stay, or something else has their
///                           names; `to` lies in `from`, where it would be taken for a class
/// @throws MissingDataError, DataError  as find_sorted_pictures and read_pictures; pictures of different
/// sizes;
///                           more than an IDX file holds
/// @throws IoError           `to` cannot be written
Conversion convert_pictures(Env& env, const ConversionOptions& options);

}  // namespace lockstep
