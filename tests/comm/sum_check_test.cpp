// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sums that change on their way. No rank goes on with them, and all know whose memory or which link it was.
#include "comm/reduce/sum_check.hpp"

#include "comm/reduce/gradient_reducer.hpp"
#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "tests/comm/conformance.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/saboteur.hpp"

namespace lockstep::testing {
namespace {

constexpr std::size_t kParameters = 3000;
const std::vector<std::size_t> kSizes = {1000, 7, 1993};
constexpr int kRanks = 5;

using test::See;
using Saboteur = test::Saboteur<SumObserver>;

using Where = SumFault::Where;
using Fault = std::tuple<Where, std::vector<int>, std::size_t>;

Fault fields(const SumFault& fault) {
  return {fault.where, fault.ranks, fault.tensor};
}

/// One step on each rank, of which one is sabotaged.
/// @returns what all ranks find, if it is the same on all
Fault fault_of(int odd_rank, const See& leaving, const See& arrived = {}) {
  Saboteur saboteur(leaving, arrived);
  std::vector<Fault> found(kRanks);
  run_thread_ranks(kRanks, [&](Communicator& comm) {
    const GradientUnits units(kSizes, kRanks);
    GradientReducer reducer(comm, even_plan(kParameters, 3), units, Determinism::kWorld);
    if (comm.rank() == odd_rank) reducer.show_to(saboteur);
    std::vector<float> gradient;
    for (std::size_t i = 0; i < kParameters; ++i) gradient.push_back(gradient_of(comm.rank(), i));
    reducer.begin_step(1, false);
    reducer.add(0, kParameters, gradient.data());
    reducer.add_sums({1.0, 0}, 1);
    try {
      reducer.wait();
      ADD_FAILURE() << "rank " << comm.rank() << " goes on";
    } catch (const SumsDifferError& error) {
      at(found, comm.rank()) = fields(find_sum_fault(comm, error.record()));
    }
  });
  EXPECT_EQ(found, std::vector<Fault>(kRanks, found.front()));
  return found.front();
}

/// Adds to one element of the arena.
See change(std::size_t element, std::int64_t by) {
  return [=](const ShownSums& shown) {
    if (element - shown.first < shown.sums.size()) shown.sums[element - shown.first] += by;
  };
}

TEST(SumCheckTest, MemoryThatChangesWhatARankSendsIsThatRanks) {
  for (const int rank : {0, 3, 4})
    EXPECT_EQ(fault_of(rank, change(1003, std::int64_t{1} << 40)), Fault(Where::kMemory, {rank}, 1));
}

TEST(SumCheckTest, WhatArrivesWronglyIsTheLinkOfItsRank) {
  for (const int rank : {0, 2})
    EXPECT_EQ(fault_of(rank, {}, change(2999, 1)), Fault(Where::kLink, {rank}, 2));
}

/// Swapped sums, which the fingerprint's multipliers cannot hide.
TEST(SumCheckTest, SwappedSumsAreNoticed) {
  const auto swap = [](const ShownSums& shown) {
    if (shown.first == 0) std::swap(shown.sums[0], shown.sums[1]);
  };
  EXPECT_EQ(fault_of(1, {}, swap), Fault(Where::kLink, {1}, 0));
}

TEST(SumCheckTest, WhatArrivesAsInTheStepBeforeIsNoticed) {
  std::vector<std::int64_t> before;
  const auto keep = [&](const ShownSums& shown) {
    if (shown.first == 0) before.assign(shown.before.begin(), shown.before.end());
  };
  const auto put_back = [&](const ShownSums& shown) {
    if (shown.first == 0) std::ranges::copy(before, shown.sums.begin());
  };
  EXPECT_EQ(fault_of(2, keep, put_back), Fault(Where::kLink, {2}, 0));
}

/// Each rank's fingerprints of three tensors and the counters, some of which differ from what left.
TEST(SumCheckTest, AllRanksWithAFaultAreNamedAndItsFirstTensor) {
  const auto find = [](std::vector<SumFingerprints> kept, std::vector<SumFingerprints> arrived) {
    Fault fault;
    run_thread_ranks(3, [&](Communicator& comm) {
      const SumFault found =
          find_sum_fault(comm, {{1, 2, 3, 4}, at(kept, comm.rank()), at(arrived, comm.rank())});
      if (comm.rank() == 0) fault = fields(found);
    });
    return fault;
  };
  const SumFingerprints left{1, 2, 3, 4}, sum{3, 6, 9, 12};
  const std::vector<SumFingerprints> well(3, sum);
  EXPECT_EQ(find({left, {1, 2, 0, 4}, {1, 0, 0, 4}}, well), Fault(Where::kMemory, {1, 2}, 1));
  EXPECT_EQ(find({{1, 0, 3, 4}, left, {1, 2, 0, 4}}, well), Fault(Where::kMemory, {0, 2}, 1));
  EXPECT_EQ(find({left, left, left}, {{3, 6, 9, 0}, sum, sum}), Fault(Where::kLink, {0}, 3));
  EXPECT_EQ(find({left, left, left}, well), Fault(Where::kLink, {}, 3));
  run_thread_ranks(1, [&](Communicator& comm) {
    EXPECT_THROW(find_sum_fault(comm, {left, left, {3, 6}}), InternalError);
  });
}

/// A fault is one step's.
TEST(SumCheckTest, TheStepCanBeComputedAgain) {
  run_thread_ranks(2, [](Communicator& comm) {
    const GradientUnits units(std::vector<std::size_t>{1}, 2);
    GradientReducer reducer(comm, even_plan(1, 1), units, Determinism::kWorld);
    bool spoils = true;
    Saboteur saboteur([&](const ShownSums& shown) {
      if (std::exchange(spoils, false)) change(0, 1)(shown);
    });
    if (comm.rank() == 0) reducer.show_to(saboteur);
    for (const bool fails : {true, false}) {
      const float gradient = 1;
      reducer.begin_step(1, false);
      reducer.add(0, 1, &gradient);
      reducer.add_sums({1.0, 0}, 1);
      if (fails) {
        EXPECT_THROW(reducer.wait(), SumsDifferError);
      } else {
        EXPECT_NO_THROW(reducer.wait());
        EXPECT_EQ(reducer.sums().totals().samples, 2);
      }
    }
  });
}

}  // namespace
}  // namespace lockstep::testing
