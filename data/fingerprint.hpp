// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What a data set holds, as SHA-256: by this ranks compare their data, and a run knows its own again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// Of one half of a set, in hexadecimal. Images and labels that come from IDX files have the SHA-256 of the
/// uncompressed file (`zcat FILE.gz | sha256sum`), whether it was compressed or not; what is made in memory
/// has that of the IDX file that would hold it (fp32 features: type 0x0d, little-endian).
struct Fingerprint {
  std::string samples;
  std::string labels;
  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
};

struct Dataset;

/// Of what is in memory.
Fingerprint fingerprint_of(const Dataset& set);

/// The first bytes of an IDX file: two zeros, element type, number of dimensions, sizes big-endian.
std::vector<std::byte> idx_file_head(std::uint8_t type, std::span<const std::int64_t> dims);

}  // namespace lockstep
