// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One case of `bench kernels` with its memory, ready to be queued natively and by the vendor.
#pragma once

#include "kernels/device/device.hpp"
#include "kernels/device/device_ops.hpp"
#include "kernels/vendor/vendor.hpp"
#include "trainer/bench/bench_memory.hpp"
#include "trainer/bench/graph_timer.hpp"
#include "trainer/bench/kernel_cases.hpp"

namespace lockstep::bench {

/// Who is measured. Vendors may be null.
struct ComparedOps {
  DeviceOps& native;
  VendorOps* vendor = nullptr;   ///< for whole ops
  VendorOps* fastest = nullptr;  ///< for the library's calls alone
};

/// What is queued for each column of the table; empty: there is no such rival, as for ops of which the vendor
/// has none. A call works on the inputs and outputs of set `call % sets`; weights and sums are the same for
/// all.
struct KernelComparison {
  QueueCall native, vendor, library;
  QueueCall restore;  ///< queued before each call because the op destroys its input; timed on its own, too
};

/// @param sets  at least 1
KernelComparison make_comparison(const KernelCase& kernel, int grain, int sets, const ComparedOps& compared,
                                 BenchMemory& memory);

}  // namespace lockstep::bench
