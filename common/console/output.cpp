// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Every line goes through the escape of what a terminal would obey.
#include "common/console/output.hpp"

#include "common/text/printable.hpp"

#include <atomic>
#include <cerrno>
#include <exception>
#include <string>
#include <system_error>

namespace lockstep {
namespace {

std::atomic<void (*)()> before_error = nullptr;

}  // namespace

void call_before_errors(void (*action)()) {
  before_error = action;
}

void write_printable(std::FILE* stream, std::string_view text) {
  const std::string shown = printable(text);
  if (std::fwrite(shown.data(), 1, shown.size(), stream) != shown.size())
    throw std::system_error(errno, std::generic_category(), "cannot write");
}

void print_error(std::string_view message) noexcept {
  try {
    if (const auto action = before_error.load()) action();
    const std::string line = "lockstep: " + printable_line(message) + "\n";
    std::fwrite(line.data(), 1, line.size(), stderr);
  } catch (const std::exception&) {
    std::fputs("lockstep: not enough memory\n", stderr);
  }
}

}  // namespace lockstep
