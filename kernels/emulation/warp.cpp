// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// An exchange completes when the last thread that its mask names has arrived with the same request.
#include "kernels/emulation/block.hpp"

#include <fmt/format.h>

#include <bit>

namespace lockstep::emulation {

void Warp::reset(unsigned lanes) {
  present_ = lanes == kWarpSize ? 0xFFFFFFFFU : (1U << lanes) - 1;
  waiting_ = 0;
}

void Warp::complete(WarpOp op, std::uint32_t mask) {
  std::uint64_t ballot = 0;
  if (op == WarpOp::kBallot)
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      ballot |= ((mask >> lane) & 1U) != 0 && values_[lane] != 0 ? std::uint64_t{1} << lane : 0;
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const bool offered = ((mask >> sources_[lane]) & 1U) != 0;
    answers_[lane] = op == WarpOp::kBallot ? ballot : offered ? values_[sources_[lane]] : ~std::uint64_t{0};
  }
  waiting_ &= ~mask;
}

std::string Warp::obstacle(unsigned lane) const {
  const std::uint32_t mask = mask_of(lane);
  if (((mask >> lane) & 1U) == 0)
    return fmt::format("its mask {:#x} does not name its own lane {}", mask, lane);
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const auto other = static_cast<unsigned>(std::countr_zero(rest));
    if (((present_ >> other) & 1U) == 0)
      return fmt::format("its mask {:#x} names lane {}, which has left the kernel or never was", mask, other);
    if (((waiting_ >> other) & 1U) == 0)
      return fmt::format("its mask {:#x} names lane {}, which waits at a barrier of the block", mask, other);
    if (kinds_[lane] != kinds_[other])
      return fmt::format("its mask {:#x} names lane {}, which waits at {} with mask {:#x}", mask, other,
                         to_string(calls_[other]), mask_of(other));
  }
  return {};
}

}  // namespace lockstep::emulation
