// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Runs with one flipped bit each, and honest ones, that `lockstep prove` has to tell apart.
#pragma once

#include "tests/chaos/campaign.hpp"

namespace lockstep::chaos {

/// Prints the tally, or what went wrong and how to see it again. Returns 0, or 1 after a wrong verdict.
int run_prove_campaign(const Options& options);

}  // namespace lockstep::chaos
