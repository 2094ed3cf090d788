// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Exchanges among the 32 threads of a warp. A thread deposits a value and a request; when all threads that the mask
/// names have done so, every one of them gets its answer.
#pragma once

#include "kernels/emulation/errors.hpp"

#include <cstdint>
#include <string>

namespace lockstep::emulation {

inline constexpr unsigned kWarpSize = 32;

enum class WarpOp : std::uint8_t { kShuffle, kBallot };

/// A thread's request to its warp.
struct WarpRequest {
  WarpOp op = WarpOp::kBallot;
  std::uint32_t mask = 0;
  unsigned source = 0;      ///< kShuffle: the lane whose value is wanted
  std::uint64_t value = 0;  ///< kShuffle: offered to the others; kBallot: 0 or not
  CallSite call;
};

/// The exchange of one warp. Code that a lane runs for each value is in the header: training on the emulator
/// spends its time there.
class Warp {
 public:
  void reset(unsigned lanes);
  /// A lane asks. True if that completes the exchange for all lanes of its mask, which then have their
  /// answers and wait no more.
  bool arrive(unsigned lane, const WarpRequest& request) {
    waiting_ |= 1U << lane;
    kinds_[lane] = kind(request);
    values_[lane] = request.value;
    sources_[lane] = request.source;
    calls_[lane] = request.call;
    if ((waiting_ & request.mask) != request.mask || !all_ask_the_same(request.mask, kinds_[lane]))
      return false;
    complete(request.op, request.mask);
    return true;
  }
  /// The answer of a lane whose exchange is complete. A value from a lane outside of the mask is all ones.
  std::uint64_t answer(unsigned lane) const { return answers_[lane]; }
  /// A lane has left the kernel.
  void leave(unsigned lane) { present_ &= ~(1U << lane); }
  /// Why the exchange that `lane` waits for cannot complete: "its mask 0xffffffff names lane 7, which has
  /// left the kernel".
  std::string obstacle(unsigned lane) const;

 private:
  /// The kind of an exchange, which all its lanes share.
  static std::uint64_t kind(const WarpRequest& request) {
    return std::uint64_t{request.mask} << 8 | static_cast<std::uint64_t>(request.op);
  }
  std::uint32_t mask_of(unsigned lane) const { return static_cast<std::uint32_t>(kinds_[lane] >> 8); }
  bool all_ask_the_same(std::uint32_t mask, std::uint64_t kind) const {
    std::uint64_t difference = 0;
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      difference |= ((mask >> lane) & 1U) != 0 ? kinds_[lane] ^ kind : 0;
    return difference == 0;
  }
  void complete(WarpOp op, std::uint32_t mask);

  // State of each lane since its last request.
  std::uint64_t kinds_[kWarpSize] = {}, values_[kWarpSize] = {}, answers_[kWarpSize] = {};
  unsigned sources_[kWarpSize] = {};
  CallSite calls_[kWarpSize];
  std::uint32_t present_ = 0, waiting_ = 0;
};

}  // namespace lockstep::emulation
