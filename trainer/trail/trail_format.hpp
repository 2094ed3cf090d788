// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// trail.bin: what each step of a run was computed from and came to, in fingerprints. A head that says of which
/// job, then a record for each step, all of one size, each with the SHA-256 of the one before it and itself.
/// docs/trail-format.md describes every byte.
#pragma once

#include "common/sha256.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

inline constexpr const char* kTrailFile = "trail.bin";
inline constexpr std::array<char, 8> kTrailMagic = {'L', 'S', 'T', 'R', 'A', 'I', 'L', '\0'};
inline constexpr std::uint32_t kTrailVersion = 1;
inline constexpr std::size_t kMaxTrailHeadBytes = std::size_t{64} << 20;

struct TrailTensor {
  std::string name;
  std::uint64_t elements = 0;
  friend bool operator==(const TrailTensor&, const TrailTensor&) = default;
};

/// Of which job, network and data a trail is. The same for any number of ranks.
struct TrailHead {
  std::vector<TrailTensor> trained, kept;    ///< in arena order; kept: without gradients
  std::vector<std::string> buffers;          ///< what the optimiser remembers, by name
  std::map<std::string, std::string> facts;  ///< "job.train.seed": "7", ...

  /// Fingerprints of a step, in the order of trainer/engine/step_fingerprints.hpp.
  std::size_t slots() const { return trained.size() * (2 + buffers.size()) + kept.size(); }
  std::size_t record_bytes() const;
  friend bool operator==(const TrailHead&, const TrailHead&) = default;
};

/// What two heads say differently: "job.train.seed (7 there, 8 here)". What only one of them knows of is
/// no difference: it may be younger.
std::vector<std::string> differences(const TrailHead& a, const TrailHead& b);

struct TrailRecord {
  std::int64_t step = 0;         ///< counted from 1
  std::uint32_t arithmetic = 0;  ///< trainer/engine/arithmetic.hpp
  std::uint64_t apart = 0;       ///< 0: all ranks had the same bits; ParallelStrategy::combine_fingerprints
  std::vector<std::uint64_t> fingerprints;  ///< [slots]
  friend bool operator==(const TrailRecord&, const TrailRecord&) = default;
};

/// Where a trail stands: after so many records, and the SHA-256 that the last of them ends with (of none: the
/// head's).
struct TrailPosition {
  std::int64_t records = 0;
  Sha256Digest chain{};
  friend bool operator==(const TrailPosition&, const TrailPosition&) = default;
};

/// The bytes of a head, and of a record behind a position, which moves on.
std::vector<std::byte> write_trail_head(const TrailHead& head);
std::vector<std::byte> write_trail_record(const TrailHead& head, const TrailRecord& record,
                                          TrailPosition& position);
/// What a record ends with: the SHA-256 of `before` and of the record's bytes before it.
Sha256Digest chain_trail(const Sha256Digest& before, std::span<const std::byte> body);
/// Of a trail that begins with these bytes.
TrailPosition trail_start(std::span<const std::byte> head);

}  // namespace lockstep
