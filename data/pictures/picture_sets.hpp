// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sets whose samples are pictures as people keep them, in folders or in archives; what the two share.
#pragma once

#include "data/dataset.hpp"
#include "data/pictures/picture_store.hpp"
#include "data/sets/set_formats.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep {

/// A half as it was found.
struct PictureHalf {
  PictureList pictures;
  std::vector<std::int32_t> labels;   ///< of classes, or rows of the set's label_sets
  std::string label_digest{};         ///< of samples with several labels: stands for them in a fingerprint
  std::vector<std::int64_t> changed;  ///< when the files were: means measured before that do not count
};

struct PictureHalves {
  PictureHalf train, test;
  PictureHalf validation;            ///< as far as the options ask for it
  bool has_validation_half = false;  ///< whether they do or not
  std::vector<std::string> class_names;
};

/// Decodes a picture at most. Fingerprints are of names and sizes of the pictures and of their form: none is read.
/// @param set        names the halves
/// @param directory  where measured sums are kept, in a file whose name begins with a dot
TrainTestData open_pictures(const std::string& set, const std::filesystem::path& directory,
                            PictureHalves halves, const PictureForm& form);
SetOutline outline_of_pictures(const PictureHalves& halves, const PictureForm& form);

}  // namespace lockstep
