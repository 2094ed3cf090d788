// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Shares that are computed again, and what their results say.
#include "trainer/verify/share_replay.hpp"

#include "comm/agreement.hpp"
#include "common/error.hpp"
#include "data/batch_loader.hpp"
#include "kernels/numerics/fingerprint.hpp"
#include "trainer/verify/wrong_rank.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace lockstep {

namespace {

/// A replay takes about as long as a step: less than 1 % of the time.
constexpr std::int64_t kAutoOnCpus = 128;
/// A replay of a small network takes the host as long as dozens of steps queued in a graph.
constexpr std::int64_t kAutoOnGpus = 8192;

/// The result that most have; null where none has more than half.
const ShareResult* majority_of(std::span<const ShareResult> results) {
  for (const ShareResult& candidate : results)
    if (2 * std::ranges::count(results, candidate.sums, &ShareResult::sums) > std::ssize(results))
      return &candidate;
  return nullptr;
}

/// The result of all teams that do not contradict themselves; null where they differ, or there are none.
const ShareResult* steady_result_of(std::span<const ShareResult> results) {
  const ShareResult* steady = nullptr;
  for (const ShareResult& result : results) {
    const auto contradicts = [&result](const ShareResult& other) {
      return other.team == result.team && other.sums != result.sums;
    };
    if (std::ranges::any_of(results, contradicts)) continue;
    if (steady != nullptr && steady->sums != result.sums) return nullptr;
    steady = &result;
  }
  return steady;
}

/// A team's answer about a step in which nothing may be wrong.
struct ShortAnswer {
  std::uint64_t own = 0, again = 0;  ///< its own share's, and that of the share that it computed again
  std::uint64_t state = 0;
};

/// The first share about which two teams differ.
std::optional<int> disputed_share(const std::vector<ShortAnswer>& all) {
  const int size = static_cast<int>(all.size());
  for (int team = 0; team < size; ++team)
    if (at(all, team).own != at(all, (team + size - 1) % size).again) return team;
  return std::nullopt;
}

}  // namespace

std::int64_t steps_between_replays(const StepOptions& options, int teams, bool on_gpu) {
  if (teams == 1 || options.determinism == Determinism::kOff) return 0;
  if (options.replay_every_steps != StepOptions::kAutoReplays) return options.replay_every_steps;
  return on_gpu ? kAutoOnGpus : kAutoOnCpus;
}

ReplayVerdict judge_share(std::span<const ShareResult> results) {
  const ShareResult* const most = majority_of(results);
  const ShareResult* const right = most != nullptr ? most : steady_result_of(results);
  ReplayVerdict verdict{.wrong = {}, .is_certain = right != nullptr};
  const SumFingerprints& compared = right != nullptr ? right->sums : results.front().sums;
  std::size_t first = compared.size();
  for (const ShareResult& result : results) {
    if (right != nullptr && result.sums == compared) continue;
    const auto place =
        static_cast<std::size_t>(std::ranges::mismatch(result.sums, compared).in1 - result.sums.begin());
    first = std::min(first, place);
    const auto known = std::ranges::find(verdict.wrong, result.team, &WrongTeam::team);
    if (known == verdict.wrong.end()) {
      verdict.wrong.push_back({result.team, place});
    } else {
      known->place = std::min(known->place, place);
    }
  }
  if (!verdict.is_certain)
    for (WrongTeam& team : verdict.wrong) team.place = first;
  return verdict;
}

SumFingerprints fingerprints_of_samples(const Dataset& data, const DistributedSampler& sampler,
                                        std::int64_t step_in_epoch, int share) {
  const std::size_t size = row_bytes_of(data);
  SumFingerprints found(2);
  const auto add = [](std::uint64_t& fingerprint, const auto& numbers) {
    for (const std::byte byte : std::as_bytes(numbers))
      fingerprint = mix_bits(fingerprint ^ static_cast<std::uint64_t>(byte));
  };
  std::vector<std::uint8_t> bytes;
  for (const Grain& grain : sampler.grains_of(share, step_in_epoch)) {
    const auto indices = sampler.indices(step_in_epoch, grain);
    bytes.resize(indices.size() * size);
    read_samples(data, indices, bytes);
    add(found[0], std::span(bytes));
    for (const std::int32_t index : indices) add(found[1], std::span(&at(data.labels, index), 1));
  }
  return found;
}

