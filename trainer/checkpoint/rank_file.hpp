// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Assignment of work to ranks: ranks.jsonl, next to the trail, which is the same on any ranks. docs/trail-format.md.
///
/// Steps have two numbers more than in the trail, however many ranks took them. They are sums over ranks r of (r + 1) times a
/// fingerprint of each. Where one rank alone is wrong by d, they are off by (r + 1) d, and d is known from the trail.
#pragma once

#include "common/env.hpp"
#include "common/json_text.hpp"
#include "trainer/training/fingerprints.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

inline constexpr const char* kRankFile = "ranks.jsonl";
inline constexpr std::int64_t kRankFileVersion = 1;

/// A rank of a run, and its part of a full batch.
struct RankPlace {
  std::string host, device;
  std::string uuid = {};  ///< the GPU's; "" elsewhere
  std::int64_t first_grain = 0, grains = 0;
  /// Tensors of the network that a pipeline's rank holds, in arena order; nothing: all.
  std::optional<std::vector<std::int64_t>> tensors = {};

  bool holds(std::int64_t tensor) const;
  friend bool operator==(const RankPlace&, const RankPlace&) = default;
};

/// "rank 2 on node3 (cpu (AVX-512))"
std::string describe(int rank, const RankPlace& place);

// As ranks send it to each other.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankPlace, host, device, uuid, first_grain, grains, tensors)

/// One start of a run.
struct RankStretch {
  std::int64_t from = 1;        ///< its first step
  std::string strategy, split;  ///< as the job names them
  std::vector<RankPlace> ranks;
  friend bool operator==(const RankStretch&, const RankStretch&) = default;
};

/// Sums of a step over ranks modulo 2^64, each rank's number times rank_weight().
struct RankSums {
  std::int64_t step = 0;     ///< counted from 1
  std::uint64_t copies = 0;  ///< sum of all fingerprints that it would write into the trail
  std::uint64_t sums = 0;    ///< sum of its own gradient sums' fingerprints, before they left
  friend bool operator==(const RankSums&, const RankSums&) = default;
};

/// The one rank that is wrong. Nothing: none, or several of them.
/// @param difference  modulo 2^64, of the sum over ranks
/// @param weighted    of the sum over ranks of rank_weight() times the same
std::optional<int> find_wrong_rank(std::uint64_t difference, std::uint64_t weighted, std::size_t ranks);

/// In the hands of rank 0 while the run is under way.
class RankFile {
 public:
  /// Opens or begins RUN/ranks.jsonl. Entries from `stretch.from` on and a torn last line are cut off; other
  /// lines stay as they are.
  /// @throws IoError
  RankFile(Env& env, const std::string& run_dir, const RankStretch& stretch);

  /// @throws IoError if they are not in the file yet; they are kept for the next time
  void write(std::span<const RankSums> steps);
  /// As AppendFile::sync.
  void sync() { file_->sync(); }
  bool is_complete() const { return file_->is_complete(); }

 private:
  std::unique_ptr<AppendFile> file_;
};

/// Cuts off the entries from step `from` on, for a run that goes on without this file.
void cut_rank_file(Env& env, const std::string& run_dir, std::int64_t from);

/// Entries of a run's file about one step.
struct RecordedRanks {
  RankStretch stretch;
  std::optional<RankSums>
      sums;  ///< nothing: one rank alone; a path of the sums that has no fingerprints; damaged
};

/// Any bytes may come; a line whose seal is wrong counts as none. Memory is bounded for a file of any size.
/// @param path  of the file
/// Nothing: no file, as of older runs; one of a later version; no good line of that start, or a damaged one that may
/// be of it.
/// @throws IoError, DataError: it is not a regular file
std::optional<RecordedRanks> find_ranks(const std::string& path, std::int64_t step);

/// The first step of each start of the run, in order. Empty: no file. Errors as find_ranks().
std::vector<std::int64_t> first_steps_of_starts(const std::string& path);

/// For `lockstep verify`: what the file says, in lines; and whether all of it is as it was written.
struct RankFileReport {
  std::string text;
  bool good = true;
};

/// Nothing: no file. Errors as find_ranks().
std::optional<RankFileReport> report_ranks(const std::string& path);

}  // namespace lockstep
