// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Every line goes through the escape of what a terminal would obey.
#include "common/output.hpp"

#include "common/error.hpp"
#include "common/printable.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
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

// Closed streams are opened on /dev/null first; at the end it is found out whether the output was written.

void open_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest free number is this one. If even this fails, no message can be written.
    if (open("/dev/null", O_RDWR | O_NOCTTY) != fd) return;
  }
}

void finish_standard_output() {
  errno = 0;
  const bool written = std::ferror(stdout) == 0 && std::fflush(stdout) == 0;
  if (written || errno == EPIPE) return;
  const std::string cause = errno == 0 ? "" : std::string(": ") + std::strerror(errno);
  throw IoError("standard output could not be written" + cause);
}

}  // namespace lockstep
