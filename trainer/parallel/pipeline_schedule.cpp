// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// List scheduling: the pass that can start first is placed first.
#include "common/error.hpp"
#include "trainer/parallel/stage_plan.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>

namespace lockstep {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kForwardTime = 1, kBackwardTime = 2;

class ScheduleBuilder {
 public:
  ScheduleBuilder(std::span<const int> rank_of, const std::vector<bool>& goes_back, int grains,
                  PipelineOrder order)
      : rank_of_(rank_of), goes_back_(goes_back), grains_(grains), order_(order) {
    const std::vector none_ended(static_cast<std::size_t>(grains), kNever);
    ends_.fill(std::vector(rank_of.size(), none_ended));
    next_.fill(std::vector<int>(rank_of.size()));
    free_.resize(static_cast<std::size_t>(*std::ranges::max_element(rank_of)) + 1);
    schedule_.ranks.resize(free_.size());
    schedule_.in_flight.assign(rank_of.size(), 1);
  }

  PipelineSchedule build() {
    for (Candidate best = first_to_start(); best.start < kNever; best = first_to_start()) place(best);
    for (std::size_t stage = 0; stage < rank_of_.size(); ++stage) {
      LOCKSTEP_CHECK(next_[0][stage] == grains_);
      LOCKSTEP_CHECK(!goes_back_[stage] || next_[1][stage] == grains_);
    }
    return std::move(schedule_);
  }

 private:
  struct Candidate {
    PipelinePass pass;
    double start = kNever;
  };

  double& end_of(bool backward, int stage, int grain) { return at(at(at(ends_, backward), stage), grain); }

  /// When what the pass needs from other passes is there; kNever: not placed yet.
  double ready(const PipelinePass& pass) {
    if (!pass.backward) return pass.stage == 0 ? 0 : end_of(false, pass.stage - 1, pass.grain);
    const bool is_last = pass.stage + 1 == std::ssize(rank_of_);
    return is_last ? end_of(false, pass.stage, pass.grain) : end_of(true, pass.stage + 1, pass.grain);
  }

  /// True if the order lets a stage run its next pass in this direction.
  bool may_run(const PipelinePass& pass) const {
    const bool goes_back = at(goes_back_, pass.stage);
    if (pass.grain == grains_) return false;
    if (!pass.backward)
      return order_ != PipelineOrder::k1F1B || !goes_back ||
             pass.grain - at(next_[1], pass.stage) < std::ssize(rank_of_) - pass.stage;
    if (order_ == PipelineOrder::kGPipe)  // turns around when a rank has nothing left to do forward
      for (std::size_t other = 0; other < rank_of_.size(); ++other)
        if (rank_of_[other] == at(rank_of_, pass.stage) && next_[0][other] < grains_) return false;
    return goes_back;
  }

  /// Among equals backward before forward, and later stages before earlier ones. None can start: kNever.
  Candidate first_to_start() {
    Candidate best;
    for (const bool backward : {true, false}) {
      for (int stage = static_cast<int>(rank_of_.size()); stage-- > 0;) {
        const PipelinePass pass{backward, stage, at(at(next_, backward), stage)};
        if (!may_run(pass)) continue;
        const double start = std::max(ready(pass), at(free_, at(rank_of_, stage)));
        if (start < best.start) best = {pass, start};
      }
    }
    return best;
  }

  void place(const Candidate& chosen) {
    const auto [backward, stage, grain] = chosen.pass;
    const int rank = at(rank_of_, stage);
    const double end = chosen.start + (backward ? kBackwardTime : kForwardTime);
    at(free_, rank) = end_of(backward, stage, grain) = end;
    at(schedule_.ranks, rank).push_back(chosen.pass);
    ++at(at(next_, backward), stage);
    if (!at(goes_back_, stage)) return;
    int& most = at(schedule_.in_flight, stage);
    most = std::max(most, at(next_[0], stage) - at(next_[1], stage));
  }

  std::span<const int> rank_of_;
  const std::vector<bool>& goes_back_;
  int grains_;
  PipelineOrder order_;
  std::array<std::vector<std::vector<double>>, 2>
      ends_;                              ///< [backward][stage][grain]; kNever: not placed yet
  std::array<std::vector<int>, 2> next_;  ///< [backward][stage]: the next pass's grain
  std::vector<double> free_;              ///< by rank: when its last pass ends
  PipelineSchedule schedule_;
};

}  // namespace

PipelineSchedule make_schedule(std::span<const int> rank_of, const std::vector<bool>& goes_back, int grains,
                               PipelineOrder order) {
  return ScheduleBuilder(rank_of, goes_back, grains, order).build();
}

}  // namespace lockstep
