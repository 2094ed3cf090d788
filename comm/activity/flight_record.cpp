// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "comm/activity/flight_record.hpp"

#include "common/error.hpp"
#include "common/files/env.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace lockstep {
namespace {

template <std::size_t Size>
std::string text_of(const std::array<char, Size>& text) {
  return {text.begin(), std::find(text.begin(), text.end(), '\0')};
}

FlightHead read_head(std::span<const std::byte> file, const std::string& path) {
  FlightHead head;
  if (file.size() < sizeof(head)) throw DataError(path + ": too short for a flight record");
  std::memcpy(&head, file.data(), sizeof(head));
  if (head.magic != kFlightMagic) throw DataError(path + ": is no flight record");
  if (head.version != kFlightVersion)
    throw DataError(fmt::format("{}: a flight record of version {}, this program reads {}", path,
                                head.version, kFlightVersion));
  const std::uint64_t ring = file.size() - sizeof(head);
  if (head.capacity == 0 || ring % sizeof(FlightEntry) != 0 || ring / sizeof(FlightEntry) != head.capacity)
    throw DataError(
        fmt::format("{}: damaged: {} bytes are not room for {} events", path, ring, head.capacity));
  return head;
}

/// A slot that was being written may hold anything.
bool is_whole(const FlightEntry& entry) {
  return entry.ns > 0 && static_cast<int>(entry.event) < kFlightEvents &&
         static_cast<int>(entry.phase) < kPhases;
}

/// Wraps around rather than overflow: the head may be anything.
std::int64_t sum(std::int64_t a, std::int64_t b, std::int64_t c) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b) +
                                   static_cast<std::uint64_t>(c));
}

std::int64_t minus(std::int64_t value) {
  return static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(value));
}

}  // namespace

FlightRecord read_flight_record(std::span<const std::byte> file, const std::string& path) {
  const FlightHead head = read_head(file, path);
  FlightRecord record{.rank = static_cast<int>(head.rank),
                      .world_size = static_cast<int>(head.world_size),
                      .pid = static_cast<int>(head.pid),
                      .host = text_of(head.host),
                      .device = text_of(head.device),
                      .events = {}};
  const auto time_of = [&](std::int64_t ns) { return sum(head.start_time, ns, minus(head.start_ns)); };
  record.alive_time = time_of(head.alive_ns);
  const std::uint64_t count = std::min<std::uint64_t>(head.written, head.capacity);
  for (std::uint64_t i = head.written - count; i < head.written; ++i) {
    FlightEntry entry;
    std::memcpy(&entry, file.data() + sizeof(head) + i % head.capacity * sizeof(entry), sizeof(entry));
    if (is_whole(entry)) record.events.push_back({time_of(entry.ns), entry});
  }
  std::ranges::stable_sort(record.events, {}, &FlightRecord::Event::time);
  return record;
}

std::string flight_file(const std::string& directory, int rank) {
  return fmt::format("{}/rank-{:04}.flight", directory, rank);
}

std::optional<Whereabouts> last_whereabouts(const std::string& directory, int rank) {
  try {
    const std::string path = flight_file(directory, rank);
    const FlightRecord record = read_flight_record(Env::posix().read(path), path);
    const auto last = std::find_if(record.events.rbegin(), record.events.rend(), [](const auto& event) {
      return event.entry.event <= FlightEvent::kGoesOn;
    });
    if (last == record.events.rend()) return std::nullopt;
    const FlightEntry& entry = last->entry;
    Whereabouts where{.step = entry.step,
                      .phase = entry.phase,
                      .waiting = entry.event == FlightEvent::kWait,
                      .collective = entry.collective,
                      .bucket = entry.bucket};
    text_of(entry.place).copy(where.place.data(), where.place.size() - 1);
    return where;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string describe(const FlightEntry& entry) {
  const std::string place = text_of(entry.place);
  switch (entry.event) {
    case FlightEvent::kPhase:
      return std::string(phase_name(entry.phase));
    case FlightEvent::kBucket:
      return fmt::format("bucket {} leaves", entry.bucket + 1);
    case FlightEvent::kWait:
      return fmt::format("waits in {} (collective {})", place, entry.collective);
    case FlightEvent::kGoesOn:
      return "goes on";
    case FlightEvent::kRankSilent:
      return place + " is silent";
    case FlightEvent::kRankBack:
      return place + " is back";
    case FlightEvent::kRankLost:
      return place + " is lost";
    case FlightEvent::kEnd:
      return "ends in good order";
  }
  return "";
}

}  // namespace lockstep
