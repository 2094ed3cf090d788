// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Samples that are never trained on: the run is validated with them, or tested.
#pragma once

#include "data/dataset.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// Samples to hold out of the training half: a number, or a share of them all. Or none of it, but a separate half.
struct HoldOut {
  std::int64_t samples = 0;
  double share = 0;       ///< above 0 and below 1; 0: `samples` counts
  bool is_files = false;  ///< the set's validation half

  bool is_given() const { return samples > 0 || share > 0 || is_files; }
  /// Number to hold out of so many. A share is rounded to the nearest whole number.
  /// @throws DatasetOptionError  that is none of them, or all
  std::int64_t count_of(std::int64_t all) const;
  friend bool operator==(const HoldOut&, const HoldOut&) = default;
};

/// "5000", "0.1" or "files". Nothing: it is none of these: a whole number from 0 on, a share from 1e-9 on, below 1.
std::optional<HoldOut> parse_hold_out(std::string_view text);
/// parse_hold_out takes it back.
std::string to_string(const HoldOut& hold_out);

/// The places, ascending, of those that are held out of so many. A seed gives the same ones on every machine, and
/// among those of any larger count. At most `samples`, which fits 31 bits.
/// @param left_out  ascending: these never are
std::vector<std::int32_t> held_out_samples(std::int64_t samples, std::int64_t count, std::uint64_t seed,
                                           std::span<const std::int32_t> left_out = {});
/// Chooses the places that are trained on, where not all are: none of `others`, which is ascending.
std::vector<std::int32_t> training_subset(std::int64_t samples, std::int64_t count, std::uint64_t seed,
                                          std::span<const std::int32_t> others);
/// Chooses the places of the test half.
std::vector<std::int32_t> test_subset(std::int64_t samples, std::int64_t count, std::uint64_t seed);

/// Chooses samples of a new set that are not trained on, where it does not say so itself. It takes some of each
/// class, at least one for a share. None are for validation unless that is given.
struct SplitChoice {
  HoldOut test = {.share = 0.2}, validation = {};
  std::uint64_t seed = 1234;
  bool is_test_given = false;      ///< the user asked for it
  bool leaves_validation = false;  ///< separate files for validation are not looked at
};

/// The half of each of a class's samples: by the seed, the class and how many there are. The choice for validation does
/// not change which are for testing.
/// @throws DataError  none would be left to train on
std::vector<SetHalf> split_class(std::int64_t samples, std::size_t label, const std::string& class_name,
                                 const SplitChoice& choice);
/// The halves of all samples, each class shared out so.
/// @param labels  [sample] an index into `class_names`   @returns [sample]
std::vector<SetHalf> split_classes(std::span<const std::uint32_t> labels,
                                   const std::vector<std::string>& class_names, const SplitChoice& choice);

}  // namespace lockstep
