// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Reads the flight record of one rank.
#pragma once

#include "comm/rank_status.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// The file of a flight record: a head of 512 bytes, then a ring of events, little-endian as in memory.

enum class FlightEvent : std::uint8_t {
  kPhase,
  kBucket,
  kWait,
  kGoesOn,
  kRankSilent,
  kRankBack,
  kRankLost,
  kEnd
};
inline constexpr int kFlightEvents = 8;

inline constexpr std::array<char, 8> kFlightMagic = {'L', 'S', 'F', 'L', 'I', 'G', 'H', 'T'};
inline constexpr std::uint32_t kFlightVersion = 2;      ///< this program also reads version 1
inline constexpr std::uint32_t kFlightCapacity = 2048;  ///< events; a power of two

struct FlightHead {
  std::array<char, 8> magic{};
  std::uint32_t version = 0, capacity = 0;
  std::uint32_t rank = 0, world_size = 0, pid = 0, reserved = 0;
  std::uint64_t written = 0;              ///< events since the start; event i lies at i % capacity
  std::int64_t start_ns = 0;              ///< the rank's clock at the start
  std::int64_t start_time = 0;            ///< and the time of day then, in nanoseconds since 1970
  std::int64_t alive_ns = 0;              ///< the last sign of life of the process, by the same clock
  std::int64_t ahead_ns = 0;              ///< by how much this clock is ahead of rank 0's
  std::array<char, 64> host{}, device{};  ///< each ends with a zero
  std::array<char, 312> free{};
};
static_assert(sizeof(FlightHead) == 512);

struct FlightEntry {
  std::int64_t ns = 0;
  std::int64_t step = 0;
  std::uint32_t collective = 0;
  std::int16_t bucket = -1;
  FlightEvent event = FlightEvent::kPhase;
  Phase phase = Phase::kStarting;
  std::array<char, kPlaceBytes> place{};  ///< of waits; ends with a zero. kRankLost and so on: "rank 3"
};
static_assert(sizeof(FlightEntry) == 120);

inline constexpr std::size_t kFlightBytes = sizeof(FlightHead) + kFlightCapacity * sizeof(FlightEntry);

/// As version 1 had it: only the first 23 bytes of what is waited for.
struct FlightEntryOfVersion1 {
  std::int64_t ns, step;
  std::uint32_t collective;
  std::int16_t bucket;
  FlightEvent event;
  Phase phase;
  std::array<char, 24> place;
};
static_assert(sizeof(FlightEntryOfVersion1) == 48);

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
/// Whether a file of this name in a flight directory is ours: a record's name, or the verdict's; or a copy's, half made.
bool is_flight_file(std::string_view name);
/// Whether it is a record's.
bool is_flight_record(std::string_view name);

// While its rank lives, a record lies in the memory of its machine, below /dev/shm: the run's directory may be on a file
// system that stalls, or whose server is lost, which would stop the rank, or end it with SIGBUS. From there it is handed
// over to the run's directory when the rank ends, and where it was killed by another rank of its machine, or by the next
// start of the run there. Where there is no such memory, or less than 64 MiB of it are free, the record lies in the
// run's directory from the start.

/// Where the records of a start lie on this machine: a folder of this user alone, which may not be there.
/// @param directory  RUN/flight/START, absolute
std::string flight_memory(const std::string& directory);
/// Hands over the records of these ranks, as far as they lie on this machine; none named: all. One that cannot be copied
/// stays. Never throws.
void hand_over_flight_records(const std::string& directory, std::span<const int> ranks = {}) noexcept;
/// The same on a thread of its own. @returns whether it was done within this time
bool hand_over_flight_records_within(std::chrono::milliseconds limit, const std::string& directory,
                                     std::vector<int> ranks);
/// A new record, all zeros, of kFlightBytes bytes, mapped. It has its full size from the start, so that a full disk
/// shows then and not later. @throws IoError
void* map_new_flight_record(const std::string& directory, int rank);
/// Removes those of this directory from the machine's memory.
void forget_flight_records(const std::string& directory) noexcept;
/// Removes what this user's runs left in this machine's memory whose directories are not there any more.
void forget_lost_flight_records() noexcept;

/// What a rank of this machine noted last, for people: a record does not say for whom it waited. Nothing: there is no
/// record that can be read.
std::optional<RankStatus> last_status(const std::string& directory, int rank);

/// "waits in a barrier", "bucket 2 leaves"
std::string describe(const FlightEntry& entry);

// Writes what a rank does into a file that is there whatever becomes of the process.

/// The file is mapped: what was noted is in it although the process is killed. Thread-safe.
class FlightRecorder {
 public:
  struct Who {
    int rank = 0, world_size = 1;
    std::string host, device;
  };

  /// Creates the record of a start: RUN/flight/START, absolute. @throws IoError, also on a full disk
  FlightRecorder(std::string directory, const Who& who);
  /// Hands the record over. A directory that stalls is waited for for two seconds: then the record stays where it is.
  ~FlightRecorder();
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;

  void note(FlightEvent event, std::int64_t ns, const RankStatus& where);
  /// @param about  "rank 3"
  void note(FlightEvent event, std::string_view about);
  /// A sign of life. @param ahead_ns  this clock, of rank 0's
  void alive(std::int64_t ahead_ns);

 private:
  void put(const FlightEntry& entry);

  std::string directory_;
  int rank_;
  void* map_ = nullptr;
  FlightHead* head_ = nullptr;
  FlightEntry* ring_ = nullptr;
};

}  // namespace lockstep
