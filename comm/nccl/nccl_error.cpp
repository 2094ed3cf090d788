// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Which of NCCL's results blame a rank or the network, which a GPU, and which us.
#include "comm/nccl/nccl_error.hpp"

#include "common/advice.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep {
namespace {

struct Verdict {
  ExitCode code;
  const char* text;
};

Verdict verdict_on(ncclResult_t result) {
  switch (result) {
    case ncclSystemError:
    case ncclRemoteError:
      return {
          ExitCode::kPeerLost,
          "see what the other ranks said; if hosts do not reach each other, name the network interface that "
          "they share (NCCL_SOCKET_IFNAME=eth0); NCCL_DEBUG=WARN says more"};
    case ncclUnhandledCudaError:
      return {ExitCode::kDeviceUnavailable,
              "see 'lockstep devices'; NCCL_DEBUG=WARN says more; or use {backend}mpi"};
    case ncclInvalidUsage:
      return {ExitCode::kDeviceUnavailable,
              "every rank needs a GPU of its own and the same NCCL; NCCL_DEBUG=WARN says more; or use "
              "{backend}mpi"};
    default:
      return {ExitCode::kInternal, "NCCL_DEBUG=WARN says more; please report this"};
  }
}

/// What NCCL logged last, in one line; it is empty when nothing was.
std::string last_words() {
  const char* text = ncclGetLastError(nullptr);
  std::string words = text == nullptr || *text == '\0' ? "" : fmt::format(" ({})", text);
  std::replace(words.begin(), words.end(), '\n', ' ');
  return words;
}

}  // namespace

void throw_nccl_error(ncclResult_t result, const char* call, const char* file, int line) {
  const Verdict verdict = verdict_on(result);
  throw NcclError(verdict.code, fmt::format("NCCL failed at {}:{} in {}: {}{}; {}", file, line, call,
                                            ncclGetErrorString(result), last_words(), advice(verdict.text)));
}

}  // namespace lockstep
