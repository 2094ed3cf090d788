// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// trail.bin, inputs and results of each step of a run as fingerprints: written while it trains, and read.
#pragma once

#include "common/env.hpp"
#include "trainer/checkpoint/trail_format.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

// The trail of a run that is under way, in the hands of rank 0.

/// Cuts off the records of later steps, which a run without a trail will take again. Leaves a file alone that
/// is not a trail.
void cut_trail(Env& env, const std::string& run_dir, std::int64_t step);

class TrailFile {
 public:
  /// Goes on with RUN/trail.bin after `step`, or begins one. Records of later steps are cut off. A trail
  /// that is damaged up to there, or that is not this run's, is kept aside as trail.bin.damaged, and a new one
  /// begins.
  /// @param expected  the trail's position in the checkpoint of that step; nothing: it has none
  /// @param say       is told what was kept aside, and why
  /// @throws IoError
  TrailFile(Env& env, const std::string& run_dir, TrailHead head, std::int64_t step,
            const std::optional<TrailPosition>& expected, const std::function<void(const std::string&)>& say);

  /// @throws IoError if they are not in the file yet; they are kept for the next time
  void write(std::span<const TrailRecord> records);
  /// As AppendFile::sync.
  void sync() { file_->sync(); }
  bool is_complete() const { return file_->is_complete(); }
  /// Position after all that was appended.
  const TrailPosition& position() const { return position_; }

 private:
  TrailHead head_;
  TrailPosition position_;
  std::unique_ptr<AppendFile> file_;
};

// Reads a trail and says which of its records are as they were written.

/// A record that is not as it was written.
struct TrailDamage {
  std::int64_t record = 0;  ///< from 0
  std::int64_t step = 0;    ///< that it should be of: the one after the record before it
  std::uint64_t at = 0;     ///< byte of the file where it begins
};

/// No run takes so many steps: a record of a later one is damaged.
inline constexpr std::int64_t kMostTrailSteps = std::int64_t{1} << 62;

/// A whole trail in memory.
class Trail {
 public:
  /// Any bytes may come: structure, sizes and the head's seal are checked. A last record that is not whole is cut
  /// off: a crash leaves one.
  /// @throws DataError    naming `file`: no trail, or one whose head is damaged
  /// @throws ConfigError  another version of this program wrote it
  Trail(std::vector<std::byte> bytes, const std::string& file);

  const TrailHead& head() const { return head_; }
  std::size_t head_bytes() const { return head_bytes_; }
  std::int64_t records() const { return records_; }
  TrailRecord record(std::int64_t i) const;
  /// Step of record i; for a damaged record, the step that it should have.
  std::int64_t step(std::int64_t i) const;
  /// After so many records, as the last of them says.
  TrailPosition position(std::int64_t records) const;
  /// Bytes of the file up to there.
  std::uint64_t end_of(std::int64_t records) const {
    return head_bytes_ + static_cast<std::uint64_t>(records) * record_bytes_;
  }

  /// Records whose SHA-256 is not that of the one before them and themselves. One flipped bit damages one record.
  const std::vector<TrailDamage>& damage() const { return damage_; }
  bool is_damaged(std::int64_t record) const { return damage_of(record) != nullptr; }
  /// How many records are of steps up to this one.
  std::int64_t records_up_to(std::int64_t step) const;
  /// The record of a step, if there is one that is not damaged.
  std::optional<TrailRecord> find(std::int64_t step) const;

 private:
  void read_head(const std::string& file);
  void check_chain();
  std::span<const std::byte> bytes_of(std::int64_t record) const;
  std::int64_t stored_step(std::int64_t i) const;
  const TrailDamage* damage_of(std::int64_t record) const;

  std::vector<std::byte> bytes_;
  TrailHead head_;
  std::size_t head_bytes_ = 0, record_bytes_ = 0;
  std::int64_t records_ = 0;
  std::vector<TrailDamage> damage_;
};

/// Reads the head of a trail and at most so many records. Memory is bounded by the job's length, however long
/// the file is. @throws as Trail; IoError, MissingDataError
Trail read_trail(Env& env, const std::string& path, std::int64_t most_records);

}  // namespace lockstep
