// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Fingerprints (kernels/numerics/fingerprint.hpp) on the CPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep::cpu {

/// Of words [first, first + words.size()) of a buffer; fingerprints of parts add up to that of the whole.
std::uint64_t fingerprint(std::uint32_t buffer, std::size_t first, std::span<const float> words);
std::uint64_t fingerprint(std::uint32_t buffer, std::size_t first, std::span<const std::int64_t> words);

}  // namespace lockstep::cpu
