// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Threads run until each waits or ends; barriers and warps let go whom they held.
#include "kernels/emulation/block.hpp"

#include "common/error.hpp"
#include "kernels/emulation/builtins.hpp"
#include "kernels/emulation/warp.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace lockstep::emulation {

constinit thread_local uint3 threadIdx{}, blockIdx{}, blockDim{}, gridDim{};

namespace {

/// Thrown through the frames of a thread whose block has failed.
struct Abandoned {};

std::string thread_name(const uint3& index) {
  return fmt::format("thread ({},{},{})", index.x, index.y, index.z);
}

}  // namespace

// Code of every switch is in one piece with barrier() and exchange(). A processor expects a return to lead back
// to the latest call. Each return after a switch costs as much as the switch.

[[gnu::always_inline]] inline void BlockRunner::make_ready(Thread& thread) {
  thread.state = State::kReady;
  ready_.push_back(&thread);
}

Fiber& BlockRunner::idle_fiber() {
  if (idle_.empty()) return fibers_.emplace_back(&BlockRunner::serve, fibers_.size());
  Fiber* fiber = idle_.back();
  idle_.pop_back();
  return *fiber;
}

// Goes on with `next`, or, if there is none, with the end of the block. Returns when `self` is resumed.
[[gnu::always_inline]] inline void BlockRunner::resume(Fiber& self, Thread* next) {
  if (next == nullptr) return self.switch_to(main_);
  if (next->fiber != nullptr) return self.switch_to(*next->fiber);
  starting_ = next;
  self.switch_to(idle_fiber());
}

// The first of the threads that can run, or a random one; null when all have ended.
[[gnu::always_inline]] inline BlockRunner::Thread* BlockRunner::next_thread() {
  if (next_ == ready_.size()) {
    ready_.clear();
    next_ = 0;
    if (living_ == 0) return nullptr;
    if (!release_barrier()) fail_where_stuck();
    if (ready_.empty()) return nullptr;
  }
  std::swap(ready_[next_], ready_[next_ + order_.draw(ready_.size() - next_)]);
  return ready_[next_++];
}

[[gnu::always_inline]] inline void BlockRunner::suspend() {
  Thread& self = *current_;
  Thread* next = next_thread();
  if (next != &self) resume(*self.fiber, next);
  current_ = &self;
  threadIdx = self.index;
  if (failure_) throw Abandoned{};
}

constinit thread_local BlockRunner* BlockRunner::made_ = nullptr;

BlockRunner& BlockRunner::make() {
  thread_local BlockRunner runner;
  made_ = &runner;
  return runner;
}

BlockRunner::~BlockRunner() {
  made_ = nullptr;
  starting_ = nullptr;
  for (Fiber* fiber : idle_) main_.switch_to(*fiber);
}

void BlockRunner::run(const Kernel& kernel, std::size_t shared_bytes) {
  kernel_ = kernel;
  failure_ = nullptr;
  shared_memory_.start_block(shared_bytes);
  start_threads();
  resume(main_, next_thread());
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  const std::string damage = shared_memory_.damage();
  if (!damage.empty()) throw InternalError("a thread wrote out of bounds: " + damage);
}

void BlockRunner::start_threads() {
  const std::size_t count = std::size_t{blockDim.x} * blockDim.y * blockDim.z;
  threads_.assign(count, {});
  ready_.clear();
  next_ = 0;
  std::size_t i = 0;
  for (unsigned z = 0; z < blockDim.z; ++z)
    for (unsigned y = 0; y < blockDim.y; ++y)
      for (unsigned x = 0; x < blockDim.x; ++x, ++i) {
        threads_[i].index = {x, y, z};
        threads_[i].number = static_cast<unsigned>(i);
        ready_.push_back(&threads_[i]);
      }
  warps_.resize((count + kWarpSize - 1) / kWarpSize);
  for (std::size_t warp = 0; warp < warps_.size(); ++warp)
    warps_[warp].reset(static_cast<unsigned>(std::min<std::size_t>(kWarpSize, count - warp * kWarpSize)));
  living_ = count;
  at_barrier_ = 0;
}

// The life of a fiber: threads one after another, as long as it meets ones that have not started.
void BlockRunner::serve(Fiber& self) {
  BlockRunner& runner = here();
  while (runner.starting_ != nullptr) {
    Thread* next = std::exchange(runner.starting_, nullptr);
    while (next != nullptr && next->fiber == nullptr) {
      runner.run_thread(*next, self);
      next = runner.next_thread();
    }
    runner.idle_.push_back(&self);
    runner.resume(self, next);
  }
}

