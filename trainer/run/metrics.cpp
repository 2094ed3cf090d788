// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// MetricsWriter: lines go to an AppendFile.
#include "trainer/run/metrics.hpp"

#include "comm/agreement.hpp"
#include "common/json_text.hpp"
#include "common/machine.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace lockstep {
namespace {

void add_evaluations(nlohmann::ordered_json& event, const Evaluations& evaluations) {
  for (const auto& [name, found] :
       {std::pair{"validation", &evaluations.validation}, {"test", &evaluations.test}}) {
    if (!*found) continue;
    const std::string of = name;
    event[of + "_loss"] = (*found)->loss;  // null if not finite
    event[of + "_accuracy"] = (*found)->accuracy();
    event[of + "_samples"] = (*found)->samples;
  }
  for (const auto& [average, part, found] : evaluations.averages) {
    const std::string of = average + (part == EvaluatedPart::kTest ? "_test" : "_validation");
    event[of + "_loss"] = found.loss;
    event[of + "_accuracy"] = found.accuracy();
  }
}

}  // namespace

nlohmann::ordered_json start_event(const Job& job, const JobSetup& setup, const ParallelStrategy& strategy,
                                   const Communicator& comm, int hosts) {
  nlohmann::ordered_json event = {{"event", "start"},
                                  {"version", LOCKSTEP_VERSION},
                                  {"world", comm.size()},
                                  {"hosts", hosts},
                                  {"threads", job.parallel.threads},
                                  {"device", setup.device.kind},
                                  {"backend", setup.device.backend},
                                  {"strategy", job.parallel.strategy}};
  for (const auto& [name, value] : strategy.describe().facts) event[name] = value;
  event.update({{"model", setup.network.name()},
                {"parameters", setup.network.parameters().size},
                {"data", job.data.set},
                {"data_origin", setup.data->origin},
                {"train_samples", setup.data->train.size()},
                {"test_samples", setup.data->test.size()}});
  if (const std::int64_t held_out = setup.data->validation.size(); held_out > 0)
    event["validation_samples"] = held_out;
  event.update({{"global_batch", job.data.global_batch},
                {"grain", job.parallel.grain},
                {"determinism", spelt(job.parallel.determinism)},
                {"seed", job.train.seed},
                {"optimizer", job.train.optimizer.kind},
                {"schedule", job.train.schedule.kind},
                {"learning_rate", strategy.weight_update().learning_rate(0)}});
  return event;
}

/// Lists only the first names if a file has far more tensors than the network.
void add_initial_weights(nlohmann::ordered_json& start, const StartingWeights& initial) {
  constexpr std::size_t kMostNames = 100;
  if (initial.source.empty()) return;
  start["initial_weights"] = initial.source;
  start["initial_tensors"] = initial.taken;
  start["initial_sha256"] = initial.sha256;
  if (!initial.fresh.empty()) start["new_tensors"] = initial.fresh;
  if (initial.left_over.empty()) return;
  const auto shown = std::min(initial.left_over.size(), kMostNames);
  start["unused_tensors"] =
      std::vector(initial.left_over.begin(), initial.left_over.begin() + static_cast<std::ptrdiff_t>(shown));
}

nlohmann::ordered_json step_event(const RunState& state, const StepTotals& totals, double learning_rate) {
  return {{"event", "step"},
          {"epoch", state.epoch + 1},
          {"step", state.step},
          {"loss", totals.loss() / static_cast<double>(totals.samples)},
          {"learning_rate", learning_rate}};
}

void add_training_numbers(nlohmann::ordered_json& event, const LossWindow& window,
                          std::optional<double> gradient_norm) {
  if (window.steps > 0) {
    event["train_accuracy"] = window.accuracy();
    event["accuracy_steps"] = window.steps;
  }
  if (gradient_norm) event["gradient_norm"] = *gradient_norm;
}

nlohmann::ordered_json loss_event(const RunState& state, const LossWindow& window, double learning_rate) {
  return {{"event", "loss"},       {"epoch", state.epoch + 1},   {"step", state.step},
          {"steps", window.steps}, {"mean_loss", window.mean()}, {"learning_rate", learning_rate}};
}

nlohmann::ordered_json epoch_event(const RunState& state, double learning_rate,
                                   const Evaluations& evaluations, double train_seconds) {
  nlohmann::ordered_json event = {{"event", "epoch"},
                                  {"epoch", state.epoch + 1},
                                  {"step", state.step},
                                  {"train_loss", state.epoch_so_far().mean()},
                                  {"train_accuracy", state.epoch_so_far().accuracy()},
                                  {"train_samples", state.epoch_samples},
                                  {"train_seconds", train_seconds},
                                  {"learning_rate", learning_rate}};
  add_evaluations(event, evaluations);
  return event;
}

void add_rounding(nlohmann::ordered_json& event, std::optional<double> rounded_to_zero) {
  if (rounded_to_zero) event["rounded_to_zero"] = *rounded_to_zero;
}

nlohmann::ordered_json evaluation_event(const RunState& state, const Evaluations& evaluations) {
  nlohmann::ordered_json event = {{"event", "evaluation"}, {"epoch", state.epoch + 1}, {"step", state.step}};
  add_evaluations(event, evaluations);
  return event;
}

