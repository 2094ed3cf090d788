// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The engine "amx": the tiles of Intel's AMX. tdpbssd adds 4 products of signed 8-bit digits to each of 16 x 16 sums
/// of 32 bits, 16 times, all digits times all digits.
///
/// Napkin, since no machine here has AMX. A core starts a tdpbssd every 16 cycles, 16,384 products of digits or 4,096
/// of 16 bits, and its sums come 52 cycles later. Four tiles of sums in turns never wait for their sums; three, with
/// high low and low high in one, would wait 104 cycles in 64. Each of four tiles that are loaded, 8 cycles from a
/// first-level cache, serves two products: 32 cycles in 64. From 256 channels on a pixel's tiles come from the second
/// level, 4 KiB in 64 cycles, which is all that it gives.
///
/// All but the tiles was timed on an AMD EPYC (Zen 4). Joining, rounding and storing 16 x 16 sums takes 80 to 140 ns
/// (beside 36 products, 576 cycles, for 3 x 3 taps of 64 channels); digits take 0.2 ns a number of a source, 0.3 of x
/// and 0.3 to 0.5 of dy in a gradient, 0.7 of a weight, 1.3 in a data gradient.
#include "kernels/cpu/int16/engines.hpp"
#include "kernels/cpu/simd_choice.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#if defined(__x86_64__) && defined(__linux__)
#include "hwy/base.h"
#include "kernels/cpu/int16/x86_intrinsics.hpp"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512dq,avx512vl,amx-tile,amx-int8")

#include "kernels/cpu/int16/amx_gradient_inl.hpp"
#include "kernels/cpu/int16/amx_product_inl.hpp"

namespace lockstep::cpu::int16 {
namespace {

/// The operand of ldtilecfg.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1, start_row = 0, unused[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};

/// Tiles 0 to 3 are sums, 4 and 5 digits of a, 6 and 7 of b. The intrinsics of g++ want numerals.
struct AmxTiles {
  static void begin() {
    TileShapes shapes;
    std::fill_n(shapes.row_bytes, 8, std::uint16_t{64});
    std::fill_n(shapes.rows, 8, std::uint8_t{16});
    std::atomic_signal_fence(
        std::memory_order_seq_cst);  // g++ does not know that tiles are loaded from memory
    _tile_loadconfig(&shapes);
  }
  static void end() { _tile_release(); }

  static void clear() {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  static void add(const Word* a, const Word* high, const Word* low) {
    _tile_loadd(4, a, 64);
    _tile_loadd(6, high, 64);
    _tile_dpbssd(0, 4, 6);
    _tile_loadd(7, low, 64);
    _tile_dpbssd(1, 4, 7);
    _tile_loadd(5, a + kTile, 64);
    _tile_dpbssd(2, 5, 6);
    _tile_dpbssd(3, 5, 7);
  }
  static void store(std::int32_t (*parts)[kTile]) {
    _tile_stored(0, parts[0], 64);
    _tile_stored(1, parts[1], 64);
    _tile_stored(2, parts[2], 64);
    _tile_stored(3, parts[3], 64);
  }
};

void correlate(const GroupProduct& product) {
  correlate_on_tiles<AmxTiles>(product);
}
void sum_gradients(const GroupGradient& gradient) {
  sum_gradients_on_tiles<AmxTiles>(gradient);
}

}  // namespace
}  // namespace lockstep::cpu::int16

HWY_POP_ATTRIBUTES

namespace lockstep::cpu::int16 {
namespace {

/// The processor has tiles of 8-bit integers, and the kernel saves them.
bool has_tiles() {
  constexpr unsigned kAmxTile = 1U << 24U, kAmxInt8 = 1U << 25U, kSavesState = 1U << 27U;
  constexpr std::uint32_t kTileState = 3U << 17U;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kSavesState) == 0) return false;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kAmxTile) == 0 || (d & kAmxInt8) == 0)
    return false;
  std::uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & kTileState) == kTileState;
}

/// Linux lets a process use tiles from when it asks on; a refusal is for good.
bool may_use_tiles() {
  constexpr int kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  static const bool may = has_tiles() && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return may;
}

bool is_here() {
  return may_use_tiles() && simd_name() == "AVX-512";
}

}  // namespace

/// 256 products of 16 bits a cycle, beside the 32 multiply-adds of two units of 512 bits.
const Engine kAmx = {"amx", is_here, correlate, sum_gradients, 8};

}  // namespace lockstep::cpu::int16

#else

namespace lockstep::cpu::int16 {

const Engine kAmx = {"amx", [] { return false; }, nullptr, nullptr};

}  // namespace lockstep::cpu::int16

#endif
