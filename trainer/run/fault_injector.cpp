// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// All ranks meet before the fault, so that it is written down before it strikes.
#include "trainer/run/fault_injector.hpp"

#include "comm/agreement.hpp"
#include "common/env.hpp"
#include "common/error.hpp"
#include "common/output.hpp"
#include "trainer/checkpoint/directory.hpp"
#include "trainer/ranks/checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <span>
#include <string_view>
#include <thread>

namespace lockstep {
namespace {

using Kind = Fault::Kind;

/// @param sticks  it becomes 1; otherwise the other one
template <typename Number>
void change_bit_of(Number& number, unsigned bit, bool sticks = false) {
  const auto bytes = std::as_writable_bytes(std::span(&number, 1));
  bit %= 8 * sizeof(Number);
  const std::byte mask = std::byte{1} << (bit % 8);
  sticks ? bytes[bit / 8] |= mask : bytes[bit / 8] ^= mask;
}

template <typename Number>
void change(Number& number, const Fault& fault) {
  if (fault.pattern == Fault::Pattern::kStuck) return change_bit_of(number, fault.bit, true);
  change_bit_of(number, fault.bit);
  if (fault.pattern == Fault::Pattern::kOne) return;
  for (const unsigned above : {1, 3, 7}) change_bit_of(number, fault.bit + above);
}

/// Changes the numbers [first, first + numbers.size()) of a buffer of `size`.
template <typename Number>
void change_part(std::span<Number> numbers, std::size_t first, std::size_t size, const Fault& fault) {
  constexpr std::size_t kStuckEvery = 32;
  const std::size_t place = fault.element.value_or(size / 2) % size;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::size_t at = first + i;
    const bool is_hit =
        fault.pattern == Fault::Pattern::kStuck ? at % kStuckEvery == place % kStuckEvery : at == place;
    if (is_hit) change(numbers[i], fault);
  }
}

template <typename Number>
void change_all(std::span<Number> numbers, const Fault& fault) {
  change_part(numbers, 0, numbers.size(), fault);
}

void sleep(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

void be_busy(double seconds) {
  const double end = thread_seconds() + seconds;
  while (thread_seconds() < end) {
  }
}

/// From its step on, in place of once.
bool lasts(Kind kind) {
  return kind == Kind::kSlow || kind == Kind::kBusy;
}

/// The part of a step that a fault changes. Those that change none: as if it were the samples.
Sight sight_of(const Fault& fault) {
  using Target = Fault::Target;
  static const std::map<Target, Sight> kOfFlippedBits = {
      {Target::kWeights, Sight::kState},       {Target::kOptimizer, Sight::kState},
      {Target::kStatistics, Sight::kState},    {Target::kGradient, Sight::kSums},
      {Target::kSums, Sight::kSumsOnTheirWay}, {Target::kLink, Sight::kSumsOnTheirWay},
      {Target::kMessage, Sight::kMessages},    {Target::kData, Sight::kSamples}};
  if (fault.kind == Kind::kFlipBit) return kOfFlippedBits.at(fault.target);
  if (fault.kind == Kind::kNan) return Sight::kState;
  if (fault.kind == Kind::kStale || fault.kind == Kind::kSwapped) return Sight::kSumsOnTheirWay;
  const bool of_outputs =
      lasts(fault.kind) || fault.kind == Kind::kWrongForward || fault.kind == Kind::kWrongLane;
  return of_outputs ? Sight::kOutputs : Sight::kSamples;
}

}  // namespace

void refuse_faults_unless_allowed(const Job& job) {
  if (!job.inject.is_given()) return;
  const char* allowed = std::getenv("LOCKSTEP_ALLOW_INJECT");  // NOLINT(concurrency-mt-unsafe)
  if (allowed != nullptr && std::string_view(allowed) == "1") return;
  throw ConfigError(fmt::format(
      "{}inject makes a rank fail on purpose, and is only for tests: set LOCKSTEP_ALLOW_INJECT=1 if that is "
      "what you want (mpirun -x LOCKSTEP_ALLOW_INJECT=1 sets it on all hosts), or remove inject",
      place_of(job, "inject.what")));
}

FaultInjector::FaultInjector(const Job& job, const JobSetup& setup, TrainTestData& data, Communicator& comm,
                             ParallelStrategy& strategy)
    : fault_(parse_fault(job.inject.what).value()),
      sight_(sight_of(fault_)),
      rank_(job.inject.rank),
      step_(job.inject.step),
      story_(fmt::format("rank {}, before step {}: {}", rank_, step_, job.inject.what)),
      marker_(job.run.dir + "/injected"),
      setup_(setup),
      data_(data),
      comm_(comm),
      strategy_(strategy),
      slows_steps_(job.parallel.strategy == "data" && setup.device.gpu == nullptr) {
  agree(comm, [&] {
    if (rank_ >= comm_.size())
      throw ConfigError(
          fmt::format("inject.rank: there is no rank {}, only 0 to {}", rank_, comm_.size() - 1));
    if (comm_.rank() != 0 || lasts(fault_.kind)) return;
    struck_ = !job.run.starts_anew() && is_file(Env::posix(), marker_) &&
              as_text(Env::posix().read(marker_)) == story_ + "\n";
  });
  broadcast(comm_, struck_);
}

std::int64_t FaultInjector::series_from(std::int64_t steps_taken, std::int64_t count) const {
  if (steps_taken >= step_ - 1) return lasts(fault_.kind) ? 1 : count;
  return std::min(count, step_ - 1 - steps_taken);
}

void FaultInjector::before_series(std::int64_t steps_taken) {
  if (lasts(fault_.kind) && steps_taken >= step_) return slow_down();
  if (struck_ || steps_taken != step_ - 1) return;
  agree(comm_, [&] {
    if (comm_.rank() != 0) return;
    print_error(fmt::format("injected on purpose: {}", story_));
    if (!lasts(fault_.kind)) replace_file(Env::posix(), marker_, story_ + "\n");
  });
  if (is_mine()) strike();
}

void FaultInjector::strike() {
  switch (fault_.kind) {
    case Kind::kDie:
      std::raise(SIGKILL);
      return;
    case Kind::kStop:
      std::raise(SIGSTOP);
      return;
    case Kind::kDelay:
      return sleep(fault_.amount);
    case Kind::kSlow:
    case Kind::kBusy:
      last_series_ = Clock::now();
      return;
    case Kind::kDropNetwork: {
      if (comm_.watch() != nullptr) comm_.watch()->drop_network();
      PendingWork network([] { return false; });
      return comm_.wait(network, "the network, from which inject cut it off");
    }
    case Kind::kDesync:
      return comm_.barrier();
    default:  // the others change numbers
      strategy_.require_sight(sight_);
      if (sight_ == Sight::kSamples) return flip_bits_of_a_sample();
      if (sight_ != Sight::kState) return armed_.store(true);
      return strategy_.visit_own_state([this](const TrainedState& own) {
        change_state(own);
        return true;
      });
  }
}

/// By a share of the time since the last series: what was added then is in it, too.
void FaultInjector::slow_down() {
  if (!is_mine()) return;
  if (last_series_ == Clock::time_point()) last_series_ = Clock::now();
  const double taken = seconds_since(last_series_);
  last_series_ = Clock::now();
  lost_seconds_ = taken * fault_.amount / (1 + fault_.amount);
  if (slows_steps_) return armed_.store(true);
  lose_time();
}

void FaultInjector::lose_time() const {
  fault_.kind == Kind::kSlow ? sleep(lost_seconds_) : be_busy(lost_seconds_);
}

void FaultInjector::change_state(const TrainedState& trained) const {
  if (fault_.kind == Kind::kNan) {
    trained.weights[trained.weights.size() / 2] = std::numeric_limits<float>::quiet_NaN();
    return;
  }
  if (fault_.target == Fault::Target::kWeights) return change_all(trained.weights, fault_);
  if (fault_.target == Fault::Target::kStatistics) {
    const auto kept = trained.weights.subspan(setup_.network.parameters().size);
    if (kept.empty()) throw ConfigError("inject.what: this network keeps no running statistics");
    return change_all(kept, fault_);
  }
  if (trained.optimizer.empty()) throw ConfigError("inject.what: this optimizer remembers nothing");
  const std::size_t each = trained.optimizer.front().values.size();
  for (std::size_t i = 0; i < trained.optimizer.size(); ++i)
    change_part(trained.optimizer[i].values, i * each, trained.optimizer.size() * each, fault_);
}

void FaultInjector::outputs_computed(std::span<float> outputs, int lanes) {
  if (!strikes(Sight::kOutputs)) return;
  if (lasts(fault_.kind)) return lose_time();
  if (fault_.kind == Kind::kWrongForward) {
    std::rotate(outputs.begin(), outputs.begin() + lanes, outputs.end());
  } else {
    outputs.front() += 1;
  }
}

void FaultInjector::message_arrived(std::span<float> message) {
  if (strikes(Sight::kMessages)) change_all(message, fault_);
}

void FaultInjector::sums_leave(const ShownSums& shown) {
  if (!is_armed(Sight::kSumsOnTheirWay)) return;
  if (fault_.kind == Kind::kStale) {
    sums_before_[shown.first].assign(shown.before.begin(), shown.before.end());
  } else if (fault_.kind == Kind::kFlipBit && fault_.target == Fault::Target::kSums) {
    change_part(shown.sums, shown.first, shown.all, fault_);
  }
}

void FaultInjector::sums_arrived(const ShownSums& shown) {
  if (!is_armed(Sight::kSumsOnTheirWay)) return;
  if (fault_.kind == Kind::kSwapped) {
    std::rotate(shown.sums.begin(), shown.sums.begin() + std::ssize(shown.sums) / 2, shown.sums.end());
  } else if (fault_.kind == Kind::kStale) {
    std::ranges::copy(sums_before_[shown.first], shown.sums.begin());
  } else if (fault_.target == Fault::Target::kLink) {
    change_part(shown.sums, shown.first, shown.all, fault_);
  }
  if (shown.first == 0) armed_ = false;  // the last bucket
}

void FaultInjector::before_update(ReducedStep& step) {
  if (!strikes(Sight::kSums)) return;
  step.show_sums([this](std::size_t /*tensor*/, std::size_t first, std::span<std::int64_t> sums) {
    change_part(sums, first, setup_.network.parameters().size, fault_);
  });
}

/// One that this rank computes in the step to come.
void FaultInjector::flip_bits_of_a_sample() {
  if (setup_.device.gpu != nullptr)
    throw ConfigError("inject.what: data on a GPU cannot be reached; use parallel.device=cpu");
  if (data_.train.stays_on_disk())
    throw ConfigError("inject.what: samples on disk cannot be reached; use data.in_memory=true");
  DistributedSampler sampler = strategy_.sampler();
  const std::int64_t step = (step_ - 1) % sampler.steps_per_epoch();
  const auto grains = sampler.local_grains(step);
  if (grains.empty()) throw ConfigError("inject.rank: this rank has no sample in that step");
  sampler.set_epoch((step_ - 1) / sampler.steps_per_epoch());
  const auto sample = static_cast<std::size_t>(sampler.indices(step, grains.front()).front());
  const auto size = static_cast<std::size_t>(data_.train.shape.features());
  const auto flip = [&](auto numbers) {
    change_all(std::as_writable_bytes(numbers.subspan(sample * size, size)), fault_);
  };
  data_.train.images.size() > 0 ? flip(data_.train.images.span()) : flip(data_.train.features.span());
}

}  // namespace lockstep
