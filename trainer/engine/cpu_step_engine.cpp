// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// CpuStepEngine: threads take grains, buckets leave as soon as all have added theirs, and the optimiser follows.
#include "trainer/engine/cpu_step_engine.hpp"

#include "common/machine.hpp"
#include "trainer/config/job.hpp"

#include <algorithm>
#include <atomic>
#include <functional>

namespace lockstep {
namespace {

std::vector<ThreadContext> make_threads(const Job& job, const JobSetup& setup) {
  std::vector<ThreadContext> threads;
  threads.reserve(static_cast<std::size_t>(job.parallel.threads));
  for (int i = 0; i < job.parallel.threads; ++i) threads.emplace_back(setup.network, job.parallel.grain);
  return threads;
}

/// Of a full batch or of an epoch's last one, whose grains are dealt anew: now and then it gives a rank more.
std::size_t most_grains(const DistributedSampler& sampler) {
  return std::max(sampler.local_grains(0).size(), sampler.local_grains(sampler.steps_per_epoch() - 1).size());
}

}  // namespace

CpuStepEngine::CpuStepEngine(const Job& job, const JobSetup& setup, Communicator& comm)
    : network_(setup.network),
      test_(setup.data->test),
      comm_(comm),
      grain_(job.parallel.grain),
      seed_(job.train.seed),
      sampler_(sampler_options(job, setup.data->train, comm)),
      loader_(setup.data->train),
      pool_(job.parallel.threads),
      threads_(make_threads(job, setup)),
      weights_(setup.network.parameters().weights_size()),
      gradient_(setup.network.parameters().size),
      update_(job, setup.network.parameters(), sampler_.steps_per_epoch()),
      buffers_(update_.buffer_names(), setup.network.parameters().size),
      determinism_(job.parallel.determinism),
      units_(make_gradient_units(setup.network, sampler_.batch_grains(0))),
      reducer_(comm, setup.plan, units_, determinism_),
      cut_step_(setup.network, comm, pool_, threads_, most_grains(sampler_)) {
  const ParameterLayout& parameters = setup.network.parameters();
  if (keeps_trail(job))
    fingerprints_.emplace(fingerprint_layout(parameters, buffers_.count()), held_tensors(parameters));
  if (comm.watch() != nullptr) pool_.run([&](int /*thread*/) { comm.activity().computes_here(); });
}

StepSeries CpuStepEngine::run(const StepPosition& position, std::int64_t count, bool stop_requested) {
  StepSeries series;
  while (series.steps < count && !series.failure) step(after(position, series.steps), stop_requested, series);
  return series;
}

Evaluation CpuStepEngine::evaluate(const LeaveEvaluation& leave) {
  return lockstep::evaluate(comm_, pool_, threads_, test_, grain_, weights_.span(), leave);
}

void CpuStepEngine::step(const StepPosition& position, bool stop_requested, StepSeries& series) {
  const auto start = Clock::now();
  RankActivity& activity = comm_.activity();
  activity.begin_step(position.global_step + 1);
  StepTrial trial(units_, position.global_step);
  const bool taken = reduce(position, stop_requested, trial) == StepTrial::Outcome::kTake;
  const auto reduced = Clock::now();
  activity.enter(Phase::kUpdating);
  if (taken) {
    take(position, series);
  } else {
    series.last = reducer_.totals();
    series.failure = trial.failure();
  }
  times_.optimizer += seconds_since(reduced);
  times_.total += seconds_since(start);
}

void CpuStepEngine::take(const StepPosition& position, StepSeries& series) {
  const StepScalars scalars = update_.scalars(position.global_step);
  if (fingerprints_) {
    update_seen(scalars, fingerprints_->append_empty(series.fingerprints));
  } else {
    reducer_.mean_gradient(gradient_.data(), probe_);
    update(scalars, update_.tensors());
  }
  probe_ = nullptr;
  cut_step_.move_kept(weights_.data());
  series.add(reducer_.totals());
}

void CpuStepEngine::update(const StepScalars& scalars, std::span<const UpdateTensor> tensors) {
  cpu::update(update_.rule(), scalars, tensors, gradient_.data(), buffers_.pointers(), weights_.data());
}

/// The same numbers. Sums, weights and buffers are read by two, a little at a time, while the cache has them.
void CpuStepEngine::update_seen(const StepScalars& scalars, HostFingerprints::Row row) {
  reducer_.mean_gradient(gradient_.data(), [&](auto tensor, auto first, auto sums) {
    if (probe_) probe_(tensor, first, sums);
    fingerprints_->add_sums(row, tensor, first, sums);
  });
  const auto see = [&](std::size_t first, std::size_t size) {
    fingerprints_->add_state(row, first, size, weights_.span(), buffers_);
  };
  constexpr std::size_t kNear = 2048;
  for (UpdateTensor tensor : update_.tensors()) {
    const std::size_t end = tensor.offset + tensor.size,
                      at_once = uses_norms(update_.rule()) ? tensor.size : kNear;
    for (; tensor.offset < end; tensor.offset += at_once) {
      tensor.size = std::min(at_once, end - tensor.offset);
      see(tensor.offset, tensor.size);
      update(scalars, {&tensor, 1});
    }
  }
  see(gradient_.size(), weights_.size() - gradient_.size());  // what is kept beside the parameters
}

StepTrial::Outcome CpuStepEngine::reduce(const StepPosition& position, bool stop_requested,
                                         StepTrial& trial) {
  sampler_.set_epoch(position.epoch);
  const auto grains = sampler_.local_grains(position.step_in_epoch);
  std::function<std::vector<double>()> largest_sums;
  if (determinism_ == Determinism::kWorld) largest_sums = [this] { return reducer_.largest_sums(); };
  for (;;) {
    if (cut_step_.needed()) {
      compute_between_cuts(position, grains, stop_requested);
    } else {
      reducer_.begin_step(static_cast<int>(grains.size()), stop_requested);
      compute(position, grains);
    }
    comm_.activity().enter(Phase::kReducing);
    times_.exposed += reducer_.wait();
    const auto outcome = trial.decide(reducer_.totals(), reducer_.refusals(), largest_sums);
    if (outcome != StepTrial::Outcome::kRepeat) return outcome;
  }
}

void CpuStepEngine::compute(const StepPosition& position, const std::vector<Grain>& grains) {
  std::atomic<std::size_t> next = 0;
  pool_.run([&](int index) {
    ThreadContext& thread = threads_[static_cast<std::size_t>(index)];
    for (std::size_t g = next++; g < grains.size(); g = next++) compute_grain(thread, position, grains[g]);
  });
}

void CpuStepEngine::compute_grain(ThreadContext& thread, const StepPosition& position, const Grain& grain) {
  const GrainInWork work{thread, thread.execution, thread.labels, grain};
  begin_grain(work, position, nullptr);
  thread.execution.forward_to_cut(nullptr);
  add_loss(work);
  prefetch_next(position, grain);
  float* gradients = thread.gradients.data();
  const auto add = [&](std::size_t offset, std::size_t size, const GradientTerms& terms) {
    reducer_.add(offset, size, terms);
  };
  thread.execution.backward(weights_.data(), thread.execution.logits(), gradients, add,
                            [&] { reducer_.poll(); });
}

/// On a rank without grains buckets must leave between the sums at cuts, as they do on the others.
void CpuStepEngine::compute_between_cuts(const StepPosition& position, const std::vector<Grain>& grains,
                                         bool stop_requested) {
  reducer_.begin_step(std::max<int>(1, static_cast<int>(grains.size())), stop_requested);
  if (grains.empty()) reducer_.add_sums({}, 0);
  const CutStep::Calls calls{
      .begin = [&](const GrainInWork& work,
                   BatchStatistics& statistics) { begin_grain(work, position, &statistics); },
      .loss =
          [&](const GrainInWork& work) {
            add_loss(work);
            prefetch_next(position, work.grain);
            work.execution.begin_backward(work.execution.logits());
          }};
  cut_step_.run(grains, sampler_.batch_samples(position.step_in_epoch), calls, reducer_);
  times_.exposed += cut_step_.take_waited();
}

void CpuStepEngine::begin_grain(const GrainInWork& work, const StepPosition& position,
                                BatchStatistics* statistics) {
  const auto start = Clock::now();
  const int columns = work.thread.columns_for(work.grain.samples);
  loader_.load(sampler_.indices(position.step_in_epoch, work.grain), columns, work.execution.input(),
               work.labels.data());
  work.thread.times.input += seconds_since(start);
  const PassKey key{.seed = seed_,
                    .step = static_cast<std::uint32_t>(position.global_step),
                    .first_sample = static_cast<std::uint32_t>(work.grain.first)};
  work.execution.begin_training({.weights = weights_.data(),
                                 .batch = columns,
                                 .samples = work.grain.samples,
                                 .key = key,
                                 .statistics = statistics});
}

/// The logits become their gradient.
void CpuStepEngine::add_loss(const GrainInWork& work) {
  float* logits = work.execution.logits();
  const int columns = work.thread.columns_for(work.grain.samples);
  LossSums sums;
  cpu::softmax_cross_entropy({.batch = columns, .samples = work.grain.samples, .classes = network_.classes()},
                             logits, work.labels.data(), logits, &sums);
  reducer_.add_sums(sums, work.grain.samples);
}

void CpuStepEngine::prefetch_next(const StepPosition& position, const Grain& grain) {
  const auto next = position.step_in_epoch + 1;
  if (next >= sampler_.steps_per_epoch() || sampler_.batch_samples(next) != sampler_.batch_samples(0)) return;
  loader_.prefetch(sampler_.indices(next, grain));
}

StepTimes CpuStepEngine::times() const {
  StepTimes times = times_;
  times.under_way = reducer_.seconds_under_way() - under_way_before_;
  for (const double seconds : reducer_.seconds_until_left()) {
    const std::size_t bucket = times.until_left.size();
    times.until_left.push_back(seconds -
                               (bucket < until_left_before_.size() ? until_left_before_[bucket] : 0));
  }
  for (const ThreadContext& thread : threads_) times.input = std::max(times.input, thread.times.input);
  return times;
}

void CpuStepEngine::reset_times() {
  times_ = {};
  under_way_before_ = reducer_.seconds_under_way();
  const auto left = reducer_.seconds_until_left();
  until_left_before_.assign(left.begin(), left.end());
  for (ThreadContext& thread : threads_) thread.times = {};
}

}  // namespace lockstep
