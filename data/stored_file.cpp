// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Opens without waiting for the writer of a FIFO, and knows which reads take long.
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

/// Reads of the whole process; never destroyed, since threads may still read when it ends.
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

std::string reason(int error) {
  return std::generic_category().message(error);
}

/// Does not wait for the writer of a FIFO of that name. @param size  becomes the file's
Descriptor open_regular(const std::string& name, const char* if_missing, const char* if_refused,
                        std::uint64_t& size) {
  const Reading reading(name);
  Descriptor descriptor(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (descriptor < 0 && (errno == ENOENT || errno == ENOTDIR))
    throw MissingDataError(fmt::format("{}: no such file; {}", name, if_missing));
  struct stat status {};
  if (descriptor < 0 || ::fstat(descriptor, &status) != 0)
    throw IoError(fmt::format("{}: cannot be opened: {}; {}", name, reason(errno), if_refused));
  if (!S_ISREG(status.st_mode))
    throw DataError(fmt::format("{}: not a regular file; put the file itself there", name));
  size = static_cast<std::uint64_t>(status.st_size);
  return descriptor;
}

/// Reads once. @returns bytes read, 0 at the end  @throws IoError
std::size_t read_some(int descriptor, const std::string& name, std::uint64_t offset,
                      std::span<std::uint8_t> to) {
  for (;;) {
    const ssize_t count = ::pread(descriptor, to.data(), to.size(), static_cast<off_t>(offset));
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno != EINTR)
      throw IoError(
          fmt::format("{}: offset {}: reading failed: {}; check the disk, or the network that it is on", name,
                      offset, reason(errno)));
  }
}

}  // namespace

std::optional<ReadUnderWay> longest_read() {
  ReadsUnderWay& reads = ReadsUnderWay::all();
  const std::lock_guard lock(reads.mutex);
  if (reads.list.empty()) return std::nullopt;
  const auto& [file, since] = reads.list.front();
  return ReadUnderWay{*file, seconds_since(since)};
}

StoredFile::StoredFile(const std::filesystem::path& path, const char* if_missing, const char* if_refused)
    : name_(path.string()), descriptor_(open_regular(name_, if_missing, if_refused, size_)) {}

std::size_t StoredFile::read(std::uint64_t offset, std::span<std::uint8_t> to) const {
  const Reading reading(name_);
  std::size_t done = 0;
  while (done < to.size()) {
    const std::size_t count = read_patiently(
        Env::posix(), [&] { return read_some(descriptor_, name_, offset + done, to.subspan(done)); });
    if (count == 0) break;
    done += count;
  }
  return done;
}

void StoredFile::expect_no_order() const {
  ::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_RANDOM);
}

void StoredFile::bring_in(std::uint64_t offset, std::uint64_t bytes) const {
  ::posix_fadvise(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_WILLNEED);
}

}  // namespace lockstep
