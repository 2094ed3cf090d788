// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The ways to disturb a run, behind one interface.
#pragma once

#include "tests/chaos/attempt.hpp"
#include "tests/chaos/dice.hpp"
#include "tests/chaos/tally.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace lockstep::chaos {

/// How an attempt ended after a blow.
enum class Ending {
  kDisturbed,  ///< it is not done: start again
  kDone,       ///< it ended well in spite of the blow
};

/// Counted by all.
constexpr const char* kHung = "mpirun hung after all ranks were gone, and was killed";

class Disturbance {
 public:
  virtual ~Disturbance() = default;
  Disturbance() = default;
  Disturbance(const Disturbance&) = delete;
  Disturbance& operator=(const Disturbance&) = delete;

  /// Where the next start of a run is computed.
  virtual Placement place(Dice& dice) const { return random_placement(dice); }
  /// Whether its network has layers that look at the whole global batch.
  virtual bool normalises() const { return true; }
  /// Length of the job that is disturbed.
  virtual std::int64_t epochs() const = 0;
  /// Names what will be counted.
  virtual void open_sections(Tally& tally) const = 0;
  /// Strikes a running attempt, waits until all of it has ended and checks how. Adds to `story` what it did.
  /// @throws Violation
  virtual Ending strike(Attempt& attempt, Dice& dice, Tally& tally, std::string& story) const = 0;
  /// Whether records are damaged between two starts, and files of others put beside them.
  virtual bool damages_records() const { return false; }
  /// Whether the run leaves the same set of checkpoints as the undisturbed one (a stop adds one of its own).
  virtual bool keeps_checkpoint_set() const = 0;
};

/// SIGKILL: one rank, all ranks, the launcher, or everything at the same time.
std::unique_ptr<Disturbance> make_kill();
/// The same, and between two starts metrics.jsonl and trail.bin are damaged, and files of others lie beside them.
std::unique_ptr<Disturbance> make_damage();
/// The same, and runs go on in other shapes: stages and replicas of a pipeline, or plain ranks.
std::unique_ptr<Disturbance> make_stage_kill();
/// The same, and runs go on from CPU cores to the emulated device and back.
std::unique_ptr<Disturbance> make_device_kill();
/// One to three of SIGTERM, SIGINT, SIGHUP, SIGUSR1 and SIGUSR2, up to two seconds apart: to the launcher, to
/// GNU timeout, to one rank, or through Slurm's scancel.
/// @param slurm  a Slurm is running here ($SLURM_CONF)
std::unique_ptr<Disturbance> make_signal(bool slurm);

}  // namespace lockstep::chaos
