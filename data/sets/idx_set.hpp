// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Image sets from IDX files: MNIST, its relatives, and people's own data.
///
///   images of grey pixels    [sample][row][column]
///   images with channels     [sample][row][column][channel], as pictures are stored; of people's own sets
///   labels                   [sample]
#pragma once

#include "data/dataset.hpp"
#include "data/sets/set_files.hpp"
#include "data/sets/set_formats.hpp"

#include <vector>

namespace lockstep {

/// Training images, training labels, test images, test labels: as the set's entry names them. People's own
/// may be called as MNIST's or with "test" for "t10k", and with "idx4" where they have channels.
std::vector<FileNames> idx_set_files(const SetEntry& set);

/// Of a set of people's own: from the headers of the images, and the labels.
SetOutline outline_of_idx_set(const SetEntry& set, const SetFiles& files);

/// Reads the four files at the same time, in threads of its own, and checks that they belong together. The
/// images are [channel][row][column] afterwards. Classes: those that have names, else up to the largest
/// label.
/// @throws DataError  as load_dataset; where several files are damaged, names the first in the order of
/// idx_set_files
TrainTestData load_idx_set(const SetEntry& set, const SetFiles& files);

}  // namespace lockstep
