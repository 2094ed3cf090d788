// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sees how much memory AlignedBuffers ask for, by replacing the aligned operator new[] of the test.
#pragma once

#include <cstddef>

namespace lockstep::test {

/// Forgets what was asked for so far.
void reset_allocation_probe();
/// The largest single aligned array asked for since then, in bytes.
std::size_t largest_aligned_allocation();

}  // namespace lockstep::test
