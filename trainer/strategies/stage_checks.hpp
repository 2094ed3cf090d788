// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Which rank of some pipelines computes or remembers wrongly, or has a bad link: sums among replicas, messages between
/// stages, and replays, in which each pipeline computes the share of the next one.
#pragma once

#include "comm/communicator.hpp"
#include "comm/reduce/sum_check.hpp"
#include "data/sampler.hpp"
#include "trainer/config/job.hpp"
#include "trainer/engine/job_setup.hpp"
#include "trainer/engine/training_step.hpp"
#include "trainer/engine/wrong_rank.hpp"
#include "trainer/strategies/stage_engine.hpp"
#include "trainer/strategies/stage_plan.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

/// One rank's end. All errors come on all ranks, and each says the same.
class StageChecks {
 public:
  /// What it looks at; borrowed.
  struct Parts {
    const Job& job;
    const JobSetup& setup;
    const StagePlan& plan;
    const HeldLayout& held;
    const DistributedSampler& sampler;
    Communicator& comm;      ///< all ranks
    Communicator& replicas;  ///< those with the same stages
    StageEngine& engine;
    const StageWorker& worker;
  };
  /// Collective. @throws AgreedError  the job asks for replays, and messages between stages stay on GPUs
  explicit StageChecks(const Parts& parts);

  /// This rank's stages found that sums among the replicas differ.
  void note(const SumsDifferError& error) { sums_differ_ = error; }
  /// What ranks must add up behind a step: how many numbers that is, and this rank's.
  std::size_t numbers() const { return 1 + parts_.worker.messages().sent.size(); }
  void append_to(std::vector<std::int64_t>& numbers) const;
  /// Collective. @param summed  the same over all ranks
  /// @throws WrongRankError  sums among replicas, or a message between two stages, changed on their way
  void expect_right(std::span<const std::int64_t> summed, std::int64_t step);

  /// After the step that follows so many, pipelines compute each other's shares again.
  bool is_replayed(std::int64_t global_step) const {
    return replay_every_ > 0 && (global_step + 1) % replay_every_ == 0;
  }
  /// Collective, between a step's reduction and its update.
  /// @param compute_share  lets the worker train on the share of a pipeline
  /// @returns of it, StageEngine::end_replay()
  /// @throws WrongRankError
  void replay(const StepPosition& position,
              const std::function<SumFingerprints(int pipeline)>& compute_share) const;

 private:
  /// From one stage to its neighbour.
  using Link = std::pair<int, int>;

  [[noreturn]] void throw_wrong_sums_of_a_stage(std::int64_t step);
  [[noreturn]] void throw_wrong_message(std::int64_t step) const;
  std::vector<Link> links() const;
  std::string message_name(const Link& link) const;
  std::vector<ReplayedPart> tensor_parts(const std::string& before) const;
  std::vector<ReplayedPart> share_parts() const;
  SumFingerprints of_share(const SumFingerprints& held) const;
  SumFingerprints of_weights() const;
  SumFingerprints of_samples(const StepPosition& position, int pipeline) const;
  void put_tensors(const SumFingerprints& held, SumFingerprints& all) const;
  SumFingerprints of_pipeline(const SumFingerprints& mine) const;
  int rank() const { return parts_.comm.rank() % parts_.plan.width; }

  const Parts parts_;
  std::int64_t replay_every_;               ///< steps; 0: never
  std::unique_ptr<Communicator> pipeline_;  ///< for replays: the ranks of this one
  std::optional<SumsDifferError> sums_differ_;
};

}  // namespace lockstep
