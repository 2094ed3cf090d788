// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A communicator that does not block. Every call is polled until it is settled, and its end has separate
/// deadlines.
#include "comm/nccl/nccl_communicator.hpp"

#include "common/machine.hpp"
#include "common/output.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <future>
#include <memory>
#include <thread>
#include <utility>

namespace lockstep {

// Kinds of NCCL's results: they blame a rank or the network, a GPU, or us.

namespace {

std::pair<ExitCode, const char*> kind_of_failure(ncclResult_t result) {
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

/// NCCL's last log message, in one line; it is empty when nothing was logged.
std::string last_words() {
  const char* text = ncclGetLastError(nullptr);
  std::string words = text == nullptr || *text == '\0' ? "" : fmt::format(" ({})", text);
  std::replace(words.begin(), words.end(), '\n', ' ');
  return words;
}

}  // namespace

void throw_nccl_error(ncclResult_t result, const char* call, const char* file, int line) {
  const auto [code, text] = kind_of_failure(result);
  throw NcclError(code, fmt::format("NCCL failed at {}:{} in {}: {}{}; {}", file, line, call,
                                    ncclGetErrorString(result), last_words(), advice(text)));
}

// Keeps our signal handlers where a library installs others.

/// At its end the handlers of SIGUSR1 and SIGUSR2 are again what they were at its beginning. Schedulers
/// announce the end of a job with these, and some NCCL releases take SIGUSR1 for themselves.
class SignalHandlersKept {
 public:
  SignalHandlersKept() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], nullptr, &before_[i]);
  }
  SignalHandlersKept(const SignalHandlersKept&) = delete;
  SignalHandlersKept& operator=(const SignalHandlersKept&) = delete;
  ~SignalHandlersKept() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  }

 private:
  static constexpr std::array<int, 2> kSignals{SIGUSR1, SIGUSR2};
  std::array<struct sigaction, kSignals.size()> before_{};
};

namespace {

using Seconds = std::chrono::duration<double>;

// An end has other deadlines than work: nothing is lost if it does not come.
constexpr Seconds kFinishDeadline{10};
constexpr Seconds kAbortDeadline{3};
constexpr std::chrono::milliseconds kPollInterval{1};

/// Makes one id for all ranks. The barrier keeps fast ranks from calling at rank 0 before it listens, which can
/// deadlock.
ncclUniqueId shared_id(Communicator& comm) {
  ncclUniqueId id{};
  if (comm.rank() == 0) LOCKSTEP_NCCL(ncclGetUniqueId(&id));
  broadcast(comm, id);
  comm.barrier();
  return id;
}

/// Result of finalising; ncclInProgress if it is not done in time.
ncclResult_t poll_until_final(ncclComm_t handle, Seconds patience) {
  const auto start = Clock::now();
  for (;; std::this_thread::sleep_for(kPollInterval)) {
    ncclResult_t state = ncclInProgress;
    if (const ncclResult_t asked = ncclCommGetAsyncError(handle, &state); asked != ncclSuccess) return asked;
    if (state != ncclInProgress || Clock::now() - start > patience) return state;
  }
}

void warn(const Communicator& comm, const char* what) {
  print_error(fmt::format("rank {} on {}: {}", comm.rank(), comm.host(), what));
}

}  // namespace

void NcclCommunicator::connect() {
  const SignalHandlersKept signal_handlers_kept;
  const ncclUniqueId id = shared_id(comm_);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 17, 0)
  if (most_blocks_ > 0) config.maxCTAs = most_blocks_;
#endif
  LOCKSTEP_NCCL(ncclCommInitRankConfig(&handle_, comm_.size(), id, comm_.rank(), &config));
  settle(
      "the creation of the NCCL communicator (hosts must reach each other: NCCL_SOCKET_IFNAME=eth0 names the "
      "network interface that they share, NCCL_DEBUG=WARN says more)");
}

void NcclCommunicator::settle(std::string_view what) {
  PendingWork settling([this] { return settled(); }, /*needs_this_core=*/true);
  comm_.wait(settling, what);
}

bool NcclCommunicator::settled() {
  ncclResult_t state = ncclSuccess;
  call([&] {
    LOCKSTEP_NCCL(ncclCommGetAsyncError(handle_, &state));
    LOCKSTEP_NCCL(state);
  });
  return state == ncclSuccess;
}

NcclCommunicator::~NcclCommunicator() {
  if (handle_ == nullptr) return;
  failed_ || std::uncaught_exceptions() > exceptions_ ? abandon() : finish();
}

void NcclCommunicator::finish() noexcept {
  const ncclResult_t finalized = ncclCommFinalize(handle_);
  const bool started = finalized == ncclSuccess || finalized == ncclInProgress;
  if (!started || poll_until_final(handle_, std::min(kFinishDeadline, comm_.timeout())) != ncclSuccess) {
    warn(comm_, "NCCL did not end in good order, it is aborted");
    abandon();
  } else if (ncclCommDestroy(handle_) != ncclSuccess) {
    warn(comm_, "ncclCommDestroy failed");
  }
}

/// ncclCommAbort can hang, so a thread calls it that may be abandoned.
void NcclCommunicator::abandon() noexcept {
  try {
    auto aborted = std::make_shared<std::promise<void>>();
    std::thread([aborted, handle = handle_] {
      ncclCommAbort(handle);
      aborted->set_value();
    }).detach();
    if (aborted->get_future().wait_for(std::min(kAbortDeadline, comm_.timeout())) !=
        std::future_status::ready) {
      warn(comm_, "ncclCommAbort hangs, it is left behind");
    }
  } catch (const std::exception& error) {
    warn(comm_, error.what());
  }
}

}  // namespace lockstep
