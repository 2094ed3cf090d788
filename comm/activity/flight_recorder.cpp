// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A slot is taken by counting, then filled word by word: a reader may find one half old, and that is all.
#include "comm/activity/flight_recorder.hpp"

#include "common/error.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace lockstep {
namespace {

constexpr std::size_t kBytes = sizeof(FlightHead) + kFlightCapacity * sizeof(FlightEntry);

[[noreturn]] void fail(const std::string& path, const char* what, int error) {
  throw IoError(fmt::format("{}: cannot be {}: {}", path, what, std::strerror(error)));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

/// Under its own name only when it has a head: readers never see half a file.
void* map_new_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (file.get() < 0) fail(path, "created", errno);
  if (const int error = ::posix_fallocate(file.get(), 0, kBytes); error != 0) fail(path, "written", error);
  void* map = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (map == MAP_FAILED) fail(path, "mapped", errno);
  return map;
}

}  // namespace

FlightRecorder::FlightRecorder(const std::string& path, const Who& who)
    : map_(map_new_file(path)),
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
  ::munmap(map_, kBytes);
}

void FlightRecorder::put(const FlightEntry& entry) {
  const auto index = std::atomic_ref(head_->written).fetch_add(1, std::memory_order_relaxed);
  auto* to = reinterpret_cast<std::uint64_t*>(&ring_[index % kFlightCapacity]);
  std::array<std::uint64_t, sizeof(FlightEntry) / 8> words{};
  std::memcpy(words.data(), &entry, sizeof(entry));
  for (std::size_t i = 0; i < words.size(); ++i)
    std::atomic_ref(to[i]).store(words[i], std::memory_order_relaxed);
}

void FlightRecorder::note(FlightEvent event, std::int64_t ns, const Whereabouts& where) {
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
