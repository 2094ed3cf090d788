// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A word of each rank tells whether there is a difference; only then more is said.
#include "trainer/engine/replay.hpp"

#include "comm/agreement.hpp"
#include "common/error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace lockstep {
namespace {

std::size_t at(int rank) {
  return static_cast<std::size_t>(rank);
}

std::size_t first_difference(const SumFingerprints& a, const SumFingerprints& b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

/// What most ranks have; nullopt where no value has more than half.
template <class T>
std::optional<T> majority_of(const std::vector<T>& all) {
  for (const T& candidate : all)
    if (2 * std::ranges::count(all, candidate) > std::ssize(all)) return candidate;
  return std::nullopt;
}

/// What a rank says of a step in which nothing may be wrong.
struct ShortAnswer {
  std::uint64_t own = 0, again = 0;  ///< of its own share, and of the one that it computed again
  std::uint64_t weights = 0;
};

/// The first share about which two ranks differ.
std::optional<int> disputed_share(const std::vector<ShortAnswer>& all) {
  const int size = static_cast<int>(all.size());
  for (int rank = 0; rank < size; ++rank)
    if (all[at(rank)].own != all[at((rank + size - 1) % size)].again) return rank;
  return std::nullopt;
}

}  // namespace

ReplayVerdict judge_share(std::span<const ShareResult> results) {
  std::vector<SumFingerprints> all;
  for (const ShareResult& result : results) all.push_back(result.sums);
  const auto right = majority_of(all);
  ReplayVerdict verdict{.wrong = {}, .is_certain = right.has_value()};
  const SumFingerprints& compared = right ? *right : all.front();
  for (const ShareResult& result : results) {
    if (right && result.sums == *right) continue;
    if (std::ranges::find(verdict.wrong, result.rank) == verdict.wrong.end())
      verdict.wrong.push_back(result.rank);
    if (result.sums != compared) verdict.tensor = first_difference(result.sums, compared);
  }
  return verdict;
}

namespace {

/// Names the ranks of the verdict. Collective.
/// @param may_pass  what is wrong is no longer there when the step is computed again
[[noreturn]] void throw_verdict(Communicator& comm, const ReplayVerdict& verdict, std::int64_t step,
                                const TrainedHere& here, const std::string& what, bool may_pass) {
  const auto who = descriptions(comm, here.device);
  std::vector<std::string> named;
  for (const int wrong : verdict.wrong) named.push_back(who[at(wrong)]);
  const std::string undecided = fmt::format(
      "they differ about {}, and each insists: it takes a third rank to tell which of them is wrong",
      name_of(here.layout, verdict.tensor));
  throw WrongRankError(
      {.step = step,
       .what = fmt::format("{}: {}", fmt::join(named, " and "), verdict.is_certain ? what : undecided),
       .help = "test that host's memory and processor, and leave it out",
       .ranks = verdict.wrong,
       .may_pass = may_pass});
}

std::vector<ShareResult> results_of_all(const std::vector<std::vector<std::uint64_t>>& all) {
  std::vector<ShareResult> results;
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    results.push_back({static_cast<int>(rank), all[rank]});
  return results;
}

[[noreturn]] void name_wrong_weights(Communicator& comm, const SumFingerprints& own, std::int64_t step,
                                     const TrainedHere& here) {
  const auto all = gather(comm, std::span<const std::uint64_t>(own));
  const ReplayVerdict verdict = judge_share(results_of_all(all));
  throw_verdict(comm, verdict, step, here,
                fmt::format("its weights are not those of the others from {} on: its memory changed them",
                            name_of(here.layout, verdict.tensor)),
                false);
}

/// All compute it once more. What the two had before counts, too: a rank that contradicts itself is wrong.
[[noreturn]] void name_wrong_share(Communicator& comm, int share, const SumFingerprints& own,
                                   const SumFingerprints& again, const ReplayWork& work, std::int64_t step,
                                   const TrainedHere& here) {
  const int other = (share + comm.size() - 1) % comm.size();
  const SumFingerprints mine = work.compute_share(share);
  const auto repeated = gather(comm, std::span<const std::uint64_t>(mine));
  const auto before = gather(comm, std::span<const std::uint64_t>(comm.rank() == share ? own : again));
  std::vector<ShareResult> results = results_of_all(repeated);
  results.push_back({share, before[at(share)]});
  results.push_back({other, before[at(other)]});
  const ReplayVerdict verdict = judge_share(results);

  const auto samples = gather(comm, work.samples(share));
  const auto right_samples = majority_of(samples);
  const bool is_data = right_samples && samples[at(verdict.wrong.front())] != *right_samples;
  throw_verdict(
      comm, verdict, step, here,
      is_data ? "its training samples are not those of the others: its memory changed them"
              : fmt::format("it computed other gradients of {} than other ranks from the same weights and "
                            "samples: its processor computed wrongly",
                            name_of(here.layout, verdict.tensor)),
      !is_data);
}

}  // namespace

void replay_next_rank(Communicator& comm, const SumFingerprints& own, const ReplayWork& work,
                      std::int64_t step, const TrainedHere& here) {
  const SumFingerprints weights = work.weights(), again = work.compute_share((comm.rank() + 1) % comm.size());
  const auto all = gather(comm, ShortAnswer{whole(own), whole(again), whole(weights)});
  const bool same_weights = std::ranges::all_of(
      all, [&](const ShortAnswer& answer) { return answer.weights == all.front().weights; });
  if (!same_weights) name_wrong_weights(comm, weights, step, here);
  if (const auto share = disputed_share(all)) name_wrong_share(comm, *share, own, again, work, step, here);
}

}  // namespace lockstep
