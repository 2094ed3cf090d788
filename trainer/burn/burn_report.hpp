// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Result of a burn, for people and for programs.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::burn {

/// From good to bad.
enum class Grade { kPass, kSlow, kNotTested, kWrong };
/// "PASS", "SLOW", "NOT TESTED", "WRONG"
std::string_view spelt(Grade grade);

struct BurnFinding {
  Grade grade = Grade::kPass;
  std::string kind;  ///< "message", "sum", "job", "rank", "link"
  std::string what;  ///< one line
  std::string fix;   ///< one line
};

/// Observations of one rank about another.
struct LinkView {
  int with = 0;                 ///< the other rank
  std::int64_t received = 0;    ///< messages from it
  std::int64_t damaged = 0;     ///< those that were not what it should have sent
  std::int64_t wrong_sums = 0;  ///< all-reduces of these two alone with a wrong result
  double seconds = 0;           ///< the quickest exchange of a message each way; 0: none
  std::int64_t bytes = 0;       ///< size of that message
  double latency = 0;           ///< seconds of the quickest 8 bytes there and an answer; 0: none
};

/// Result of one rank, sent to rank 0 at the end.
struct RankResult {
  int rank = 0;
  std::string host, device, uuid, processor, simd;
  int threads = 1;
  bool oversubscribed = false;
  std::map<std::string, std::string> exercised;  ///< by check: what was done; missing: nothing
  std::map<std::string, double> measures;        ///< seconds or rates that like ranks share, by name
  std::vector<BurnFinding> findings;             ///< its own
  std::vector<LinkView> links;
  std::map<std::string, std::string> answers;  ///< the SHA-256 that each training of this rank alone ended in
  std::int64_t wrong_sums_of_all = 0, wrong_jobs_of_all = 0;  ///< jobs: or of its team
};

/// Result of the whole burn, on rank 0.
struct BurnReport {
  std::vector<RankResult> ranks;  ///< findings: those that follow from a comparison of ranks, too
  int level = 1;
  double seconds = 0;
  int rounds = 0;
  std::vector<std::string> left_out;       ///< checks that --without names
  std::vector<std::string> not_exercised;  ///< sentences: what this burn says nothing about
  std::string stopped_by;                  ///< a signal's name; empty: none
  std::string compiler, driver, library;   ///< those of this burn

  /// How many hosts the ranks are on.
  std::size_t hosts() const;
};

/// Worst grade among a rank's findings.
Grade grade_of(const RankResult& result);
/// 0 PASS, 1 WRONG, 3 SLOW, 69 NOT TESTED, 75 stopped by a signal before the end. The worst of all ranks decides.
int exit_code_of(const BurnReport& report);
inline constexpr int kSlowExitCode = 3;

/// Adds what shows only when ranks are compared: who sends damaged messages, who is slower than the others. "speed" is
/// exercised on ranks with times that others could be compared with.
/// @param speeds  whether speeds are compared
void compare_ranks(std::vector<RankResult>& ranks, bool speeds);

/// Table with one row per rank, the checks done, the faults and their cures; the last line is the verdict.
std::string to_text(const BurnReport& report, int columns);
nlohmann::ordered_json to_json(const BurnReport& report);
/// A row for docs/machines.md, with no name of a host in it.
std::string to_share(const BurnReport& report);

}  // namespace lockstep::burn
