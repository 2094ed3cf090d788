// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Something that the ranks do together and that a rank waits for (Communicator::wait()).
#pragma once

namespace lockstep {

/// A collective under way. Destroying one that is not complete abandons it: only right when the job is
/// ending.
class PendingCollective {
 public:
  virtual ~PendingCollective() = default;
  /// Lets the collective progress, without blocking. True when its result is in place.
  virtual bool test() = 0;
  /// Threads of this process carry it out, and a launcher may have bound the process to one core: a thread that
  /// waits gives that up between two tests.
  virtual bool needs_this_core() const { return false; }
};

}  // namespace lockstep
