// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Samples with any number of labels: Dataset::label_sets while a set is read.
#pragma once

#include "data/dataset.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace lockstep {

/// Of sets whose samples have several labels: a row has a byte for each.
inline constexpr std::int64_t kMostClassesOfLabelSets = 65'536;

/// Gives each combination of labels a row, in the order in which they come.
class LabelSets {
 public:
  /// @param what  of which set they are, for messages
  LabelSets(std::size_t classes, std::string what) : classes_(classes), what_(std::move(what)) {}

  /// @param labels  each below the number of classes
  /// @throws MemoryError  so many combinations do not fit
  std::int32_t row_of(std::span<const std::uint32_t> labels);
  /// For each of the rows that stand one behind another. @param bytes  [sample][classes], each 0 or 1
  std::vector<std::int32_t> rows_of(std::span<const std::uint8_t> bytes);
  /// Puts all rows into the halves of a set, once the last sample has come.
  void give_to(TrainTestData& data) const;

 private:
  std::int32_t row_of(const std::string& set);

  std::size_t classes_;
  std::string what_;
  std::unordered_map<std::string, std::int32_t> row_of_;  ///< by its bytes
  std::vector<std::uint8_t> table_;
  std::size_t looked_at_ = 0;  ///< bytes of the table that memory was asked for
};

/// Which classes a row has, ascending.
std::vector<std::uint32_t> labels_in(std::span<const std::uint8_t> row);

}  // namespace lockstep
