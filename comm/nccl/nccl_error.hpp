// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Every NCCL call goes through LOCKSTEP_NCCL, which turns a result into an exception.
#pragma once

#include "common/error.hpp"

#include <nccl.h>

#include <string>

namespace lockstep {

/// NCCL failed. The exit code depends on why: kPeerLost (a rank or the network), kDeviceUnavailable (a GPU,
/// its driver, how ranks use them) or kInternal.
class NcclError : public Error {
 public:
  using Error::Error;
};

/// Throws NcclError with NCCL's own texts for `result`, the call, its place and what helps.
[[noreturn]] void throw_nccl_error(ncclResult_t result, const char* call, const char* file, int line);

}  // namespace lockstep

/// Runs an NCCL call and throws NcclError if it fails. ncclInProgress is no failure: a communicator that does
/// not block answers so (NcclCommunicator::settle()).
#define LOCKSTEP_NCCL(call)                                                            \
  do {                                                                                 \
    const ncclResult_t lockstep_nccl_result = (call);                                  \
    if (lockstep_nccl_result != ncclSuccess && lockstep_nccl_result != ncclInProgress) \
      ::lockstep::throw_nccl_error(lockstep_nccl_result, #call, __FILE__, __LINE__);   \
  } while (false)
