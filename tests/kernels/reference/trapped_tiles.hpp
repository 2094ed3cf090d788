// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Runs the machine code of the engine "amx" where the processor knows no tiles. Each of its instructions is
/// illegal there, and the handler of the signal does what Intel's manual says that it does.
#pragma once

#include "tests/kernels/reference/engines_in_memory.hpp"

#if defined(__x86_64__) && defined(__linux__)
#include <ucontext.h>

namespace lockstep::reference {

/// While it lives, one thread may use tiles. A use that the engine may not make ends the program.
class TrappedTiles {
 public:
  TrappedTiles() {
    struct sigaction action = {};
    action.sa_sigaction = run;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGILL, &action, &before_);
  }
  ~TrappedTiles() { sigaction(SIGILL, &before_, nullptr); }
  TrappedTiles(const TrappedTiles&) = delete;
  TrappedTiles& operator=(const TrappedTiles&) = delete;

  /// Products of tiles since the program began.
  static long products() { return products_; }
  static bool is_configured() { return is_configured_; }

 private:
  static constexpr int kTileBytes = 1024, kRowBytes = 64;
  inline static bool is_configured_ = false;
  inline static long products_ = 0;
  alignas(64) inline static std::uint8_t tiles_[8][kTileBytes];
  struct sigaction before_ = {};

  /// C4, R X B and map, W vvvv L pp, opcode, ModRM, SIB, displacement.
  struct Instruction {
    int prefix, opcode, mod, reg, rm, second;  ///< reg, rm and second are tiles
    std::uint8_t* memory = nullptr;
    std::ptrdiff_t step = 0;
    const std::uint8_t* next = nullptr;
  };

  static Instruction decode(const std::uint8_t* code, const greg_t* registers) {
    static constexpr int kNames[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                     REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    expect(code[0] == 0xC4 && (code[1] & 31) == 2 && (code[2] & 0x84) == 0);
    const int more_index = (code[1] & 0x40) != 0 ? 0 : 8, more_base = (code[1] & 0x20) != 0 ? 0 : 8;
    const int modrm = code[4];
    Instruction i{code[2] & 3, code[3], modrm >> 6, modrm >> 3 & 7, modrm & 7, ~(code[2] >> 3) & 15};
    i.next = code + 5;
    if (i.mod == 3) return i;
    int base = i.rm, index = 4, scale = 0;
    if (i.rm == 4) {
      const int sib = *i.next++;
      base = sib & 7;
      index = (sib >> 3 & 7) + more_index;
      scale = sib >> 6;
    }
    expect(i.mod != 0 || base != 5);
    i.memory = reinterpret_cast<std::uint8_t*>(registers[kNames[base + more_base]]);
    if (index != 4) i.step = registers[kNames[index]] << scale;
    std::int32_t displacement = 0;
    if (i.mod == 1) displacement = static_cast<std::int8_t>(*i.next++);
    if (i.mod == 2) {
      std::memcpy(&displacement, i.next, sizeof displacement);
      i.next += sizeof displacement;
    }
    i.memory += displacement;
    return i;
  }

  static void expect(bool is_as_the_engine_may) {
    if (!is_as_the_engine_may) std::abort();
  }

  /// Eight tiles of 16 rows of 64 bytes, and nothing else.
  static void configure(const std::uint8_t* shapes) {
    expect(!is_configured_ && shapes[0] == 1);
    for (int i = 1; i < 64; ++i) {
      const bool is_row_bytes = i >= 16 && i < 32 && i % 2 == 0, is_rows = i >= 48 && i < 56;
      expect(shapes[i] == (is_row_bytes ? 64 : is_rows ? 16 : 0));
    }
    is_configured_ = true;
  }

  /// tileloadd, or tilestored.
  static void copy_rows(const Instruction& i) {
    for (int row = 0; row < kTileBytes / kRowBytes; ++row) {
      std::uint8_t *const memory = i.memory + row * i.step, *const of_tile = tiles_[i.reg] + row * kRowBytes;
      if (i.prefix == 3)
        std::memcpy(of_tile, memory, kRowBytes);
      else
        std::memcpy(memory, of_tile, kRowBytes);
    }
  }

  static void run(int /*signal*/, siginfo_t* /*info*/, void* context) {
    greg_t* const registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    const Instruction i = decode(reinterpret_cast<const std::uint8_t*>(registers[REG_RIP]), registers);
    const bool is_memory = i.mod != 3;
    if (i.opcode == 0x49 && i.prefix == 0 && is_memory) {
      configure(i.memory);
    } else {
      expect(is_configured_);
      if (i.opcode == 0x49 && i.prefix == 0) {
        is_configured_ = false;
      } else if (i.opcode == 0x49 && i.prefix == 3) {
        std::memset(tiles_[i.reg], 0, kTileBytes);
      } else if (i.opcode == 0x4B && is_memory && (i.prefix == 3 || i.prefix == 2)) {
        copy_rows(i);
      } else {
        expect(i.opcode == 0x5E && i.prefix == 3 && !is_memory);
        MemoryTiles::multiply(reinterpret_cast<std::int32_t*>(tiles_[i.reg]), tiles_[i.rm], tiles_[i.second]);
        ++products_;
      }
    }
    registers[REG_RIP] = reinterpret_cast<greg_t>(i.next);
  }
};

}  // namespace lockstep::reference
#endif
