// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Image sets from IDX files: MNIST, Fashion-MNIST, KMNIST.
#pragma once

#include "data/dataset.hpp"
#include "data/image_files.hpp"

namespace lockstep {

inline constexpr int kImageSetClasses = 10;

/// Reads the four files at the same time, in threads of its own, and checks that they belong together. The
/// sets are named "SET train" and "SET test"; scale and shift are left at 1 and 0.
/// @throws DataError  as load_dataset; where several files are damaged, names the first in the order of
/// ImageSetFiles
TrainTestData load_image_set(const std::string& set, const ImageSetFiles& files);

}  // namespace lockstep
