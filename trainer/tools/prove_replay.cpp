// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Replay of a run's steps by the engine. Fingerprints are compared with the trail's rows, other results with
/// metrics.jsonl and manifests.
#include "trainer/tools/prove_replay.hpp"

#include "comm/agreement.hpp"
#include "common/text_layout.hpp"
#include "trainer/checkpoint/checkpoint.hpp"
#include "trainer/run/data_record.hpp"
#include "trainer/run/saved_model.hpp"
#include "trainer/setup/strategies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <thread>

namespace lockstep {

// The line that is drawn: steps done, how fast, how long still.

void ProofProgress::add(std::int64_t steps) {
  done_ += steps;
  if (!bar_.is_due()) return;
  const double seconds = std::max(bar_.seconds(), 1e-9), done = static_cast<double>(done_);
  const double left = static_cast<double>(std::max<std::int64_t>(steps_ - done_, 0));
  bar_.draw({{what_, 5},
             {fmt::format("{}/{}", with_thousands(done_), counted(steps_, "step")), 4},
             {fmt::format("{} steps/s", with_thousands(static_cast<std::int64_t>(done / seconds))), 1},
             {fmt::format("ETA {}", format_duration(seconds / std::max(done, 1.0) * left)), 3}},
            std::min(done / std::max(done + left, 1.0), 1.0));
}

bool ProofMeetings::someone_works(bool self) {
  std::int64_t working = self ? 1 : 0;
  if (comm_.size() > 1) comm_.all_reduce(std::span(&working, 1));
  last_ = Clock::now();
  return working > 0;
}

LeaveEvaluation ProofMeetings::between_grains(const Communicator& group) {
  if (group.size() > 1) return never_leave;
  return [this, caller = std::this_thread::get_id()] {
    if (std::this_thread::get_id() == caller && are_due()) meet();
    return false;
  };
}

namespace {

/// Order of rank 0 to the others after each series.
struct ReplayOrder {
  std::int64_t steps = 0;               ///< most steps of the next series
  bool stop = false;                    ///< there is none
  bool test = false, validate = false;  ///< something is claimed of the weights as they are now
  bool norm = false;                    ///< something is claimed of the gradient of the step just taken
  bool meet = false;                    ///< all ranks of the proof meet
};

/// Question about the rank that computed this step's sums wrongly.
struct ShareQuestion {
  std::int64_t step = 0;    ///< 0: not asked
  std::uint64_t apart = 0;  ///< sums_apart()
};

class Replay {
 public:
  Replay(const ReplayedRun& run, const Interval& interval, Communicator& comm, ProofProgress& progress,
         ProofMeetings& meetings)
      : run_(run),
        interval_(interval),
        comm_(comm),
        progress_(progress),
        meetings_(meetings),
        strategy_(find_strategy(run.job).make(run.setup, comm)),
        checks_(check_ranks(*strategy_, run.setup, comm)),
        facts_{run.trail.head(), run.setup.network.parameters(), run.bucket_sizes},
        slots_(run.trail.head().slots()),
        claims_(run, interval, *strategy_, comm, verdict_) {}

  ProofResult to_the_end() {
    replay_steps();
    if (!order_.stop && !interval_.end.empty()) compare_with_end();
    finish();
    return std::move(verdict_);
  }
  /// Question that to_the_end() left open: the rank with the wrong share. On rank 0.
  ShareQuestion question() const { return question_; }
  /// Replays up to the step before, then takes that one with the shares of all ranks. Rank 0's verdict gets
  /// the name of the rank.
  void answer(const ShareQuestion& question, ProofResult& verdict) {
    replay_steps();
    if (state_.step_in_epoch == strategy_->sampler().steps_per_epoch()) state_.start_next_epoch();
    std::optional<RecordedRanks> ranks;
    std::vector<std::vector<Grain>> shares;
    agree(comm_, [&] {
      ranks = find_ranks(rank_file(), question.step);
      if (ranks) shares = shares_of(ranks->stretch);
    });
    if (order_.stop || shares.empty()) return;
    const auto weighing =
        std::make_shared<ShareWeighing>(shares, run_.setup.network.parameters().parameters.size(), comm_);
    strategy_->observe(weighing);
    const StepSeries series = strategy_->run(position(state_), 1, false);
    if (!leads() || series.failure || !weighing->sum()) return;
    for (Discrepancy& finding : verdict.findings)
      if (finding.step == question.step && finding.what == "gradient")
        name_wrong_share(finding, *ranks, question.apart, *weighing->sum());
  }

 private:
  void start() {
    agree(comm_, [&] {
      if (!leads()) return;
      claims_.read();
      interval_.start.checkpoint.empty() ? begin_afresh() : load_start();
    });
    broadcast(comm_, state_);
    proved_up_to_ = step();
    strategy_->distribute();
    if (leads() && !order_.stop) {
      claims_.begin(state_);
      claims_.compare_lines(state_, {});
    }
    give_order();
  }

