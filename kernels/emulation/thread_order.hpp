// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The order in which the emulator runs the threads and blocks of a kernel, none of which CUDA promises.
#pragma once

#include <cstdint>

namespace lockstep::emulated {

/// 0: the natural order, thread after thread, block after block. Another seed: blocks, threads (at the start
/// and after every barrier or shuffle) and independent operations of a graph run in an order drawn from it. A
/// kernel whose result depends on the order has a race or lacks a barrier.
///
/// Holds for the whole process, from the next launch on; the same seed gives the same series of orders in
/// every OS thread. Before the first call: what the environment variable LOCKSTEP_THREAD_ORDER says, or 0.
void set_thread_order(std::uint64_t seed);

}  // namespace lockstep::emulated
