// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Digests of all tensors from all ranks: what most of them have is taken for right.
#include "comm/replica_check.hpp"

#include "comm/gather.hpp"
#include "common/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace lockstep {
namespace {

using Digests = std::vector<Digest>;  // of one rank

/// What most ranks have; among equally many, what rank 0 has, or else the lowest of these ranks.
const Digests& majority(const std::vector<Digests>& all) {
  const Digests* best = nullptr;
  std::ptrdiff_t best_count = 0;
  for (const Digests& candidate : all) {
    const std::ptrdiff_t count = std::ranges::count(all, candidate);
    if (count > best_count) {
      best = &candidate;
      best_count = count;
    }
  }
  return *best;
}

std::string describe_difference(int rank, const std::string& host, const Digests& has,
                                const Digests& expected, std::span<const std::string> names) {
  const auto first = std::ranges::mismatch(has, expected).in1 - has.begin();
  return fmt::format("rank {} on {} differs from '{}' on", rank, host,
                     names[static_cast<std::size_t>(first)]);
}

}  // namespace

void check_replicas(Communicator& comm, std::span<const Digest> digests, std::span<const std::string> names,
                    std::int64_t step) {
  LOCKSTEP_CHECK(digests.size() == names.size());
  const std::vector<Digests> all = gather(comm, digests);
  const Digests& expected = majority(all);
  if (std::ranges::all_of(all, [&](const Digests& has) { return has == expected; })) return;

  const std::vector<std::string> hosts = gather_hosts(comm);
  const std::vector<int> ranks = gather(comm, comm.rank_in_whole());
  std::string differences;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] == expected) continue;
    if (!differences.empty()) differences += "; ";
    differences += describe_difference(ranks[rank], hosts[rank], all[rank], expected, names);
  }
  throw InternalError(
      fmt::format("at step {} the ranks' weights are no longer equal: {}; suspect that machine's memory or "
                  "processor, leave it out "
                  "and resume from the last checkpoint",
                  step, differences));
}

}  // namespace lockstep
