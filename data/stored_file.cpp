// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Opening, and reading with patience.
#include "data/stored_file.hpp"

#include "common/env.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <list>
#include <mutex>
#include <system_error>
#include <utility>

namespace lockstep {
namespace {

std::string system_text(int error) {
  return std::generic_category().message(error);
}

/// Once. @returns bytes read, 0 at the end
std::size_t read_some(int descriptor, std::uint64_t offset, std::span<std::uint8_t> to,
                      const std::string& name) {
  for (;;) {
    const ssize_t count = ::pread(descriptor, to.data(), to.size(), static_cast<off_t>(offset));
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno != EINTR)
      throw IoError(
          fmt::format("{}: offset {}: reading failed: {}; check the disk, or the network that it is on", name,
                      offset, system_text(errno)));
  }
}

/// Of the whole process; never destroyed, since threads may still read when it ends.
struct ReadsUnderWay {
  std::mutex mutex;
  std::list<std::pair<const std::string*, Clock::time_point>> list;  ///< in the order in which they began

  static ReadsUnderWay& all() {
    static auto* const reads = new ReadsUnderWay;
    return *reads;
  }
};

/// Counts as under way for as long as it lives.
class Reading {
 public:
  explicit Reading(const std::string& file) : reads_(ReadsUnderWay::all()) {
    const std::lock_guard lock(reads_.mutex);
    place_ = reads_.list.emplace(reads_.list.end(), &file, Clock::now());
  }
  ~Reading() {
    const std::lock_guard lock(reads_.mutex);
    reads_.list.erase(place_);
  }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

 private:
  ReadsUnderWay& reads_;
  decltype(ReadsUnderWay::list)::iterator place_;
};

int open_waiting(const std::string& path) {
  const Reading reading(path);
  return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

}  // namespace

std::optional<ReadUnderWay> longest_read() {
  ReadsUnderWay& reads = ReadsUnderWay::all();
  const std::lock_guard lock(reads.mutex);
  if (reads.list.empty()) return std::nullopt;
  const auto& [file, since] = reads.list.front();
  return ReadUnderWay{*file, seconds_since(since)};
}

/// Not blocking, so that a FIFO of that name is refused and not waited for.
StoredFile::StoredFile(const std::filesystem::path& path)
    : name_(path.string()), descriptor_(open_waiting(name_)) {
  if (descriptor_ < 0 && (errno == ENOENT || errno == ENOTDIR))
    throw MissingDataError(fmt::format("{}: no such file; {}", name_, kFixForStore));
  struct stat status {};
  if (descriptor_ < 0 || ::fstat(descriptor_, &status) != 0) {
    const int error = errno;
    if (descriptor_ >= 0) ::close(descriptor_);
    throw IoError(fmt::format(
        "{}: cannot be opened: {}; check its permissions, and the limit of open files (ulimit -n)", name_,
        system_text(error)));
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
  changed_ = std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
  if (S_ISREG(status.st_mode)) return;
  ::close(descriptor_);
  throw DataError(fmt::format("{}: not a regular file; put the file itself there", name_));
}

StoredFile::StoredFile(StoredFile&& other) noexcept
    : name_(std::move(other.name_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      changed_(other.changed_) {}

StoredFile::~StoredFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::size_t StoredFile::read(std::uint64_t offset, std::span<std::uint8_t> to) const {
  const Reading reading(name_);
  std::size_t done = 0;
  while (done < to.size()) {
    const std::size_t count = read_patiently(
        Env::posix(), [&] { return read_some(descriptor_, offset + done, to.subspan(done), name_); });
    if (count == 0) break;
    done += count;
  }
  return done;
}

void StoredFile::bring_in(std::uint64_t offset, std::uint64_t bytes) const {
  ::posix_fadvise(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_WILLNEED);
}

}  // namespace lockstep
