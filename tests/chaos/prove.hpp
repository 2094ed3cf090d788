// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Runs with one flipped bit each, and honest ones, that `lockstep prove` has to tell apart.
#pragma once

#include "tests/chaos/campaign.hpp"

#include <string>
#include <vector>

namespace lockstep::chaos {

/// Prints the tally, or what went wrong and how to see it again. Returns 0, or 1 after a wrong verdict.
int run_prove_campaign(const Options& options);

// One false number in the files of a run, with all checksums made good.

/// What is forged, for the tally.
std::vector<std::string> forgery_labels();

/// Forges something of the kind `label` in a run of chaos prove. @returns what, in words
std::string forge(const std::string& label, const std::string& run, Dice& dice);

}  // namespace lockstep::chaos
