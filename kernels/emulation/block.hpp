// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Runs the threads of one block. Each is a fiber that gives way at barriers and warp operations; threads
/// that never do run one after another on the same fiber.
#pragma once

#include "kernels/emulation/builtins.hpp"
#include "kernels/emulation/errors.hpp"
#include "kernels/emulation/fiber.hpp"
#include "kernels/emulation/memory.hpp"
#include "kernels/emulation/order.hpp"
#include "kernels/emulation/warp.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <string>
#include <vector>

namespace lockstep::emulation {

/// A kernel with its arguments: run(context) is one thread of it.
struct Kernel {
  void (*run)(const void* context);
  const void* context;
};

/// Belongs to one OS thread; keeps its fibers from block to block. `here()` is the calling OS thread's.
class BlockRunner {
 public:
  static BlockRunner& here() { return made_ != nullptr ? *made_ : make(); }

  ~BlockRunner();

  /// Runs all threads to their end. blockIdx, blockDim and gridDim are set.
  /// @throws what a thread threw, or InternalError for a fault of the kernel; all other threads are unwound
  void run(const Kernel& kernel, std::size_t shared_bytes);

  // Called by the running thread of a kernel.
  void barrier(const CallSite& call);
  std::uint64_t exchange(const WarpRequest& request);
  unsigned lane() const { return current_->number % kWarpSize; }
  BlockSharedMemory& shared_memory() noexcept { return shared_memory_; }

  /// Under the seed of now.
  Order& order() {
    order_.refresh();
    return order_;
  }

 private:
  enum class State : std::uint8_t { kReady, kAtBarrier, kInWarpOp, kEnded };
  struct Thread {
    uint3 index{};
    unsigned number = 0;
    State state = State::kReady;
    Fiber* fiber = nullptr;  // null: not started
    CallSite call;           // the call that it waits in
  };

  static BlockRunner& make();
  static void serve(Fiber& self);
  void start_threads();
  void run_thread(Thread& thread, Fiber& fiber);
  void suspend();
  Thread* next_thread();
  bool release_barrier();
  void make_ready(Thread& thread);
  void resume(Fiber& self, Thread* next);
  void fail_where_stuck();
  std::string stuck_reason(const Thread& thread) const;
  void abandon_threads();
  Fiber& idle_fiber();

  static constinit thread_local BlockRunner* made_;

  Order order_;
  BlockSharedMemory shared_memory_;
  Kernel kernel_{};
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<Thread*> ready_;  // from next_ on
  std::size_t next_ = 0;
  std::size_t living_ = 0, at_barrier_ = 0;
  Thread* current_ = nullptr;
  std::exception_ptr failure_;  // set: all threads are being unwound

  Fiber main_;
  std::deque<Fiber> fibers_;
  std::vector<Fiber*> idle_;
  Thread* starting_ = nullptr;  // thread that an idle fiber shall run; null: end
};

// Runs the blocks of a launch, one after another.

struct LaunchShape {
  dim3 grid, block;
  std::size_t shared_bytes = 0;  ///< dynamic
  CallSite call = CallSite::here();
};

/// @throws InternalError if a GPU would refuse such a launch
void check_shape(const LaunchShape& shape);

/// Returns when all threads have ended.
/// @throws InternalError naming launch, block and thread. Some thread never reaches a barrier or warp
///         operation; or a write just outside of a piece of shared or device memory
/// @throws DeviceError if this processor cannot run kernels at all
void run_grid(const LaunchShape& shape, const Kernel& kernel);

}  // namespace lockstep::emulation
