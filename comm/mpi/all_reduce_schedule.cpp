// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Recursive doubling for small sums, halving and doubling for large ones; ranks beyond a power of two join
/// a partner.
#include "comm/mpi/all_reduce_schedule.hpp"

#include <bit>

namespace lockstep {
namespace {

void append_doubling(std::vector<Exchange>& rounds, int rank, int power, std::size_t count) {
  for (int mask = 1; mask < power; mask *= 2) rounds.push_back({rank ^ mask, {0, count}, {0, count}, true});
}

/// Partners split their common slice; each keeps a half and adds what the other has of it. Then the same way
/// back. The nearest partner comes first, with the largest half: most likely it is on the same node.
void append_halving(std::vector<Exchange>& rounds, int rank, int power, std::size_t count) {
  const std::size_t first = rounds.size();
  Slice mine{0, count};
  for (int mask = 1; mask < power; mask *= 2) {
    const Slice lower{mine.offset, mine.count / 2};
    const Slice upper{mine.offset + lower.count, mine.count - lower.count};
    const bool keep_upper = (rank & mask) != 0;
    mine = keep_upper ? upper : lower;
    rounds.push_back({rank ^ mask, keep_upper ? lower : upper, mine, true});
  }
  for (std::size_t i = rounds.size(); i-- > first;) {
    rounds.push_back({rounds[i].peer, rounds[i].receive, rounds[i].send, false});
  }
}

}  // namespace

std::vector<Exchange> all_reduce_schedule(int rank, int size, std::size_t count,
                                          std::size_t bytes_per_element) {
  std::vector<Exchange> rounds;
  if (size <= 1 || count == 0) return rounds;
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(size)));
  const Slice all{0, count};
  if (rank >= power) {
    rounds.push_back({rank - power, all, {}, false});
    rounds.push_back({rank - power, {}, all, false});
    return rounds;
  }
  const bool has_partner = rank + power < size;
  if (has_partner) rounds.push_back({rank + power, {}, all, true});
  if (count * bytes_per_element >= kHalvingFromBytes) {
    append_halving(rounds, rank, power, count);
  } else {
    append_doubling(rounds, rank, power, count);
  }
  if (has_partner) rounds.push_back({rank + power, all, {}, false});
  return rounds;
}

}  // namespace lockstep
