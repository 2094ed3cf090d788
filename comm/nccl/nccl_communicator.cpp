// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A communicator that does not block: every call is polled until it is settled, and its end has deadlines
/// of its own.
#include "comm/nccl/nccl_communicator.hpp"

#include "comm/nccl/nccl_error.hpp"
#include "comm/nccl/signal_handlers.hpp"
#include "common/clock.hpp"
#include "common/console/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <future>
#include <memory>
#include <span>
#include <thread>

namespace lockstep {
namespace {

using Seconds = std::chrono::duration<double>;

// An end has other deadlines than work: nothing is lost if it does not come.
constexpr Seconds kFinishDeadline{10};
constexpr Seconds kAbortDeadline{3};
constexpr std::chrono::milliseconds kPollInterval{1};

/// The same on every rank. The barrier keeps fast ranks from calling at rank 0 before it listens, which can
/// deadlock.
ncclUniqueId shared_id(Communicator& comm) {
  ncclUniqueId id{};
  if (comm.rank() == 0) LOCKSTEP_NCCL(ncclGetUniqueId(&id));
  comm.broadcast(std::as_writable_bytes(std::span(&id, 1)), 0);
  comm.barrier();
  return id;
}

/// What finalising came to; ncclInProgress if it is not done in time.
ncclResult_t poll_until_final(ncclComm_t handle, Seconds patience) {
  const auto start = Clock::now();
  ncclResult_t state = ncclInProgress;
  while (true) {
    const ncclResult_t asked = ncclCommGetAsyncError(handle, &state);
    if (asked != ncclSuccess) return asked;
    if (state != ncclInProgress || Clock::now() - start > patience) return state;
    std::this_thread::sleep_for(kPollInterval);
  }
}

void warn(const Communicator& comm, const char* what) {
  print_error(fmt::format("rank {} on {}: {}", comm.rank(), comm.host(), what));
}

}  // namespace

class NcclCommunicator::Settling final : public PendingCollective {
 public:
  explicit Settling(NcclCommunicator& owner) : owner_(owner) {}
  bool test() override { return owner_.settled(); }
  bool needs_this_core() const override { return true; }

 private:
  NcclCommunicator& owner_;
};

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
  Settling settling(*this);
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
  if (failed_ || std::uncaught_exceptions() > exceptions_) {
    abandon();
  } else {
    finish();
  }
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

/// ncclCommAbort can hang, so a thread does it that may be left behind.
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
