// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// `data.augment`: its kinds with what they take, and a list of them as kernels read it.
#pragma once

#include "kernels/numerics/augment.hpp"
#include "kernels/shapes.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct Dataset;

/// One entry of the list. Of each option of its kind it has two numbers: least and largest; the same twice, where the
/// option is one number.
struct Augmentation {
  static constexpr int kMostOptions = 3;
  using Range = std::array<double, 2>;

  AugmentKind kind = AugmentKind::kCrop;
  std::array<Range, kMostOptions> values = {};
  friend bool operator==(const Augmentation&, const Augmentation&) = default;
};

struct AugmentOption {
  std::string_view name;
  double low = 0, high = 0;  ///< what is allowed, both included
  bool is_whole = false;     ///< a whole number
  bool is_range = false;     ///< [least, largest]
  bool is_required = false;
  Augmentation::Range usual = {};  ///< where it is not given

  /// "a whole number from 1 to 1024"
  std::string expected() const;
};

struct AugmentKindRow {
  AugmentKind kind;
  std::string_view name;
  std::vector<std::string_view> other_names;  ///< in other programs, for "did you mean"
  std::vector<AugmentOption> options;
  bool wants_one = false;  ///< with all of its options at 0 it does nothing, and is refused
};

/// Whether any of them mixes images, and so labels.
bool mixes_images(const std::vector<Augmentation>& list);

/// In the order of AugmentKind.
std::span<const AugmentKindRow> augment_kinds();
const AugmentKindRow& row_of(AugmentKind kind);

/// For the kernels, without what mixes images (data/mixing.hpp); nothing, where the list is empty.
/// @throws DatasetOptionError  images of this set cannot be changed so, or there are none
std::optional<AugmentPlan> make_augment_plan(const std::vector<Augmentation>& list, const Dataset& set,
                                             std::uint64_t seed);

}  // namespace lockstep
