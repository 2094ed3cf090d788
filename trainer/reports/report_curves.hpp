// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The curves of a report's page, which its script and its picture without scripts draw alike.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace lockstep {

/// About `count` round numbers (1, 2 or 5 times a power of ten apart) from low to high; none where that is no span.
std::vector<double> ticks(double low, double high, int count);

/// [{"title", "unit", "scale", "curves": [{"name", "look", "colour", "events", "column"}]}]: "events" and "column" are
/// keys of a run's "curves".
nlohmann::ordered_json charts_json();

/// HTML for browsers that run no scripts: a row of facts for each run, and the curves over steps as SVG. Names and texts
/// of the document become text.
std::string page_without_scripts(const nlohmann::ordered_json& report);

}  // namespace lockstep
