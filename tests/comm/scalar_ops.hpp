// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The four ops that a reducer needs, as plain loops: independent of any backend's kernels.
#pragma once

#include "kernels/ops.hpp"

#include <memory>

namespace lockstep::testing {

/// accumulate_exact, mean_from_exact, accumulate, mean; every other op throws InternalError.
std::unique_ptr<Ops> make_scalar_ops();

}  // namespace lockstep::testing
