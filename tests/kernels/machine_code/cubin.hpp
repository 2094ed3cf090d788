// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The kernels of a cubin: their instructions as they lie there, and what each needs of a multiprocessor.
#pragma once

#include "tests/support/prelude.hpp"

namespace lockstep::machine_code {

// Machine code of compute capability 7.0 to 9.0, as far as it matters to the bits of a result. An instruction
// has 16 bytes, of which the lowest 9 bits are the operation. NVIDIA documents the names (CUDA Binary
// Utilities) and not the bits; these are what nvdisasm -hex shows. An operation that is not known here is a
// finding, so that nothing goes by unseen.

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

// The kernels of a cubin.

/// A function that ptxas put behind a kernel: "$__cuda_sm20_div_rn_f32_slowpath".
struct Routine {
  std::string name;
  std::size_t begin = 0, end = 0;  ///< indices of instructions
};

struct CubinKernel {
  std::string symbol;  ///< mangled
  int capability = 0;
  int registers = 0;     ///< per thread
  int stack_bytes = 0;   ///< per thread: spilled registers, and arrays with indices that vary
  int shared_bytes = 0;  ///< static, of a block
  int most_threads = 0;  ///< per block, as __launch_bounds__ says; 0: it does not
  std::vector<Instruction> instructions;
  std::vector<Routine> routines;

  /// The routine that an instruction belongs to; nullptr: it is the kernel's own.
  const Routine* routine_of(std::size_t instruction) const;
};

/// @throws std::runtime_error if it is damaged
std::vector<CubinKernel> kernels_of_cubin(std::string_view cubin, int capability);

// As much of an ELF file as these tests need: sections by name, and where symbols lie in them. 64 bits,
// little-endian.

struct Section {
  std::string_view name;
  std::string_view bytes;  ///< empty for one that takes no space in the file
  std::uint64_t size = 0;
};

struct Symbol {
  std::string_view name;
  std::size_t section = 0;  ///< index of the section
  std::uint64_t begin = 0, size = 0;
};

/// A view of the bytes it was made of.
struct ElfFile {
  /// @throws std::runtime_error if it is none, or ends early
  explicit ElfFile(std::string_view file);

  std::vector<Section> sections;
  std::vector<Symbol> symbols;  ///< in the order of the file, the empty one first
};

/// The part of a file.
/// @throws std::runtime_error if the file ends before
std::string_view part_of(std::string_view file, std::uint64_t begin, std::uint64_t size);

/// A number of the given type at a place of a file.
/// @throws std::runtime_error if the file ends before
template <typename T>
T read_at(std::string_view file, std::size_t place) {
  T value;
  std::memcpy(&value, part_of(file, place, sizeof value).data(), sizeof value);
  return value;
}

// Output of nvcc in a program for GPUs: PTX for the driver to compile, and cubins, which are machine code. Each cubin
// is for one compute capability. They lie in the section .nv_fatbin, images one after another. NVIDIA documents
// cuobjdump, which reads it, but not the format; this is what cuobjdump shows of programs made by CUDA 13.

enum class ImageKind : std::uint16_t { kPtx = 1, kCubin = 2 };

struct Image {
  ImageKind kind;
  int capability;       ///< 90 for 9.0
  std::string options;  ///< that the driver is to compile PTX with
  std::string bytes;    ///< uncompressed; PTX: text
};

/// Something that is right, but not to be read here: what() says why.
struct Unreadable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// @param program  an ELF file
/// @throws Unreadable          where an image is compressed in a way that is not known here
/// @throws std::runtime_error  if there is no such section, or it is damaged
std::vector<Image> images_of(std::string_view program);

}  // namespace lockstep::machine_code
