// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Memory of a device, filled by copies on it and read back by fingerprints, and the way there and back.
#include "common/text_layout.hpp"
#include "kernels/cpu/ops.hpp"
#include "kernels/device_ops.hpp"
#include "trainer/burn/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <span>
#include <vector>

namespace lockstep::burn {
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
