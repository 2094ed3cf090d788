// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One false number in the files of a run, with all checksums made good.
#pragma once

#include "tests/chaos/campaign.hpp"

#include <string>
#include <vector>

namespace lockstep::chaos {

/// What is forged, for the tally.
std::vector<std::string> forgery_labels();

/// Forges something of the kind `label` in a run of chaos prove. @returns what, in words
std::string forge(const std::string& label, const std::string& run, Dice& dice);

}  // namespace lockstep::chaos
