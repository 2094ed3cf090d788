// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Samples that a set holds more than once. It looks for samples in two parts, and for those under two labels.
/// Both make what a run says of itself better or worse than it is.
#pragma once

#include "data/dataset.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

struct Duplicates {
  static constexpr std::size_t kMostExamples = 3;

  /// Samples of these parts that are in an earlier one: train, validation, test.
  std::int64_t test = 0, validation = 0;
  std::int64_t under_two_labels = 0;  ///< different samples that have two labels or more, in any part
  /// The first ones of each, such as "test[3] (cat/7.jpg) is train[12] (cat/1.jpg)".
  std::vector<std::string> of_parts, of_labels;
};

/// Compares all samples, by 128 bits of the SHA-256 of their bytes. Reads each once, in 24 bytes of memory for each.
/// Places and names are those in the files of the halves.
/// @throws MemoryError; DataError, IoError  as SampleStore::read
Duplicates find_duplicates(const TrainTestData& data);

}  // namespace lockstep
