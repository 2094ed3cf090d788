// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Ranks and threads take grains of the set; sums are of integers, so that no rank's share shows.
#include "trainer/engine/evaluator.hpp"

#include "comm/collectives.hpp"
#include "common/text_layout.hpp"
#include "trainer/engine/memory_need.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>

namespace lockstep {

const char* name_of_scores(LossKind loss) {
  switch (loss) {
    case LossKind::kCrossEntropy:
      return "softmax";
    case LossKind::kBinaryCrossEntropy:
      return "sigmoid";
    case LossKind::kMeanSquares:
      break;
  }
  return "outputs";
}

bool are_probabilities(LossKind loss) {
  return loss != LossKind::kMeanSquares;
}

void score_classes(LossKind loss, const LossShape& shape, const float* logits, float* scores) {
  if (loss == LossKind::kCrossEntropy) cpu::log_softmax(shape, logits, scores);
  const auto score_of = [&](std::size_t i) {
    if (loss == LossKind::kCrossEntropy) return std::exp(scores[i]);
    if (loss == LossKind::kMeanSquares) return logits[i];
    return std::isfinite(logits[i]) ? 1 / (1 + std::exp(-logits[i])) : NAN;
  };
  for (int c = 0; c < shape.classes; ++c) {
    const std::size_t row = static_cast<std::size_t>(c) * static_cast<std::size_t>(shape.batch);
    for (int s = 0; s < shape.samples; ++s)
      scores[row + static_cast<std::size_t>(s)] = score_of(row + static_cast<std::size_t>(s));
  }
}

std::string score_text(LossKind loss, double score) {
  return are_probabilities(loss) ? fmt::format("{:.2f} %", 100 * score) : fmt::format("{:.3f}", score);
}

namespace {

LossSums evaluate_grain(ThreadContext& thread, const BatchLoader& loader, const EvaluatedGrains& grains,
                        std::int64_t number, const LossShape& loss, std::span<const float> weights) {
  const std::vector<std::int32_t> indices = grains.samples(number);
  const int samples = static_cast<int>(indices.size());
  const int columns = thread.columns_for(samples);
  loader.load(indices, columns, thread.execution.input(), thread.labels.data());
  grains.prefetch_behind(number, loader);
  const float* logits = thread.execution.forward_evaluation(weights.data(), columns);
  LossSums sums;
  cpu::loss_and_gradient({.batch = columns, .samples = samples, .classes = loss.classes, .rule = loss.rule},
                         logits, thread.labels.data(), nullptr, &sums);
  return sums;
}

}  // namespace

EvaluatedGrains::EvaluatedGrains(std::int64_t samples, int grain, int rank, int ranks, int threads)
    : all_samples_(samples), grain_(grain), threads_(threads) {
  const std::int64_t grains = (samples + grain - 1) / grain;
  first_ = grains * rank / ranks;
  last_ = grains * (rank + 1) / ranks;
}

std::vector<std::int32_t> EvaluatedGrains::samples(std::int64_t number) const {
  std::vector<std::int32_t> indices(static_cast<std::size_t>(size(number)));
  std::iota(indices.begin(), indices.end(), static_cast<std::int32_t>(number * grain_));
  return indices;
}

void EvaluatedGrains::prefetch_behind(std::int64_t number, const BatchLoader& loader) const {
  if (number + threads_ < last_) loader.prefetch(samples(number + threads_));
}

Evaluation evaluate(Communicator& comm, WorkerPool& pool, std::vector<ThreadContext>& threads,
                    const Dataset& data, LossKind loss, int grain, std::span<const float> weights,
                    const LeaveEvaluation& leave, UnreadSamples* unread) {
  UnreadSamples thrown;
  UnreadSamples& kept = unread != nullptr ? *unread : thrown;
  const BatchLoader loader(data);
  const EvaluatedGrains grains(data.size(), grain, comm.rank(), comm.size(), pool.threads());
  const LossShape shape{.classes = data.classes, .rule = evaluation_rule(loss, data)};
  std::atomic<std::int64_t> next = grains.first();
  std::vector<EvaluationSums> sums(threads.size());
  std::atomic<bool> left = false;
  pool.run([&](int index) {
    const auto thread = static_cast<std::size_t>(index);
    for (std::int64_t g = next++; g < grains.last() && !left; g = next++) {
      if (leave()) left = true;
      const auto evaluate_one = [&] {
        sums[thread].add(evaluate_grain(threads[thread], loader, grains, g, shape, weights), grains.size(g));
      };
      if (!kept.attempt(evaluate_one)) left = true;
    }
  });
  EvaluationSums total;
  for (const EvaluationSums& part : sums) total.add(part);
  if (left) total.leave();
  return total.over_all(comm);
}

Evaluation make_evaluation(std::int64_t samples, std::int64_t correct, std::int64_t not_finite,
                           double loss_sum) {
  const double mean = loss_sum / static_cast<double>(std::max<std::int64_t>(samples, 1));
  return {.samples = samples,
          .correct = correct,
          .not_finite = not_finite,
          .loss = not_finite == 0 ? mean : std::numeric_limits<double>::quiet_NaN()};
}

std::string describe_loss(const Evaluation& evaluation) {
  if (evaluation.not_finite == 0) return format_loss(evaluation.loss);
  return fmt::format("not finite ({} of {})", with_thousands(evaluation.not_finite),
                     counted(evaluation.samples, "sample"));
}

// Sums of grains, of threads and of ranks.

void EvaluationSums::add(const LossSums& sums, int samples) {
  numbers_[kSampleCount] += samples;
  numbers_[kCorrectCount] += sums.correct;
  numbers_[kNotFinite] += sums.not_finite;
  const WideSum term = wide_term(sums.loss * kLossScale);
  for (std::size_t i = 0; i < term.limbs.size(); ++i) numbers_[kLimbs + i] += term.limbs[i];
}

void EvaluationSums::add(const EvaluationSums& other) {
  for (std::size_t i = 0; i < numbers_.size(); ++i) numbers_[i] += other.numbers_[i];
}

void EvaluationSums::add(const StepTotals& totals) {
  numbers_[kSampleCount] += totals.samples;
  numbers_[kCorrectCount] += totals.correct;
  numbers_[kNotFinite] += totals.refused;
  for (std::size_t i = 0; i < totals.loss_units.limbs.size(); ++i)
    numbers_[kLimbs + i] += totals.loss_units.limbs[i];
}

Evaluation EvaluationSums::over_all(Communicator& comm) const {
  std::array<std::int64_t, kNumbers> total = numbers_;
  comm.all_reduce(std::span<std::int64_t>(total));
  WideSum loss;
  std::copy_n(total.begin() + kLimbs, kWideLimbs, loss.limbs.begin());
  Evaluation evaluation = make_evaluation(total[kSampleCount], total[kCorrectCount], total[kNotFinite],
                                          loss.value() / kLossScale);
  evaluation.interrupted = total[kLeft] > 0;
  return evaluation;
}

// Batches are queued share by share; counters come back at the end.

namespace {

struct EvaluatedShare {
  std::int64_t first, last;  ///< the last one excluded
};

EvaluatedShare share_of(std::int64_t samples, const Communicator& comm) {
  return {samples * comm.rank() / comm.size(), samples * (comm.rank() + 1) / comm.size()};
}

/// Samples of a batch.
std::int64_t most_of(const Dataset& data, std::int64_t most, const Communicator* streams_to) {
  most = std::min(most, data.size());
  return streams_to == nullptr ? most : streamed_at_once(most, row_bytes_of(data));
}

/// Of batches of so many samples.
std::optional<Streaming> streaming_to(const Communicator* comm, const Dataset& data, std::int64_t most) {
  if (comm == nullptr) return std::nullopt;
  const auto [first, last] = share_of(data.size(), *comm);
  return Streaming{{.columns = static_cast<int>(most), .steps = kEvaluationRingSteps},
                   evaluated_rows(first, last, most)};
}

}  // namespace

DeviceEvaluator::DeviceEvaluator(const Network& network, const Gpu& gpu, Stream& stream, const Dataset& data,
                                 LossKind loss, std::int64_t most, const Communicator* streams_to)
    : gpu_(gpu),
      stream_(stream),
      classes_(network.classes()),
      loss_(*gpu.device, stream, evaluation_rule(loss, data), data),
      data_(*gpu.device, stream, data, nullptr,
            streaming_to(streams_to, data, most_of(data, most, streams_to))),
      execution_(network, *gpu.device, *gpu.ops, static_cast<int>(most_of(data, most, streams_to)),
                 DeviceExecution::Purpose::kEvaluation),
      counters_(*gpu.device, kCounterSlots),
      host_counters_(*gpu.device, kCounterSlots),
      ended_{gpu.device->make_event(), gpu.device->make_event()} {}

Evaluation DeviceEvaluator::evaluate(Communicator& comm, const float* weights, const LeaveEvaluation& leave,
                                     UnreadSamples* unread) {
  UnreadSamples thrown;
  stream_.fill_zero(counters_.data(), counters_.bytes());
  const bool finished = queue_share(comm, weights, leave, unread != nullptr ? *unread : thrown);
  stream_.copy_to_host(host_counters_.data(), counters_.data(), counters_.bytes());
  stream_.record(*ended_.front());
  wait_for(*ended_.front(), comm, "an evaluation on the GPU", nullptr);
  EvaluationSums sums;
  sums.add(decode(host_counters_.span().first(kStepCounters)).totals());
  if (!finished) sums.leave();
  return sums.over_all(comm);
}

/// False if it was left before its end.
bool DeviceEvaluator::queue_share(Communicator& comm, const float* weights, const LeaveEvaluation& leave,
                                  UnreadSamples& unread) {
  auto [first, last] = share_of(data_.size(), comm);
  for (std::size_t batches = 0; first < last; ++batches) {
    Event& ended = *ended_[batches % ended_.size()];
    if (batches >= ended_.size()) wait_for(ended, comm, "an evaluation on the GPU", nullptr);
    if (leave()) return false;
    const auto batch = std::min<std::int64_t>(execution_.max_batch(), last - first);
    StreamedRows rows;
    if (!unread.attempt([&] { rows = await_samples(comm, static_cast<std::int64_t>(batches)); }))
      return false;
    queue_batch(first, static_cast<int>(batch), rows, weights);
    stream_.record(ended);
    first += batch;
  }
  return true;
}

/// The batch before it may still be computed, those before that one are done.
StreamedRows DeviceEvaluator::await_samples(Communicator& comm, std::int64_t number) {
  SampleRing* const ring = data_.ring();
  if (ring == nullptr) return {};
  ring->begin(std::max<std::int64_t>(0, number - 1));
  ring->await(comm, stream_, number + 1);
  return ring->rows_of_step(number);
}

void DeviceEvaluator::queue_batch(std::int64_t first, int batch, const StreamedRows& rows,
                                  const float* weights) {
  DeviceOps& ops = *gpu_.ops;
  ops.gather(stream_, batch, data_.view(), {.first = first, .rows = rows}, execution_.input(),
             execution_.labels());
  const float* logits = execution_.forward_evaluation(stream_, weights, batch);
  const LossTarget target{.labels = execution_.labels(),
                          .counters = counters_.data(),
                          .narrow_limit = narrow_loss_limit(data_.size())};
  ops.loss_and_gradient(stream_,
                        {.batch = batch, .samples = batch, .classes = classes_, .rule = loss_.rule()}, logits,
                        target, nullptr);
}

}  // namespace lockstep
