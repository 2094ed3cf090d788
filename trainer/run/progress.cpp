// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Draws when enough time has passed, and wipes what is in the way of a line.
#include "trainer/run/progress.hpp"

#include "common/console/output.hpp"
#include "common/console/status_bar.hpp"
#include "common/text/printable.hpp"

#include <algorithm>

namespace lockstep {
namespace {

constexpr std::chrono::seconds kPlainInterval{5};

}  // namespace

Progress Progress::for_rank(int rank) {
  if (rank != 0) return Progress(Style::kSilent);
  call_before_errors(wipe_bar);
  const OutputTerminal output = output_terminal();
  return Progress(output.redraws ? Style::kBar : Style::kPlain, output);
}

Progress::~Progress() {
  wipe_bar();
}

void Progress::say(std::string_view line) {
  if (style_ != Style::kSilent) print(fold(printable(line), output_columns()));
}

void Progress::say(const std::vector<Field>& fields) {
  if (style_ != Style::kSilent) print(fit(fields, output_columns()));
}

void Progress::print(const std::string& line) {
  wipe_bar();
  write_out(line + "\n");
}

void Progress::start_epoch(std::int64_t epoch, std::int64_t epochs, std::int64_t steps_done,
                           std::int64_t steps, std::int64_t steps_left_in_run) {
  facts_ = {.epoch = epoch, .epochs = epochs, .step = steps_done, .steps = steps};
  done_before_ = steps_done;
  left_in_run_ = steps_left_in_run;
  samples_ = 0;
  start_ = last_ = Clock::now();
  if (style_ == Style::kBar) last_ -= kBarInterval;  // there from the first step on
}

void Progress::steps(std::int64_t count, std::int64_t samples, double mean_loss) {
  if (style_ == Style::kSilent) return;
  facts_.step += count;
  samples_ += samples;
  facts_.loss = mean_loss;
  const auto now = Clock::now();
  if (now - last_ < (style_ == Style::kBar ? Clock::duration(kBarInterval) : Clock::duration(kPlainInterval)))
    return;
  last_ = now;
  draw(std::chrono::duration<double>(now - start_).count());
}

void Progress::end_epoch() {
  wipe_bar();
}

void Progress::draw(double seconds) {
  const auto taken = facts_.step - done_before_;
  facts_.samples_per_second = static_cast<double>(samples_) / seconds;
  facts_.eta_seconds = seconds / static_cast<double>(std::max<std::int64_t>(taken, 1)) *
                       static_cast<double>(std::max<std::int64_t>(left_in_run_ - taken, 0));
  const int columns = output_columns();
  if (style_ == Style::kPlain) {
    write_out(progress_line(facts_, columns) + "\n");
    return;
  }
  draw_bar(progress_line_with_bar(facts_, columns, output_.unicode), output_, columns);
}

}  // namespace lockstep
