// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Writes what a rank does into a file that is there whatever becomes of the process.
#pragma once

#include "comm/activity/flight_format.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace lockstep {

/// The file is mapped: what was noted is in it although the process is killed. It has its full size from the
/// start, so that a full disk shows then and not later. Thread-safe.
class FlightRecorder {
 public:
  struct Who {
    int rank = 0, world_size = 1;
    std::string host, device;
  };

  /// Creates the file. @throws IoError, also on a full disk
  FlightRecorder(const std::string& path, const Who& who);
  ~FlightRecorder();
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;

  void note(FlightEvent event, std::int64_t ns, const Whereabouts& where);
  /// @param about  "rank 3"
  void note(FlightEvent event, std::string_view about);
  /// A sign of life. @param ahead_ns  this clock, of rank 0's
  void alive(std::int64_t ahead_ns);

 private:
  void put(const FlightEntry& entry);

  void* map_ = nullptr;
  FlightHead* head_ = nullptr;
  FlightEntry* ring_ = nullptr;
};

}  // namespace lockstep
