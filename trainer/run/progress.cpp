// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Draws when enough time has passed, and wipes what is in the way of a line.
#include "trainer/run/progress.hpp"

#include "common/console/output.hpp"
#include "common/text/printable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace lockstep {
namespace {

constexpr std::chrono::milliseconds kBarInterval{100};
constexpr std::chrono::seconds kPlainInterval{5};

/// To the end of the screen: a bar that was drawn in a wider window may have become several lines.
constexpr const char* kClearBehind = "\033[J";

/// In one write, so that a launcher does not pass on half a line. What nobody can read any more is dropped:
/// the terminal is gone, or `train ... | head -1` has seen enough. Any other reason is said once.
void write_out(const std::string& text) {
  static std::atomic<bool> listening = true;
  if (!listening) return;
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return;
  const int reason = errno;
  if (!listening.exchange(false) || reason == EPIPE || reason == EIO) return;
  print_error(fmt::format("warning: standard output cannot be written, going on without it: {}",
                          std::strerror(reason)));
}

/// There is one bar on one screen.
struct DrawnBar {
  std::atomic<int> columns = 0;  ///< 0: none
  std::atomic<bool> escapes = false;
} drawn_bar;

std::string spaces(int count) {
  return std::string(static_cast<std::size_t>(std::max(count, 0)), ' ');
}

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

/// The cursor goes back to the start of the bar: wherever a window that becomes narrower puts the rest of it,
/// it stays in front, and what is printed next lies over it.
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
  const auto line = progress_line_with_bar(facts_, columns, output_.unicode);
  const int width = display_width(line);
  if (output_.escapes) {
    write_out("\r" + line + kClearBehind + "\r");
  } else {
    if (drawn_bar.columns > columns) wipe_bar();
    write_out("\r" + line + spaces(drawn_bar.columns - width) + "\r");
  }
  drawn_bar.escapes = output_.escapes;
  drawn_bar.columns = width;
}

void wipe_bar() {
  const int columns = drawn_bar.columns.exchange(0);
  if (columns == 0) return;
  write_out(drawn_bar.escapes ? std::string("\r") + kClearBehind : "\r" + spaces(columns) + "\r");
}

}  // namespace lockstep
