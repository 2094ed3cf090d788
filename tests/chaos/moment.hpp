// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// When to strike: while the run starts, at some step, or in the middle of a save.
#pragma once

#include "tests/chaos/child_process.hpp"
#include "tests/chaos/dice.hpp"

#include <chrono>
#include <cstdint>
#include <string>

namespace lockstep::chaos {

struct Moment {
  enum class Kind { kStartUp, kStep, kSave };
  Kind kind = Kind::kStartUp;
  std::int64_t step = 0;              ///< wait until this one is logged (not for kStartUp)
  std::chrono::microseconds delay{};  ///< and then so long

  std::string describe() const;
};

/// A quarter of them in the first 0.7 s, a third when a save is seen under way, the others anywhere; steps
/// are counted from `first_step`, where the run goes on.
Moment random_moment(Dice& dice, std::int64_t first_step);

/// Returns when the moment has come: true; or when the process has ended: false.
/// @throws Violation if neither happens and no step is logged in two minutes
bool await(const Moment& moment, ChildProcess& process, const std::string& run_dir);

}  // namespace lockstep::chaos
