// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A stand-in for NCCL between processes, for programs that compute on the emulator. It has what makes NCCL deadlock:
/// a message is not sent before it is received, and whatever was started runs in that order, one behind the other, on
/// whichever streams and communicators of the process: CUDA promises no more where a kernel waits for another GPU. A
/// message is a file in $FAKE_NCCL, which its receiver removes. FAKE_NCCL_VERSION=23007 makes it another version.
/// While one is under way its communicator says that it is in progress.
#include "tests/support/prelude.hpp"

#include <cuda_runtime.h>
#include <nccl.h>
#include <unistd.h>

/// Target of a test's handle.
struct ncclComm {
  std::string id;
  int rank = 0, ranks = 1;
  std::vector<int> sent, received;  ///< messages to and from each rank
};

namespace {

namespace fs = std::filesystem;

struct Operation {
  ncclComm_t comm = nullptr;
  bool sends = false, begun = false;
  int peer = 0;
  void* data = nullptr;
  std::size_t bytes = 0;
};

/// Operations of this process's GPU that are not done: of all streams.
std::deque<Operation> queue;

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

/// True if the operation is over.
bool carry_on(Operation& operation) {
  ncclComm& comm = *operation.comm;
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

ncclResult_t start(const Operation& operation) {
  queue.push_back(operation);
  return ncclInProgress;
}

void run_queue() {
  while (!queue.empty() && carry_on(queue.front())) queue.pop_front();
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

void doze() {
  std::this_thread::sleep_for(std::chrono::microseconds(50));
}

void finish(Operation operation) {
  while (!carry_on(operation)) doze();
}

}  // namespace

// NOLINTBEGIN: names and linkage are NCCL's
extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  const char* wanted = std::getenv("FAKE_NCCL_VERSION");
  *version = wanted == nullptr ? 22809 : std::atoi(wanted);
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
  const char* registers = std::getenv("NCCL_GRAPH_REGISTER");
  if (registers == nullptr || std::strcmp(registers, "0") != 0)
    return ncclInvalidUsage;  // the program must have set it
  const auto ranks = static_cast<std::size_t>(nranks);
  *comm = new ncclComm{id.internal, rank, nranks, std::vector<int>(ranks), std::vector<int>(ranks)};
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  run_queue();
  const bool busy = std::ranges::find(queue, comm, &Operation::comm) != queue.end();
  *state = busy ? ncclInProgress : ncclSuccess;
  return ncclSuccess;
}

ncclResult_t ncclSend(const void* data, size_t count, ncclDataType_t /*int8*/, int peer, ncclComm_t comm,
                      cudaStream_t /*stream*/) {
  return start({.comm = comm, .sends = true, .peer = peer, .data = const_cast<void*>(data), .bytes = count});
}

ncclResult_t ncclRecv(void* data, size_t count, ncclDataType_t /*int8*/, int peer, ncclComm_t comm,
                      cudaStream_t /*stream*/) {
  return start({.comm = comm, .sends = false, .peer = peer, .data = data, .bytes = count});
}

/// Behind what was started before; then at once, as the emulator works: in order of rank.
ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type,
                           ncclRedOp_t /*sum*/, ncclComm_t comm, cudaStream_t /*stream*/) {
  for (run_queue(); !queue.empty(); run_queue()) doze();
  const size_t bytes = count * (type == ncclInt64 ? 8 : 4);
  std::vector<char> mine(bytes), sums(bytes), terms(bytes);
  std::memcpy(mine.data(), send, bytes);
  std::vector<Operation> operations;
  for (int peer = 0; peer < comm->ranks; ++peer) {
    if (peer == comm->rank) continue;
    Operation operation{.comm = comm, .sends = true, .peer = peer, .data = mine.data(), .bytes = bytes};
    if (!carry_on(operation)) operations.push_back(operation);  // a fast peer has taken it already
  }
  for (int peer = 0; peer < comm->ranks; ++peer) {
    if (peer != comm->rank)
      finish({.comm = comm, .sends = false, .peer = peer, .data = terms.data(), .bytes = bytes});
    const std::vector<char>& theirs = peer == comm->rank ? mine : terms;
    if (peer == 0) {
      sums = theirs;
    } else if (type == ncclInt64) {
      add<std::uint64_t>(sums, theirs);
    } else {
      add<float>(sums, theirs);
    }
  }
  for (const Operation& operation : operations) finish(operation);
  std::memcpy(receive, sums.data(), bytes);
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t /*comm*/) {
  return ncclInProgress;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  std::erase_if(queue, [&](const Operation& operation) { return operation.comm == comm; });
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
