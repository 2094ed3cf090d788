// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Finds the word that a misspelt one was meant to be.
#include "common/yaml/strict_yaml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

namespace lockstep {
namespace {

constexpr std::size_t kLongestWord = 64;  // no key of ours is longer
constexpr std::size_t kNever = kLongestWord * 2;

/// Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours, each at cost 1.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  if (a.size() > kLongestWord || b.size() > kLongestWord) return kNever;
  using Row = std::array<std::size_t, kLongestWord + 1>;
  Row before_last{};
  Row last{};
  Row row{};
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, substituted});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last = last;
    last = row;
  }
  return last[b.size()];
}

std::string folded(std::string_view word) {
  std::string result(word.substr(0, kLongestWord + 1));
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '-') c = '_';
  }
  return result;
}

/// Cost of the guess that `key` means `candidate`; kNever if they are too far apart.
std::size_t guess_cost(const std::string& key, const std::string& candidate) {
  const std::size_t distance = edit_distance(key, candidate);
  const std::size_t tolerated = std::max<std::size_t>(1, std::min(key.size(), candidate.size()) / 3);
  if (distance <= tolerated) return distance;
  const bool part = key.size() >= 4 && candidate.size() >= 4 && key.size() <= kLongestWord &&
                    (candidate.find(key) != candidate.npos || key.find(candidate) != key.npos);
  return part ? tolerated + distance : kNever;
}

}  // namespace

std::string did_you_mean(const std::string& key, std::span<const std::string_view> candidates) {
  const std::string word = folded(key);
  std::size_t best_cost = kNever;
  std::string_view best;
  for (const std::string_view candidate : candidates) {
    const std::size_t cost = guess_cost(word, folded(candidate));
    if (cost < best_cost) {
      best_cost = cost;
      best = candidate;
    }
  }
  return best_cost == kNever ? std::string() : fmt::format(" (did you mean '{}'?)", best);
}

}  // namespace lockstep
