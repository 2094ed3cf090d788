// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A stand-in for NCCL between processes, for programs that compute on the emulator. It has what makes NCCL deadlock:
/// what is on one communicator runs in order, and a message is not sent before it is received. A message is a file in
/// $FAKE_NCCL, which its receiver removes. While one is under way the communicator says that it is in progress.
#include <cuda_runtime.h>
#include <nccl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

/// What a test's handle points to.
struct ncclComm {
  struct Operation {
    bool sends = false, begun = false;
    int peer = 0;
    void* data = nullptr;
    std::size_t bytes = 0;
  };
  std::string id;
  int rank = 0, ranks = 1;
  std::deque<Operation> queue;
  std::vector<int> sent, received;  ///< messages to and from each rank
};

namespace {

namespace fs = std::filesystem;
using Operation = ncclComm::Operation;

fs::path file_of(const ncclComm& comm, int from, int to, int number) {
  return fs::path(std::getenv("FAKE_NCCL")) /
         (comm.id + "-" + std::to_string(from) + "-" + std::to_string(to) + "-" + std::to_string(number));
}

void write(const fs::path& file, const void* data, std::size_t bytes) {
  const fs::path half = file.string() + ".half";
  std::ofstream(half, std::ios::binary)
      .write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  fs::rename(half, file);
}

/// Whether the operation is over.
bool carry_on(ncclComm& comm, Operation& operation) {
  const auto peer = static_cast<std::size_t>(operation.peer);
  if (operation.sends) {
    const fs::path file = file_of(comm, comm.rank, operation.peer, comm.sent[peer]);
    if (!operation.begun) write(file, operation.data, operation.bytes);
    operation.begun = true;
    if (fs::exists(file)) return false;
    ++comm.sent[peer];
    return true;
  }
  const fs::path file = file_of(comm, operation.peer, comm.rank, comm.received[peer]);
  if (!fs::exists(file)) return false;
  if (fs::file_size(file) != operation.bytes) std::abort();  // NCCL would hang, or worse
  std::ifstream(file, std::ios::binary)
      .read(static_cast<char*>(operation.data), static_cast<std::streamsize>(operation.bytes));
  fs::remove(file);
  ++comm.received[peer];
  return true;
}

ncclResult_t start(ncclComm_t comm, const Operation& operation) {
  comm->queue.push_back(operation);
  return ncclInProgress;
}

template <typename T>
void add(std::vector<char>& sums, const std::vector<char>& terms) {
  for (std::size_t at = 0; at < sums.size(); at += sizeof(T)) {
    T sum, term;
    std::memcpy(&sum, &sums[at], sizeof sum);
    std::memcpy(&term, &terms[at], sizeof term);
    sum += term;
    std::memcpy(&sums[at], &sum, sizeof sum);
  }
}

void finish(ncclComm& comm, Operation operation) {
  while (!carry_on(comm, operation)) std::this_thread::sleep_for(std::chrono::microseconds(50));
}

}  // namespace

// NOLINTBEGIN: names and linkage are NCCL's
extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = 22809;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static std::atomic<int> ids{0};
  *id = {};
  const std::string text = std::to_string(getpid()) + "_" + std::to_string(ids++);
  std::memcpy(id->internal, text.c_str(), text.size());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* /*config*/) {
  const auto ranks = static_cast<std::size_t>(nranks);
  *comm = new ncclComm{id.internal, rank, nranks, {}, std::vector<int>(ranks), std::vector<int>(ranks)};
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  while (!comm->queue.empty() && carry_on(*comm, comm->queue.front())) comm->queue.pop_front();
  *state = comm->queue.empty() ? ncclSuccess : ncclInProgress;
  return ncclSuccess;
}

ncclResult_t ncclSend(const void* data, size_t count, ncclDataType_t /*int8*/, int peer, ncclComm_t comm,
                      cudaStream_t /*stream*/) {
  return start(comm, {.sends = true, .peer = peer, .data = const_cast<void*>(data), .bytes = count});
}

ncclResult_t ncclRecv(void* data, size_t count, ncclDataType_t /*int8*/, int peer, ncclComm_t comm,
                      cudaStream_t /*stream*/) {
  return start(comm, {.sends = false, .peer = peer, .data = data, .bytes = count});
}

/// At once, as the emulator works: in order of rank.
ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type,
                           ncclRedOp_t /*sum*/, ncclComm_t comm, cudaStream_t /*stream*/) {
  const size_t bytes = count * (type == ncclInt64 ? 8 : 4);
  std::vector<char> mine(bytes), sums(bytes), terms(bytes);
  std::memcpy(mine.data(), send, bytes);
  std::vector<Operation> letters;
  for (int peer = 0; peer < comm->ranks; ++peer) {
    if (peer == comm->rank) continue;
    letters.push_back({.sends = true, .peer = peer, .data = mine.data(), .bytes = bytes});
    carry_on(*comm, letters.back());
  }
  for (int peer = 0; peer < comm->ranks; ++peer) {
    if (peer != comm->rank)
      finish(*comm, {.sends = false, .peer = peer, .data = terms.data(), .bytes = bytes});
    const std::vector<char>& theirs = peer == comm->rank ? mine : terms;
    if (peer == 0) {
      sums = theirs;
    } else if (type == ncclInt64) {
      add<std::uint64_t>(sums, theirs);
    } else {
      add<float>(sums, theirs);
    }
  }
  for (const Operation& letter : letters) finish(*comm, letter);
  std::memcpy(receive, sums.data(), bytes);
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t /*comm*/) {
  return ncclInProgress;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  return ncclCommDestroy(comm);
}
const char* ncclGetErrorString(ncclResult_t /*result*/) {
  return "an error";
}
const char* ncclGetLastError(ncclComm_t /*comm*/) {
  return "";
}

cudaError_t cudaSetDevice(int /*device*/) {
  return cudaSuccess;
}
cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
const char* cudaGetErrorName(cudaError_t /*status*/) {
  return "cudaSuccess";
}
const char* cudaGetErrorString(cudaError_t /*status*/) {
  return "no error";
}

}  // extern "C"
// NOLINTEND
