// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// trail.bin's bytes. A head that says of which job, then a record for each step, all of one size, each with the SHA-256
/// of the one before it and itself. docs/trail-format.md describes every byte.
#pragma once

#include "common/digest.hpp"
#include "common/env.hpp"
#include "common/error.hpp"
#include "trainer/checkpoint/tensors.hpp"
#include "trainer/training/fingerprints.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

inline constexpr const char* kTrailFile = "trail.bin";
inline constexpr std::array<char, 8> kTrailMagic = {'L', 'S', 'T', 'R', 'A', 'I', 'L', '\0'};
inline constexpr std::uint32_t kTrailVersion = 1;
inline constexpr std::size_t kMaxTrailHeadBytes = std::size_t{64} << 20;
inline constexpr std::size_t kTrailRecordFacts = 24;  ///< bytes of a record before its fingerprints

/// Job, network and data of a trail. Equal for any number of ranks. The file knows tensors by name and number
/// of elements: tensors read from it have one dimension.
struct TrailHead {
  std::vector<CheckpointParameter> trained, kept;  ///< in arena order; kept: without gradients
  std::vector<std::string> buffers;                ///< the optimiser's, by name
  std::map<std::string, std::string> facts;        ///< "job.train.seed": "7", ...

  /// Places of a step's fingerprints.
  FingerprintLayout layout() const { return {trained.size(), kept.size(), buffers.size()}; }
  std::size_t slots() const { return layout().slots(); }
  std::size_t record_bytes() const {
    return kTrailRecordFacts + slots() * sizeof(std::uint64_t) + sizeof(Sha256Digest);
  }
  friend bool operator==(const TrailHead&, const TrailHead&) = default;
};

/// Lists the differences of two heads: "job.train.seed (7 there, 8 here)". A key in only one of them is no
/// difference: it may be younger. The first tensor that differs is named, the others are counted.
std::vector<std::string> differences(const TrailHead& a, const TrailHead& b);

struct TrailRecord {
  std::int64_t step = 0;                    ///< counted from 1
  std::uint32_t arithmetic = 0;             ///< trainer/setup/job_setup.hpp
  std::uint64_t apart = 0;                  ///< 0: all ranks had the same bits; RankChecks::combine
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

}  // namespace lockstep
