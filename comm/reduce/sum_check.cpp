// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// After the alarm each rank tells the others its fingerprints. Memory is looked at first, since what it spoils
/// arrives wrongly everywhere.
#include "comm/reduce/sum_check.hpp"

#include "comm/agreement.hpp"

#include <algorithm>

namespace lockstep {
namespace {

/// The fingerprints of one kind of a rank, [kind][tensor].
std::span<const std::uint64_t> part(const std::vector<std::uint64_t>& of_rank, std::size_t kind) {
  const std::size_t size = of_rank.size() / 3;
  return std::span(of_rank).subspan(kind * size, size);
}

/// Fingerprints that should have arrived, if these left.
SumFingerprints sum_over_ranks(const std::vector<std::vector<std::uint64_t>>& all, std::size_t kind) {
  SumFingerprints sum(all.front().size() / 3);
  for (const auto& of_rank : all)
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part(of_rank, kind)[i];
  return sum;
}

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
  enum Kind : std::size_t { kLeft, kKept, kArrived };
  std::vector<std::uint64_t> words = mine.left;
  words.insert(words.end(), mine.kept.begin(), mine.kept.end());
  words.insert(words.end(), mine.arrived.begin(), mine.arrived.end());
  LOCKSTEP_CHECK(words.size() == 3 * mine.left.size());
  const auto all = gather(comm, std::span<const std::uint64_t>(words));
  const std::vector<int> ranks = gather(comm, comm.rank_in_whole());

  SumFault memory{.where = SumFault::Where::kMemory, .ranks = {}};
  for (std::size_t i = 0; i < all.size(); ++i)
    compare(part(all[i], kKept), part(all[i], kLeft), ranks[i], memory);
  if (!memory.ranks.empty()) return memory;
  SumFault link{.where = SumFault::Where::kLink, .ranks = {}, .tensor = mine.left.size() - 1};
  const SumFingerprints sent = sum_over_ranks(all, kLeft);
  for (std::size_t i = 0; i < all.size(); ++i) compare(part(all[i], kArrived), sent, ranks[i], link);
  return link;
}

}  // namespace lockstep
