// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What can be seen of the machine without asking anybody: the seam between the doctor and the world.
#pragma once

#include "comm/launcher.hpp"
#include "trainer/doctor/rank_view.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace lockstep {

struct Surroundings {
  std::filesystem::path root = "/";  ///< where /proc, /sys, /etc and /dev lie
  Environment environment;           ///< getenv
  std::function<std::vector<Interface>()> interfaces;
  /// Reads a byte of another process here. @returns why not; empty: it was read
  std::function<std::string(int pid, std::uint64_t address)> read_memory_of;

  static const Surroundings& real();
};

/// What a rank sees by itself: everything but what comes from its communicator and device.
RankView look_around(const Surroundings& world);

/// Bytes that are free for a writer to `directory`, or to the first folder above it that is there; the
/// most that there can be where the system does not say.
std::uint64_t disk_free(const std::filesystem::path& directory);

}  // namespace lockstep
