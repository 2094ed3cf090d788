// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// trail.bin: inputs and results of each step of a run, as fingerprints. A head that says of which
/// job, then a record for each step, all of one size, each with the SHA-256 of the one before it and itself.
/// docs/trail-format.md describes every byte.
#pragma once

#include "common/digest.hpp"
#include "common/env.hpp"
#include "common/error.hpp"
#include "trainer/checkpoint/state.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

inline constexpr const char* kTrailFile = "trail.bin";
inline constexpr std::array<char, 8> kTrailMagic = {'L', 'S', 'T', 'R', 'A', 'I', 'L', '\0'};
inline constexpr std::uint32_t kTrailVersion = 1;
inline constexpr std::size_t kMaxTrailHeadBytes = std::size_t{64} << 20;

/// Job, network and data of a trail. Equal for any number of ranks. The file knows tensors by name and number
/// of elements: tensors read from it have one dimension.
struct TrailHead {
  std::vector<CheckpointParameter> trained, kept;  ///< in arena order; kept: without gradients
  std::vector<std::string> buffers;                ///< what the optimiser remembers, by name
  std::map<std::string, std::string> facts;        ///< "job.train.seed": "7", ...

  /// Fingerprints of a step, in the order of trainer/training/weight_update.hpp.
  std::size_t slots() const { return trained.size() * (2 + buffers.size()) + kept.size(); }
  std::size_t record_bytes() const;
  friend bool operator==(const TrailHead&, const TrailHead&) = default;
};

/// Lists the differences of two heads: "job.train.seed (7 there, 8 here)". A key in only one of them is no
/// difference: it may be younger.
std::vector<std::string> differences(const TrailHead& a, const TrailHead& b);

struct TrailRecord {
  std::int64_t step = 0;         ///< counted from 1
  std::uint32_t arithmetic = 0;  ///< trainer/setup/job_setup.hpp
  std::uint64_t apart = 0;       ///< 0: all ranks had the same bits; ParallelStrategy::combine_fingerprints
  std::vector<std::uint64_t> fingerprints;  ///< [slots]
  friend bool operator==(const TrailRecord&, const TrailRecord&) = default;
};

/// Position in a trail: a number of records, and the SHA-256 that the last one ends with. (At 0 it is the
/// head's.)
struct TrailPosition {
  std::int64_t records = 0;
  Sha256Digest chain{};
  friend bool operator==(const TrailPosition&, const TrailPosition&) = default;
};

/// Bytes of a head, and of a record after a position, which advances.
std::vector<std::byte> write_trail_head(const TrailHead& head);
std::vector<std::byte> write_trail_record(const TrailHead& head, const TrailRecord& record,
                                          TrailPosition& position);
/// End of a record: the SHA-256 of `before` and of the record's bytes before it.
Sha256Digest chain_trail(const Sha256Digest& before, std::span<const std::byte> body);
/// Position at the start of a trail with this head.
TrailPosition trail_start(std::span<const std::byte> head);

// Numbers and texts of a trail as bytes, and back. For this room alone.

static_assert(std::endian::native == std::endian::little, "trails are little-endian, as memory is here");

inline constexpr std::size_t kTrailHeadBytesAt = 12;  ///< in the head: how long it is
inline constexpr std::size_t kTrailRecordFacts = 24;  ///< bytes of a record before its fingerprints

class TrailBytesWriter {
 public:
  explicit TrailBytesWriter(std::vector<std::byte>& bytes) : bytes_(bytes) {}

  void raw(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  void u32(std::uint32_t number) { raw(std::as_bytes(std::span(&number, 1))); }
  void u64(std::uint64_t number) { raw(std::as_bytes(std::span(&number, 1))); }
  void text(const std::string& text) {
    u32(static_cast<std::uint32_t>(text.size()));
    raw(std::as_bytes(std::span(text)));
  }

 private:
  std::vector<std::byte>& bytes_;
};

/// Nothing in the bytes is believed.
class TrailBytesReader {
 public:
  /// @param file  for messages; borrowed
  TrailBytesReader(std::span<const std::byte> bytes, const std::string& file) : rest_(bytes), file_(file) {}

  std::span<const std::byte> raw(std::size_t size) {
    if (size > rest_.size()) throw DataError(fmt::format("{}: its head ends too early", file_));
    const auto part = rest_.first(size);
    rest_ = rest_.subspan(size);
    return part;
  }
  std::uint32_t u32() { return number<std::uint32_t>(); }
  std::uint64_t u64() { return number<std::uint64_t>(); }
  std::string text() { return std::string(as_text(raw(u32()))); }
  std::size_t left() const { return rest_.size(); }

 private:
  template <typename Number>
  Number number() {
    Number number{};
    std::memcpy(&number, raw(sizeof number).data(), sizeof number);
    return number;
  }

  std::span<const std::byte> rest_;
  const std::string& file_;
};

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
