// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Samples where they lie, and a thread that reads ahead of the step.
#include "data/sample_store.hpp"

#include "common/error.hpp"
#include "common/machine.hpp"
#include "common/text_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace lockstep {

/// Reads ahead. The latest request counts: what is older than a few batches has been read meanwhile.
class ShardStore::ReadAhead {
 public:
  explicit ReadAhead(const ShardStore& store) : store_(store) {}
  ~ReadAhead() { end_threads(std::span(&thread_, 1), mutex_, changed_, ends_); }

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

  /// One sample after the other: the end waits for one, which takes half a second on a disk that fails.
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return ends_ || !wanted_.empty(); });
      if (ends_) return;
      const std::int64_t sample = wanted_.front();
      wanted_.pop_front();
      lock.unlock();
      store_.bring_in(sample);
      lock.lock();
    }
  }

  const ShardStore& store_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::int64_t> wanted_;
  bool ends_ = false;
  std::thread thread_;
};

std::shared_ptr<MemoryFile> ShardStore::make_shared_checks() const {
  return shared_ ? nullptr : MemoryFile::of_zeros(contents_.blocks.size());
}

void ShardStore::share_checks(const std::shared_ptr<MemoryFile>& of_host) const {
  static_assert(Flag::is_always_lock_free && sizeof(Flag) == 1);
  if (shared_ || of_host->bytes().size() != contents_.blocks.size()) return;
  shared_ = of_host;
  checked_ = reinterpret_cast<Flag*>(shared_->bytes().data());
}

ShardStore::ShardStore(Contents contents)
    : contents_(std::move(contents)),
      own_(std::make_unique<Flag[]>(contents_.blocks.size())),
      checked_(own_.get()),
      ahead_(std::make_unique<ReadAhead>(*this)) {
  LOCKSTEP_CHECK(contents_.blocks.size() == (bytes() + contents_.block_bytes - 1) / contents_.block_bytes);
  std::uint64_t left = bytes();
  for (const auto& path : contents_.files) {
    const StoredFile& file = files_.emplace_back(path);
    file.expect_no_order();
    const std::uint64_t size = std::min(left, contents_.file_bytes);
    if (file.size() != size)
      throw DataError(fmt::format("{}: {} {}, and the index says {}; {}", file.name(), file.size(),
                                  plural(file.size(), "byte"), size, kFixForStore));
    left -= size;
  }
  LOCKSTEP_CHECK(left == 0);
}

ShardStore::~ShardStore() = default;

void ShardStore::read(std::span<const std::int64_t> samples, std::span<std::uint8_t> to) const {
  LOCKSTEP_CHECK(to.size() == samples.size() * contents_.sample_bytes);
  for (std::size_t i = 0, count = 1; i < samples.size(); i += count) {
    const std::int64_t first = samples[i];
    for (count = 1; i + count < samples.size() && samples[i + count] == first + std::int64_t(count);) ++count;
    const std::uint64_t offset = static_cast<std::uint64_t>(first) * contents_.sample_bytes,
                        size = count * contents_.sample_bytes;
    LOCKSTEP_CHECK(first >= 0 && offset <= bytes() && size <= bytes() - offset);
    check_blocks(offset, size);
    read_bytes(offset, to.subspan(i * contents_.sample_bytes, size));
  }
}

void ShardStore::prefetch(std::vector<std::int64_t> samples) const {
  ahead_->add(std::move(samples));
}

/// From one file, or from several that follow one another.
void ShardStore::read_bytes(std::uint64_t first, std::span<std::uint8_t> to) const {
  while (!to.empty()) {
    const std::size_t file = first / contents_.file_bytes;
    const std::uint64_t offset = first % contents_.file_bytes;
    const auto piece = to.first(std::min<std::uint64_t>(to.size(), contents_.file_bytes - offset));
    if (files_[file].read(offset, piece) < piece.size())
      throw DataError(fmt::format("{}: ends at byte {} or before, and was longer when it was opened; {}",
                                  files_[file].name(), offset + piece.size() - 1, kFixForStore));
    first += piece.size();
    to = to.subspan(piece.size());
  }
}

void ShardStore::check_blocks(std::uint64_t first, std::uint64_t count) const {
  if (count == 0) return;
  const std::uint64_t last = (first + count - 1) / contents_.block_bytes;
  for (std::uint64_t block = first / contents_.block_bytes; block <= last; ++block)
    if (!checked(block).load(std::memory_order_relaxed)) check_block(block, first);
}

/// @param wanted  the byte of the half that is read for now, for the message
void ShardStore::check_block(std::uint64_t block, std::uint64_t wanted) const {
  // Small enough to stay in the second-level cache between the two.
  constexpr std::uint64_t kPiece = std::uint64_t{64} << 10;
  thread_local std::vector<std::uint8_t> piece(kPiece);
  const std::uint64_t first = block * contents_.block_bytes;
  const std::uint64_t size = std::min(contents_.block_bytes, bytes() - first);
  files_[first / contents_.file_bytes].bring_in(first % contents_.file_bytes, size);
  Sha256 hash;
  for (std::uint64_t done = 0; done < size; done += kPiece) {
    const auto data = std::span(piece).first(std::min(kPiece, size - done));
    read_bytes(first + done, data);
    hash.update(std::as_bytes(data));
  }
  if (hash.finish() != contents_.blocks[block])
    throw DataError(fmt::format(
        "{}: bytes {} to {} (block {} of the half) are not those that the set was made with: their SHA-256 "
        "differs. "
        "They hold samples {} to {}, and sample {} was wanted; {}",
        contents_.files[first / contents_.file_bytes].string(), first % contents_.file_bytes,
        first % contents_.file_bytes + size - 1, block, first / contents_.sample_bytes,
        (first + size - 1) / contents_.sample_bytes, std::max(wanted, first) / contents_.sample_bytes,
        kFixForStore));
  checked(block).store(true, std::memory_order_relaxed);
}

void ShardStore::bring_in(std::int64_t sample) const {
  const std::uint64_t first = static_cast<std::uint64_t>(sample) * contents_.sample_bytes;
  try {
    check_blocks(first, contents_.sample_bytes);
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): a read of the sample meets it again
  }
  const std::uint64_t offset = first % contents_.file_bytes;
  const std::uint64_t count = std::min(contents_.sample_bytes, contents_.file_bytes - offset);
  files_[first / contents_.file_bytes].bring_in(offset, count);
}

}  // namespace lockstep
