// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What a person sees while a run goes on: a bar on a terminal, a plain line every few seconds elsewhere.
#pragma once

#include "common/clock.hpp"
#include "common/console/terminal.hpp"
#include "common/text/text_layout.hpp"
#include "trainer/run/progress_line.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// Prints on standard output, on the one rank that speaks; on all others every call does nothing. On a
/// terminal no line is wider than it is at that moment.
class Progress {
 public:
  /// For this rank: a bar where the terminal can draw over a line, plain lines elsewhere, nothing on ranks
  /// other than 0.
  static Progress for_rank(int rank);

  enum class Style { kSilent, kPlain, kBar };
  explicit Progress(Style style, OutputTerminal output = {}) : style_(style), output_(output) {}
  ~Progress();

  /// A line of its own, above the bar; folded where it is too wide.
  void say(std::string_view line);
  /// The same of fields, of which those that matter least are left out where the line would be too wide.
  void say(const std::vector<Field>& fields);
  /// Steps of the run that are left when the epoch starts count for the ETA.
  void start_epoch(std::int64_t epoch, std::int64_t epochs, std::int64_t steps_done, std::int64_t steps,
                   std::int64_t steps_left_in_run);
  /// After some steps of so many samples; draws only when enough time has passed. The loss is the last
  /// step's.
  void steps(std::int64_t count, std::int64_t samples, double mean_loss);
  /// Wipes the bar.
  void end_epoch();

 private:
  void draw(double seconds);
  void print(const std::string& line);

  Style style_;
  OutputTerminal output_;
  std::int64_t done_before_ = 0, left_in_run_ = 0, samples_ = 0;
  ProgressStatus facts_;
  Clock::time_point start_, last_;
};

}  // namespace lockstep