  /// The file that train.initial_weights names may have changed meanwhile: a run that was trained further has.
  void begin_afresh() {
    const StartingWeights here =
        initialise_weights(run_.job, run_.setup.network, strategy_->whole_state().weights, *run_.setup.data);
    claims_.begin_from(here);
    const std::string then = claims_.initial_weights();
    if (here.source.empty() || then.empty() || here.sha256 == then) return;
    verdict_.not_proved.push_back(
        {interval_.steps(),
         fmt::format("{} holds other weights than when the run began from it (train.initial_weights)",
                     here.source)});
    stop_at(interval_.last);
  }

  /// A checkpoint whose checksums are good may hold what no run of this job can have.
  void load_start() {
    const CheckpointState checkpoint = load_checkpoint(Env::posix(), interval_.start.checkpoint);
    require_same_data(checkpoint.facts, run_.job, *run_.setup.data, run_.setup.fingerprints->get());
    try {
      state_ = restore(checkpoint, run_.job, run_.setup, strategy_->sampler(), strategy_->whole_state());
    } catch (const Error& error) {
      refute(verdict_, interval_.start.step, "checkpoint", fmt::format("its checkpoint: {}", error.what()),
             "the checkpoint was changed, with its checksums");
      state_.step = interval_.start.step;
      stop_at(interval_.start.step);
    }
  }

  void take_series() {
    const std::int64_t in_epoch = strategy_->sampler().steps_per_epoch();
    if (state_.step_in_epoch == in_epoch) state_.start_next_epoch();
    evaluations_ = {};
    const std::int64_t count =
        std::min({strategy_->longest_series(), in_epoch - state_.step_in_epoch, order_.steps});
    StepSeries series = strategy_->run(position(state_), count, false);
    const auto apart = checks_->combine(series.fingerprints, slots_, {}).apart;
    if (leads()) compare(series, apart);
    state_.add(sums_of(series));
    verdict_.replayed += series.steps;
    progress_.add(series.steps);
    if (leads() && series.failure && !order_.stop) fail(series);
    give_order();
    for (const auto& [wanted, part] : {std::pair(order_.test, EvaluatedPart::kTest),
                                       std::pair(order_.validate, EvaluatedPart::kValidation)}) {
      if (!wanted) continue;
      const LeaveEvaluation leave = meetings_.between_grains(comm_);
      evaluations_.of(part) = strategy_->evaluate(part, leave);
      evaluate_averages(*strategy_, step(), part, leave, evaluations_);
    }
    if (order_.test || order_.validate) strategy_->collect();
    StepMeasures measures;
    if (order_.norm || state_.step_in_epoch == strategy_->sampler().steps_per_epoch())
      measures = strategy_->measures();
    if (leads() && !order_.stop)
      claims_.compare_lines(state_, {series.last, order_.norm ? measures.gradient_norm : std::nullopt,
                                     measures.rounded_to_zero, evaluations_});
    if (order_.meet) meetings_.meet();
  }

  /// Rank 0 knows the claims, and when the ranks of other groups wait.
  void give_order() {
    if (leads()) {
      claims_.remember(state_);
      order_.steps = std::min(interval_.last, claims_.next_stop(step())) - step();
      order_.test = !order_.stop && claims_.wants_evaluation(step(), EvaluatedPart::kTest);
      order_.validate = !order_.stop && claims_.wants_evaluation(step(), EvaluatedPart::kValidation);
      order_.norm = !order_.stop && claims_.wants_gradient_norm(step());
      order_.meet = meetings_.are_due();
    }
    if (comm_.size() > 1) broadcast(comm_, order_);
  }

  void stop_at(std::int64_t step) {
    stopped_at_ = step;
    order_.stop = true;
  }

  void compare(const StepSeries& series, const std::vector<std::uint64_t>& apart) {
    for (std::int64_t i = 0; i < series.steps && !order_.stop; ++i) {
      const std::int64_t step = this->step() + 1 + i;
      const auto recorded = run_.trail.find(step);
      if (!recorded) {
        unknown_.push_back({step, step});
        continue;
      }
      const auto at = static_cast<std::size_t>(i);
      const ReplayedStep here{
          .step = step,
          .fingerprints = std::span(series.fingerprints).subspan(at * slots_, slots_),
          .apart = apart[at],
          .first_replayed = step == interval_.start.step + 1,
          .start = interval_.start.checkpoint.empty()
                       ? std::string("the weights that its job begins with")
                       : fmt::format("the checkpoint of step {}", with_thousands(interval_.start.step))};
      if (diagnose_step(facts_, *recorded, here)) {
        note(*recorded, here);
        stop_at(step);
      } else {
        proved_up_to_ = step;
      }
    }
  }

  /// A file that cannot be read names no rank; the step is refuted all the same.
  std::optional<RecordedRanks> ranks_of(std::int64_t step) const {
    return or_if_unreadable([&] { return find_ranks(rank_file(), step); }, std::nullopt);
  }

