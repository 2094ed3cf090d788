// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Draws, wipes, and keeps other output from being drawn over.
#include "common/console/status_bar.hpp"

#include "common/console/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace lockstep {
namespace {

constexpr int kShortestBar = 8, kLongestBar = 24;
constexpr int kBarImportance = 2;

/// To the end of the screen: a bar that was drawn in a wider window may have become several lines.
constexpr const char* kClearBehind = "\033[J";

struct DrawnBar {
  std::atomic<int> columns = 0;  ///< 0: none
  std::atomic<bool> escapes = false;
} drawn_bar;

std::string spaces(int count) {
  return fmt::format("{:{}}", "", std::max(count, 0));
}

}  // namespace

void write_out(const std::string& text) {
  static std::atomic<bool> listening = true;
  if (!listening) return;
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return;
  const int reason = errno;
  if (!listening.exchange(false) || reason == EPIPE || reason == EIO) return;
  print_error(fmt::format("warning: standard output cannot be written, going on without it: {}",
                          std::strerror(reason)));
}

std::string fit_with_bar(const std::vector<Field>& fields, double fraction, int columns, bool unicode) {
  const auto with_bar_of = [&](int width) {
    auto all = fields;
    all.insert(all.begin() + 1, {bar(fraction, width, unicode), kBarImportance});
    return fit(std::move(all), columns);
  };
  // One column more or less for the bar shows whether it is there at all, and how much room it has left.
  std::string shortest = with_bar_of(kShortestBar);
  const int left = columns - display_width(shortest);
  if (shortest == with_bar_of(kShortestBar - 1) || left <= 0) return shortest;
  return with_bar_of(std::min(kShortestBar + left, kLongestBar));
}

void draw_bar(const std::string& line, const OutputTerminal& output, int columns) {
  const int width = display_width(line);
  if (output.escapes) {
    write_out("\r" + line + kClearBehind + "\r");
  } else {
    if (drawn_bar.columns > columns) wipe_bar();
    write_out("\r" + line + spaces(drawn_bar.columns - width) + "\r");
  }
  drawn_bar.escapes = output.escapes;
  drawn_bar.columns = width;
}

void wipe_bar() {
  const int columns = drawn_bar.columns.exchange(0);
  if (columns == 0) return;
  write_out(drawn_bar.escapes ? std::string("\r") + kClearBehind : "\r" + spaces(columns) + "\r");
}

}  // namespace lockstep
