// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// --device takes the names that parallel.device of a job file does.
#include "trainer/commands/parallel_options.hpp"

#include "trainer/config/device_name.hpp"

#include <fmt/format.h>

#include <string>

namespace lockstep {

void add_parallel_options(CLI::App& command, ParallelSection& parallel) {
  command
      .add_option("--device", parallel.device,
                  fmt::format("{}, as parallel.device of a job file", kDeviceNames))
      ->check([](const std::string& text) {
        return parse_device_name(text) ? "" : fmt::format("'{}' is not {}", text, kDeviceNames);
      })
      ->capture_default_str();
  command.add_option("--threads", parallel.threads, "Of each rank")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
}

}  // namespace lockstep
