// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Before ranks work together they compare what must be the same on all of them: program, libraries, job,
/// network, data. A rank that differs would otherwise train something else without a word, or end all in an
/// error that says nothing about the cause.
#pragma once

#include "comm/communicator.hpp"
#include "common/error.hpp"

#include <string>
#include <vector>

namespace lockstep {

/// In the order in which differences are listed. The first that differs decides the exit code and the advice.
enum class FactKind { kProgram, kLibrary, kMachine, kJob, kNetwork, kCheckpoint, kData };

/// One thing that is to be the same on all ranks.
struct RankFact {
  FactKind kind = FactKind::kJob;
  std::string key;
  std::string value;
  std::string note = {};  ///< shown with the value, not compared: where it was found
};
using RankFacts = std::vector<RankFact>;

/// 69 for program, libraries and machine, 2 for job and network, 65 for checkpoint and data.
ExitCode exit_code_of(FactKind kind);

/// Compares `mine` over all ranks. Collective. Equal ranks exchange one digest of 32 bytes, which is the
/// first message of every version of the program; only where digests differ do the facts themselves travel.
/// @throws AgreedError, on every rank: one line with each key that differs, its values, and the ranks that
/// have them
void expect_equal_ranks(Communicator& comm, const RankFacts& mine);

/// "0, 2-12": ascending ranks as ranges.
std::string rank_ranges(const std::vector<int>& ranks);

/// What expect_equal_ranks says about the facts of all ranks, by rank; and the first kind that differs.
struct RankDifference {
  FactKind kind;
  std::string message;
};
RankDifference describe_difference(const std::vector<RankFacts>& facts,
                                   const std::vector<std::string>& hosts);

}  // namespace lockstep
