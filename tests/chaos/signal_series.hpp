// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One to three signals in a row, and whom they go to.
#pragma once

#include "tests/chaos/attempt.hpp"
#include "tests/chaos/dice.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::chaos {

struct SentSignal {
  enum class Target { kLauncher, kTimeout, kOneProcess, kSlurm };

  std::string name;  ///< "SIGTERM"; "scancel" for Slurm's own way of ending a job
  int number = 0;
  Target target = Target::kOneProcess;
  std::chrono::milliseconds after{0};  ///< since the one before

  std::string describe() const;
};

struct SignalSeries {
  std::vector<SentSignal> sent;
  bool announced = false;  ///< rank 0 had spoken before the first: all ranks were catching signals by then
  std::int64_t step = 0;   ///< the last one logged then

  /// A launcher was told to end itself, or Slurm to end the job: then it may kill ranks, and its exit code
  /// says nothing about them.
  bool ends_launcher() const;
  std::string describe() const;
};

/// The names of all signals that may be sent.
std::vector<std::string> signal_names();

/// Sends them, one after the other, as long as the attempt has not ended.
SignalSeries send_signals(Attempt& attempt, Dice& dice);

}  // namespace lockstep::chaos
