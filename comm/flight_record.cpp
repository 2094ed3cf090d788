// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The file's bytes, checked before they are believed: a slot may have been half written when the rank died.
#include "comm/flight_record.hpp"

#include "common/env.hpp"
#include "common/error.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <utility>

namespace lockstep {

namespace {

/// Bytes of an event in a file of this version; 0: this program does not know it.
std::size_t entry_bytes(std::uint32_t version) {
  return version == kFlightVersion ? sizeof(FlightEntry) : version == 1 ? sizeof(FlightEntryOfVersion1) : 0;
}

FlightHead read_head(std::span<const std::byte> file, const std::string& path) {
  FlightHead head;
  if (file.size() < sizeof(head)) throw DataError(path + ": too short for a flight record");
  std::memcpy(&head, file.data(), sizeof(head));
  if (head.magic != kFlightMagic) throw DataError(path + ": is no flight record");
  const std::size_t bytes = entry_bytes(head.version);
  if (bytes == 0)
    throw DataError(fmt::format("{}: a flight record of version {}, this program reads 1 to {}", path,
                                head.version, kFlightVersion));
  const std::uint64_t ring = file.size() - sizeof(head);
  if (head.capacity == 0 || ring % bytes != 0 || ring / bytes != head.capacity)
    throw DataError(
        fmt::format("{}: damaged: {} bytes are not room for {} events", path, ring, head.capacity));
  return head;
}

FlightEntry read_entry(std::span<const std::byte> file, std::uint64_t slot, std::uint32_t version) {
  const std::byte* from = file.data() + sizeof(FlightHead) + slot * entry_bytes(version);
  FlightEntry entry;
  if (version == kFlightVersion) {
    std::memcpy(&entry, from, sizeof(entry));
    return entry;
  }
  FlightEntryOfVersion1 old;
  std::memcpy(&old, from, sizeof(old));
  entry = {.ns = old.ns,
           .step = old.step,
           .collective = old.collective,
           .bucket = old.bucket,
           .event = old.event,
           .phase = old.phase};
  put_text(text_in(old.place), entry.place);
  return entry;
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
                      .host = std::string(text_in(head.host)),
                      .device = std::string(text_in(head.device)),
                      .events = {}};
  const auto time_of = [&](std::int64_t ns) { return sum(head.start_time, ns, minus(head.start_ns)); };
  record.alive_time = time_of(head.alive_ns);
  const std::uint64_t count = std::min<std::uint64_t>(head.written, head.capacity);
  for (std::uint64_t i = head.written - count; i < head.written; ++i) {
    const FlightEntry entry = read_entry(file, i % head.capacity, head.version);
    if (is_whole(entry)) record.events.push_back({time_of(entry.ns), entry});
  }
  std::ranges::stable_sort(record.events, {}, &FlightRecord::Event::time);
  return record;
}

std::optional<RankStatus> last_status(const std::string& directory, int rank) {
  try {
    std::string path = flight_file(flight_memory(directory), rank);
    if (!Env::posix().exists(path)) path = flight_file(directory, rank);
    const FlightRecord record = read_flight_record(Env::posix().read(path), path);
    const auto last = std::find_if(record.events.rbegin(), record.events.rend(), [](const auto& event) {
      return event.entry.event <= FlightEvent::kGoesOn;
    });
    if (last == record.events.rend()) return std::nullopt;
    const FlightEntry& entry = last->entry;
    RankStatus where{.step = entry.step,
                     .phase = entry.phase,
                     .waiting = entry.event == FlightEvent::kWait ? Waiting::kForSome : Waiting::kNo,
                     .collective = entry.collective,
                     .bucket = entry.bucket};
    put_text(text_in(entry.place), where.place);
    return where;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string describe(const FlightEntry& entry) {
  const std::string place(text_in(entry.place));
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

// A slot is taken by counting, then filled word by word: a reader may find one half old, and that is all.

namespace {

constexpr std::chrono::milliseconds kHandOverWithin{2000};

}  // namespace

FlightRecorder::FlightRecorder(std::string directory, const Who& who)
    : directory_(std::move(directory)),
      rank_(who.rank),
      map_(map_new_flight_record(directory_, rank_)),
      head_(static_cast<FlightHead*>(map_)),
      ring_(reinterpret_cast<FlightEntry*>(static_cast<char*>(map_) + sizeof(FlightHead))) {
  FlightHead head;
  head.version = kFlightVersion;
  head.capacity = kFlightCapacity;
  head.rank = static_cast<std::uint32_t>(who.rank);
  head.world_size = static_cast<std::uint32_t>(who.world_size);
  head.pid = static_cast<std::uint32_t>(::getpid());
  head.start_ns = head.alive_ns = clock_ns();
  head.start_time = std::chrono::duration_cast<std::chrono::nanoseconds>(
                        std::chrono::system_clock::now().time_since_epoch())
                        .count();
  put_text(who.host, head.host);
  put_text(who.device, head.device);
  *head_ = head;
  // Last, and as a number: eight bytes that begin a page, which a processor stores at once.
  auto* magic = static_cast<std::uint64_t*>(map_);
  std::atomic_ref(*magic).store(std::bit_cast<std::uint64_t>(kFlightMagic), std::memory_order_release);
}

FlightRecorder::~FlightRecorder() {
  ::munmap(map_, kFlightBytes);
  hand_over_flight_records_within(kHandOverWithin, directory_, {rank_});
}

void FlightRecorder::put(const FlightEntry& entry) {
  const auto index = std::atomic_ref(head_->written).fetch_add(1, std::memory_order_relaxed);
  auto* to = reinterpret_cast<std::uint64_t*>(&ring_[index % kFlightCapacity]);
  std::array<std::uint64_t, sizeof(FlightEntry) / 8> words{};
  std::memcpy(words.data(), &entry, sizeof(entry));
  for (std::size_t i = 0; i < words.size(); ++i)
    std::atomic_ref(to[i]).store(words[i], std::memory_order_relaxed);
}

void FlightRecorder::note(FlightEvent event, std::int64_t ns, const RankStatus& where) {
  FlightEntry entry{.ns = ns,
                    .step = where.step,
                    .collective = static_cast<std::uint32_t>(where.collective),
                    .bucket = static_cast<std::int16_t>(std::min(where.bucket, 32767)),
                    .event = event,
                    .phase = where.phase};
  if (event == FlightEvent::kWait) entry.place = where.place;
  put(entry);
}

void FlightRecorder::note(FlightEvent event, std::string_view about) {
  FlightEntry entry{.ns = clock_ns(), .event = event};
  put_text(about, entry.place);
  put(entry);
}

void FlightRecorder::alive(std::int64_t ahead_ns) {
  std::atomic_ref(head_->alive_ns).store(clock_ns(), std::memory_order_relaxed);
  std::atomic_ref(head_->ahead_ns).store(ahead_ns, std::memory_order_relaxed);
}

}  // namespace lockstep
