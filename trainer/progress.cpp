// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "trainer/progress.hpp"

#include "kernels/runtime/printable.hpp"
#include "trainer/launched_rank.hpp"
#include "trainer/rank_runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace lockstep {
namespace {

constexpr std::chrono::milliseconds kBarInterval{100};
constexpr std::chrono::seconds kPlainInterval{5};
constexpr int kBarWidth = 24;

/// What nobody can read any more is dropped: the terminal is gone, or `train ... | head -1` has seen enough.
/// Any other reason is said once.
void print(const std::string& text) {
  static bool listening = true;
  if (!listening) return;
  listening = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (listening || errno == EPIPE || errno == EIO) return;
  print_error(fmt::format("warning: standard output cannot be written, going on without it: {}",
                          std::strerror(errno)));
}

std::string bar(double fraction) {
  const int full = static_cast<int>(fraction * kBarWidth);
  std::string text;
  for (int i = 0; i < kBarWidth; ++i) text += i < full ? "━" : "╌";
  return text;
}

}  // namespace

Progress::Style Progress::style_for(int rank) {
  if (rank != 0) return Style::kSilent;
  return output_is_terminal() ? Style::kBar : Style::kPlain;
}

Progress::~Progress() {
  wipe();
}

void Progress::say(const std::string& line) {
  if (style_ == Style::kSilent) return;
  wipe();
  print(printable(line) + "\n");
}

void Progress::start_epoch(std::int64_t epoch, std::int64_t epochs, std::int64_t steps_done,
                           std::int64_t steps, std::int64_t steps_left_in_run) {
  epoch_ = epoch, epochs_ = epochs, steps_ = steps, done_ = done_before_ = steps_done;
  left_in_run_ = steps_left_in_run;
  samples_ = 0;
  start_ = last_ = Clock::now();
}

void Progress::steps(std::int64_t count, std::int64_t samples, double mean_loss) {
  if (style_ == Style::kSilent) return;
  done_ += count;
  samples_ += samples;
  loss_ = mean_loss;
  const auto now = Clock::now();
  if (now - last_ < (style_ == Style::kBar ? Clock::duration(kBarInterval) : Clock::duration(kPlainInterval)))
    return;
  last_ = now;
  draw(std::chrono::duration<double>(now - start_).count());
}

void Progress::end_epoch() {
  wipe();
}

void Progress::draw(double seconds) {
  const auto taken = done_ - done_before_;
  const double eta = seconds / static_cast<double>(std::max<std::int64_t>(taken, 1)) *
                     static_cast<double>(std::max<std::int64_t>(left_in_run_ - taken, 0));
  const auto rate = with_thousands(static_cast<std::int64_t>(static_cast<double>(samples_) / seconds));
  const auto text = fmt::format("{}/{} steps  {} samples/s  loss {}  ETA {}", done_, steps_, rate,
                                format_loss(loss_), format_duration(eta));
  if (style_ == Style::kPlain) {
    print(fmt::format("epoch {:>2}/{}  {}\n", epoch_, epochs_, text));
  } else {
    const double fraction =
        static_cast<double>(done_) / static_cast<double>(std::max<std::int64_t>(steps_, 1));
    print(fmt::format("\r\033[2Kepoch {:>2}/{}  {}  {}", epoch_, epochs_, bar(fraction), text));
    drawn_ = true;
  }
}

void Progress::wipe() {
  if (!drawn_) return;
  print("\r\033[2K");
  drawn_ = false;
}

std::string format_duration(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds + 0.5);
  const auto hours = whole / 3600, minutes = whole / 60 % 60;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
  return fmt::format("{}:{:02}", minutes, whole % 60);
}

std::string format_loss(double loss) {
  return std::abs(loss) < 1e6 ? fmt::format("{:.4f}", loss) : fmt::format("{:.4e}", loss);
}

std::string with_thousands(std::int64_t value) {
  std::string digits = std::to_string(value);
  const std::size_t first = value < 0 ? 1 : 0;
  for (auto at = digits.size(); at > first + 3;) digits.insert(at -= 3, ",");
  return digits;
}

}  // namespace lockstep
