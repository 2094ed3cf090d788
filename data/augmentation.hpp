// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// `data.augment`: its kinds with what they take, a list of them as kernels read it, and what mixes images.
#pragma once

#include "kernels/mix.hpp"
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

/// One entry of the list. It has two numbers for each option of its kind: least and largest. They are equal where the
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
  double low = 0, high = 0;  ///< allowed values, both included
  bool is_whole = false;     ///< a whole number
  bool is_range = false;     ///< [least, largest]
  bool is_required = false;
  Augmentation::Range usual = {};  ///< used if it is not given

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

/// True if any of them mixes images, and so labels.
bool mixes_images(const std::vector<Augmentation>& list);

/// In the order of AugmentKind.
std::span<const AugmentKindRow> augment_kinds();
const AugmentKindRow& row_of(AugmentKind kind);

/// Refuses a list that does not go with a set.
/// @param shape       of its samples
/// @param has_images  false: it has features
/// @throws DatasetOptionError  images of this set cannot be changed so, or there are none
void check_augmentations(const std::vector<Augmentation>& list, const ImageShape& shape, bool has_images);

/// For the kernels, without what mixes images; nothing, where the list is empty.
/// @throws DatasetOptionError  as check_augmentations
std::optional<AugmentPlan> make_augment_plan(const std::vector<Augmentation>& list, const Dataset& set,
                                             std::uint64_t seed);

// Mixup and cutmix: which samples of a batch are mixed with which, and how much of each.

/// The shares of Beta(alpha, alpha), in Q16: the share stays below [i] with probability i / 1024. It goes along a line
/// between two of them. Equal numbers on every machine.
using ShareTable = std::array<std::int32_t, 1025>;
ShareTable beta_shares(double alpha);

/// Draws for places of an epoch's order, by Philox. Each place gets the same draws, whichever rank or thread asks,
/// and from whichever step on. docs/arithmetic.md has the rule.
class SampleMixer {
 public:
  /// Mixes nothing.
  SampleMixer() = default;
  /// @param list  data.augment, of which it takes what mixes images; nothing of that: no sample is mixed
  SampleMixer(const std::vector<Augmentation>& list, const ImageShape& shape, std::uint64_t seed);

  bool mixes() const { return !entries_.empty(); }

  /// Mixes of `count` neighbouring places; nothing, where no sample is mixed.
  /// @param order  samples of the set in the epoch's order, from which partners are drawn
  /// @param first  place of the first one in it
  std::vector<SampleMix> draw(std::int64_t epoch, std::span<const std::int32_t> order, std::int64_t first,
                              std::int64_t count) const;

 private:
  struct Entry {
    AugmentKind kind;
    int number;           ///< in the list
    std::int32_t chance;  ///< in Q30
    ShareTable shares;
  };

  SampleMix draw_place(std::int64_t epoch, std::span<const std::int32_t> order, std::int64_t place) const;

  std::vector<Entry> entries_;
  ImageShape shape_;
  std::uint64_t seed_ = 0;
};

// Labels of samples that may be mixed: of the set, by their indices in it. `mixes` are theirs; empty: none is mixed.

/// labels[n] becomes the label of sample n, of a mixed one that of the larger part.
void take_labels(std::span<const std::int32_t> of_set, std::span<const std::int32_t> indices,
                 std::span<const SampleMix> mixes, std::int32_t* labels);
/// The other ones, for LossShape::mixed; nothing, where nothing is mixed.
std::vector<MixedLabel> second_labels(std::span<const std::int32_t> of_set,
                                      std::span<const std::int32_t> indices,
                                      std::span<const SampleMix> mixes);

/// Mixes of a rank's share of a step, by places in the epoch's order.
class MixedShare {
 public:
  MixedShare() = default;
  /// Draws for `count` places from `first` on. @param of_set  labels
  MixedShare(const SampleMixer& mixer, std::int64_t epoch, std::span<const std::int32_t> order,
             std::int64_t first, std::int64_t count, std::span<const std::int32_t> of_set);

  /// Mixes of `count` samples from a place on; nothing, where nothing is mixed.
  std::span<const SampleMix> mixes(std::int64_t place, int count) const;
  /// From a place on; null, where nothing is mixed.
  const MixedLabel* second_labels(std::int64_t place) const;

 private:
  std::int64_t first_ = 0;
  std::vector<SampleMix> mixes_;
  std::vector<MixedLabel> second_labels_;
};

}  // namespace lockstep
