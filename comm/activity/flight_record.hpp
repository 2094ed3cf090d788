// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Reads the flight record of one rank.
#pragma once

#include "comm/activity/flight_format.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct FlightRecord {
  int rank = 0, world_size = 0, pid = 0;
  std::string host, device;
  std::int64_t alive_time = 0;  ///< its last sign of life, in nanoseconds since 1970 by rank 0's clock
  struct Event {
    std::int64_t time = 0;  ///< likewise
    FlightEntry entry;
  };
  std::vector<Event> events;  ///< the oldest first; at most kFlightCapacity
};

/// Any bytes may come: nothing in them is believed. @throws DataError that names `path`
FlightRecord read_flight_record(std::span<const std::byte> file, const std::string& path);

/// The file of a rank's record in a directory: "rank-0003.flight".
std::string flight_file(const std::string& directory, int rank);
/// What a verdict is written into, beside the records.
inline constexpr const char* kVerdictFile = "verdict.txt";
/// Whether a file of this name in a flight directory is ours: a record's name, or the verdict's.
bool is_flight_file(std::string_view name);

/// What a rank of this machine, or of one that shares the directory, noted last, for people: a record does not say for whom
/// it waited. Nothing: there is no record that can be read.
std::optional<Whereabouts> last_whereabouts(const std::string& directory, int rank);

/// "waits in a barrier", "bucket 2 leaves"
std::string describe(const FlightEntry& entry);

}  // namespace lockstep
