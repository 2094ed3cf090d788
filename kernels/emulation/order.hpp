// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Settings of the emulated device for tests. The order of its threads, its shared memory, whether the program was
/// built for it, and whether it is visible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

// Random numbers for the order in which threads and blocks run.

namespace lockstep::emulation {

/// Random numbers for orders (splitmix64), restarted when the seed changes. Belongs to one OS thread.
class Order {
 public:
  /// Takes notice of a changed seed.
  void refresh();
  /// In [0, bound); 0 in the natural order.
  std::size_t draw(std::size_t bound) {
    if (natural_) return 0;
    const std::uint64_t number = next_;
    next_ = generate();  // while what was drawn is used
    return static_cast<std::size_t>(((number >> 32) * bound) >> 32);
  }
  /// 0 ... size - 1, shuffled.
  std::vector<std::uint32_t> permutation(std::size_t size);

 private:
  std::uint64_t generate() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }

  std::uint64_t state_ = 0, next_ = 0;
  std::uint64_t version_ = 0;  // 0: never refreshed
  bool natural_ = true;
};

}  // namespace lockstep::emulation

namespace lockstep::emulated {

// The order in which the emulator runs the threads and blocks of a kernel, none of which CUDA promises.

/// 0: the natural order, thread after thread, block after block. Another seed: blocks, threads (at the start
/// and after every barrier or shuffle) and independent operations of a graph run in an order drawn from it. A
/// kernel whose result depends on the order has a race or lacks a barrier.
///
/// Holds for the whole process, from the next launch on. A seed gives one series of orders in
/// every OS thread. Before the first call it is that of the environment variable LOCKSTEP_THREAD_ORDER, or 0.
void set_thread_order(std::uint64_t seed);

// The emulated device as one that the program was not built for.

/// false: asking for a kernel fails as on a GPU for which there is neither machine code nor PTX. Holds for
/// the whole process, and for asking only: kernels still run.
void set_built_for_this_device(bool built);

/// false: a search for devices finds none, as where CUDA_VISIBLE_DEVICES hides them all. For the whole process, and for
/// searches only.
void set_visible(bool visible);

/// Bytes that a block may have from now on, at most 163 KiB; a launch that asks for more fails. For the whole process.
void set_most_shared_bytes(std::size_t bytes);

}  // namespace lockstep::emulated
