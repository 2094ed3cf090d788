// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/trainer/end_to_end/terminal.hpp"

#include "common/text_layout.hpp"

#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <stdexcept>

namespace lockstep::testing {
namespace {

using Clock = std::chrono::steady_clock;

struct winsize window_of(int columns) {
  return {.ws_row = 40, .ws_col = static_cast<unsigned short>(columns), .ws_xpixel = 0, .ws_ypixel = 0};
}

/// Appends what comes within a moment; false when the program has closed its side.
bool read_some(int fd, std::string& bytes) {
  pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
  if (poll(&ready, 1, 100) <= 0) return true;
  std::array<char, 4096> buffer{};
  const ssize_t got = read(fd, buffer.data(), buffer.size());
  if (got > 0) bytes.append(buffer.data(), static_cast<std::size_t>(got));
  return got > 0;
}

int wait_for(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

TerminalOutput run_in_terminal(const TerminalRun& run, const std::string& command, int seconds) {
  const std::string line =
      "exec env -u COLUMNS -u NO_COLOR -u LC_ALL -u LC_CTYPE -u LANG " + run.environment + " " + command;
  struct winsize window = window_of(run.columns);
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &window);
  if (child < 0) throw std::runtime_error("forkpty failed");
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    _exit(127);
  }
  TerminalOutput output;
  const auto deadline = Clock::now() + std::chrono::seconds(seconds);
  std::size_t resized_at = std::string::npos;
  bool stopped = run.stop_at.empty();
  while (read_some(terminal, output.bytes)) {
    if (Clock::now() > deadline) kill(child, SIGKILL);
    const bool resized = resized_at != std::string::npos;
    if (!resized && run.columns_later > 0 && output.bytes.find(run.resize_at) != std::string::npos) {
      window = window_of(run.columns_later);
      ioctl(terminal, TIOCSWINSZ, &window);
      resized_at = output.bytes.size();
    } else if (resized && !stopped && output.bytes.find(run.stop_at, resized_at) != std::string::npos) {
      stopped = write(terminal, "\003", 1) == 1;
    }
  }
  if (resized_at != std::string::npos) output.after_resize = output.bytes.substr(resized_at);
  output.exit_code = wait_for(child);
  close(terminal);
  return output;
}

std::vector<std::string> lines_on_screen(const std::string& bytes, int& widest) {
  std::vector<std::string> lines(1);
  std::string written;  // since the last carriage return
  const auto settle = [&] {
    widest = std::max(widest, display_width(written));
    const std::string rest = written.size() < lines.back().size() ? lines.back().substr(written.size()) : "";
    lines.back() = written + rest;
  };
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    if (bytes[at] == '\r') {
      settle();
      written.clear();
    } else if (bytes[at] == '\n') {
      settle();
      written.clear();
      lines.emplace_back();
    } else if (bytes.compare(at, 3, "\033[J") == 0) {
      lines.back() = written;
      at += 2;
    } else if (bytes[at] == '\033') {
      throw std::runtime_error("a stray escape sequence: " + bytes.substr(at + 1, 8));
    } else {
      written += bytes[at];
    }
  }
  settle();
  return lines;
}

}  // namespace lockstep::testing
