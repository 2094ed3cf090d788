// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Buckets leave in plan order, whichever thread completes them; one thread at a time speaks to the other ranks.
#include "comm/reduce/gradient_reducer.hpp"

#include "comm/reduce/gradient_bucket.hpp"
#include "comm/reduce/kept_terms.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "common/text_layout.hpp"
#include "common/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <deque>
#include <iterator>
#include <mutex>
#include <utility>

namespace lockstep {
namespace {

void check_plan(const BucketPlan& plan, std::size_t parameters) {
  std::size_t end = parameters;
  for (const Bucket& bucket : plan.buckets) {
    LOCKSTEP_CHECK(bucket.offset + bucket.size == end);
    end = bucket.offset;
  }
  LOCKSTEP_CHECK(end == 0);
}

}  // namespace

/// Threads meet in three places: a bucket's chunk locks, the atomic counters, and comm_mutex, under which all
/// communication happens. A part is counted as arrived after its sums are written, so a thread that sees a bucket
/// ready sees its sums.
struct GradientReducer::State {
  /// A bucket on its way.
  struct PendingBucket {
    std::unique_ptr<PendingCollective> sum;
    TimeSlice slice;  // begin_ns 0: not traced
  };

  Communicator& comm;
  const GradientUnits& units;
  Determinism determinism;
  double narrow_limit;                 // |loss| of a grain below which one counter holds it
  std::deque<GradientBucket> buckets;  // in plan order; a deque, since atomics cannot move

  std::array<std::atomic<std::int64_t>, kStepCounters> counters{};  // this rank's
  std::mutex refusals_mutex;
  std::vector<TensorRefusals> refusals;  // this rank's; after wait() all ranks'
  KeptTerms terms;                       // this rank's
  std::vector<std::int16_t> exponents;   // the units of the step
  StepTotals totals;
  bool in_step = false;
  SumFingerprints left, arrived;  // one for each tensor, then the counters'; empty unless sums are checked
  SumObserver* observer = nullptr;

  std::mutex comm_mutex;
  std::size_t launched = 0;            // buckets; under comm_mutex
  std::vector<PendingBucket> pending;  // under comm_mutex
  std::atomic<bool> any_pending{false};
  Clock::time_point first_left;  // since when buckets are on their way without a break; under comm_mutex
  Clock::time_point began;       // the step
  ReducerTimes times;            // under comm_mutex

  State(Communicator& c, const BucketPlan& plan, const GradientUnits& u, Determinism d)
      : comm(c),
        units(u),
        determinism(d),
        narrow_limit(narrow_loss_limit(u.global_grains())),
        refusals(u.tensors()),
        terms(u),
        times{.until_left = std::vector<double>(plan.buckets.size())} {
    for (std::size_t i = 0; i < plan.buckets.size(); ++i)
      buckets.emplace_back(plan.buckets[i], units, determinism, i + 1 == plan.buckets.size(),
                           comm.size() == 1);
    if (determinism == Determinism::kWorld && comm.size() > 1) left.resize(u.tensors() + 1);
  }

  void count(int index, std::int64_t amount) {
    at(counters, index).fetch_add(amount, std::memory_order_relaxed);
  }

  StepCounters own_counters() const {
    StepCounters own;
    for (std::size_t i = 0; i < own.values.size(); ++i)
      own.values[i] = counters[i].load(std::memory_order_relaxed);
    return own;
  }

  Timeline* timeline() const { return comm.activity().timeline(); }
  /// Begins the slice of a bucket that leaves now. On a track of its own, since several may be under way.
  TimeSlice begin_slice(std::size_t bucket) const {
    Timeline* const to = timeline();
    if (to == nullptr || !to->is_open()) return {};
    return {.begin_ns = clock_ns(),
            .number = static_cast<std::int64_t>(bucket),
            .track = to->track(fmt::format("bucket {}", bucket)),
            .work = Work::kAllReduce};
  }

