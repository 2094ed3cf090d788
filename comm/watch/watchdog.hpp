// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Watches the other ranks of a job from a thread: no rank waits silently for a dead one.
#pragma once

#include "comm/communicator.hpp"

#include <memory>

namespace lockstep {

/// Ranks tell each other over TCP, beside MPI and NCCL, that they live and what they do. A dead rank is named at
/// once, a silent one within five seconds; one rank speaks for all. A death ends all ranks, silence and
/// standstill do after a time; then Communicator::wait throws PeerLostError, and a rank that does not get to that
/// within five seconds is ended with exit code 71. The results of a rank do not depend on it.
///
/// One per process, between the communicator's start and its end. Ends in good order when it is destroyed:
/// from then on this rank is not missed.
class Watchdog : public PeerWatch {
 public:
  /// Collective. Null, on all ranks, with one rank; and where a rank cannot be listened to, which rank 0 says.
  /// Borrows comm.
  static std::unique_ptr<Watchdog> start(Communicator& comm);

  /// This rank cannot go on because another is lost, it seems. Returns when that has been said for all ranks,
  /// by this one or another; false: it could not be.
  virtual bool accounts_for_loss() = 0;
  /// This rank is about to end with this code for other reasons, which it says itself. The others need
  /// not look for them.
  virtual void leave_alone(int exit_code) = 0;
};

}  // namespace lockstep
