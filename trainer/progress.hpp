// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What a person sees while a run goes on: a bar on a terminal, a plain line every few seconds elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace lockstep {

/// Prints on standard output, on the one rank that speaks; on all others every call does nothing.
class Progress {
 public:
  enum class Style { kSilent, kPlain, kBar };

  /// The style for this rank: bar on a terminal, plain elsewhere, silent on ranks other than 0.
  static Style style_for(int rank);

  explicit Progress(Style style) : style_(style) {}
  ~Progress();

  /// A line of its own, above the bar.
  void say(const std::string& line);
  /// Steps of the run that are left when the epoch starts count for the ETA.
  void start_epoch(std::int64_t epoch, std::int64_t epochs, std::int64_t steps_done, std::int64_t steps,
                   std::int64_t steps_left_in_run);
  /// After some steps of so many samples; draws only when enough time has passed. The loss is the last
  /// step's.
  void steps(std::int64_t count, std::int64_t samples, double mean_loss);
  /// Wipes the bar.
  void end_epoch();

 private:
  using Clock = std::chrono::steady_clock;

  void draw(double seconds);
  void wipe();

  Style style_;
  bool drawn_ = false;
  std::int64_t epoch_ = 0, epochs_ = 0, steps_ = 0, done_ = 0, done_before_ = 0, left_in_run_ = 0,
               samples_ = 0;
  double loss_ = 0;
  Clock::time_point start_, last_;
};

/// "1:05", "2:03:04".
std::string format_duration(double seconds);
/// "0.0312"; from a million on "1.7e+12".
std::string format_loss(double loss);
/// "60,000".
std::string with_thousands(std::int64_t value);

}  // namespace lockstep
