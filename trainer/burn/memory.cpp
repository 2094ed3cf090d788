// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Memory that is filled with numbers of its own and read back: at once, and a round later, when the processor has been
/// hot meanwhile. Every second time the pattern is the complement, so that a bit that is stuck at either value shows.
#include "common/text_layout.hpp"
#include "trainer/burn/check.hpp"
#include "trainer/run/stop_signal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <mutex>
#include <new>

namespace lockstep::burn {
namespace {

using Words = std::unique_ptr<std::uint64_t[]>;

constexpr std::size_t kBlockBytes = std::size_t{8} << 20;
constexpr const char* kMemoryFix =
    "run memtest86+ or the vendor's test of this host, and change the module; see dmesg and edac-util";

/// A piece of host memory and what was written there.
struct Block {
  Words words;
  std::uint64_t key = 0;
  bool complement = false;
  bool is_held = false;  ///< it holds the pattern
};

/// What ranks may take: all have looked before any takes something. Collective.
std::uint64_t wanted_bytes(const BurnRank& rank) {
  const MemoryWish& wish = rank.options.memory;
  const FreeMemory free = free_memory(rank.comm.local_size());
  rank.comm.barrier();
  if (wish.bytes > 0) return wish.bytes;
  return static_cast<std::uint64_t>(static_cast<double>(free.bytes) * wish.share / rank.comm.local_size());
}

class HostMemory final : public BurnCheck {
 public:
  explicit HostMemory(const BurnRank& rank)
      : rank_(rank),
        wanted_(wanted_bytes(rank)),
        left_alone_(rank.options.memory.bytes > 0 ? 0 : least_left(rank.options.memory.share)) {}

  void work(const Slice& slice, std::int64_t /*round*/) override {
    read_back(slice);  // what was filled a round ago
    const Slice half(slice.seconds_left() / 2);
    do {
      if (!fill_next()) read_back(slice);
      rank_.tick("memory");
    } while (!half.is_over() && !blocks_.empty());
    read_back(slice);
  }

  void report(RankResult& result) const override {
    if (read_ == 0) {
      result.findings.push_back({Grade::kNotTested, "memory", "no memory could be had: " + why_no_more_,
                                 "end what else runs on this host, or give less: --memory 10%"});
      return;
    }
    result.exercised["memory"] =
        fmt::format("{} of {} filled, {} read back{}", format_memory(blocks_.size() * kBlockBytes),
                    format_memory(wanted_), format_memory(read_ * kBlockBytes),
                    why_no_more_.empty() ? "" : ", no more: " + why_no_more_);
    if (wrong_ > 0)
      result.findings.push_back(
          {Grade::kWrong, "memory",
           fmt::format("{} read back wrong; the first: {}", counted(wrong_, "word"), first_wrong_),
           kMemoryFix});
  }

 private:
  static std::uint64_t least_left(double share) {
    return static_cast<std::uint64_t>(static_cast<double>(free_memory().bytes) * (1 - share));
  }

  /// A block for each thread. @returns false where a pass over all of them has come to its end
  bool fill_next() {
    const std::size_t first = next_;
    for (int i = 0; i < rank_.pool.threads() && has_block(); ++i) ++next_;
    if (next_ == first) {
      next_ = 0;
      ++pass_;
      return false;
    }
    rank_.pool.run([&](int thread) {
      const std::size_t block = first + static_cast<std::size_t>(thread);
      if (block < next_) fill(blocks_[block], block);
    });
    for (std::size_t block = first; block < next_; ++block) blocks_[block].is_held = true;
    return true;
  }

  /// Makes sure that block next_ is there. @returns false where no more may be taken
  bool has_block() {
    if (next_ < blocks_.size()) return true;
    const bool is_enough = (blocks_.size() + 1) * kBlockBytes > std::max<std::uint64_t>(wanted_, kBlockBytes);
    if (is_enough || !why_no_more_.empty()) return false;
    const FreeMemory free = free_memory();
    const auto local_ranks = static_cast<std::uint64_t>(rank_.comm.local_size());
    if (free.bytes < left_alone_ + kBlockBytes * local_ranks) {
      why_no_more_ = fmt::format("{} has {} left, {} of which stay free", free.limited_by,
                                 format_memory(free.bytes), format_memory(left_alone_));
      return false;
    }
    Words words(new (std::nothrow) std::uint64_t[kWords]);
    if (words == nullptr) {
      why_no_more_ = "the system gives no more";
      return false;
    }
    blocks_.push_back({std::move(words)});
    return true;
  }

  void fill(Block& block, std::size_t number) {
    block.key = burn_key(static_cast<std::uint64_t>(rank_.comm.rank()), number, pass_ / 2);
    block.complement = pass_ % 2 == 1;
    for (std::size_t i = 0; i < kWords; ++i) block.words[i] = word_of_pattern(block.key, i, block.complement);
    if (number == 0) spoil(block);
  }

  /// All that is held, until the slice ends; at least the first block.
  void read_back(const Slice& slice) {
    std::atomic<std::size_t> next = 0;
    std::atomic<std::uint64_t> read = 0;
    rank_.pool.run([&](int /*thread*/) {
      for (std::size_t i = next++; i < blocks_.size() && (i == 0 || !stop_requested()); i = next++) {
        if (!blocks_[i].is_held || (i > 0 && slice.seconds_left() < -slice.seconds())) continue;
        compare(blocks_[i], i);
        ++read;
      }
    });
    read_ += read;
  }

  void compare(const Block& block, std::size_t number) {
    std::uint64_t differ = 0;
    for (std::size_t i = 0; i < kWords; ++i)
      differ |= block.words[i] ^ word_of_pattern(block.key, i, block.complement);
    if (differ == 0) return;
    bool still_differs = false;
    for (std::size_t i = 0; i < kWords; ++i) {
      const std::uint64_t bits = block.words[i] ^ word_of_pattern(block.key, i, block.complement);
      if (bits == 0) continue;
      note(fmt::format("bit {} ({}) of word {} of block {}, at {}", std::countr_zero(bits),
                       counted(std::popcount(bits), "bit"), i, number, fmt::ptr(&block.words[i])));
      still_differs = true;
    }
    if (!still_differs) note(fmt::format("a bit of block {} that was right when it was read again", number));
  }

  void note(const std::string& wrong) {
    const std::lock_guard lock(mutex_);
    if (wrong_++ == 0) first_wrong_ = wrong;
  }

  // Faults on purpose.
  void spoil(Block& block) const {
    if (rank_.commits("memory-bit")) block.words[1234] ^= std::uint64_t{1} << 17;
    for (std::size_t i = 7; i < kWords && rank_.commits("stuck-bit"); i += 32) block.words[i] |= 1U << 3;
  }

  static constexpr std::size_t kWords = kBlockBytes / sizeof(std::uint64_t);

  const BurnRank rank_;
  std::uint64_t wanted_, left_alone_;
  std::vector<Block> blocks_;
  std::size_t next_ = 0;               ///< the block that is filled next
  std::uint64_t pass_ = 0, read_ = 0;  ///< read_: blocks
  std::string why_no_more_;
  std::mutex mutex_;
  std::int64_t wrong_ = 0;
  std::string first_wrong_;
};

}  // namespace

std::unique_ptr<BurnCheck> make_memory(const BurnRank& rank) {
  return std::make_unique<HostMemory>(rank);
}

}  // namespace lockstep::burn
