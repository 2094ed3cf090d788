// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The kinds of data.augment, a row each, and how their numbers become whole ones.
#include "data/augmentation.hpp"

#include "common/error.hpp"
#include "common/yaml.hpp"
#include "data/dataset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace lockstep {
namespace {

constexpr double kMostPixels = 1024;

/// A probability, or a share of the image's side.
AugmentOption fraction(std::string_view name, double usual = 0) {
  return {.name = name, .low = 0, .high = 1, .usual = {usual, usual}};
}
AugmentOption pixels(std::string_view name) {
  return {.name = name, .low = 1, .high = kMostPixels, .is_whole = true, .is_required = true};
}
AugmentOption range(std::string_view name, double low, double high, Augmentation::Range usual) {
  return {.name = name, .low = low, .high = high, .is_range = true, .usual = usual};
}
/// Parameter of the distribution of shares. Beyond 8, lines between its quantiles would widen it by more than a
/// hundredth.
AugmentOption beta() {
  return {.name = "alpha", .low = 0.01, .high = 8, .usual = {1, 1}};
}
/// Spread of a factor around 1.
AugmentOption spread(std::string_view name) {
  return {.name = name, .low = 0, .high = 8};
}

}  // namespace

std::span<const AugmentKindRow> augment_kinds() {
  static const std::vector<AugmentKindRow> rows = {
      {AugmentKind::kCrop, "crop", {"random_crop", "RandomCrop", "pad"}, {pixels("padding")}},
      {AugmentKind::kResizedCrop,
       "resized_crop",
       {"random_resized_crop", "RandomResizedCrop"},
       {range("scale", 0.01, 1, {0.08, 1}), range("ratio", 0.1, 10, {0.75, 4.0 / 3})}},
      {AugmentKind::kFlip,
       "flip",
       {"hflip", "vflip", "mirror", "RandomHorizontalFlip", "RandomVerticalFlip"},
       {fraction("horizontal"), fraction("vertical")},
       true},
      {AugmentKind::kRotate,
       "rotate",
       {"rotation", "random_rotation", "RandomRotation"},
       {{.name = "degrees", .low = 0.001, .high = 180, .is_required = true}}},
      {AugmentKind::kShift,
       "shift",
       {"translate", "translation", "RandomAffine"},
       {fraction("horizontal"), fraction("vertical")},
       true},
      {AugmentKind::kScale,
       "scale",
       {"zoom", "resize"},
       {{.name = "factor", .low = 0.125, .high = 8, .is_range = true, .is_required = true}}},
      {AugmentKind::kJitter,
       "jitter",
       {"color_jitter", "colour_jitter", "ColorJitter"},
       {spread("brightness"), spread("contrast"), spread("saturation")},
       true},
      {AugmentKind::kErase,
       "erase",
       {"random_erasing", "RandomErasing"},
       {fraction("probability", 0.5), range("scale", 0.001, 1, {0.02, 0.33}),
        range("ratio", 0.1, 10, {0.3, 3.3})}},
      {AugmentKind::kCutout, "cutout", {"Cutout", "cut_out"}, {pixels("size")}},
      {AugmentKind::kMixup,
       "mixup",
       {"MixUp", "Mixup", "mix_up", "RandomMixup"},
       {beta(), fraction("probability", 1)}},
      {AugmentKind::kCutmix,
       "cutmix",
       {"CutMix", "Cutmix", "cut_mix", "RandomCutmix"},
       {beta(), fraction("probability", 1)}},
  };
  return rows;
}

const AugmentKindRow& row_of(AugmentKind kind) {
  return augment_kinds()[static_cast<std::size_t>(kind)];
}

bool mixes_images(const std::vector<Augmentation>& list) {
  return std::ranges::any_of(list, [](const Augmentation& entry) { return mixes_images(entry.kind); });
}

std::string AugmentOption::expected() const {
  const std::string_view number = is_whole ? "a whole number" : "a number";
  const std::string bounds = fmt::format("from {} to {}", format_double(low), format_double(high));
  if (!is_range) return fmt::format("{} {}", number, bounds);
  return fmt::format("the least and the largest value, {0}, such as [{1}, {2}]", bounds,
                     format_double(usual[0] > 0 ? usual[0] : 0.9),
                     format_double(usual[1] > 0 ? usual[1] : 1.1));
}

// Whole numbers in the units of kernels/numerics/augment.hpp.

