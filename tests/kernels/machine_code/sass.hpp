// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Machine code of compute capability 7.0 to 9.0, as far as it matters to the bits of a result: 16 bytes an
/// instruction, of which the lowest 9 bits are the operation. NVIDIA documents the names (CUDA Binary Utilities) and
/// not the bits; these are what nvdisasm -hex shows. An operation that is not known here is a finding, so that
/// nothing goes by unseen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::machine_code {

enum class Operation : unsigned {
  kFmnmx = 0x009,
  kFset = 0x00A,
  kFsetp = 0x00B,
  kFmul = 0x020,
  kFadd = 0x021,
  kFfma = 0x023,
  kDmul = 0x028,
  kDadd = 0x029,
  kDfma = 0x02B,
  kHfma2 = 0x035,
  kF2i = 0x105,
  kI2f = 0x106,
  kFrnd = 0x107,
  kMufu = 0x108,
  kF2f64 = 0x110,  ///< to or from fp64
  kBra = 0x147,
  kAtoms = 0x18C,
  kRed = 0x18E,
  kAtom = 0x18A,
  kAtomg = 0x1A8,
};

/// The functions of the unit for approximations, MUFU.
enum class Approximation : unsigned { kRcp = 4, kRsq = 5, kRcp64 = 6, kRsq64 = 7 };

struct Instruction {
  static constexpr std::size_t kBytes = 16;
  std::uint64_t low = 0, high = 0;

  Operation operation() const { return static_cast<Operation>(low & 0x1FF); }
  bool is(Operation operation) const { return this->operation() == operation; }
  Approximation approximation() const { return static_cast<Approximation>(high >> 10 & 0xF); }
  bool flushes() const { return (high >> 16 & 1) != 0; }
  bool rounds_to_nearest() const { return (high >> 14 & 3) == 0; }
  unsigned first_operand() const { return low >> 24 & 0xFF; }
  unsigned second_operand() const { return low >> 32 & 0xFF; }
  unsigned third_operand() const { return high & 0xFF; }
  unsigned atomic_type() const { return high >> 9 & 0xF; }
  bool narrows() const { return is(Operation::kF2f64) && (high >> 11 & 3) == 2; }
};

inline constexpr unsigned kZeroRegister = 255;

/// The name of a known operation; empty for others.
std::string_view name_of(Operation operation);

/// Instructions [first, last] that are repeated.
struct Loop {
  std::size_t first = 0, last = 0;

  bool contains(std::size_t instruction) const { return first <= instruction && instruction <= last; }
};

/// By their beginning, outer loops before inner ones.
std::vector<Loop> loops_of(const std::vector<Instruction>& code, int capability);

}  // namespace lockstep::machine_code
