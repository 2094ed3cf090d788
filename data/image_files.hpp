// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Where the four IDX files of an image set lie on this machine.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// The four files of MNIST and its relatives, as found: plain or with .gz.
struct ImageSetFiles {
  std::filesystem::path directory;
  std::filesystem::path train_images, train_labels, test_images, test_labels;
};

/// The names under which the four files are published, in the order of ImageSetFiles, without .gz.
inline constexpr std::array<const char*, 4> kImageSetFileNames = {
    "train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};

/// The directories that may hold a set, best first. A given root: ROOT/SET, ROOT. `auto`: $LOCKSTEP_DATA/SET,
/// $LOCKSTEP_DATA, ${XDG_CACHE_HOME:-~/.cache}/lockstep/SET, /usr/share/datasets/SET; without the ones whose
/// variable is not set. Reads the environment when root is `auto`.
std::vector<std::filesystem::path> candidate_places(std::string_view set, const std::string& root);

/// The first place that holds all four files; a plain file is preferred to a .gz beside it.
/// @throws MissingDataError  names every place with what it lacks, and the command that fetches the set
ImageSetFiles find_image_set(std::string_view set, const std::vector<std::filesystem::path>& places);

}  // namespace lockstep
