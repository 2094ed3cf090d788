// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Which sums a step is made of, as a number. Apart from the cuts themselves, so that who changes one of them (for
/// tests/arithmetic/cuts) need not compile what only knows their version.
#pragma once

namespace lockstep {

/// What a checkpoint says of its steps: 2 for the sums of docs/arithmetic.md, on all devices; 1 for those of the versions
/// before, whose CPUs and GPUs rounded each in their own places.
inline constexpr int kArithmeticVersion = 2;

}  // namespace lockstep
