// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A stand-in for NCCL that does what a test tells it. The functions of it and of the CUDA runtime that
/// comm/nccl calls, without GPUs. It carries no numbers: processes/process_nccl.cpp does.
#pragma once

#include "tests/support/prelude.hpp"

#include <nccl.h>

namespace lockstep::testing {

/// How the library behaves, and what was asked of it. One for all ranks of a test.
struct FakeNccl {
  static constexpr int kNever = -1;

  std::atomic<int> polls_until_connected = 0;      ///< after creation
  std::atomic<int> polls_until_settled = 0;        ///< after each collective
  std::atomic<int> polls_until_finalized = 0;      ///< kNever: the peers are gone
  std::atomic<ncclResult_t> failure{ncclSuccess};  ///< answers every poll from now on, unless ncclSuccess
  std::atomic<ncclResult_t> refusal{ncclSuccess};  ///< returned at once by polls and all-reduces
  int version = 22809;
  ncclResult_t creation = ncclSuccess;  ///< result of creating a communicator
  ncclResult_t finalizing = ncclInProgress, destruction = ncclSuccess;
  std::function<void()> on_creation = [] {};
  std::function<void()> on_abort = [] {};  ///< on whichever thread aborts

  void note(const std::string& call);
  /// In the order in which they came: "device 0", "init 0 of 1", "sum of 3 int64", "finalize", "destroy",
  /// "abort".
  std::vector<std::string> calls();
  bool called(const std::string& call);

  std::atomic<int> polls_left = 0;             ///< remaining at the last poll; 0: it said that all is done
  std::atomic<cudaStream_t> stream = nullptr;  ///< the last all-reduce's
  std::vector<char> first_id_bytes;            ///< first byte of each rank's unique id; under the mutex
  std::mutex mutex;
  std::vector<std::string> noted;
};

/// ncclGetLastError() of the process.
inline std::atomic<const char*> last_nccl_error = "socket closed\nby peer";

/// The one that the stand-in follows now; the test's own.
void use_fake_nccl(FakeNccl& fake);

}  // namespace lockstep::testing

/// Target of the test's handle.
struct ncclComm {
  std::atomic<int> polls_left{0};  ///< until the last call is carried out
};
