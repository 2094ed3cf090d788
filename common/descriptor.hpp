// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The owner of a file descriptor.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <span>
#include <utility>

namespace lockstep {

/// Closes it. Converts to the number for system calls; a negative number, as a failed open() returns it, is none.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }

  operator int() const { return fd_; }  // NOLINT(google-explicit-constructor): for system calls
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

/// Writes all of the bytes. @returns 0, or the errno of the write that failed: then part of them may be written
int write_all(int fd, std::span<const std::byte> bytes);

}  // namespace lockstep