  /// The terms of a range of which some did not fit.
  void count_refusals(std::size_t offset, std::size_t size, const float* gradients) {
    const std::lock_guard lock(refusals_mutex);
    std::size_t i = 0;
    for (std::size_t tensor = units.tensor_at(offset); i < size; ++tensor) {
      const float limit = units.format(tensor).limit;
      for (; i < size && offset + i < units.end(tensor); ++i) {
        if (std::abs(gradients[i]) < limit) continue;
        ++(std::isfinite(gradients[i]) ? refusals[tensor].too_large : refusals[tensor].not_finite);
        count(kRefused, 1);
      }
    }
  }

  /// Sums what each rank refused, all ranks having learnt that some did. Or it finds fp32 sums that are not
  /// finite, which are the same everywhere.
  void gather_refusals() {
    if (determinism == Determinism::kWorld) {
      if (totals.refused == 0) return;
      static_assert(sizeof(TensorRefusals) == 2 * sizeof(std::int64_t));
      comm.all_reduce(std::span(&refusals.front().too_large, 2 * refusals.size()));
      return;
    }
    for (const GradientBucket& bucket : buckets) bucket.count_not_finite(refusals);
    for (const TensorRefusals& tensor : refusals) totals.refused += tensor.not_finite;
  }

  /// Calls visit(bucket, begin, count) for the part of the range that lies in each bucket; then that part has arrived.
  void arrive(std::size_t offset, std::size_t size, const auto& visit) {
    bool completed = false;
    std::size_t arrived_here = 0;
    for (GradientBucket& bucket : buckets) {
      const std::size_t begin = std::max(offset, bucket.begin()), end = std::min(offset + size, bucket.end());
      if (begin >= end) continue;
      visit(bucket, begin, end - begin);
      completed |= bucket.arrived(static_cast<std::int64_t>(end - begin));
      arrived_here += end - begin;
    }
    LOCKSTEP_CHECK(arrived_here == size);
    if (completed) launch_ready();
  }

  /// Starts every bucket whose turn it is. Called by the thread that completes one.
  void launch_ready() {
    const std::lock_guard lock(comm_mutex);
    while (launched < buckets.size() && buckets[launched].ready()) launch_next();
  }

  void launch_next() {
    times.until_left[launched] += seconds_since(began);
    GradientBucket& bucket = buckets[launched++];
    comm.activity().bucket_leaves(static_cast<std::int32_t>(launched) - 1);
    if (launched == buckets.size()) bucket.set_counters(own_counters());
    if (comm.size() == 1) return;
    if (!left.empty()) seal(bucket);
    if (pending.empty()) first_left = Clock::now();
    const TimeSlice slice = begin_slice(launched - 1);
    pending.push_back({bucket.start(comm.host_all_reduce()), slice});
    any_pending.store(true, std::memory_order_relaxed);
  }

  /// Takes the fingerprints of a bucket that leaves; the last one carries the sum of all of them.
  void seal(GradientBucket& bucket) {
    bucket.add_own(left);
    if (launched == buckets.size()) bucket.set_fingerprint(whole(left));
    if (observer != nullptr && observer->sees_sums()) observer->sums_leave(bucket.leaving());
  }

  /// The fingerprint of what arrived must be that of what was sent, on all ranks.
  void compare_sums() {
    if (left.empty()) return;
    const auto start = Clock::now();
    if (observer != nullptr && observer->sees_sums())
      for (GradientBucket& bucket : buckets) observer->sums_arrived(bucket.arrived());
    arrived.assign(left.size(), 0);
    for (const GradientBucket& bucket : buckets) bucket.add_result(arrived);
    std::int64_t differences = whole(arrived) == buckets.back().fingerprint() ? 0 : 1;
    comm.all_reduce(std::span(&differences, 1));
    times.comparing += seconds_since(start);
    if (differences == 0) return;
    SumRecord record{.left = left, .kept = SumFingerprints(left.size()), .arrived = arrived};
    for (const GradientBucket& bucket : buckets) bucket.add_own(record.kept);
    throw SumsDifferError(std::move(record));
  }

