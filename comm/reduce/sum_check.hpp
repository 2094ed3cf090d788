// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Checks that the sums that arrived are those that the ranks sent. Fingerprints (kernels/numerics/fingerprint.hpp)
/// are linear modulo 2^64, so those of all ranks' own sums add up to the one of the result. Each rank takes one of
/// its sums before they leave; it travels with them, and each rank compares. Only exact sums have fingerprints.
#pragma once

#include "comm/communicator.hpp"
#include "common/error.hpp"

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace lockstep {

/// Fingerprints of each tensor's sums in a step, and after them of the counters.
using SumFingerprints = std::vector<std::uint64_t>;

inline std::uint64_t whole(const SumFingerprints& fingerprints) {
  return std::accumulate(fingerprints.begin(), fingerprints.end(), std::uint64_t{0});
}

/// One rank's fingerprints of a step's sums.
struct SumRecord {
  SumFingerprints left;     ///< its own sums, before they left
  SumFingerprints kept;     ///< the memory that they left from, as it is now
  SumFingerprints arrived;  ///< the result
};

/// All ranks that sum together throw it in the same step, before anything follows from the sums.
class SumsDifferError : public InternalError {
 public:
  /// @param record  of this rank, for find_sum_fault()
  explicit SumsDifferError(SumRecord record)
      : InternalError("sums over ranks are not those of what the ranks sent"), record_(std::move(record)) {}
  const SumRecord& record() const noexcept { return record_; }

 private:
  SumRecord record_;
};

/// The place where sums changed.
struct SumFault {
  enum class Where {
    kMemory,  ///< a rank's memory: it sent other sums than it had added up
    kLink,    ///< after that: the result is not what was sent
  };
  Where where = Where::kLink;
  std::vector<int> ranks;  ///< with that memory or result; ranks of the whole, not of a part
  std::size_t tensor = 0;  ///< the first one; as many as there are: the counters
};

/// Collective, of the ranks that threw SumsDifferError; all get the same.
SumFault find_sum_fault(Communicator& comm, const SumRecord& mine);

/// Some of a step's sums on one rank.
struct ShownSums {
  std::size_t first = 0;  ///< counted in the arena
  std::size_t all = 0;    ///< how many the arena has
  std::span<std::int64_t> sums;
  std::span<const std::int64_t> before = {};  ///< for sums that leave: the result of the step before
};

/// Sees exact sums as they leave this rank and arrive, where there are others. It may change them, as injected faults do.
class SumObserver {
 public:
  virtual ~SumObserver() = default;
  /// True: the next sums are to be shown. On a GPU that takes a copy of all of them.
  virtual bool sees_sums() const { return false; }
  /// A bucket, after its fingerprint was taken, just before it leaves. On a GPU: all buckets.
  virtual void sums_leave(const ShownSums& /*sums*/) {}
  /// The result of a bucket, before it is compared. The one of the arena's beginning comes last.
  virtual void sums_arrived(const ShownSums& /*sums*/) {}
};

}  // namespace lockstep
