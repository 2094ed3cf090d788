// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Owns an NCCL communicator: from finding the other ranks to an end that cannot hang.
#pragma once

#include "comm/communicator.hpp"
#include "comm/nccl/nccl_error.hpp"

#include <nccl.h>

#include <exception>
#include <string_view>

namespace lockstep {

class NcclCommunicator {
 public:
  /// Borrows `comm`, by which ranks find each other and which says how long to wait.
  /// @param most_blocks  of a GPU that its work takes, where NCCL can be told (from 2.17 on); 0: as NCCL likes
  explicit NcclCommunicator(Communicator& comm, int most_blocks = 0)
      : comm_(comm), most_blocks_(most_blocks) {}
  /// In good order: waits for the other ranks, but not for long. After a failure or while an exception is on
  /// its way: aborts, and does not wait for NCCL to be done with that.
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  /// Collective, once. The calling thread's current device becomes this rank's.
  /// @throws PeerLostError, NcclError
  void connect();
  ncclComm_t handle() const { return handle_; }

  /// Calls of NCCL on handle(). After one that fails the communicator is aborted, wherever the error is caught.
  template <typename Calls>
  void call(const Calls& calls) {
    try {
      calls();
    } catch (const NcclError&) {
      failed_ = true;
      throw;
    }
  }

  /// Waits until NCCL has carried out the last call: a communicator that does not block gives it to a thread.
  /// What was queued on a stream before this returns is behind the call's work.
  void settle(std::string_view what);
  /// Whether settle() would return at once. @throws NcclError if something failed since
  bool settled();
  /// @throws NcclError if something failed since
  void check() { settled(); }

 private:
  class Settling;

  void finish() noexcept;
  void abandon() noexcept;

  Communicator& comm_;
  int most_blocks_;
  ncclComm_t handle_ = nullptr;
  bool failed_ = false;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace lockstep
