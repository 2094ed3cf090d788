// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Where flight records lie: /dev/shm/lockstep-USER-HASH holds those of one start of a run, and a file that names the
/// directory which they are of.
#include "comm/flight_record.hpp"
#include "common/digest.hpp"
#include "common/env.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <future>
#include <utility>

namespace lockstep {

namespace {

constexpr const char* kMemory = "/dev/shm";
constexpr std::uint64_t kLeastRoom = std::uint64_t{64} << 20;  ///< others need it, too: NCCL, Open MPI
constexpr const char* kWhose = "directory";                    ///< the file that names it
constexpr std::string_view kHalfMade = ".part";

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
  if (const int error = ::posix_fallocate(file.get(), 0, kFlightBytes); error != 0)
    fail(path, "written", error);
  void* map = ::mmap(nullptr, kFlightBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (map == MAP_FAILED) fail(path, "mapped", errno);
  return map;
}

std::string memory_of_this_user() {
  return fmt::format("lockstep-{}-", ::geteuid());
}

/// Anybody may make folders of any name there: this one is ours, and nobody else writes into it.
bool is_ours(const std::string& folder) {
  struct stat info {};
  return ::lstat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid() &&
         (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/// False: there is no memory for records here.
bool make_memory(const std::string& folder, const std::string& directory) {
  struct statvfs room {};
  if (::statvfs(kMemory, &room) != 0 || room.f_bavail * room.f_frsize < kLeastRoom) return false;
  if (::mkdir(folder.c_str(), 0700) == 0) {
    const Descriptor file(
        ::open((folder + "/" + kWhose).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    return ::write(file.get(), directory.data(), directory.size()) == static_cast<ssize_t>(directory.size());
  }
  return errno == EEXIST && is_ours(folder);
}

/// Once no record lies there any more.
void remove_if_empty(const std::string& folder) {
  Env& env = Env::posix();
  const auto names = env.list(folder);
  const std::string whose = kWhose;
  if (names == std::vector{whose}) env.remove_directory(folder, std::vector{whose});
}

void hand_over(const std::string& folder, const std::string& directory, const std::string& name) {
  Env& env = Env::posix();
  const std::string from = folder + "/" + name, to = directory + "/" + name;
  if (!env.exists(from)) return;
  const std::string half = to + std::string(kHalfMade);
  env.remove_file(half);
  const auto file = env.create(half);
  file->write(env.read(from));
  file->close();
  env.rename(half, to);
  env.remove_file(from);
}

/// @returns whether what follows "rank-" and comes before ".flight" is a rank's number as we write it
bool is_number_of_rank(std::string_view name) {
  constexpr std::string_view kBefore = "rank-", kBehind = ".flight";
  if (!name.starts_with(kBefore) || !name.ends_with(kBehind)) return false;
  const std::string_view digits = name.substr(kBefore.size(), name.size() - kBefore.size() - kBehind.size());
  int rank = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  return error == std::errc() && rank >= 0 && "/" + std::string(name) == flight_file("", rank);
}

}  // namespace

std::string flight_file(const std::string& directory, int rank) {
  return fmt::format("{}/rank-{:04}.flight", directory, rank);
}

bool is_flight_record(std::string_view name) {
  return is_number_of_rank(name);
}

bool is_flight_file(std::string_view name) {
  if (name.ends_with(kHalfMade)) return is_flight_record(name.substr(0, name.size() - kHalfMade.size()));
  return name == kVerdictFile || is_flight_record(name);
}

std::string flight_memory(const std::string& directory) {
  const std::string hash = hex(sha256(std::as_bytes(std::span(directory))));
  return fmt::format("{}/{}{}", kMemory, memory_of_this_user(), hash.substr(0, 16));
}

void* map_new_flight_record(const std::string& directory, int rank) {
  const std::string folder = flight_memory(directory);
  if (make_memory(folder, directory)) {
    try {
      Env::posix().remove_file(flight_file(folder, rank));  // of another run that had this directory
      return map_new_file(flight_file(folder, rank));
    } catch (const IoError&) {  // NOLINT(bugprone-empty-catch): full by now
    }
  }
  return map_new_file(flight_file(directory, rank));
}

void hand_over_flight_records(const std::string& directory, std::span<const int> ranks) noexcept {
  try {
    const std::string folder = flight_memory(directory);
    if (!is_ours(folder)) return;
    std::vector<std::string> names;
    for (const int rank : ranks) names.push_back(flight_file("", rank).substr(1));
    if (ranks.empty()) names = Env::posix().list(folder);
    for (const std::string& name : names) {
      if (is_flight_record(name)) hand_over(folder, directory, name);
    }
    remove_if_empty(folder);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): it stays where it is
  }
}

bool hand_over_flight_records_within(std::chrono::milliseconds limit, const std::string& directory,
                                     std::vector<int> ranks) {
  if (!is_ours(flight_memory(directory))) return true;
  auto done = std::make_shared<std::promise<void>>();
  auto is_done = done->get_future();
  try {
    start_thread([done, directory, ranks = std::move(ranks)] {
      hand_over_flight_records(directory, ranks);
      done->set_value();
    }).detach();
  } catch (const Error&) {
    return false;
  }
  return is_done.wait_for(limit) == std::future_status::ready;
}

void forget_flight_records(const std::string& directory) noexcept {
  try {
    Env& env = Env::posix();
    const std::string folder = flight_memory(directory);
    if (!is_ours(folder)) return;
    const auto names = env.list(folder);
    const bool of_records = std::ranges::all_of(
        names, [](const std::string& name) { return name == kWhose || is_flight_record(name); });
    if (of_records) env.remove_directory(folder, names);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): a later start tries again
  }
}

namespace {

/// A rank that is killed at once leaves a folder that names no directory; one that has only made it goes on without.
void forget_if_lost(const std::string& folder) noexcept {
  try {
    Env& env = Env::posix();
    const auto names = env.list(folder);
    std::string directory;
    if (std::ranges::find(names, kWhose) != names.end()) {
      const auto bytes = env.read_first(folder + "/" + kWhose, 4096);
      directory.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    if (flight_memory(directory) != folder) {
      const bool is_empty =
          std::ranges::all_of(names, [](const std::string& name) { return name == kWhose; });
      if (is_empty) env.remove_directory(folder, names);
    } else if (env.entry(directory).kind == EntryKind::kNothing) {
      forget_flight_records(directory);
    }
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): its run has ended meanwhile
  }
}

}  // namespace

void forget_lost_flight_records() noexcept {
  try {
    for (const std::string& name : Env::posix().list(kMemory)) {
      const std::string folder = std::string(kMemory) + "/" + name;
      if (name.starts_with(memory_of_this_user()) && is_ours(folder)) forget_if_lost(folder);
    }
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): another start finds them
  }
}

}  // namespace lockstep
