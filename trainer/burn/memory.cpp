// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Memory that is filled with numbers of its own and read back: at once, and a round later, when the processor has
/// been hot meanwhile. Every second time the pattern is the complement, so that a bit that is stuck at either value
/// shows. First that of the host, then that of a device.
#include "common/text_layout.hpp"
#include "kernels/cpu/ops.hpp"
#include "kernels/device_ops.hpp"
#include "trainer/burn/check.hpp"
#include "trainer/run/stop_signal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <functional>
#include <mutex>
#include <new>
#include <span>
#include <vector>

namespace lockstep::burn {
namespace {

/// Word i of what memory is filled with.
std::uint64_t word_of_pattern(std::uint64_t key, std::uint64_t i, bool complement) {
  const std::uint64_t word = mix_bits(key + i);
  return complement ? ~word : word;
}

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

// Memory of a device, filled by copies on it and read back by fingerprints, and the way there and back.

namespace {

/// Memory of the device, and the way there and back.
class DeviceCopies final : public BurnCheck {
 public:
  explicit DeviceCopies(const BurnRank& rank)
      : rank_(rank),
        device_(*rank.device.gpu->device),
        ops_(*rank.device.gpu->ops),
        stream_(device_.make_stream()),
        words_((rank.is_emulated() ? std::size_t{64} << 10 : std::size_t{64} << 20) / sizeof(std::uint64_t)),
        sent_(device_, words_),
        back_(device_, words_),
        state_(device_, 1) {
    const StepState state;
    stream_->copy_to_device(state_.data(), &state, sizeof state);
    stream_->synchronize();
    take_blocks();
  }

  void work(const Slice& slice, std::int64_t round) override {
    std::int64_t turn = 0;
    do {
      const std::uint64_t key = burn_key(static_cast<std::uint64_t>(rank_.comm.rank() + 1), 0xC0,
                                         static_cast<std::uint64_t>(round * 1000 + turn / 2));
      there_and_back(key, turn++ % 2 == 1);
      rank_.tick("copies");
    } while (!slice.is_over());
  }

  void report(RankResult& result) const override {
    if (blocks_.empty()) {
      result.findings.push_back({Grade::kNotTested, "copy",
                                 "no memory of the device could be had: " + why_no_more_,
                                 "end what else uses this GPU: nvidia-smi"});
      return;
    }
    result.exercised["copies"] =
        fmt::format("{} of device memory, {} of {}, {:.1f} GB/s there, {:.1f} GB/s back",
                    format_memory(blocks_.size() * bytes()), counted(copies_, "round trip"),
                    format_memory(bytes()), rate(there_), rate(back_seconds_));
    if (!rank_.is_emulated())
      result.measures.insert({{"copies there", there_}, {"copies back", back_seconds_}});
    if (wrong_ > 0)
      result.findings.push_back(
          {Grade::kWrong, "copy",
           fmt::format("{} wrong; the first: {}", counted(wrong_, "block"), first_wrong_),
           "reseat the GPU, look at its ECC counters (nvidia-smi -q -d ECC) and at the PCIe link"});
  }

 private:
  std::size_t bytes() const { return words_ * sizeof(std::uint64_t); }
  double rate(double seconds) const { return static_cast<double>(bytes()) / seconds * 1e-9; }

  /// As much as the wish says of what is free.
  void take_blocks() {
    const MemoryWish& wish = rank_.options.memory;
    const auto share =
        static_cast<std::size_t>(static_cast<double>(device_.properties().free_bytes) * wish.share);
    const std::size_t wanted = rank_.is_emulated() ? 4 * bytes() : wish.bytes > 0 ? wish.bytes : share;
    try {
      do {
        blocks_.emplace_back(device_, words_);
      } while ((blocks_.size() + 1) * bytes() <= wanted);
    } catch (const Error& error) {
      why_no_more_ = error.what();
    }
    std::vector<KeptPart> parts;
    for (std::size_t i = 0; i < blocks_.size(); ++i)
      parts.push_back(
          {.floats = reinterpret_cast<const float*>(blocks_[i].data()), .size = 2 * words_, .slot = i});
    parts_ = DeviceBuffer<KeptPart>(device_, parts.size());
    rows_ = DeviceBuffer<std::int64_t>(device_, parts.size());
    if (parts.empty()) return;
    stream_->copy_to_device(parts_.data(), parts.data(), parts_.bytes());
    stream_->synchronize();
  }

  /// To the first block, from there to all, their fingerprints, and from the last one back.
  void there_and_back(std::uint64_t key, bool complement) {
    if (blocks_.empty()) return;
    for (std::size_t i = 0; i < words_; ++i) sent_[i] = word_of_pattern(key, i, complement);
    there_ = std::min(there_,
                      seconds_of([&] { stream_->copy_to_device(blocks_[0].data(), sent_.data(), bytes()); }));
    for (std::size_t i = 1; i < blocks_.size(); ++i)
      stream_->copy_on_device(blocks_[i].data(), blocks_[i - 1].data(), bytes());
    compare_fingerprints();
    back_seconds_ =
        std::min(back_seconds_,
                 seconds_of([&] { stream_->copy_to_host(back_.data(), blocks_.back().data(), bytes()); }));
    if (rank_.commits("copy")) back_[words_ / 2] ^= 4;
    ++copies_;
    for (std::size_t i = 0; i < words_; ++i) {
      if (back_[i] == sent_[i]) continue;
      found(fmt::format("word {} came back from the device with {} changed", i,
                        counted(std::popcount(back_[i] ^ sent_[i]), "bit")));
      return;
    }
  }

  void compare_fingerprints() {
    const std::span<const float> words(reinterpret_cast<const float*>(sent_.data()), 2 * words_);
    const auto expected = static_cast<std::int64_t>(cpu::fingerprint(kWeightsBuffer, 0, words));
    stream_->fill_zero(rows_.data(), rows_.bytes());
    ops_.fingerprint_kept(*stream_, {parts_.data(), static_cast<int>(blocks_.size()), blocks_.size(),
                                     rows_.data(), state_.data()});
    std::vector<std::int64_t> rows(blocks_.size());
    stream_->copy_to_host(rows.data(), rows_.data(), rows_.bytes());
    stream_->synchronize();
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (rows[i] != expected)
        return found(fmt::format("block {} of device memory has another fingerprint", i));
  }

  double seconds_of(const std::function<void()>& copy) const {
    const auto start = Clock::now();
    copy();
    stream_->synchronize();
    return seconds_since(start);
  }

  void found(const std::string& what) {
    if (wrong_++ == 0) first_wrong_ = what;
  }

  const BurnRank rank_;
  Device& device_;
  DeviceOps& ops_;
  std::unique_ptr<Stream> stream_;
  std::size_t words_;
  PinnedBuffer<std::uint64_t> sent_, back_;
  DeviceBuffer<StepState> state_;
  std::vector<DeviceBuffer<std::uint64_t>> blocks_;
  DeviceBuffer<KeptPart> parts_;
  DeviceBuffer<std::int64_t> rows_;
  std::string why_no_more_, first_wrong_;
  std::int64_t copies_ = 0, wrong_ = 0;
  double there_ = 1e30, back_seconds_ = 1e30;
};

}  // namespace

std::unique_ptr<BurnCheck> make_copies(const BurnRank& rank) {
  return rank.device.gpu == nullptr ? nullptr : std::make_unique<DeviceCopies>(rank);
}

}  // namespace lockstep::burn
