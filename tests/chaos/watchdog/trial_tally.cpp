// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/chaos/watchdog/trial_tally.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::chaos {

void TrialTally::took(const std::string& what, const Lateness& lateness) {
  const std::lock_guard lock(mutex_);
  times_[what].push_back(lateness);
}

std::size_t TrialTally::without_excuse() const {
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  for (const auto& [what, times] : times_)
    count += static_cast<std::size_t>(std::ranges::count_if(times, &Lateness::is_without_excuse));
  return count;
}

std::string TrialTally::text() const {
  std::string text = counts_.text();
  const std::lock_guard lock(mutex_);
  if (times_.empty()) return text;
  text += fmt::format("{:<44}{:>6}{:>8}{:>8}{:>7}{:>16}\n", "how long it took, in seconds", "times", "median",
                      "most", "late", "without excuse");
  for (const auto& [what, times] : times_) {
    std::vector<double> seconds;
    for (const Lateness& time : times) seconds.push_back(time.seconds);
    std::ranges::sort(seconds);
    text += fmt::format("  {:<42}{:>6}{:>8.2f}{:>8.2f}{:>7}{:>16}\n", what, times.size(),
                        seconds[seconds.size() / 2], seconds.back(),
                        std::ranges::count_if(times, &Lateness::is_late),
                        std::ranges::count_if(times, &Lateness::is_without_excuse));
  }
  return text;
}

}  // namespace lockstep::chaos