namespace {

using augment::kFactorBits;
using augment::kPlaceBits;

std::int32_t fixed(double value, int bits) {
  return static_cast<std::int32_t>(std::llround(std::ldexp(value, bits)));
}

/// The logarithm to base 2 in Q24, by squaring. The result is the same on every machine, which that of a C library
/// need not be.
std::int32_t log_of(double value) {
  int whole = 0;
  std::uint64_t part =
      static_cast<std::uint64_t>(std::llround(std::ldexp(std::frexp(value, &whole), 31)));  // Q30, below 2
  std::int32_t log = whole - 1;
  for (int bit = 0; bit < kPlaceBits; ++bit) {
    part = (part * part) >> 30;
    const bool is_above = part >> 31 != 0;
    log = 2 * log + (is_above ? 1 : 0);
    if (is_above) part >>= 1;
  }
  return log;
}

/// AugmentStep::numbers
std::array<std::int32_t, kAugmentNumbers> numbers_of(const Augmentation& entry, const ImageShape& shape) {
  const auto& v = entry.values;
  const auto place = [&](int option, int end) { return fixed(v[option][end], kPlaceBits); };
  const auto log2_of = [&](int option, int end) { return log_of(v[option][end]); };
  const auto chance = [&](int option) { return fixed(v[option][0], augment::kChanceBits); };
  const auto pixels = [&](int option, double all) {
    return static_cast<std::int32_t>(std::lround(v[option][0] * all));
  };
  // The bounds of a factor around 1: never below 0.
  const auto least = [&](int option) { return fixed(std::max(0.0, 1 - v[option][0]), kFactorBits); };
  const auto most = [&](int option) { return fixed(1 + v[option][0], kFactorBits); };
  switch (entry.kind) {
    case AugmentKind::kCrop:
    case AugmentKind::kCutout:
      return {pixels(0, 1)};
    case AugmentKind::kResizedCrop:
      return {place(0, 0), place(0, 1), log2_of(1, 0), log2_of(1, 1)};
    case AugmentKind::kFlip:
      return {chance(0), chance(1)};
    case AugmentKind::kRotate:
      return {fixed(v[0][0] / 360, 30)};
    case AugmentKind::kShift:
      return {pixels(0, shape.width), pixels(1, shape.height)};
    case AugmentKind::kScale:
      return {place(0, 0), place(0, 1)};
    case AugmentKind::kJitter:
      return {least(0), most(0), least(1), most(1), least(2), most(2)};
    case AugmentKind::kErase:
      return {chance(0), place(1, 0), place(1, 1), log2_of(2, 0), log2_of(2, 1)};
    case AugmentKind::kMixup:
    case AugmentKind::kCutmix:
      break;
  }
  return {};
}

[[noreturn]] void refuse(const std::string& cause) {
  throw DatasetOptionError("augment", cause);
}

void check_shape(const Augmentation& entry, const ImageShape& shape) {
  const int side = std::min(shape.height, shape.width);
  const bool has_pixels = entry.kind == AugmentKind::kCrop || entry.kind == AugmentKind::kCutout;
  if (const double pixels = entry.values[0][0]; has_pixels && pixels > side)
    refuse(fmt::format("{} of {} pixels, but the images are {}; give fewer", row_of(entry.kind).name, pixels,
                       channels_rows_columns(shape)));
  if (entry.kind == AugmentKind::kJitter && entry.values[2][0] > 0 && shape.channels != 3)
    refuse(fmt::format(
        "jitter.saturation is for images of red, green and blue, and these have {} channel{}; leave it out",
        shape.channels, shape.channels == 1 ? "" : "s"));
}

}  // namespace

void check_augmentations(const std::vector<Augmentation>& list, const ImageShape& shape, bool has_images) {
  if (list.empty()) return;
  if (!has_images)
    refuse("only images of bytes can be augmented, and this set has features; remove data.augment");
  if (std::max(shape.height, shape.width) > kMostAugmentedSide)
    refuse(fmt::format("images of {}; at most {} pixels on a side can be augmented",
                       channels_rows_columns(shape), kMostAugmentedSide));
  for (const Augmentation& entry : list) check_shape(entry, shape);
}

std::optional<AugmentPlan> make_augment_plan(const std::vector<Augmentation>& list, const Dataset& set,
                                             std::uint64_t seed) {
  if (list.empty()) return std::nullopt;
  const ImageShape& shape = set.shape;
  check_augmentations(list, shape, set.has_images());
  LOCKSTEP_CHECK(list.size() <= kMostAugmentations);
  AugmentPlan plan = {
      .seed = seed, .channels = shape.channels, .height = shape.height, .width = shape.width, .steps = {}};
  for (const Augmentation& entry : list) {
    if (mixes_images(entry.kind)) continue;
    AugmentStep& step = plan.steps[plan.count++];
    step.kind = entry.kind;
    std::ranges::copy(numbers_of(entry, shape), step.numbers);
    if (entry.kind == AugmentKind::kJitter && entry.values[2][0] > 0) plan.mixes_channels = 1;
  }
  return plan;
}

}  // namespace lockstep
