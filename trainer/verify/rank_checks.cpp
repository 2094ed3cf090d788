// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Comparisons of teams. A rank has its part of the numbers and zeros for the rest; added up they are whole.
#include "trainer/verify/rank_checks.hpp"

#include "trainer/verify/share_replay.hpp"

#include <algorithm>

namespace lockstep {

RankChecks::RankChecks(ParallelStrategy& strategy, const TrainingSetup& setup, Communicator& comm,
                       bool on_gpu)
    : strategy_(strategy),
      setup_(setup),
      comm_(comm),
      teams_(strategy.teams()),
      replay_every_(steps_between_replays(setup.options.step, teams_.count(), on_gpu)) {}

void RankChecks::sums_differ(const SumsDifferError& error, std::int64_t step) {
  throw_wrong_sums(comm_, error, step, setup_.network.parameters(), setup_.processor);
}

void RankChecks::before_update(ReducedStep& step) {
  const StepPosition& position = step.position();
  if (!looks_at(position.global_step)) return;
  const DistributedSampler& sampler = strategy_.sampler();
  const ReplayWork work{
      .share_parts = teams_.share_parts,
      .state_parts = state_parts(),
      .sample_parts = {{"pictures", teams_.reads_pictures}, {"labels", teams_.reads_labels}},
      .compute_share =
          [&](int team) {
            return over_members(step.gradients_of(sampler.grains_of(team, position.step_in_epoch)));
          },
      .state = [&] { return over_members(state_fingerprints()); },
      .samples =
          [&](int team) {
            auto found = fingerprints_of_samples(setup_.data->train, sampler, position.step_in_epoch, team);
            if (teams_.place() != teams_.reads_pictures) found[0] = 0;
            if (teams_.place() != teams_.reads_labels) found[1] = 0;
            return over_members(found);
          }};
  replay_next_share(comm_, *teams_.peers, over_members(step.own_share()), work, position.global_step + 1,
                    setup_.processor);
}

void RankChecks::compare_copies(std::int64_t step) {
  if (teams_.count() > 1) compare_rows(state_fingerprints(), step);
}

void RankChecks::compare_rows(const std::vector<std::uint64_t>& row, std::int64_t step) {
  if (teams_.count() > 1)
    expect_equal_copies(comm_, *teams_.peers, row, state_parts(), step, setup_.processor);
}

CombinedFingerprints RankChecks::combine(std::span<std::uint64_t> rows, std::size_t slots,
                                         std::span<const std::uint64_t> own_sums) {
  std::vector<std::uint64_t> parts;
  if (teams_.count() < comm_.size()) {
    parts.resize(rows.size());
    if (teams_.peers == nullptr || teams_.peers->rank() == 0) std::ranges::copy(rows, parts.begin());
  }
  return combine_rows(comm_, rows, slots, own_sums, teams_.count(), parts);
}

std::vector<ComparedPart> RankChecks::state_parts() const {
  return parts_of_row(setup_.network.parameters(), strategy_.weight_update().buffer_names(), teams_.holders);
}

SumFingerprints RankChecks::state_fingerprints() {
  const FingerprintLayout layout =
      fingerprint_layout(setup_.network.parameters(), strategy_.weight_update().buffer_names().size());
  SumFingerprints fingerprints;
  strategy_.visit_own_state([&](const TrainedState& own) {
    fingerprints = fingerprints_of_state(layout, teams_.held, own);
    return false;
  });
  return fingerprints;
}

SumFingerprints RankChecks::over_members(const SumFingerprints& mine) const {
  if (teams_.members == nullptr) return mine;
  std::vector<std::int64_t> words(mine.begin(), mine.end());
  teams_.members->all_reduce(std::span(words));
  return {words.begin(), words.end()};
}

/// Ranks take turns.
void ShareWeighing::before_update(ReducedStep& step) {
  std::size_t most_grains = 0;
  for (const auto& grains : shares_) most_grains = std::max(most_grains, grains.size());
  std::int64_t unable = step.has_room_for(most_grains) ? 0 : 1;
  comm_.all_reduce(std::span(&unable, 1));
  if (unable > 0) return;
  std::int64_t sum = 0;
  for (int rank = comm_.rank(); rank < std::ssize(shares_); rank += comm_.size()) {
    const auto& grains = at(shares_, rank);
    const SumFingerprints parts = step.gradients_of(grains);
    const auto gradients = std::span(parts).last(tensors_);
    sum += static_cast<std::int64_t>(rank_weight(rank) * whole_fingerprint(gradients));
  }
  comm_.all_reduce(std::span(&sum, 1));
  sum_ = static_cast<std::uint64_t>(sum);
}

}  // namespace lockstep
