// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Results of ranks with which nothing is wrong, for tests to change.
#pragma once

#include "tests/support/prelude.hpp"
#include "trainer/burn/burn.hpp"

namespace lockstep::burn {

/// Healthy ranks, so many on each host, each of which has spoken with every other.
inline std::vector<RankResult> healthy(int ranks, int of_host) {
  std::vector<RankResult> results(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    RankResult& result = at(results, rank);
    result.rank = rank;
    result.host = "node" + std::to_string(rank / of_host);
    result.device = "cpu (AVX-512)";
    result.processor = "AMD EPYC";
    result.measures = {{"training", 10e-3}};
    result.exercised = {{"jobs", "many"}, {"links", "some"}};
    for (int with = 0; with < ranks; ++with)
      if (with != rank)
        result.links.push_back(
            {with, 30, 0, 0, rank / of_host == with / of_host ? 1e-3 : 10e-3, 1 << 20, 1e-4});
  }
  return results;
}

}  // namespace lockstep::burn
