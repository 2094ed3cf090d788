// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Keeps terms of the small tensors in the order of arrival: sums are integers, so any order will do.
#include "comm/reduce/kept_terms.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

namespace lockstep {

KeptTerms::KeptTerms(const GradientUnits& units)
    : units_(units), keeps_(units.tensors()), largest_(units.tensors()), pieces_(units.tensors()) {
  std::vector<std::size_t> by_size(units.tensors());
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  const auto size = [&units](std::size_t tensor) { return units.end(tensor) - units.begin(tensor); };
  std::ranges::stable_sort(by_size, {}, size);
  constexpr std::int64_t kMostTerms = std::int64_t{1} << 20;  // 4 MiB on a rank that computes all of it
  auto room = static_cast<std::size_t>(kMostTerms / units.global_grains());
  for (const std::size_t tensor : by_size) {
    if (size(tensor) > room) break;
    room -= size(tensor);
    keeps_[tensor] = true;
  }
}

void KeptTerms::begin_step(bool notes) {
  notes_ = notes;
  std::ranges::fill(largest_, 0.0F);
  for (std::vector<Piece>& pieces : pieces_) pieces.clear();
}

void KeptTerms::note(std::size_t offset, std::span<const float> terms) {
  std::size_t i = 0;
  for (std::size_t tensor = units_.tensor_at(offset); i < terms.size(); ++tensor) {
    const std::span<const float> part =
        terms.subspan(i, std::min(terms.size() - i, units_.end(tensor) - (offset + i)));
    float largest = 0;
    for (const float term : part) largest = std::max(largest, std::abs(term));
    const std::lock_guard lock(mutex_);
    largest_[tensor] = std::max(largest_[tensor], largest);
    if (keeps_[tensor]) pieces_[tensor].push_back({offset + i, {part.begin(), part.end()}});
    i += part.size();
  }
}

}  // namespace lockstep
