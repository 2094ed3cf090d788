// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Limits in seconds and in Unix time, as one point of the clock that does not jump.
#include "trainer/run/time_limit.hpp"

#include "common/clock.hpp"
#include "common/console/output.hpp"
#include "trainer/ranks/launched_rank.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

namespace lockstep {
namespace {

/// Far enough away, without overflow in the clock's units.
constexpr double kForeverSeconds = 1e9;

Clock::duration seconds(double value) {
  return std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(std::min(value, kForeverSeconds)));
}

double unix_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

TimeLimit::TimeLimit(Clock::time_point start, double max_seconds, std::optional<std::int64_t> allocation_end)
    : end_(start + seconds(max_seconds > 0 ? max_seconds : kForeverSeconds)) {
  if (!allocation_end) return;
  const double left = static_cast<double>(*allocation_end) - unix_now() - kMarginSeconds;
  end_ = std::min(end_, Clock::now() + seconds(std::max(left, 0.0)));
}

bool has_passed(std::int64_t unix_seconds) {
  return static_cast<double>(unix_seconds) < unix_now();
}

std::optional<std::int64_t> slurm_allocation_end() {
  const char* text = std::getenv("SLURM_JOB_END_TIME");
  if (text == nullptr) return std::nullopt;
  const std::string_view digits(text);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> allocation_end_ahead() {
  const auto end = slurm_allocation_end();
  if (!end || !has_passed(*end)) return end;
  if (speaks_for_all()) {
    print_error(
        fmt::format("warning: SLURM_JOB_END_TIME={} is in the past: ignored; unset it, or set "
                    "run.max_seconds for a limit",
                    *end));
  }
  return std::nullopt;
}

}  // namespace lockstep
