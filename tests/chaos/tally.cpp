// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/chaos/tally.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace lockstep::chaos {

void Tally::section(const std::string& title, const std::vector<std::string>& labels) {
  sections_.push_back({title, labels});
  for (const auto& label : labels) counts_.emplace(label, 0);
}

void Tally::add(const std::string& label) {
  const std::lock_guard lock(mutex_);
  const bool is_new = counts_.emplace(label, 0).second;
  if (is_new) sections_.push_back({"also seen", {label}});
  ++counts_[label];
}

void Tally::lost(std::int64_t steps) {
  const std::lock_guard lock(mutex_);
  lost_.push_back(steps);
}

std::int64_t Tally::count(const std::string& label) const {
  const std::lock_guard lock(mutex_);
  const auto found = counts_.find(label);
  return found == counts_.end() ? 0 : found->second;
}

std::string Tally::text() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const auto& section : sections_) {
    text += section.title + "\n";
    for (const auto& label : section.labels) text += fmt::format("  {:<58}{:>6}\n", label, counts_.at(label));
  }
  if (lost_.empty()) return text;
  const auto sum = std::accumulate(lost_.begin(), lost_.end(), std::int64_t{0});
  text += fmt::format("steps lost by a kill\n  mean {:.1f}, most {}\n",
                      static_cast<double>(sum) / static_cast<double>(lost_.size()),
                      *std::max_element(lost_.begin(), lost_.end()));
  return text;
}

bool Rounds::take() {
  const std::lock_guard lock(mutex_);
  if (taken_ == total_) return false;
  ++taken_;
  return true;
}

void Rounds::give_back() {
  const std::lock_guard lock(mutex_);
  --taken_;
}

bool Rounds::finished() const {
  return taken() == total_;
}

std::int64_t Rounds::taken() const {
  const std::lock_guard lock(mutex_);
  return taken_;
}

}  // namespace lockstep::chaos
