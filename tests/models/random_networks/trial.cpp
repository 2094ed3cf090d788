// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "comm/thread/thread_ranks.hpp"
#include "kernels/step_state.hpp"
#include "tests/models/random_networks/random_case.hpp"
#include "tests/models/random_networks/reference_layers.hpp"
#include "tests/support/prelude.hpp"
#include "trainer/run/saved_model.hpp"
#include "trainer/setup/job_setup.hpp"
#include "trainer/setup/strategies.hpp"
#include "trainer/training/data_parallel.hpp"

namespace lockstep::test {
namespace {

/// Half a unit of an exact sum's last place, for each of the terms that a grain may add.
double exact_rounding(int exponent) {
  return std::ldexp(0.5 * kPartialSums, exponent);
}

Batch batch_of(const Dataset& data, std::span<const std::int32_t> indices) {
  const auto features = static_cast<std::size_t>(data.shape.features());
  Batch batch;
  batch.x.resize(features * indices.size());
  for (std::size_t n = 0; n < indices.size(); ++n) {
    const auto sample = static_cast<std::size_t>(indices[n]);
    batch.labels.push_back(data.labels[sample]);
    for (std::size_t f = 0; f < features; ++f) {
      const std::size_t at = sample * features + f;
      double& x = batch.x[f * indices.size() + n];
      if (data.images.size() == 0) {
        x = data.features[at];
        continue;
      }
      const std::size_t channel = f / (features / static_cast<std::size_t>(data.shape.channels));
      x = std::fma(static_cast<float>(data.images[at]), data.scales.scale[channel],
                   data.scales.shift[channel]);
    }
  }
  return batch;
}

/// Collects the worst of many comparisons.
class FailureDetector {
 public:
  explicit FailureDetector(Comparison& verdict) : verdict_(verdict) {}

  void count_ties(std::int64_t ties) { verdict_.ties += ties; }
  TrainedBits& bits() { return verdict_.bits; }

  void compare(double actual, double expected, double allowed, const auto& name) {
    const double error = std::abs(actual - expected);
    double share = error == 0 ? 0 : error / allowed;
    if (std::isnan(share)) share = INFINITY;
    verdict_.worst = std::max(verdict_.worst, share);
    if (share <= 1 || share <= worst_mismatch_) return;
    worst_mismatch_ = share;
    verdict_.mismatch =
        fmt::format("{}: {:.9g}, expected {:.9g} within {:.2g}", name(), actual, expected, allowed);
  }

 private:
  Comparison& verdict_;
  double worst_mismatch_ = 0;
};

JobSetup set_up(const RandomCase& trial, const Job& job, Communicator& comm) {
  const Dataset& train = trial.data->train;
  Network network =
      Network::parse(trial.yaml, "random.yaml", train.shape, train.classes, UnreadLayers::kAllowed);
  DeviceChoice device = choose_device(job.parallel, comm);
  BucketPlan plan = plan_buckets(job, network, device, comm);
  return make_setup(job, trial.data, std::move(device), std::move(network), std::move(plan));
}

std::vector<float> copy(std::span<const float> numbers) {
  return {numbers.begin(), numbers.end()};
}

/// The samples of each step of the first epoch, as all ranks together see them.
std::vector<Batch> batches_of(const Job& job, const Dataset& data) {
  DistributedSampler sampler({.samples = data.size(),
                              .global_batch = job.data.global_batch,
                              .grain = job.parallel.grain,
                              .seed = job.train.seed,
                              .shuffle = job.data.shuffle});
  sampler.set_epoch(0);
  std::vector<Batch> batches;
  std::size_t first = 0;
  for (std::int64_t step = 0; step < sampler.steps_per_epoch(); ++step) {
    const auto samples = static_cast<std::size_t>(sampler.batch_samples(step));
    batches.push_back(batch_of(data, sampler.order().subspan(first, samples)));
    first += samples;
  }
  return batches;
}

/// One rank of the training. All ranks take the same steps; rank 0 judges.
class Training {
 public:
  Training(const RandomCase& trial, const Job& job, Communicator& comm, Comparison& verdict)
      : job_(job),
        is_judge_(comm.rank() == 0),
        judge_(verdict),
        setup_(set_up(trial, job, comm)),
        strategy_(make_data_parallel(setup_, comm)) {
    initialise_weights(job_, setup_.network, strategy_->whole_state().weights);
    strategy_->distribute();
  }

  void run() {
    const std::vector<Batch> batches = batches_of(job_, setup_.data->train);
    for (std::size_t step = 0; step < batches.size(); ++step)
      run_step(static_cast<std::int64_t>(step), batches[step]);
    const std::vector<float> weights = copy(strategy_->whole_state().weights);
    const Evaluation evaluation = strategy_->evaluate(EvaluatedPart::kTest, never_leave);
    if (!is_judge_) return;
    judge_evaluation(evaluation, weights);
    judge_.bits().weights = weights;
    judge_.bits().losses.push_back(evaluation.loss);
    judge_.bits().correct.push_back(evaluation.correct);
  }

 private:
  struct State {
    std::vector<float> weights, momentum;
  };

