// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Every line goes through the escape of what a terminal would obey.
#include "common/output.hpp"

#include "common/descriptor.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "common/printable.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <system_error>

namespace lockstep {

void write_printable(std::FILE* stream, std::string_view text) {
  const std::string shown = printable(text);
  if (std::fwrite(shown.data(), 1, shown.size(), stream) != shown.size())
    throw std::system_error(errno, std::generic_category(), "cannot write");
}

void print_error(std::string_view message) noexcept {
  try {
    wipe_bar();
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

// Window sizes, locales and TERM, and mpirun's output if that hides them.

namespace {

constexpr int kUsualColumns = 80, kFewestColumns = 20;

/// The standard output that a person sees; -1: there is none.
Descriptor seen_output() {
  if (environment_variable("OMPI_COMM_WORLD_RANK").empty())
    return Descriptor(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0));
  // Only a device is opened: a FIFO without a reader would have us wait.
  const std::string parents = "/proc/" + std::to_string(getppid()) + "/fd/1";
  struct stat info {};
  if (stat(parents.c_str(), &info) != 0 || !S_ISCHR(info.st_mode)) return Descriptor(-1);
  return Descriptor(open(parents.c_str(), O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
}

bool is_terminal(int seen) {
  return seen >= 0 && isatty(STDOUT_FILENO) != 0 && isatty(seen) != 0;
}

std::atomic<int> last_columns{kAnyWidth};

bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string value = in_small_letters(environment_variable(name));
    if (!value.empty()) return value.find("utf-8") != value.npos || value.find("utf8") != value.npos;
  }
  return false;
}

int columns_of_environment() {
  const long columns = std::strtol(environment_variable("COLUMNS").c_str(), nullptr, 10);
  return columns > 0 ? static_cast<int>(std::min(columns, 10000L)) : kUsualColumns;
}

}  // namespace

OutputTerminal output_terminal() {
  const std::string term = environment_variable("TERM");
  OutputTerminal output;
  output.is_terminal = is_terminal(seen_output());
  output.redraws = output.is_terminal && !term.empty() && term != "dumb";
  output.unicode = locale_is_utf8() && term != "dumb";
  output.escapes = output.redraws && output.unicode && environment_variable("NO_COLOR").empty();
  return output;
}

int output_columns() {
  const Descriptor output = seen_output();
  int columns = kAnyWidth;
  if (is_terminal(output)) {
    struct winsize size {};
    const bool is_told = ioctl(output, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    columns = std::max(is_told ? size.ws_col : columns_of_environment(), kFewestColumns) - 1;
  }
  return last_columns = columns;
}

int page_columns() {
  return is_terminal(seen_output()) ? output_columns() : std::max(columns_of_environment(), kFewestColumns);
}

int last_output_columns() noexcept {
  return last_columns.load();
}

// Draws, wipes, and keeps other output from being drawn over.

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

std::atomic<bool> drops_unread_output = false;

}  // namespace

void drop_unread_output() noexcept {
  drops_unread_output = true;
  fcntl(STDOUT_FILENO, F_SETFL, fcntl(STDOUT_FILENO, F_GETFL) | O_NONBLOCK);
}

void write_out(const std::string& text) {
  static std::atomic<bool> listening = true;
  if (!listening) return;
  pollfd output{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  if (drops_unread_output && poll(&output, 1, 100) == 0) return;
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return;
  const int reason = errno;
  if (reason == EAGAIN && drops_unread_output) return std::clearerr(stdout);
  if (!listening.exchange(false) || reason == EPIPE || reason == EIO) return;
  print_error(fmt::format("warning: standard output cannot be written, going on without it: {}",
                          std::strerror(reason)));
}

std::string fit_with_bar(const std::vector<LineField>& fields, double fraction, int columns, bool unicode) {
  const auto with_bar_of = [&](int width) {
    auto all = fields;
    all.insert(all.begin() + 1, {bar(fraction, width, unicode), kBarImportance});
    return fit(std::move(all), columns);
  };
  // One column more or less for the bar. It shows whether the bar is there at all, and how much room is left.
  std::string shortest = with_bar_of(kShortestBar);
  const int left = columns - display_width(shortest);
  if (shortest == with_bar_of(kShortestBar - 1) || left <= 0) return shortest;
  return with_bar_of(std::min(kShortestBar + left, kLongestBar));
}

namespace {

/// Draws it over what is there. The cursor goes back to its start: wherever a window that becomes narrower puts the
/// rest of it, it stays first, and what is printed next lies over it.
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

}  // namespace

void wipe_bar() {
  const int columns = drawn_bar.columns.exchange(0);
  if (columns == 0) return;
  write_out(drawn_bar.escapes ? std::string("\r") + kClearBehind : "\r" + spaces(columns) + "\r");
}

ProgressBar::ProgressBar(Style style, const OutputTerminal& output)
    : style_(output.redraws ? Style::kBar : style), output_(output) {
  restart();
}

ProgressBar::~ProgressBar() {
  if (style_ == Style::kBar) wipe_bar();
}

void ProgressBar::restart() {
  start_ = last_ = Clock::now();
  if (style_ == Style::kBar) last_ -= kInterval;
}

bool ProgressBar::is_due() {
  constexpr std::chrono::seconds kPlainInterval{5};
  const auto now = Clock::now();
  const Clock::duration interval = style_ == Style::kBar ? Clock::duration(kInterval) : kPlainInterval;
  if (style_ == Style::kSilent || now - last_ < interval) return false;
  last_ = now;
  return true;
}

void ProgressBar::draw(const std::vector<LineField>& fields, double fraction) const {
  const int columns = output_columns();
  if (style_ == Style::kPlain) return write_out(fit(fields, columns) + "\n");
  draw_bar(fit_with_bar(fields, fraction, columns, output_.unicode), output_, columns);
}

}  // namespace lockstep