  /// A step that differs.
  void note(const TrailRecord& recorded, const ReplayedStep& here) {
    const auto ranks = ranks_of(here.step);
    verdict_.findings.push_back(*diagnose_step(facts_, recorded, here, ranks));
    const bool has_shares = ranks && ranks->sums && ranks->stretch.strategy == "data";
    if (!has_shares || !is_of_a_share(verdict_.findings.back(), recorded)) return;
    question_ = {here.step, sums_apart(run_.trail.head(), recorded, here.fingerprints)};
  }

  /// As the run dealt them: by its number of ranks, and its rule. Nothing: the rule here is another.
  std::vector<std::vector<Grain>> shares_of(const RankStretch& stretch) const {
    auto options = sampler_options(run_.setup.options, run_.setup.data->train, 0,
                                   static_cast<int>(stretch.ranks.size()));
    options.split = stretch.split == spelt(BatchSplit::kChunk) ? BatchSplit::kChunk : BatchSplit::kEven;
    if (std::ssize(stretch.ranks) > strategy_->sampler().batch_grains(0)) return {};
    std::vector<std::vector<Grain>> shares;
    const DistributedSampler sampler(options);
    for (const RankPlace& place : stretch.ranks) {
      const int rank = static_cast<int>(shares.size());
      const auto of_full_batch = sampler.grains_of(rank, 0);
      const bool same_first = place.grains == 0 || of_full_batch.empty() ||
                              of_full_batch.front().first == place.first_grain * options.grain;
      if (std::ssize(of_full_batch) != place.grains || !same_first) return {};
      shares.push_back(sampler.grains_of(rank, state_.step_in_epoch));
    }
    return shares;
  }

  /// Reports a step that cannot be taken. The run could not take it either if its trail ends before it.
  void fail(const StepSeries& series) {
    refute(verdict_, step() + 1, "gradient",
           fmt::format("{} losses and {} terms of its gradient are NaN or infinite here",
                       series.failure->losses, series.failure->terms),
           "the run was computed from other data or weights, or wrongly; or this machine computes wrongly");
    stop_at(step() + 1);
  }

  void compare_with_end() {
    strategy_->collect();
    agree(comm_, [&] {
      if (!leads()) return;
      const CheckpointState there = load_checkpoint(Env::posix(), interval_.end);
      require_same_data(there.facts, run_.job, *run_.setup.data, run_.setup.fingerprints->get());
      const TrainedState here = strategy_->whole_state();
      std::vector<std::span<const float>> optimizer;
      for (const OptimizerBufferView& buffer : here.optimizer) optimizer.emplace_back(buffer.values);
      if (auto finding = diagnose_state(facts_, there, here.weights, optimizer))
        verdict_.findings.push_back(std::move(*finding));
      claims_.compare_manifest(there.facts, state_, evaluations_);
    });
  }

  /// Skips the steps after one that differs: they follow from it.
  void finish() {
    const std::int64_t first = interval_.start.step + 1;
    progress_.leave_out(interval_.last - step());
    verdict_.proved = without({{first, proved_up_to_}}, merged(unknown_));
    if (!order_.stop || !leads()) return;
    if (stopped_at_ < interval_.last)
      verdict_.not_proved.push_back({{stopped_at_ + 1, interval_.last},
                                     fmt::format("they follow from step {}", with_thousands(stopped_at_))});
  }

  void replay_steps() {
    start();
    while (state_.step < interval_.last && !order_.stop) take_series();
  }

  std::string rank_file() const { return run_.job.run.dir + "/" + kRankFile; }
  std::int64_t step() const { return state_.step; }
  bool leads() const { return comm_.rank() == 0; }

  const ReplayedRun& run_;
  const Interval& interval_;
  Communicator& comm_;
  ProofProgress& progress_;
  ProofMeetings& meetings_;
  std::unique_ptr<ParallelStrategy> strategy_;
  std::shared_ptr<RankChecks> checks_;
  DiagnosisFacts facts_;
  std::size_t slots_;
  RunState state_;
  ReplayOrder order_;
  std::int64_t proved_up_to_ = 0, stopped_at_ = 0;
  ShareQuestion question_;
  std::vector<StepRange> unknown_;  ///< steps without a good record, which were only passed through
  Evaluations evaluations_;         ///< results for the weights as they are now
  ProofResult verdict_;
  ClaimCheck claims_;  ///< used by rank 0 alone
};

}  // namespace

ProofResult replay(const ReplayedRun& run, const Interval& interval, Communicator& comm,
                   ProofProgress& progress, ProofMeetings& meetings) {
  ProofResult verdict;
  ShareQuestion question;
  {
    Replay steps(run, interval, comm, progress, meetings);
    verdict = steps.to_the_end();
    question = steps.question();
  }
  if (comm.size() > 1) broadcast(comm, question);
  if (question.step == 0) return verdict;
  // The steps before it once more: what it was computed from has gone.
  const MetricsClaims none;
  const ReplayedRun without_claims{run.job, run.setup, run.trail, none, run.bucket_sizes};
  const Interval before{interval.start, question.step - 1, ""};
  ProofProgress silent(false, "", 0);
  Replay(without_claims, before, comm, silent, meetings).answer(question, verdict);
  return verdict;
}

}  // namespace lockstep