namespace {

/// A replay under way, as one rank sees it.
struct Replaying {
  Communicator& whole;
  Communicator& teams;
  const ReplayWork& work;
  std::int64_t step;
  const std::string& device;
};

std::string describe(const ComparedPart& part) {
  return part.kind.empty() ? part.name : fmt::format("the {} of {}", part.kind, part.name);
}

/// Describes the verdict, without the ranks' names.
/// @param part  what differs
/// @param what  is said of one rank
WrongNumbers numbers_of(const ReplayVerdict& verdict, const ComparedPart& part, const std::string& what,
                        std::int64_t step) {
  return {.step = step,
          .what = verdict.is_certain ? what
                                     : fmt::format("they differ about {}, and each insists: it takes a third "
                                                   "rank to tell which of them is wrong",
                                                   describe(part)),
          .help = part.arrived ? "look at that host's network, and leave it out if it happens again"
                               : "test that host's memory and processor, and leave it out"};
}

/// A rank of a communicator, and what is said of it.
struct Charge {
  int rank;
  WrongNumbers numbers;
};

/// All charges as one, with the ranks' names; of several ranks the same is said once. Collective.
WrongNumbers name_ranks(const std::vector<Charge>& charges, Communicator& comm, const std::string& device) {
  const auto in_whole = gather(comm, comm.rank_in_whole());
  const auto who = descriptions(comm, device);
  std::vector<std::pair<std::string, std::vector<std::string>>> said;  // words, and their ranks
  std::vector<std::string> whats, helps;
  WrongNumbers all = charges.front().numbers;
  for (const Charge& charge : charges) {
    const std::string& what = charge.numbers.what;
    auto same = std::ranges::find_if(said, [&what](const auto& other) { return other.first == what; });
    if (same == said.end()) same = said.insert(same, {what, {}});
    same->second.push_back(at(who, charge.rank));
    all.ranks.push_back(at(in_whole, charge.rank));
    helps.push_back(charge.numbers.help);
  }
  for (const auto& [what, ranks] : said)
    whats.push_back(fmt::format("{}: {}", fmt::join(ranks, " and "), what));
  all.what = all_said(whats);
  all.help = all_said(helps);
  return all;
}

/// Names the rank of each wrong team that answers for what differs first. Collective.
/// @param charge_of  such a team: its member, and what is said of it
[[noreturn]] void throw_verdict(const Replaying& replaying, const ReplayVerdict& verdict,
                                const auto& charge_of) {
  const int members = replaying.whole.size() / replaying.teams.size();
  std::vector<Charge> charges;
  for (const WrongTeam& wrong : verdict.wrong) {
    charges.push_back(charge_of(wrong));
    charges.back().rank += wrong.team * members;
  }
  throw WrongRankError(name_ranks(charges, replaying.whole, replaying.device));
}

/// Gathers the result of each team.
std::vector<ShareResult> gather_results(Communicator& teams, const SumFingerprints& mine) {
  const auto all = gather(teams, std::span<const std::uint64_t>(mine));
  std::vector<ShareResult> results;
  for (std::size_t team = 0; team < all.size(); ++team)
    results.push_back({static_cast<int>(team), all[team]});
  return results;
}

/// Compares one result of each team. Collective.
ReplayVerdict judge(Communicator& teams, const SumFingerprints& mine) {
  return judge_share(gather_results(teams, mine));
}

WrongNumbers wrong_state(const ReplayVerdict& verdict, const ComparedPart& part, std::int64_t step) {
  return numbers_of(verdict, part,
                    fmt::format("its {} are not those of the others from {} on: its memory changed them",
                                part.kind, part.name),
                    step);
}

[[noreturn]] void name_wrong_state(const Replaying& replaying, const SumFingerprints& own) {
  const ReplayVerdict verdict = judge(replaying.teams, own);
  throw_verdict(replaying, verdict, [&](const WrongTeam& wrong) {
    const ComparedPart& part = replaying.work.state_parts[wrong.place];
    return Charge{part.member, wrong_state(verdict, part, replaying.step)};
  });
}

/// All compute it once more. What the two had before counts, too: a team that contradicts itself is wrong.
[[noreturn]] void name_wrong_share(const Replaying& replaying, int share, const SumFingerprints& own,
                                   const SumFingerprints& again) {
  Communicator& teams = replaying.teams;
  const ReplayWork& work = replaying.work;
  const int other = (share + teams.size() - 1) % teams.size();
  std::vector<ShareResult> results = gather_results(teams, work.compute_share(share));
  const auto before = gather(teams, std::span<const std::uint64_t>(teams.rank() == share ? own : again));
  results.push_back({share, at(before, share)});
  results.push_back({other, at(before, other)});
  const ReplayVerdict verdict = judge_share(results);

  const ReplayVerdict samples = judge(teams, work.samples(share));
  throw_verdict(replaying, verdict, [&](const WrongTeam& wrong) {
    // Teams that cannot be told apart have one charge.
    const int judged = verdict.is_certain ? wrong.team : verdict.wrong.front().team;
    const auto spoilt = std::ranges::find(samples.wrong, judged, &WrongTeam::team);
    const bool is_data = samples.is_certain && spoilt != samples.wrong.end();
    const ComparedPart& part = is_data ? work.sample_parts[spoilt->place] : work.share_parts[wrong.place];
    const std::string what =
        is_data ? "its training samples are not those of the others: its memory changed them"
        : part.arrived
            ? fmt::format("{} arrived changed: a link or memory at its end changed them", part.name)
            : fmt::format(
                  "it computed {} differently from other ranks with the same weights and "
                  "samples: its processor computed wrongly",
                  part.name);
    WrongNumbers numbers = numbers_of(verdict, part, what, replaying.step);
    numbers.doubt = samples.wrong.empty() ? Doubt::kSinceReplay : Doubt::kSinceStart;
    return Charge{part.member, std::move(numbers)};
  });
}

}  // namespace

