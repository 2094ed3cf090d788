// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// After the alarm each rank tells the others its fingerprints. Memory is looked at first, since what it spoils
/// arrives wrongly everywhere.
#include "comm/reduce/sum_check.hpp"

#include "comm/agreement.hpp"

#include <algorithm>
#include <functional>

namespace lockstep {
namespace {

/// Counts the rank in, if it has other fingerprints than expected.
void compare(std::span<const std::uint64_t> has, std::span<const std::uint64_t> expected, int rank,
             SumFault& fault) {
  const auto first = static_cast<std::size_t>(std::ranges::mismatch(has, expected).in1 - has.begin());
  if (first == has.size()) return;
  fault.tensor = fault.ranks.empty() ? first : std::min(fault.tensor, first);
  fault.ranks.push_back(rank);
}

}  // namespace

SumFault find_sum_fault(Communicator& comm, const SumRecord& mine) {
  LOCKSTEP_CHECK(mine.kept.size() == mine.left.size() && mine.arrived.size() == mine.left.size());
  const auto of_all = [&comm](const SumFingerprints& fingerprints) {
    return gather(comm, std::span<const std::uint64_t>(fingerprints));
  };
  const auto left = of_all(mine.left), kept = of_all(mine.kept), arrived = of_all(mine.arrived);
  const std::vector<int> ranks = gather(comm, comm.rank_in_whole());

  SumFault memory{.where = SumFault::Where::kMemory, .ranks = {}};
  for (std::size_t i = 0; i < ranks.size(); ++i) compare(kept[i], left[i], ranks[i], memory);
  if (!memory.ranks.empty()) return memory;
  SumFault link{.where = SumFault::Where::kLink, .ranks = {}, .tensor = mine.left.size() - 1};
  SumFingerprints sent(mine.left.size());  // that should have arrived, if these left
  for (const auto& of_rank : left) std::ranges::transform(sent, of_rank, sent.begin(), std::plus());
  for (std::size_t i = 0; i < ranks.size(); ++i) compare(arrived[i], sent, ranks[i], link);
  return link;
}

}  // namespace lockstep
