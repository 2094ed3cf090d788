// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The file of a flight record: a head of 512 bytes, then a ring of events, little-endian as in memory.
#pragma once

#include "comm/activity/rank_activity.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace lockstep {

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

}  // namespace lockstep