void replay_next_share(Communicator& whole_run, Communicator& teams, const SumFingerprints& own,
                       const ReplayWork& work, std::int64_t step, const std::string& device) {
  const Replaying replaying{whole_run, teams, work, step, device};
  const SumFingerprints state = work.state(), again = work.compute_share((teams.rank() + 1) % teams.size());
  const auto all = gather(teams, ShortAnswer{whole(own), whole(again), whole(state)});
  const bool same_state =
      std::ranges::all_of(all, [&](const ShortAnswer& answer) { return answer.state == all.front().state; });
  if (!same_state) name_wrong_state(replaying, state);
  if (const auto share = disputed_share(all)) name_wrong_share(replaying, *share, own, again);
}

// Copies of a state.

std::vector<ComparedPart> parts_of_row(const ParameterLayout& network,
                                       const std::vector<std::string>& buffers,
                                       const std::vector<int>& holders) {
  std::vector<ComparedPart> parts;
  const auto add = [&](const std::vector<Parameter>& tensors, const std::string& kind) {
    for (std::size_t i = 0; i < tensors.size(); ++i)
      parts.push_back({.name = tensors[i].name, .member = holders.empty() ? 0 : holders[i], .kind = kind});
  };
  add(network.parameters, "summed gradients");
  add(network.parameters, "weights");
  add(network.kept, "running statistics");
  for (const std::string& buffer : buffers) add(network.parameters, "values of " + buffer);
  return parts;
}

void expect_equal_copies(Communicator& whole_run, Communicator& copies, const SumFingerprints& own,
                         const std::vector<ComparedPart>& parts, std::int64_t step,
                         const std::string& device) {
  const auto all = gather(copies, whole(own));
  const bool differ = std::ranges::count(all, all.front()) != std::ssize(all);
  std::int64_t anywhere = differ ? 1 : 0;
  if (copies.size() != whole_run.size()) whole_run.all_reduce(std::span(&anywhere, 1));
  if (anywhere == 0) return;
  std::optional<WrongNumbers> mine;
  if (differ) {
    const ReplayVerdict verdict = judge(copies, own);
    std::vector<Charge> charges;
    for (const WrongTeam& copy : verdict.wrong)
      charges.push_back({copy.team, wrong_state(verdict, parts[copy.place], step)});
    mine = name_ranks(charges, copies, device);
  }
  throw_on_all(whole_run, mine, step);
}

}  // namespace lockstep
