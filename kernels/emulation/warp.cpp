// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// An exchange completes when the last thread that its mask names has arrived with the same request.
#include "kernels/emulation/warp.hpp"

#include <fmt/format.h>

#include <bit>

namespace lockstep::emulation {

void Warp::reset(unsigned lanes) {
  present_ = lanes == kWarpSize ? 0xFFFFFFFFU : (1U << lanes) - 1;
  waiting_ = 0;
}

bool Warp::arrive(unsigned lane, const WarpRequest& request) {
  requests_[lane] = request;
  waiting_ |= 1U << lane;
  if ((waiting_ & request.mask) != request.mask) return false;
  for (std::uint32_t rest = request.mask; rest != 0; rest &= rest - 1)
    if (!same_exchange(lane, static_cast<unsigned>(std::countr_zero(rest)))) return false;
  complete(request.mask);
  return true;
}

bool Warp::same_exchange(unsigned lane, unsigned other) const {
  return requests_[lane].op == requests_[other].op && requests_[lane].mask == requests_[other].mask;
}

void Warp::complete(std::uint32_t mask) {
  std::uint64_t ballot = 0;
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    if (requests_[lane].value != 0) ballot |= std::uint64_t{1} << lane;
  }
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const WarpRequest& request = requests_[lane];
    const bool offered = ((mask >> request.source) & 1U) != 0;
    answers_[lane] = request.op == WarpOp::kBallot ? ballot
                     : offered                     ? requests_[request.source].value
                                                   : ~std::uint64_t{0};
  }
  waiting_ &= ~mask;
}

std::string Warp::obstacle(unsigned lane) const {
  const std::uint32_t mask = requests_[lane].mask;
  if (((mask >> lane) & 1U) == 0)
    return fmt::format("its mask {:#x} does not name its own lane {}", mask, lane);
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const auto other = static_cast<unsigned>(std::countr_zero(rest));
    if (((present_ >> other) & 1U) == 0)
      return fmt::format("its mask {:#x} names lane {}, which has left the kernel or never was", mask, other);
    if (((waiting_ >> other) & 1U) == 0)
      return fmt::format("its mask {:#x} names lane {}, which waits at a barrier of the block", mask, other);
    if (!same_exchange(lane, other))
      return fmt::format("its mask {:#x} names lane {}, which waits at {} with mask {:#x}", mask, other,
                         to_string(requests_[other].call), requests_[other].mask);
  }
  return {};
}

}  // namespace lockstep::emulation
