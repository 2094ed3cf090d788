// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Units of gradients on their way from rank 0 to all.
#pragma once

#include "comm/communicator.hpp"
#include "comm/gradient_units.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

/// Gives all ranks the units of rank 0. Collective.
inline void broadcast_units(Communicator& comm, GradientUnits& units) {
  std::vector<std::int16_t> exponents(units.exponents().begin(), units.exponents().end());
  std::int64_t changed_at = units.changed_at();
  comm.broadcast(std::as_writable_bytes(std::span(exponents)), 0);
  comm.broadcast(std::as_writable_bytes(std::span(&changed_at, 1)), 0);
  units.restore(exponents, changed_at);
}

}  // namespace lockstep