  void run_step(std::int64_t step, const Batch& batch) {
    strategy_->collect();
    const State before{copy(strategy_->whole_state().weights),
                       copy(strategy_->whole_state().optimizer[0].values)};
    const StepSeries series = strategy_->run({0, step, step}, 1, false);
    strategy_->collect();
    if (!is_judge_) return;
    const PassKey key{job_.train.seed, static_cast<std::uint32_t>(step), 0};
    const ReferenceStep expected = reference_training(setup_.network, before.weights, batch, key);
    judge_.count_ties(expected.ties);
    judge_.bits().losses.push_back(series.loss_units.value());
    judge_.bits().correct.push_back(series.correct);
    const std::string name = fmt::format("step {}", step + 1);
    judge_sums(name, series.loss_units.value() / kLossScale, series.correct, series.samples, batch, expected);
    judge_.compare(static_cast<double>(series.steps), 1, 0, [&] { return name + ": steps done"; });
    judge_parameters(name, before, expected.gradients, batch.samples());
  }

  void judge_parameters(const std::string& step, const State& before, const Bounded& sums, int samples) {
    const double grains = std::ceil(1.0 * samples / job_.parallel.grain);
    const auto& parameters = setup_.network.parameters().parameters;
    for (std::size_t t = 0; t < parameters.size(); ++t) {
      const double exact = grains * exact_rounding(strategy_->whole_state().units.exponents()[t]);
      for (std::size_t i = 0; i < parameters[t].size; ++i) {
        const std::size_t at = parameters[t].offset + i;
        judge_parameter(at, before, sums.value[at] / samples, (sums.allowed(at) + exact) / samples,
                        [&](const char* what) {
                          return fmt::format("{}: {} of {}[{}]", step, what, parameters[t].name, i);
                        });
      }
    }
  }

  void judge_sums(const std::string& name, double loss, std::int64_t correct, std::int64_t samples,
                  const Batch& batch, const ReferenceStep& expected) {
    judge_.compare(static_cast<double>(samples), batch.samples(), 0, [&] { return name + ": samples"; });
    judge_.compare(loss, expected.loss, expected.loss_allowed + 1e-9 * batch.samples(),
                   [&] { return name + ": loss"; });
    const auto middle = 0.5 * static_cast<double>(expected.least_correct + expected.most_correct);
    const auto half = 0.5 * static_cast<double>(expected.most_correct - expected.least_correct);
    judge_.compare(static_cast<double>(correct), middle, half, [&] { return name + ": correct answers"; });
  }

  /// Momentum is how the mean gradient shows, and the weight must follow it.
  void judge_parameter(std::size_t i, const State& before, double gradient, double allowed,
                       const auto& name) {
    const OptimizerSection& sgd = job_.train.optimizer;
    const double w = before.weights[i], m = before.momentum[i],
                 new_m = strategy_->whole_state().optimizer[0].values[i];
    const double decay = static_cast<float>(sgd.weight_decay), carried = static_cast<float>(sgd.momentum);
    const double rounding = 4 * Bounded::kUnit * (std::abs(gradient) + std::abs(decay * w) + std::abs(m));
    judge_.compare(new_m, carried * m + gradient + decay * w, allowed + rounding,
                   [&] { return name("momentum"); });
    const double moved = sgd.nesterov ? new_m - carried * m + carried * new_m : new_m;
    const double step = static_cast<float>(sgd.lr) * moved;
    judge_.compare(
        strategy_->whole_state().weights[i], w - step,
        4 * Bounded::kUnit * (std::abs(w) + static_cast<float>(sgd.lr) * (2 * std::abs(new_m) + std::abs(m))),
        [&] { return name("value"); });
  }

  void judge_evaluation(const Evaluation& evaluation, std::span<const float> weights) {
    const Dataset& test = setup_.data->test;
    std::vector<std::int32_t> all(test.labels.size());
    std::iota(all.begin(), all.end(), 0);
    const Batch batch = batch_of(test, all);
    judge_sums("evaluation", evaluation.loss * static_cast<double>(evaluation.samples), evaluation.correct,
               evaluation.samples, batch, reference_evaluation(setup_.network, weights, batch));
  }

  const Job& job_;
  bool is_judge_;
  FailureDetector judge_;
  JobSetup setup_;
  std::unique_ptr<ParallelStrategy> strategy_;
};

}  // namespace

Comparison try_case(const RandomCase& trial, const std::string& device) {
  Job job = trial.job;
  job.parallel.device = device;
  // The emulated device keeps all activations, and must come to the same bits.
  job.train.recompute = device == "cpu" && trial.seed % 2 == 0;
  Comparison verdict;
  try {
    run_thread_ranks(trial.ranks, [&](Communicator& comm) { Training(trial, job, comm, verdict).run(); });
  } catch (const std::exception& error) {
    verdict.mismatch = error.what();
  }
  return verdict;
}

std::string difference(const RandomCase& trial, const Comparison& one, const Comparison& other) {
  if (trial.job.parallel.determinism == Determinism::kOff) return {};
  const TrainedBits &a = one.bits, &b = other.bits;
  if (a.weights.size() != b.weights.size()) return "one of the devices has no weights";
  for (std::size_t i = 0; i < a.weights.size(); ++i) {
    if (std::memcmp(&a.weights[i], &b.weights[i], sizeof(float)) != 0)
      return fmt::format("weight {} is {:.9g} and {:.9g}", i, a.weights[i], b.weights[i]);
  }
  for (std::size_t i = 0; i < a.losses.size(); ++i) {
    if (a.losses[i] != b.losses[i] || a.correct[i] != b.correct[i])
      return fmt::format("loss {} is {:.17g} and {:.17g}, correct answers {} and {}", i, a.losses[i],
                         b.losses[i], a.correct[i], b.correct[i]);
  }
  return {};
}

}  // namespace lockstep::test
