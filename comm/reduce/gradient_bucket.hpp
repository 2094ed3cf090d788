// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One bucket of the reducer. It has the sums of a range of the arena, and how much of them is still to come.
#pragma once

#include "comm/communicator.hpp"
#include "comm/reduce/bucket_plan.hpp"
#include "comm/reduce/gradient_reducer.hpp"
#include "comm/reduce/gradient_units.hpp"
#include "common/buffers.hpp"
#include "kernels/cpu/ops.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <vector>

namespace lockstep {

// A lock for sections of a microsecond, which two threads seldom want at once.

/// BasicLockable. Not fair, not recursive. Gives up the core while it waits.
class SpinLock {
 public:
  void lock() noexcept {
    while (flag_.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
  }
  void unlock() noexcept { flag_.clear(std::memory_order_release); }

 private:
  std::atomic_flag flag_;
};

/// Sums as int64 (world) or fp32 (off); the last bucket of a plan has the step's counters after its sums.
/// add() and arrived() may be called from several threads; the rest from one at a time.
class GradientBucket {
 public:
  /// @param units  of all tensors; borrowed   @param alone  one rank sums for itself: nothing leaves
  GradientBucket(const Bucket& range, const GradientUnits& units, Determinism determinism,
                 bool carries_counters, bool alone);

  std::size_t begin() const { return range_.offset; }
  std::size_t end() const { return range_.offset + range_.size; }

  /// Zeroes the sums. `parts` things will arrive before the bucket may leave: elements, and grains' LossSums.
  void begin_step(std::int64_t parts);
  /// Adds gradients for arena elements [offset, offset + size), which lie in this bucket. Does not count
  /// them.
  /// @returns false if one does not fit the format of its tensor (world only)
  bool add(std::size_t offset, std::size_t size, const float* gradients);
  /// @returns true if these were the last parts missing
  bool arrived(std::int64_t parts);
  bool ready() const { return missing_.load(std::memory_order_acquire) == 0; }

  /// Once ready. Only of the bucket that carries them; after the all-reduce they are the sums over all ranks.
  void set_counters(const StepCounters& counters);
  StepCounters counters() const;
  /// Behind the counters (world only): the fingerprint of all sums of this rank; then those of all ranks, added up.
  void set_fingerprint(std::uint64_t fingerprint) {
    exact_.span().back() = static_cast<std::int64_t>(fingerprint);
  }
  std::uint64_t fingerprint() const { return static_cast<std::uint64_t>(result().back()); }

  /// This rank's own sums stay as they are where they are exact.
  std::unique_ptr<PendingCollective> start(AllReduce& all_reduce);
  // To make the sums of single tensors again (world only): the part of a tensor that lies here, perhaps nothing.
  std::span<std::int64_t> own_sums(std::size_t tensor) { return part_of(exact_.span(), tensor); }
  std::span<std::int64_t> result_sums(std::size_t tensor) { return part_of(result(), tensor); }
  std::int64_t& arrived_fingerprint() { return result().back(); }
  // For an observer.
  ShownSums leaving() {
    const std::size_t size = range_.size;
    return {begin(), units_.parameters(), exact_.span().first(size), reduced_.span().first(size)};
  }
  ShownSums arrived() { return {begin(), units_.parameters(), reduced_.span().first(range_.size)}; }
  /// Adds the fingerprints of this rank's own sums, or of the result, to their tensors' and the counters'.
  void add_own(SumFingerprints& to) const { add_fingerprints(exact_.span(), to); }
  void add_result(SumFingerprints& to) const { add_fingerprints(result(), to); }

  /// Writes the mean for this bucket's range into the arena-ordered `gradient`. As GradientReducer::Sums::mean().
  void mean(std::int64_t samples, float* gradient, const GradientReducer::SeeSums& see);
  /// As GradientReducer::Sums::show() (world only).
  void show(const GradientReducer::SeeSums& see);
  /// Counts fp32 sums that are NaN or infinite as such, for their tensors (off only).
  void count_not_finite(std::span<TensorRefusals> refusals) const;
  /// The largest |sum| of each tensor so far and of this bucket's part of it, in units (world only).
  void find_largest(std::span<double> largest) const;

 private:
  /// Calls f(tensor, begin, size) for each tensor that has elements here, the range counted from this
  /// bucket's begin.
  void for_each_tensor(const auto& f) const;

  std::span<std::int64_t> part_of(std::span<std::int64_t> sums, std::size_t tensor) const;
  bool exact() const { return determinism_ == Determinism::kWorld; }
  std::span<std::int64_t> result() { return reduced_.size() > 0 ? reduced_.span() : exact_.span(); }
  std::span<const std::int64_t> result() const {
    return reduced_.size() > 0 ? reduced_.span() : exact_.span();
  }
  void add_fingerprints(std::span<const std::int64_t> sums, SumFingerprints& to) const;

  Bucket range_;
  const GradientUnits& units_;
  Determinism determinism_;
  AlignedBuffer<std::int64_t> exact_;    // own sums, then counters and fingerprint; empty unless world
  AlignedBuffer<std::int64_t> reduced_;  // exact_ summed over all ranks; empty for one rank, and unless world
  AlignedBuffer<float> fp32_;            // sums, then counters; empty unless off
  std::vector<SpinLock> locks_;          // one for each chunk of elements
  std::atomic<std::int64_t> missing_{0};
};

}  // namespace lockstep
