// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// List scheduling: the pass that can start first is placed first.
#include "common/error.hpp"
#include "trainer/parallel/stage_plan.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>

namespace lockstep {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kForwardTime = 1, kBackwardTime = 2;

std::size_t index(int i) {
  return static_cast<std::size_t>(i);
}

/// When passes end, as far as they are placed.
class Times {
 public:
  Times(std::size_t stages, int grains)
      : forward_(stages, std::vector<double>(index(grains), kNever)), backward_(forward_) {}

  double& end_of(const PipelinePass& pass) {
    return (pass.backward ? backward_ : forward_)[index(pass.stage)][index(pass.grain)];
  }
  /// When what the pass needs from other passes is there; kNever: not placed yet.
  double ready(const PipelinePass& pass) const {
    const std::size_t stage = index(pass.stage), grain = index(pass.grain);
    if (!pass.backward) return stage == 0 ? 0 : forward_[stage - 1][grain];
    const bool is_last = stage + 1 == forward_.size();
    return is_last ? forward_[stage][grain] : backward_[stage + 1][grain];
  }

 private:
  std::vector<std::vector<double>> forward_, backward_;  ///< [stage][grain]
};

class ScheduleBuilder {
 public:
  ScheduleBuilder(std::span<const int> rank_of, const std::vector<bool>& goes_back, int grains,
                  PipelineOrder order)
      : rank_of_(rank_of),
        goes_back_(goes_back),
        grains_(grains),
        order_(order),
        times_(rank_of.size(), grains),
        next_forward_(rank_of.size()),
        next_backward_(rank_of.size()) {
    const int ranks = *std::ranges::max_element(rank_of) + 1;
    free_.resize(index(ranks));
    schedule_.ranks.resize(index(ranks));
    schedule_.in_flight.assign(rank_of.size(), 1);
  }

  PipelineSchedule build() {
    while (const auto best = first_to_start()) place(*best);
    for (std::size_t stage = 0; stage < rank_of_.size(); ++stage) {
      LOCKSTEP_CHECK(next_forward_[stage] == grains_);
      LOCKSTEP_CHECK(!has_backward(stage) || next_backward_[stage] == grains_);
    }
    return std::move(schedule_);
  }

 private:
  struct Candidate {
    PipelinePass pass;
    double start = kNever;
  };

  bool has_backward(std::size_t stage) const {
    return order_ != PipelineOrder::kForward && goes_back_[stage];
  }

  /// True if a stage may take in one more micro-batch.
  bool may_go_forward(std::size_t stage) const {
    if (next_forward_[stage] == grains_) return false;
    if (order_ != PipelineOrder::k1F1B || !has_backward(stage)) return true;
    return next_forward_[stage] - next_backward_[stage] < static_cast<int>(rank_of_.size() - stage);
  }

  /// GPipe turns around when a rank has nothing left to do forward.
  bool may_go_backward(std::size_t stage) const {
    if (!has_backward(stage) || next_backward_[stage] == grains_) return false;
    if (order_ != PipelineOrder::kGPipe) return true;
    for (std::size_t other = 0; other < rank_of_.size(); ++other) {
      if (rank_of_[other] == rank_of_[stage] && next_forward_[other] < grains_) return false;
    }
    return true;
  }

  void consider(const PipelinePass& pass, std::optional<Candidate>& best) const {
    const double ready = times_.ready(pass);
    if (ready == kNever) return;
    const double start = std::max(ready, free_[index(at(rank_of_, pass.stage))]);
    if (!best || start < best->start) best = Candidate{pass, start};
  }

  /// Among equals backward before forward, and later stages before earlier ones.
  std::optional<Candidate> first_to_start() const {
    std::optional<Candidate> best;
    for (std::size_t stage = rank_of_.size(); stage-- > 0;) {
      if (may_go_backward(stage)) consider({true, static_cast<int>(stage), next_backward_[stage]}, best);
    }
    for (std::size_t stage = rank_of_.size(); stage-- > 0;) {
      if (may_go_forward(stage)) consider({false, static_cast<int>(stage), next_forward_[stage]}, best);
    }
    return best;
  }

  void place(const Candidate& chosen) {
    const PipelinePass& pass = chosen.pass;
    const std::size_t stage = index(pass.stage), rank = index(rank_of_[stage]);
    free_[rank] = chosen.start + (pass.backward ? kBackwardTime : kForwardTime);
    times_.end_of(pass) = free_[rank];
    schedule_.ranks[rank].push_back(pass);
    ++(pass.backward ? next_backward_ : next_forward_)[stage];
    if (!has_backward(stage)) return;
    int& most = schedule_.in_flight[stage];
    most = std::max(most, next_forward_[stage] - next_backward_[stage]);
  }

  std::span<const int> rank_of_;
  const std::vector<bool>& goes_back_;
  int grains_;
  PipelineOrder order_;
  Times times_;
  std::vector<int> next_forward_, next_backward_;  ///< by stage
  std::vector<double> free_;                       ///< by rank: when its last pass ends
  PipelineSchedule schedule_;
};

}  // namespace

PipelineSchedule make_schedule(std::span<const int> rank_of, const std::vector<bool>& goes_back, int grains,
                               PipelineOrder order) {
  LOCKSTEP_CHECK(!rank_of.empty() && goes_back.size() == rank_of.size() && grains >= 0);
  return ScheduleBuilder(rank_of, goes_back, grains, order).build();
}

}  // namespace lockstep