  /// Lets all progress.
  bool all_over() {
    const bool any_was = !pending.empty();
    std::erase_if(pending, [this](PendingBucket& bucket) {
      if (!bucket.sum->test()) return false;
      if (bucket.slice.begin_ns == 0) return true;
      bucket.slice.end_ns = clock_ns();
      timeline()->add(bucket.slice);
      return true;
    });
    if (any_was && pending.empty()) times.under_way += seconds_since(first_left);
    return pending.empty();
  }

  void add_terms_again(std::size_t tensor) {
    for (GradientBucket& bucket : buckets) std::ranges::fill(bucket.own_sums(tensor), 0);
    for (const auto& [first, values] : terms.pieces(tensor)) {
      auto bucket = buckets.begin();
      while (first < bucket->begin()) ++bucket;  // they go down through the arena
      LOCKSTEP_CHECK(bucket->add(first, values.size(), values.data()));
    }
  }

  /// They travel after the rank's fingerprint, which is compared as that of the last bucket is.
  void reduce_again(std::span<const std::size_t> tensors) {
    SumFingerprints own(left.size());
    for (const GradientBucket& bucket : buckets) bucket.add_own(own);
    for (const std::size_t tensor : tensors) left[tensor] = own[tensor];
    std::vector<std::int64_t> sums{static_cast<std::int64_t>(whole(left))};
    for (const std::size_t tensor : tensors)
      for (GradientBucket& bucket : buckets)
        std::ranges::copy(bucket.own_sums(tensor), std::back_inserter(sums));
    comm.all_reduce(std::span(sums));
    auto from = sums.cbegin();
    buckets.back().arrived_fingerprint() = *from++;
    for (const std::size_t tensor : tensors)
      for (GradientBucket& bucket : buckets)
        for (std::int64_t& sum : bucket.result_sums(tensor)) sum = *from++;
    compare_sums();
  }
};

GradientReducer::GradientReducer(Communicator& comm, const BucketPlan& plan, const GradientUnits& units,
                                 Determinism determinism) {
  check_plan(plan, units.parameters());
  LOCKSTEP_CHECK(determinism == Determinism::kWorld || comm.size() <= static_cast<int>(kMostRanksInFp32));
  state_ = std::make_unique<State>(comm, plan, units, determinism);
}

GradientReducer::~GradientReducer() = default;

void GradientReducer::begin_step(int local_grains, bool stop_requested, bool notes_terms) {
  State& s = *state_;
  LOCKSTEP_CHECK(local_grains >= 0 && !s.in_step);
  s.in_step = true;
  s.began = Clock::now();
  s.launched = 0;
  for (auto& counter : s.counters) counter.store(0, std::memory_order_relaxed);
  s.refusals.assign(s.refusals.size(), {});
  s.left.assign(s.left.size(), 0);
  s.terms.begin_step(notes_terms);
  s.exponents.assign(s.units.exponents().begin(), s.units.exponents().end());
  s.count(kStopRequests, stop_requested ? 1 : 0);
  for (GradientBucket& bucket : s.buckets) {
    const auto elements = static_cast<std::int64_t>(bucket.end() - bucket.begin());
    const bool last = &bucket == &s.buckets.back();
    bucket.begin_step(local_grains * (elements + (last ? 1 : 0)));
  }
  if (local_grains == 0) s.launch_ready();
}

void GradientReducer::add(std::size_t offset, std::size_t size, const GradientTerms& gradients) {
  State& s = *state_;
  s.arrive(offset, size, [&](GradientBucket& bucket, std::size_t begin, std::size_t count) {
    for (int t = 0; t < gradients.count; ++t) {
      const float* from = gradients.term(t) + (begin - offset);
      if (!bucket.add(begin, count, from)) s.count_refusals(begin, count, from);
      if (s.terms.notes()) s.terms.note(begin, {from, count});
    }
  });
}

void GradientReducer::pass_over(std::size_t offset, std::size_t size) {
  state_->arrive(offset, size, [](const GradientBucket&, std::size_t, std::size_t) {});
}

void GradientReducer::add_sums(const LossSums& sums, int samples) {
  State& s = *state_;
  const StepCounters counters = loss_counters(sums, samples, s.narrow_limit);
  for (int i = 0; i < kStepCounters; ++i) s.count(i, at(counters.values, i));
  if (s.buckets.back().arrived(1)) s.launch_ready();
}

void GradientReducer::poll() {
  State& s = *state_;
  if (!s.any_pending.load(std::memory_order_relaxed)) return;
  const std::unique_lock lock(s.comm_mutex, std::try_to_lock);
  if (!lock.owns_lock()) return;  // another thread is at it
  if (s.all_over()) s.any_pending.store(false, std::memory_order_relaxed);
}

double GradientReducer::wait() {
  State& s = *state_;
  const auto start = Clock::now();
  const std::lock_guard lock(s.comm_mutex);
  LOCKSTEP_CHECK(s.in_step && s.launched == s.buckets.size());
  PendingWork all([&s] { return s.all_over(); });
  s.comm.wait(all, fmt::format("the gradients' all-reduce ({})", counted(s.buckets.size(), "bucket")),
              Waiting::kForAll);
  s.in_step = false;
  const double waited = seconds_since(start);
  s.compare_sums();
  s.totals = s.buckets.back().counters().totals();
  s.gather_refusals();
  return s.comm.size() == 1 ? 0 : waited;
}

void GradientReducer::show_to(SumObserver& observer) {
  state_->observer = &observer;
}

const ReducerTimes& GradientReducer::times() const {
  return state_->times;
}

SumFingerprints GradientReducer::Sums::own_fingerprints() const {
  SumFingerprints fingerprints(state_.units.tensors() + 1);
  for (const GradientBucket& bucket : state_.buckets) bucket.add_own(fingerprints);
  fingerprints.pop_back();  // counters
  return fingerprints;
}

std::optional<std::uint64_t> GradientReducer::Sums::fingerprint_that_left() const {
  if (state_.left.empty()) return std::nullopt;
  return whole(state_.left) - state_.left.back();  // without the counters
}

const StepTotals& GradientReducer::Sums::totals() const {
  return state_.totals;
}

std::span<const TensorRefusals> GradientReducer::Sums::refusals() const {
  return state_.refusals;
}

std::vector<TensorRefusals> GradientReducer::Sums::foreseen_refusals() const {
  State& s = state_;
  LOCKSTEP_CHECK(!s.in_step && s.terms.notes() && s.determinism == Determinism::kWorld);
  std::vector<TensorRefusals> refusals(s.units.tensors());
  for (std::size_t i = 0; i < refusals.size(); ++i)
    refusals[i].too_large = s.terms.largest(i) < s.units.format(i).limit ? 0 : 1;
  s.comm.all_reduce(std::span(&refusals.front().too_large, 2 * refusals.size()));
  return refusals;
}

bool GradientReducer::Sums::make_again() {
  State& s = state_;
  LOCKSTEP_CHECK(!s.in_step && s.terms.notes() && s.determinism == Determinism::kWorld);
  const std::vector<std::size_t> tensors = s.units.tensors_changed_from(s.exponents);
  if (s.totals.refused > 0 || !std::ranges::all_of(tensors, [&s](std::size_t t) { return s.terms.keeps(t); }))
    return false;
  for (const std::size_t tensor : tensors) s.add_terms_again(tensor);
  if (s.comm.size() > 1 && !tensors.empty()) s.reduce_again(tensors);
  s.exponents.assign(s.units.exponents().begin(), s.units.exponents().end());
  return true;
}

std::vector<double> GradientReducer::Sums::largest() const {
  std::vector<double> largest(state_.units.tensors());
  for (const GradientBucket& bucket : state_.buckets) bucket.find_largest(largest);
  return largest;
}

void GradientReducer::Sums::mean(float* gradient, const SeeSums& see) {
  LOCKSTEP_CHECK(state_.totals.samples > 0);
  for (GradientBucket& bucket : state_.buckets) bucket.mean(state_.totals.samples, gradient, see);
}

void GradientReducer::Sums::show(const SeeSums& see) {
  for (GradientBucket& bucket : state_.buckets) bucket.show(see);
}

}  // namespace lockstep
