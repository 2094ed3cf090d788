// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Each function of comm/collectives.hpp, on any backend and any number of ranks. Pieces of equal and unequal
/// length, empty ones, every root.
#include "comm/agreement.hpp"
#include "comm/collectives.hpp"
#include "comm/communicator.hpp"
#include "common/error.hpp"
#include "tests/comm/conformance.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::testing {
namespace {

std::vector<float> numbers(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.5F);
  return values;
}

/// Cuts of `count` in `ranks` pieces: equal ones, some of them empty, and all in the last.
std::vector<std::vector<std::size_t>> cuts_of(std::size_t count, int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  std::vector<std::vector<std::size_t>> cuts(3, std::vector<std::size_t>(n));
  for (std::size_t i = 0; i < count; ++i) {
    ++cuts[0][i * n / count];
    ++cuts[1][(i / 3) % n == 1 ? 0 : (i / 3) % n];
  }
  cuts[2][n - 1] = count;
  return cuts;
}

void replicates_what_the_root_has(Communicator& comm) {
  for (int root = 0; root < comm.size(); ++root) {
    std::vector<float> data(1000, static_cast<float>(comm.rank()));
    replicate(comm, std::span(data), root);
    EXPECT_EQ(data, std::vector<float>(1000, static_cast<float>(root)));
  }
}

void scatters_and_gathers_pieces_of_any_size(Communicator& comm) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{20}, std::size_t{70001}}) {
    const auto whole = numbers(count);
    for (const auto& counts : cuts_of(count, comm.size())) {
      for (int root = 0; root < comm.size(); ++root) {
        const bool is_root = comm.rank() == root;
        const auto mine =
            scatter(comm, is_root ? std::span<const float>(whole) : std::span<const float>(), counts, root);
        const auto first = std::accumulate(counts.begin(), counts.begin() + comm.rank(), std::size_t{0});
        EXPECT_TRUE(std::ranges::equal(mine, std::span(whole).subspan(first, at(counts, comm.rank()))))
            << count << " from " << root;
        const auto again = gather_to(comm, std::span<const float>(mine), counts, root);
        EXPECT_TRUE(again == (is_root ? whole : std::vector<float>())) << count << " from " << root;
      }
    }
  }
}

void applies_on_every_rank_or_fails_on_all(Communicator& comm) {
  int runs = 0;
  parallel_apply(comm, [&] { ++runs; });
  EXPECT_EQ(runs, 1);
  const int last = comm.size() - 1;
  try {
    parallel_apply(comm, [&] {
      if (comm.rank() == last) throw IoError("no more paper");
    });
    ADD_FAILURE() << "no error";
  } catch (const AgreedError& error) {
    EXPECT_EQ(error.code(), ExitCode::kIo);
    EXPECT_EQ(error.speaker(), last);
  }
}

void exchanges_with_both_neighbours(Communicator& comm) {
  const int n = comm.size(), next = (comm.rank() + 1) % n, previous = (comm.rank() + n - 1) % n;
  const std::vector<std::byte> mine(200000, static_cast<std::byte>(comm.rank()));
  std::vector<std::byte> theirs(mine.size());
  send_and_receive(comm, mine, next, theirs, previous);
  EXPECT_TRUE(theirs == std::vector<std::byte>(mine.size(), static_cast<std::byte>(previous)));
}

void shares_memory_that_starts_zero(Communicator& comm) {
  const auto memory = share_memory(comm, 1000 * sizeof(std::int64_t));
  const std::span numbers(reinterpret_cast<std::int64_t*>(memory.get()), 1000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(numbers.data()) % 64, 0U);
  EXPECT_TRUE(std::ranges::all_of(numbers, [](std::int64_t n) { return n == 0; }));
  comm.barrier();
  for (std::int64_t& number : numbers) std::atomic_ref(number).fetch_add(comm.rank() + 1);
  comm.barrier();
  const std::int64_t sum = comm.size() * (comm.size() + 1) / 2;
  EXPECT_TRUE(std::ranges::all_of(numbers, [&](std::int64_t n) { return n == sum; }));
  const auto second = share_memory(comm, 8);  // beside the first
  EXPECT_NE(second, memory);
}

}  // namespace

const std::vector<ConformanceCase>& collective_cases() {
  static const std::vector<ConformanceCase> cases{
      {"ReplicatesWhatTheRootHas", replicates_what_the_root_has},
      {"ScattersAndGathersPiecesOfAnySize", scatters_and_gathers_pieces_of_any_size},
      {"AppliesOnEveryRankOrFailsOnAll", applies_on_every_rank_or_fails_on_all},
      {"ExchangesWithBothNeighbours", exchanges_with_both_neighbours},
      {"SharesMemoryThatStartsZero", shares_memory_that_starts_zero},
  };
  return cases;
}

}  // namespace lockstep::testing
