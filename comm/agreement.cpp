// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What the ranks tell each other beside gradients: values and texts of all, errors that end all, and whether all
/// still hold the same weights.
#include "comm/agreement.hpp"

#include "common/digest.hpp"
#include "common/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

// Codes travel, messages do not: the rank that failed speaks for itself.

namespace {

struct Outcome {
  int code = 0;
  std::string message;
};

Outcome attempt(const std::function<void()>& action) {
  try {
    action();
    return {};
  } catch (const std::exception& error) {
    auto [code, text] = explain(error);
    return {static_cast<int>(code), std::move(text)};
  }
}

/// What strikes rank 0 strikes all, or is about what only rank 0 does. Others failed where rank 0 did not.
std::string named(const Communicator& comm, const std::string& message) {
  return comm.rank() == 0 ? message : fmt::format("rank {} on {}: {}", comm.rank(), comm.host(), message);
}

}  // namespace

void agree(Communicator& comm, const std::function<void()>& action) {
  const Outcome mine = attempt(action);
  const auto codes = gather(comm, mine.code);
  for (int rank = 0; rank < comm.size(); ++rank) {
    const int code = codes[static_cast<std::size_t>(rank)];
    if (code == 0) continue;
    const auto text = rank == comm.rank() ? named(comm, mine.message) : fmt::format("rank {} failed", rank);
    throw AgreedError(static_cast<ExitCode>(code), text, rank);
  }
}

// Texts of different lengths travel padded to the longest.

std::vector<std::string> gather_text(Communicator& comm, std::string_view mine) {
  const auto sizes = gather(comm, static_cast<std::uint64_t>(mine.size()));
  std::string padded(mine);
  padded.resize(*std::max_element(sizes.begin(), sizes.end()));
  const auto all = gather(comm, std::span<const char>(padded));
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) texts.emplace_back(all[rank].data(), sizes[rank]);
  return texts;
}

std::vector<std::string> gather_hosts(Communicator& comm) {
  return gather_text(comm, comm.host());
}

int count_hosts(Communicator& comm) {
  const auto hosts = gather_hosts(comm);
  return static_cast<int>(std::set(hosts.begin(), hosts.end()).size());
}

// Digests of all tensors from all ranks: what most of them have is taken for right.

namespace {

using Digests = std::vector<Digest>;  // of one rank

/// Whether all ranks have what rank 0 has: two small messages, where the digests of all tensors would be 5 MB with
/// 1,024 ranks of a ResNet. Collective.
bool all_equal(Communicator& comm, const Digest& mine) {
  Digest first = mine;
  comm.broadcast(std::as_writable_bytes(std::span(first)), 0);
  std::int64_t others = first == mine ? 0 : 1;
  comm.all_reduce(std::span(&others, 1));
  return others == 0;
}

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
  if (all_equal(comm, sha256(std::as_bytes(digests)))) return;
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
