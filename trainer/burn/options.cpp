// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Options of `lockstep burn` and the meaning of its verdicts.
#include "common/env.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "trainer/burn/burn.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

namespace lockstep::burn {

BurnFault parse_fault(const std::string& text) {
  if (environment_variable("LOCKSTEP_ALLOW_INJECT") != "1")
    throw UsageError(
        "--inject makes a rank fail on purpose, and is only for tests: set LOCKSTEP_ALLOW_INJECT=1 if that "
        "is what you want");
  const std::size_t at = text.find('@');
  const std::string kind = text.substr(0, at);
  const auto rank = parse_whole<int>(at == text.npos ? "" : std::string_view(text).substr(at + 1));
  if (!rank || *rank < 0 || std::ranges::find(kFaultKinds, kind) == kFaultKinds.end())
    throw UsageError(
        fmt::format("--inject '{}' is not KIND@RANK with a rank from 0 on and one of the kinds {}", text,
                    fmt::join(kFaultKinds, ", ")));
  return {kind, *rank};
}

double parse_time(const std::string& text) {
  constexpr double kMinute = 60, kHour = 3600, kMost = 30 * 24 * kHour;
  const std::map<std::string_view, double> units{{"s", 1}, {"m", kMinute}, {"h", kHour}};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto unit = units.find(std::string_view(text).substr(static_cast<std::size_t>(end - text.data())));
  if (error != std::errc() || unit == units.end() || !(number >= 0) || number * unit->second > kMost)
    throw UsageError(fmt::format("--time '{}' is not a time as 90s, 10m or 2h, up to 720h", text));
  return number * unit->second;
}

std::string_view spelt(Grade grade) {
  constexpr std::array<std::string_view, 4> kNames{"PASS", "SLOW", "NOT TESTED", "WRONG"};
  return kNames[static_cast<std::size_t>(grade)];
}

std::size_t BurnReport::hosts() const {
  std::set<std::string> names;
  for (const RankResult& result : ranks) names.insert(result.host);
  return names.size();
}

Grade grade_of(const RankResult& result) {
  Grade worst = Grade::kPass;
  for (const BurnFinding& finding : result.findings) worst = std::max(worst, finding.grade);
  return worst;
}

int exit_code_of(const BurnReport& report) {
  const Grade worst = grade_of(*std::ranges::max_element(report.ranks, {}, grade_of));
  if (worst == Grade::kWrong) return 1;
  if (!report.stopped_by.empty()) return static_cast<int>(ExitCode::kSavedOnRequest);
  if (worst == Grade::kNotTested) return static_cast<int>(ExitCode::kDeviceUnavailable);
  return worst == Grade::kSlow ? kSlowExitCode : 0;
}

}  // namespace lockstep::burn
