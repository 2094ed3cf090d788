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
  std::atomic<ncclResult_t> failure{ncclSuccess};  ///< what every poll answers from now on
  std::atomic<ncclResult_t> refusal{
      ncclSuccess};  ///< what polls and all-reduces return, who answer nothing then
  int version = 22809;
  ncclResult_t creation = ncclSuccess;  ///< what creating a communicator answers
  std::function<void()> on_creation = [] {};
  std::function<void()> on_abort = [] {};  ///< on whichever thread aborts

  void note(const std::string& call);
  /// In the order in which they came: "device 0", "init 0 of 1", "sum of 3 int64", "finalize", "destroy",
  /// "abort".
  std::vector<std::string> calls();
  bool called(const std::string& call);

  std::atomic<int> polls_left = 0;             ///< of the last poll: 0 when it said that all is done
  std::atomic<cudaStream_t> stream = nullptr;  ///< of the last all-reduce
  std::vector<char> first_id_bytes;            ///< of the unique ids that ranks came with; under the mutex
  std::mutex mutex;
  std::vector<std::string> noted;
};

/// The one that the stand-in follows now; the test's own.
void use_fake_nccl(FakeNccl& fake);

}  // namespace lockstep::testing

/// Target of the test's handle.
struct ncclComm {
  std::atomic<int> polls_left{0};  ///< until the last call is carried out
};
