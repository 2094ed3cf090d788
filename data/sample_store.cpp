// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Reading samples where they lie, and a thread that reads ahead of the step.
#include "data/sample_store.hpp"

#include "common/env.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "common/text_layout.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace lockstep {
namespace {

std::string system_text(int error) {
  return std::generic_category().message(error);
}

/// Not blocking, so that a FIFO of that name is refused and not waited for.
int open_file(const std::filesystem::path& path, std::uint64_t size) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0 && (errno == ENOENT || errno == ENOTDIR))
    throw MissingDataError(fmt::format("{}: no such file; {}", path.string(), kFixForStore));
  struct stat status {};
  if (descriptor < 0 || ::fstat(descriptor, &status) != 0) {
    const int error = errno;
    if (descriptor >= 0) ::close(descriptor);
    throw IoError(fmt::format(
        "{}: cannot be opened: {}; check its permissions, and the limit of open files (ulimit -n)",
        path.string(), system_text(error)));
  }
  const auto found = static_cast<std::uint64_t>(status.st_size);
  if (S_ISREG(status.st_mode) && found == size) return descriptor;
  ::close(descriptor);
  throw DataError(
      S_ISREG(status.st_mode)
          ? fmt::format("{}: {} bytes, and the index says {}; {}", path.string(), found, size, kFixForStore)
          : fmt::format("{}: not a regular file; put the file itself there", path.string()));
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

}  // namespace

/// What was asked for last counts: what is older than a few batches has been read meanwhile.
class SampleStore::ReadAhead {
 public:
  explicit ReadAhead(const SampleStore& store) : store_(store) {}
  ~ReadAhead() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable()) thread_.join();
  }
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  void add(std::vector<std::int64_t> samples) {
    {
      const std::lock_guard lock(mutex_);
      if (wanted_.size() > kMostWaiting) wanted_.clear();
      wanted_.insert(wanted_.end(), samples.begin(), samples.end());
      if (!thread_.joinable()) thread_ = start_thread([this] { run(); });
    }
    changed_.notify_one();
  }

 private:
  static constexpr std::size_t kMostWaiting = 4096;

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return ends_ || !wanted_.empty(); });
      if (ends_) return;
      const auto samples = std::exchange(wanted_, {});
      lock.unlock();
      for (const std::int64_t sample : samples) store_.bring_in(sample);
      lock.lock();
    }
  }

  const SampleStore& store_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::int64_t> wanted_;
  bool ends_ = false;
  std::thread thread_;
};

SampleStore::SampleStore(Contents contents)
    : contents_(std::move(contents)),
      checked_(std::make_unique<std::atomic<bool>[]>(contents_.blocks.size())),
      ahead_(std::make_unique<ReadAhead>(*this)) {
  LOCKSTEP_CHECK(contents_.blocks.size() == (bytes() + contents_.block_bytes - 1) / contents_.block_bytes);
  std::uint64_t left = bytes();
  try {
    for (const auto& file : contents_.files) {
      const std::uint64_t size = std::min(left, contents_.file_bytes);
      descriptors_.push_back(open_file(file, size));
      left -= size;
    }
  } catch (...) {
    for (const int descriptor : descriptors_) ::close(descriptor);
    throw;
  }
  LOCKSTEP_CHECK(left == 0);
}

SampleStore::~SampleStore() {
  ahead_.reset();
  for (const int descriptor : descriptors_) ::close(descriptor);
}

void SampleStore::read(std::int64_t first, std::span<std::uint8_t> to) const {
  const std::uint64_t offset = static_cast<std::uint64_t>(first) * contents_.sample_bytes;
  LOCKSTEP_CHECK(first >= 0 && offset <= bytes() && to.size() <= bytes() - offset);
  check_blocks(offset, to.size());
  read_bytes(offset, to);
}

void SampleStore::prefetch(std::vector<std::int64_t> samples) const {
  ahead_->add(std::move(samples));
}

/// From one file, or from several that follow one another.
void SampleStore::read_bytes(std::uint64_t first, std::span<std::uint8_t> to) const {
  while (!to.empty()) {
    const std::size_t file = first / contents_.file_bytes;
    const std::uint64_t offset = first % contents_.file_bytes;
    const std::string& name = contents_.files[file].native();
    const auto piece = to.first(std::min<std::uint64_t>(to.size(), contents_.file_bytes - offset));
    const std::size_t count =
        read_patiently(Env::posix(), [&] { return read_some(descriptors_[file], offset, piece, name); });
    if (count == 0)
      throw DataError(fmt::format("{}: ends at byte {} or before, and was longer when it was opened; {}",
                                  name, offset, kFixForStore));
    first += count;
    to = to.subspan(count);
  }
}

void SampleStore::check_blocks(std::uint64_t first, std::uint64_t count) const {
  if (count == 0) return;
  const std::uint64_t last = (first + count - 1) / contents_.block_bytes;
  for (std::uint64_t block = first / contents_.block_bytes; block <= last; ++block)
    if (!checked_[block].load(std::memory_order_relaxed)) check_block(block, first);
}

/// @param wanted  the byte of the half that is read for now, for the message
void SampleStore::check_block(std::uint64_t block, std::uint64_t wanted) const {
  const std::uint64_t first = block * contents_.block_bytes;
  std::vector<std::uint8_t> data(std::min(contents_.block_bytes, bytes() - first));
  read_bytes(first, data);
  if (sha256(std::as_bytes(std::span(data))) != contents_.blocks[block])
    throw DataError(fmt::format(
        "{}: bytes {} to {} (block {} of the half) are not those that the set was made with: their SHA-256 "
        "differs. "
        "They hold samples {} to {}, and sample {} was wanted; {}",
        contents_.files[first / contents_.file_bytes].string(), first % contents_.file_bytes,
        first % contents_.file_bytes + data.size() - 1, block, first / contents_.sample_bytes,
        (first + data.size() - 1) / contents_.sample_bytes, std::max(wanted, first) / contents_.sample_bytes,
        kFixForStore));
  checked_[block].store(true, std::memory_order_relaxed);
}

void SampleStore::bring_in(std::int64_t sample) const {
  const std::uint64_t first = static_cast<std::uint64_t>(sample) * contents_.sample_bytes;
  try {
    check_blocks(first, contents_.sample_bytes);
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): a read of the sample meets it again
  }
  const std::uint64_t offset = first % contents_.file_bytes;
  const std::uint64_t count = std::min(contents_.sample_bytes, contents_.file_bytes - offset);
  ::posix_fadvise(descriptors_[first / contents_.file_bytes], static_cast<off_t>(offset),
                  static_cast<off_t>(count), POSIX_FADV_WILLNEED);
}

}  // namespace lockstep
