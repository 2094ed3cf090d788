// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Window sizes, locales and TERM, and mpirun's own output where that hides them.
#include "common/console/terminal.hpp"

#include <cctype>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>
#include <string_view>

namespace lockstep {
namespace {

constexpr int kUsualColumns = 80, kFewestColumns = 20;

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// The standard output that a person sees, while this lives.
class SeenOutput {
 public:
  SeenOutput() {
    if (std::getenv("OMPI_COMM_WORLD_RANK") == nullptr) {
      fd_ = STDOUT_FILENO;
      return;
    }
    // Only a device is opened: a FIFO without a reader would have us wait.
    const std::string parents = "/proc/" + std::to_string(getppid()) + "/fd/1";
    struct stat info {};
    if (stat(parents.c_str(), &info) != 0 || !S_ISCHR(info.st_mode)) return;
    fd_ = open(parents.c_str(), O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  }
  ~SeenOutput() {
    if (fd_ >= 0 && fd_ != STDOUT_FILENO) close(fd_);
  }
  SeenOutput(const SeenOutput&) = delete;
  SeenOutput& operator=(const SeenOutput&) = delete;

  bool is_terminal() const { return fd_ >= 0 && isatty(STDOUT_FILENO) != 0 && isatty(fd_) != 0; }
  /// 0: it does not know
  int columns() const {
    struct winsize size {};
    return ioctl(fd_, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
  }

 private:
  int fd_ = -1;
};

std::atomic<int> last_columns{kAnyWidth};

bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string value(variable(name));
    std::transform(value.begin(), value.end(), value.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    if (!value.empty()) return value.find("utf-8") != value.npos || value.find("utf8") != value.npos;
  }
  return false;
}

int columns_of_environment() {
  const long columns = std::strtol(std::string(variable("COLUMNS")).c_str(), nullptr, 10);
  return columns > 0 ? static_cast<int>(std::min(columns, 10000L)) : kUsualColumns;
}

}  // namespace

OutputTerminal output_terminal() {
  const std::string_view term = variable("TERM");
  OutputTerminal output;
  output.is_terminal = SeenOutput().is_terminal();
  output.redraws = output.is_terminal && !term.empty() && term != "dumb";
  output.unicode = locale_is_utf8() && term != "dumb";
  output.escapes = output.redraws && output.unicode && variable("NO_COLOR").empty();
  return output;
}

int output_columns() {
  const SeenOutput output;
  int columns = kAnyWidth;
  if (output.is_terminal()) {
    const int told = output.columns();
    columns = std::max(told > 0 ? told : columns_of_environment(), kFewestColumns) - 1;
  }
  last_columns = columns;
  return columns;
}

int last_output_columns() noexcept {
  return last_columns.load();
}

}  // namespace lockstep
