// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Owns an NCCL communicator: from finding the other ranks to an end that cannot hang.
#pragma once

#include "comm/communicator.hpp"
#include "common/error.hpp"

#include <fmt/format.h>
#include <nccl.h>

#include <exception>
#include <string>
#include <string_view>

// Every NCCL call goes through LOCKSTEP_NCCL, which turns a result into an exception.

namespace lockstep {

/// NCCL failed. The exit code depends on why: kPeerLost (a rank or the network), kDeviceUnavailable (a GPU,
/// its driver, how ranks use them) or kInternal.
class NcclError : public Error {
 public:
  using Error::Error;
};

/// Throws NcclError with NCCL's texts for `result`, the call, its place and advice.
[[noreturn]] void throw_nccl_error(ncclResult_t result, const char* call, const char* file, int line);

/// Runs an NCCL call and throws NcclError if it fails. ncclInProgress is no failure: a communicator that does
/// not block answers so (NcclCommunicator::settle()).
#define LOCKSTEP_NCCL(call)                                                            \
  do {                                                                                 \
    const ncclResult_t lockstep_nccl_result = (call);                                  \
    if (lockstep_nccl_result != ncclSuccess && lockstep_nccl_result != ncclInProgress) \
      ::lockstep::throw_nccl_error(lockstep_nccl_result, #call, __FILE__, __LINE__);   \
  } while (false)

class NcclCommunicator {
 public:
  /// Borrows `comm`, by which ranks find each other and which says how long to wait.
  /// @param most_blocks  blocks of a GPU that its work uses, where NCCL can be told (from 2.17 on); 0: as NCCL likes
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
  /// Only what is queued on a stream after this returns is sure to follow the call's work.
  void settle(std::string_view what);
  /// True if settle() would return at once. @throws NcclError if something failed since
  bool settled();

 private:
  void finish() noexcept;
  void abandon() noexcept;

  Communicator& comm_;
  int most_blocks_;
  ncclComm_t handle_ = nullptr;
  bool failed_ = false;
  int exceptions_ = std::uncaught_exceptions();
};

// Helpers that the collectives over NCCL share.

/// Version of the loaded library, not of the header, in the form of NCCL_VERSION.
inline int loaded_nccl_code() {
  int code = 0;
  LOCKSTEP_NCCL(ncclGetVersion(&code));
  return code;
}

/// "NCCL 2.28.9"
inline std::string loaded_nccl_version() {
  const int code = loaded_nccl_code();
  return fmt::format("NCCL {}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

}  // namespace lockstep
