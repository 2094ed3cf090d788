// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What the 32 threads of a warp exchange. A thread deposits a value and a request; when all threads that the
/// mask names have done so, every one of them gets its answer.
#pragma once

#include "kernels/emulation/call_site.hpp"

#include <cstdint>
#include <string>

namespace lockstep::emulation {

inline constexpr unsigned kWarpSize = 32;

enum class WarpOp : std::uint8_t { kShuffle, kBallot };

/// What a thread asks of its warp.
struct WarpRequest {
  WarpOp op = WarpOp::kBallot;
  std::uint32_t mask = 0;
  unsigned source = 0;      ///< kShuffle: the lane whose value is wanted
  std::uint64_t value = 0;  ///< kShuffle: offered to the others; kBallot: 0 or not
  CallSite call;
};

/// The exchange of one warp.
class Warp {
 public:
  void reset(unsigned lanes);
  /// A lane asks. True if that completes the exchange for all lanes of its mask, which then have their
  /// answers and wait no more.
  bool arrive(unsigned lane, const WarpRequest& request);
  /// Of a lane whose exchange is complete. A value from a lane outside of the mask is all ones.
  std::uint64_t answer(unsigned lane) const { return answers_[lane]; }
  /// A lane has left the kernel.
  void leave(unsigned lane) { present_ &= ~(1U << lane); }
  /// Why the exchange that `lane` waits for cannot complete: "its mask 0xffffffff names lane 7, which has
  /// left the kernel".
  std::string obstacle(unsigned lane) const;

 private:
  bool same_exchange(unsigned lane, unsigned other) const;
  void complete(std::uint32_t mask);

  WarpRequest requests_[kWarpSize];
  std::uint64_t answers_[kWarpSize] = {};
  std::uint32_t present_ = 0, waiting_ = 0;
};

}  // namespace lockstep::emulation
