// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The data sets that there are, and what is known of each by its name alone. None of its files need be at hand:
/// data/sets/catalogue.txt. Nothing else in the program knows a set by name.
#pragma once

#include "kernels/shapes.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// How the images of a training set were made from what was scanned or photographed.

struct PictureFrame {
  double share = 20.0 / 28;    ///< part of each side that the ink's box may fill; MNIST: 20 of 28 pixels
  bool centre_by_mass = true;  ///< the ink's centre of mass lies in the middle, not its box
  bool one_figure = true;      ///< one written character, so that two pieces side by side are suspicious
  bool is_photo = false;       ///< no ink on paper: scaled, and nothing else
};

/// One set. Shape, sizes and names are as published: files put in its place may differ.
struct SetEntry {
  std::string name;
  std::string format;                                ///< a name in data/sets/set_formats.hpp
  ImageShape shape{0, 0, 0};                         ///< all 0: only its files know
  std::int64_t train_samples = 0, test_samples = 0;  ///< as published, or made unless told otherwise
  std::vector<double> mean, std;                     ///< see Normalisation; empty: to be measured
  PictureFrame frame{};                              ///< how its images were made from pictures
  bool is_fp32 = false;                              ///< features rather than pixels
  std::vector<std::string> class_names;              ///< in label order; empty: only its files know
  std::string names_file;                            ///< beside its files, a class name a line; may be empty
  std::string pickles;                               ///< a file of its version for Python, which is not read
  std::vector<std::string> folders;  ///< that hold its files below a place: its archive's, torchvision's
  std::vector<std::string> files;    ///< as published; empty: those of its format

  bool is_known_by_name() const { return shape.features() > 0; }
};

/// All sets, in the order of the file.
const std::vector<SetEntry>& catalogue();
/// Their names; they live as long as the program.
std::vector<std::string_view> set_names();

/// @throws ConfigError  there is no such set; names those that there are
const SetEntry& find_set(const std::string& name);

/// The one that is not known by name: people's own data.
const SetEntry& own_set();

/// Entries from the text of a catalogue.
/// @throws ConfigError  naming the line and what is wrong with it
std::vector<SetEntry> parse_catalogue(std::string_view text);

/// The file's text.
extern const std::string_view kCatalogueText;

}  // namespace lockstep
