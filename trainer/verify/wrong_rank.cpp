// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One line for all ranks.
#include "trainer/verify/wrong_rank.hpp"

#include "common/error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace lockstep {

std::vector<std::string> descriptions(Communicator& comm, const std::string& device) {
  return gather_text(comm, fmt::format("rank {} on {} ({})", comm.rank_in_whole(), comm.host(), device));
}

WrongRankError::WrongRankError(WrongNumbers numbers)
    : AgreedError(ExitCode::kWrongRank,
                  fmt::format("step {}: {}. Try this: {}", numbers.step, numbers.what, numbers.help)),
      numbers_(std::move(numbers)) {}

void throw_wrong_sums(Communicator& comm, const SumsDifferError& error, std::int64_t step,
                      const ParameterLayout& layout, const std::string& device) {
  const SumFault fault = find_sum_fault(comm, error.record());
  const std::vector<int> ranks = gather(comm, comm.rank_in_whole());
  const std::vector<std::string> all = descriptions(comm, device);
  std::vector<std::string> named;
  for (const int rank : fault.ranks) named.push_back(at(all, std::ranges::find(ranks, rank) - ranks.begin()));
  if (named.empty()) named.emplace_back("an unknown rank");  // the fingerprint itself was hit
  const std::string who = fmt::format("{}", fmt::join(named, " and "));
  const std::string tensor =
      fault.tensor < layout.parameters.size() ? layout.parameters[fault.tensor].name : "the step's counters";
  if (fault.where == SumFault::Where::kMemory)
    throw WrongRankError(
        {.step = step,
         .what = fmt::format("{} sent other sums of {} than it had added up: its memory changed them", who,
                             tensor),
         .help = "test that host's memory, and leave it out",
         .ranks = fault.ranks});
  throw WrongRankError({.step = step,
                        .what = fmt::format("what arrived at {} is not the sum of {} that the ranks sent: a "
                                            "link or memory at its end changed it",
                                            who, tensor),
                        .help = "look at that host's network, and leave it out if it happens again",
                        .ranks = fault.ranks});
}

std::string all_said(const std::vector<std::string>& texts) {
  std::vector<std::string> said;
  for (const std::string& text : texts)
    if (!text.empty() && std::ranges::find(said, text) == said.end()) said.push_back(text);
  return fmt::format("{}", fmt::join(said, "; "));
}

void throw_on_all(Communicator& comm, const std::optional<WrongNumbers>& mine, std::int64_t step) {
  const WrongNumbers own = mine.value_or(WrongNumbers{});
  const std::vector<std::string> whats = gather_text(comm, own.what), helps = gather_text(comm, own.help);
  std::vector<std::int64_t> named(static_cast<std::size_t>(comm.size_of_whole()));
  for (const int rank : own.ranks) at(named, rank) = 1;
  comm.all_reduce(std::span(named));
  const std::vector<Doubt> doubts = gather(comm, own.doubt);
  WrongNumbers all{.step = step, .what = all_said(whats), .help = all_said(helps)};
  for (std::size_t rank = 0; rank < named.size(); ++rank)
    if (named[rank] > 0) all.ranks.push_back(static_cast<int>(rank));
  all.doubt = *std::ranges::max_element(doubts);
  throw WrongRankError(std::move(all));
}

}  // namespace lockstep
