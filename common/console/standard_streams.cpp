// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Closed streams are opened on /dev/null first; at the end it is found out whether the output was written.
#include "common/console/standard_streams.hpp"

#include "common/error.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

namespace lockstep {

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