nlohmann::ordered_json end_event(const RunState& state, const Evaluations& evaluations, double seconds) {
  nlohmann::ordered_json event = {{"event", "end"}, {"step", state.step}, {"seconds", seconds}};
  add_evaluations(event, evaluations);
  return event;
}

void add_weights(nlohmann::ordered_json& end, const std::string& sha256,
                 const PublishedComparison& published) {
  end["weights_sha256"] = sha256;
  if (published.same) end["published_hash"] = *published.same;
}

MetricsWriter::MetricsWriter(Env& env, const std::string& path) : file_(path) {
  const auto bytes = read_patiently(env, [&] { return env.read(path); });
  lines_ = std::ranges::count(bytes, std::byte{'\n'});
  hash_.update(bytes);
}

void MetricsWriter::write(const nlohmann::ordered_json& event) {
  const std::string line = json_text(event) + "\n";
  ++lines_;
  hash_.update(std::as_bytes(std::span(line)));
  file_.append(line);  // keeps what it cannot write now
}

// EpochClock: times of series, sorted when they are asked for; clocks of all ranks, gathered once an epoch.

namespace {

/// A list of more ranks makes lines that nothing reads.
constexpr std::size_t kMostRanksListed = 64;

template <typename Number>
Number most(const std::vector<RankClock>& ranks, Number RankClock::*number) {
  return (*std::ranges::max_element(ranks, {}, number)).*number;
}

/// Names the slowest rank of an epoch, its excess over the ranks' mean, and how long the ranks waited.
void add_comparison(nlohmann::ordered_json& event, const std::vector<RankClock>& ranks) {
  const auto count = static_cast<double>(ranks.size());
  double busy = 0, exposed = 0;
  for (const RankClock& rank : ranks)
    busy += rank.busy_seconds / count, exposed += rank.exposed_seconds / count;
  const auto slowest = std::ranges::max_element(ranks, {}, &RankClock::busy_seconds);
  event["exposed_seconds"] = exposed;
  event["rank_skew"] = slowest->busy_seconds / busy - 1;
  event["slowest_rank"] = slowest - ranks.begin();
  if (ranks.size() > kMostRanksListed) return;
  for (const RankClock& rank : ranks) {
    event["rank_busy_seconds"].push_back(rank.busy_seconds);
    event["rank_exposed_seconds"].push_back(rank.exposed_seconds);
  }
}

}  // namespace

void EpochClock::start(const ParallelStrategy& strategy) {
  series_.clear();
  at_start_ = strategy.times();
}

void EpochClock::add(std::int64_t steps, double seconds) {
  if (steps > 0) series_.push_back({seconds / static_cast<double>(steps), steps});
}

double EpochClock::percentile(double share) const {
  std::vector<Series> sorted = series_;
  std::ranges::sort(sorted, {}, &Series::seconds_of_step);
  std::int64_t all = 0, so_far = 0;
  for (const Series& one : sorted) all += one.steps;
  const auto wanted = static_cast<std::int64_t>(std::ceil(share * static_cast<double>(all)));
  for (const Series& one : sorted) {
    so_far += one.steps;
    if (so_far >= wanted) return one.seconds_of_step;
  }
  return 0;
}

std::uint64_t resident_together(std::span<const RankMemory> ranks) {
  std::uint64_t all = 0, most_shared = 0;
  for (const RankMemory& memory : ranks) {
    const std::uint64_t shared = std::min(memory.shared, memory.peak);
    all += memory.peak - shared;
    most_shared = std::max(most_shared, shared);
  }
  return all + most_shared;
}

std::vector<RankClock> EpochClock::all_ranks(const ParallelStrategy& strategy, const Gpu* gpu,
                                             Communicator& comm) const {
  const StepTimes times = strategy.times();
  RankClock mine{.resident = resident_bytes(), .peak_resident = peak_resident_bytes()};
  if (gpu != nullptr) {  // whose host does not see how long it waits
    const DeviceMemoryUse use = gpu->device->memory_use();
    mine.device = use.allocated;
    mine.peak_device = use.most_allocated;
  } else {
    mine.exposed_seconds = times.exposed - at_start_.exposed;
    mine.busy_seconds = times.total - at_start_.total - mine.exposed_seconds;
  }
  return gather(comm, mine);
}

void EpochClock::add_to(nlohmann::ordered_json& event, const std::vector<RankClock>& ranks) const {
  if (!series_.empty()) {
    event["step_seconds_p50"] = percentile(0.5);
    event["step_seconds_p90"] = percentile(0.9);
    event["step_seconds_p99"] = percentile(0.99);
  }
  event["resident_bytes"] = most(ranks, &RankClock::resident);
  event["peak_resident_bytes"] = most(ranks, &RankClock::peak_resident);
  if (most(ranks, &RankClock::peak_device) > 0) {
    event["device_bytes"] = most(ranks, &RankClock::device);
    event["peak_device_bytes"] = most(ranks, &RankClock::peak_device);
  }
  if (ranks.size() > 1 && most(ranks, &RankClock::busy_seconds) > 0) add_comparison(event, ranks);
}

}  // namespace lockstep
