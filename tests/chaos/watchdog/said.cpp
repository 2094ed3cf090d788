// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/chaos/watchdog/said.hpp"

#include <cstdlib>
#include <optional>
#include <sstream>
#include <string_view>

namespace lockstep::chaos {
namespace {

/// What stands behind `words`; nothing if they are not there.
std::optional<std::string> behind(const std::string& line, std::string_view words) {
  const auto at = line.find(words);
  if (at == line.npos) return std::nullopt;
  return line.substr(at + words.size());
}

void read_line(const std::string& line, Said& said) {
  if (const auto headline = behind(line, "lockstep: verdict: ")) {
    if (said.verdicts++ == 0) said.headline = *headline;
    return;
  }
  if (const auto ranks = behind(line, "lockstep:   initiating: ")) {
    said.initiating = read_ranks(*ranks);
    if (const auto others = behind(*ranks, "; cascading: ")) said.cascading = read_ranks(*others);
    return;
  }
  const auto notice = behind(line, "lockstep: rank ");
  if (!notice) return;
  const int rank = static_cast<int>(std::strtol(notice->c_str(), nullptr, 10));
  if (behind(*notice, ") is silent for ")) said.silent.insert(rank);
  if (behind(*notice, ") is back after ")) said.back.insert(rank);
  if (behind(*notice, ") is alive, but has been in ")) said.stuck.insert(rank);
  if (behind(*notice, " hears no other rank ")) said.hears_nobody = true;
}

}  // namespace

std::set<int> read_ranks(const std::string& text) {
  std::set<int> ranks;
  const char* at = text.c_str();
  if (text.starts_with("rank ")) at += 5;
  if (text.starts_with("ranks ")) at += 6;
  if (at == text.c_str()) return ranks;
  while (true) {
    char* end = nullptr;
    const auto first = std::strtol(at, &end, 10);
    if (end == at) return ranks;
    auto last = first;
    if (*end == '-') last = std::strtol(end + 1, &end, 10);
    for (auto rank = first; rank <= last; ++rank) ranks.insert(static_cast<int>(rank));
    if (*end != ',') return ranks;
    at = end + 1;
  }
}

Said read_said(const std::string& text) {
  Said said;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) read_line(line, said);
  return said;
}

}  // namespace lockstep::chaos
