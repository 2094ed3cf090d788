// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Bits that a sum should have, and changes of its unit when it has too few or too many.
#include "comm/reduce/gradient_units.hpp"

#include "common/error.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace lockstep {
namespace {

constexpr int kRaise = 16;
/// Bits of the largest sum. The rest of 62 bits is room for terms and for gradients that grow.
constexpr int kWantedBits = 40;
/// With fewer bits than a float has, the unit is too large.
constexpr int kLeastBits = 24;
/// Bits by which a term can grow before it reaches the limit, where millions of grains leave little.
constexpr int kRoomToGrow = 6;
constexpr int kLowerFromZero = 64;
constexpr std::int64_t kRefinedEvery = 1024;

int largest_exponent(std::int64_t global_grains) {
  int exponent = 0;
  while (!std::isinf(exact_limit(global_grains, exponent))) ++exponent;
  return exponent;
}

}  // namespace

GradientUnits::GradientUnits(std::span<const std::size_t> sizes, std::int64_t global_grains)
    : exponents_(sizes.size(), kExactExponent),
      formats_(sizes.size(), exact_format(global_grains)),
      global_grains_(global_grains),
      wanted_bits_(std::min(kWantedBits, std::ilogb(exact_limit(global_grains, 0)) - kRoomToGrow)),
      least_bits_(std::min(kLeastBits, wanted_bits_ - kRaise)),
      largest_exponent_(largest_exponent(global_grains)) {
  std::size_t end = 0;
  for (const std::size_t size : sizes) ends_.push_back(end += size);
  LOCKSTEP_CHECK(end > 0);
}

void GradientUnits::set_exponent(std::size_t tensor, int exponent) {
  exponents_[tensor] = static_cast<std::int16_t>(exponent);
  formats_[tensor] = exact_format(global_grains_, exponent);
}

std::size_t GradientUnits::tensor_at(std::size_t element) const {
  LOCKSTEP_CHECK(element < parameters());
  return static_cast<std::size_t>(std::ranges::upper_bound(ends_, element) - ends_.begin());
}

std::vector<std::size_t> GradientUnits::tensors_changed_from(std::span<const std::int16_t> exponents) const {
  std::vector<std::size_t> changed;
  for (std::size_t i = 0; i < tensors(); ++i)
    if (exponents[i] != exponents_[i]) changed.push_back(i);
  return changed;
}

void GradientUnits::restore(std::span<const std::int16_t> exponents, std::int64_t changed_at) {
  LOCKSTEP_CHECK(exponents.size() == tensors());
  for (std::size_t i = 0; i < tensors(); ++i) set_exponent(i, exponents[i]);
  changed_at_ = changed_at;
}

void GradientUnits::raise(std::span<const TensorRefusals> refusals, std::int64_t global_step) {
  LOCKSTEP_CHECK(refusals.size() == tensors());
  changed_at_ = global_step;
  for (std::size_t i = 0; i < tensors(); ++i)
    if (refusals[i].too_large != 0) set_exponent(i, std::min(exponents_[i] + kRaise, largest_exponent_));
}

bool GradientUnits::refine(std::span<const double> largest_sums, std::int64_t global_step) {
  LOCKSTEP_CHECK(largest_sums.size() == tensors());
  bool changed = false;
  for (std::size_t i = 0; i < tensors(); ++i) {
    if (largest_sums[i] >= std::ldexp(1.0, least_bits_) || exponents_[i] <= kLeastExactExponent) continue;
    const int lower = largest_sums[i] == 0 ? kLowerFromZero : wanted_bits_ - std::ilogb(largest_sums[i]);
    set_exponent(i, std::max(exponents_[i] - lower, kLeastExactExponent));
    changed = true;
  }
  if (changed) changed_at_ = global_step;
  return changed;
}

double largest_magnitude(std::span<const std::int64_t> sums) {
  std::int64_t largest = 0;
  for (const std::int64_t sum : sums) largest = std::max(largest, sum < 0 ? -sum : sum);
  return static_cast<double>(largest);
}

bool GradientUnits::is_refined_at(std::int64_t global_step) const {
  const std::int64_t since = global_step - changed_at_;
  return global_step % kRefinedEvery == 0 ||
         (since < kRefinedEvery && std::has_single_bit(static_cast<std::uint64_t>(since)));
}

}  // namespace lockstep
