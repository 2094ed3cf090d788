// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What the ranks' watch has said, read back from its words.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace lockstep::chaos {

struct Said {
  int verdicts = 0;
  std::string headline;  ///< of the first verdict, from behind "verdict: "
  std::set<int> initiating, cascading;
  std::set<int> silent, back, stuck;  ///< ranks that notices named so
  bool hears_nobody = false;          ///< a rank said so of itself

  bool has_notice() const { return !silent.empty() || !back.empty() || !stuck.empty() || hears_nobody; }
};

/// @param text  standard error of a job, or of one of its ranks; others' lines in between do not matter
Said read_said(const std::string& text);

/// "ranks 0-2, 5" as it stands at the start of `text`; empty: it is no list of ranks.
std::set<int> read_ranks(const std::string& text);

}  // namespace lockstep::chaos
