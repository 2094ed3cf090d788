// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Runs the threads of one block. Each is a fiber that gives way at barriers and warp operations; threads
/// that never do run one after another on the same fiber.
#pragma once

#include "kernels/emulation/errors.hpp"
#include "kernels/emulation/fiber.hpp"
#include "kernels/emulation/memory.hpp"
#include "kernels/emulation/order.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <string>
#include <vector>

namespace lockstep::emulation {

// CUDA's built-in vector types that kernels use, with its alignments.

struct uint3 {
  unsigned x, y, z;
};

struct dim3 {
  unsigned x, y, z;
  // NOLINTNEXTLINE(google-explicit-constructor): as CUDA's
  constexpr dim3(unsigned vx = 1, unsigned vy = 1, unsigned vz = 1) : x(vx), y(vy), z(vz) {}
};

struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};

// The built-in variables of a kernel: those of the thread that runs now on this OS thread.

extern constinit thread_local uint3 threadIdx, blockIdx, blockDim, gridDim;

// Exchanges among the 32 threads of a warp. A thread deposits a value and a request; when all threads that the
// mask names have done so, every one of them gets its answer.

inline constexpr unsigned kWarpSize = 32;

enum class WarpOp : std::uint8_t { kShuffle, kBallot };

/// A thread's request to its warp.
struct WarpRequest {
  WarpOp op = WarpOp::kBallot;
  std::uint32_t mask = 0;
  unsigned source = 0;      ///< kShuffle: the lane whose value is wanted
  std::uint64_t value = 0;  ///< kShuffle: offered to the others; kBallot: 0 or not
  CallSite call;
};

/// The exchange of one warp. Code that a lane runs for each value is in the header: training on the emulator
/// spends its time there.
class Warp {
 public:
  void reset(unsigned lanes);
  /// A lane asks. True if that completes the exchange for all lanes of its mask, which then have their
  /// answers and wait no more.
  bool arrive(unsigned lane, const WarpRequest& request) {
    waiting_ |= 1U << lane;
    kinds_[lane] = kind(request);
    values_[lane] = request.value;
    sources_[lane] = request.source;
    calls_[lane] = request.call;
    if ((waiting_ & request.mask) != request.mask || !all_ask_the_same(request.mask, kinds_[lane]))
      return false;
    complete(request.op, request.mask);
    return true;
  }
  /// The answer of a lane whose exchange is complete. A value from a lane outside of the mask is all ones.
  std::uint64_t answer(unsigned lane) const { return answers_[lane]; }
  /// A lane has left the kernel.
  void leave(unsigned lane) { present_ &= ~(1U << lane); }
  /// Why the exchange that `lane` waits for cannot complete: "its mask 0xffffffff names lane 7, which has
  /// left the kernel".
  std::string obstacle(unsigned lane) const;

 private:
  /// The kind of an exchange, which all its lanes share.
  static std::uint64_t kind(const WarpRequest& request) {
    return std::uint64_t{request.mask} << 8 | static_cast<std::uint64_t>(request.op);
  }
  std::uint32_t mask_of(unsigned lane) const { return static_cast<std::uint32_t>(kinds_[lane] >> 8); }
  bool all_ask_the_same(std::uint32_t mask, std::uint64_t kind) const {
    std::uint64_t difference = 0;
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      difference |= ((mask >> lane) & 1U) != 0 ? kinds_[lane] ^ kind : 0;
    return difference == 0;
  }
  void complete(WarpOp op, std::uint32_t mask);

  // State of each lane since its last request.
  std::uint64_t kinds_[kWarpSize] = {}, values_[kWarpSize] = {}, answers_[kWarpSize] = {};
  unsigned sources_[kWarpSize] = {};
  CallSite calls_[kWarpSize];
  std::uint32_t present_ = 0, waiting_ = 0;
};

/// A kernel with its arguments: run(context) is one thread of it.
struct Kernel {
  void (*run)(const void* context);
  const void* context;
};

/// Belongs to one OS thread; keeps its fibers from block to block. `here()` is the calling OS thread's.
class BlockRunner {
 public:
  static BlockRunner& here() { return made_ != nullptr ? *made_ : make(); }

  BlockRunner() = default;
  BlockRunner(const BlockRunner&) = delete;
  BlockRunner& operator=(const BlockRunner&) = delete;
  ~BlockRunner();

  /// Runs all threads to their end. blockIdx, blockDim and gridDim are set.
  /// @throws what a thread threw, or InternalError for a fault of the kernel; all other threads are unwound
  void run(const Kernel& kernel, std::size_t shared_bytes);

  // Called by the running thread of a kernel.
  void barrier(const CallSite& call);
  std::uint64_t exchange(const WarpRequest& request);
  unsigned lane() const { return current_->number % kWarpSize; }
  SharedMemory& shared_memory() noexcept { return shared_memory_; }

  Order& order() noexcept { return order_; }

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
  SharedMemory shared_memory_;
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

/// "thread (5,0,0)"
std::string thread_name(const uint3& index);

// Runs the blocks of a launch, one after another.

struct GridShape {
  dim3 grid, block;
  std::size_t shared_bytes = 0;
  CallSite call;  ///< place of the launch
};

/// @throws InternalError if a GPU would refuse such a launch
void check_shape(const GridShape& shape);

/// Returns when all threads have ended.
/// @throws InternalError naming launch, block and thread. Some thread never reaches a barrier or warp
///         operation; or a write just outside of a piece of shared or device memory
/// @throws DeviceError if this processor cannot run kernels at all
void run_grid(const GridShape& shape, const Kernel& kernel);

}  // namespace lockstep::emulation