void BlockRunner::run_thread(Thread& thread, Fiber& fiber) {
  thread.fiber = &fiber;
  current_ = &thread;
  threadIdx = thread.index;
  try {
    kernel_.run(kernel_.context);
  } catch (const Abandoned&) {  // NOLINT(bugprone-empty-catch): its block has failed already
  } catch (...) {
    if (!failure_) failure_ = std::current_exception();
  }
  thread.state = State::kEnded;
  --living_;
  warps_[thread.number / kWarpSize].leave(thread.number % kWarpSize);
  if (failure_) abandon_threads();
}

void BlockRunner::barrier(const CallSite& call) {
  current_->state = State::kAtBarrier;
  current_->call = call;
  ++at_barrier_;
  suspend();
}

// True if all threads of the block have reached the same barrier.
bool BlockRunner::release_barrier() {
  if (at_barrier_ != threads_.size()) return false;
  for (const Thread& thread : threads_)
    if (thread.call != threads_.front().call) return false;
  at_barrier_ = 0;
  for (Thread& thread : threads_) make_ready(thread);
  return true;
}

std::uint64_t BlockRunner::exchange(const WarpRequest& request) {
  Thread& self = *current_;
  const std::size_t first = self.number / kWarpSize * kWarpSize;
  Warp& warp = warps_[first / kWarpSize];
  const unsigned own = lane();
  if (warp.arrive(own, request)) {
    for (std::uint32_t rest = request.mask & ~(1U << own); rest != 0; rest &= rest - 1)
      make_ready(threads_[first + static_cast<unsigned>(std::countr_zero(rest))]);
  } else {
    self.state = State::kInWarpOp;
    self.call = request.call;
    suspend();
  }
  return warp.answer(own);
}

// No thread can run and some have not ended: names one of them and why.
void BlockRunner::fail_where_stuck() {
  const Thread* stuck = &threads_.front();
  for (const Thread& thread : threads_) {
    if (thread.state == State::kEnded) continue;
    if (stuck->state == State::kEnded ||
        (stuck->state == State::kAtBarrier && thread.state == State::kInWarpOp))
      stuck = &thread;
  }
  failure_ = std::make_exception_ptr(
      InternalError(fmt::format("{} waits forever at {}: {}", thread_name(stuck->index),
                                to_string(stuck->call), stuck_reason(*stuck))));
  abandon_threads();
}

std::string BlockRunner::stuck_reason(const Thread& thread) const {
  if (thread.state == State::kInWarpOp)
    return warps_[thread.number / kWarpSize].obstacle(thread.number % kWarpSize);
  for (const Thread& other : threads_) {
    if (other.state == State::kEnded)
      return thread_name(other.index) + " has left the kernel without reaching this barrier";
    if (other.call != thread.call)
      return fmt::format("{} waits at another barrier, {}", thread_name(other.index), to_string(other.call));
  }
  return {};
}

// Threads that have not started never will; the others are resumed only to be unwound.
void BlockRunner::abandon_threads() {
  ready_.clear();
  next_ = 0;
  living_ = 0;
  for (Thread& thread : threads_) {
    if (thread.fiber == nullptr || thread.state == State::kEnded) continue;
    ++living_;
    ready_.push_back(&thread);
  }
}

// An exchange completes when the last thread that its mask names has arrived with the same request.

void Warp::reset(unsigned lanes) {
  present_ = lanes == kWarpSize ? 0xFFFFFFFFU : (1U << lanes) - 1;
  waiting_ = 0;
}

void Warp::complete(WarpOp op, std::uint32_t mask) {
  std::uint64_t ballot = 0;
  if (op == WarpOp::kBallot)
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      ballot |= ((mask >> lane) & 1U) != 0 && values_[lane] != 0 ? std::uint64_t{1} << lane : 0;
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const bool offered = ((mask >> sources_[lane]) & 1U) != 0;
    answers_[lane] = op == WarpOp::kBallot ? ballot : offered ? values_[sources_[lane]] : ~std::uint64_t{0};
  }
  waiting_ &= ~mask;
}

std::string Warp::obstacle(unsigned lane) const {
  const std::uint32_t mask = mask_of(lane);
  if (((mask >> lane) & 1U) == 0)
    return fmt::format("its mask {:#x} does not name its own lane {}", mask, lane);
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const auto other = static_cast<unsigned>(std::countr_zero(rest));
    if (((present_ >> other) & 1U) == 0)
      return fmt::format("its mask {:#x} names lane {}, which has left the kernel or never was", mask, other);
    if (((waiting_ >> other) & 1U) == 0)
      return fmt::format("its mask {:#x} names lane {}, which waits at a barrier of the block", mask, other);
    if (kinds_[lane] != kinds_[other])
      return fmt::format("its mask {:#x} names lane {}, which waits at {} with mask {:#x}", mask, other,
                         to_string(calls_[other]), mask_of(other));
  }
  return {};
}

}  // namespace lockstep::emulation
