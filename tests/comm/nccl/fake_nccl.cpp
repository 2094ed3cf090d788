// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/comm/nccl/fake_nccl.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>

namespace lockstep::testing {
namespace {

std::atomic<FakeNccl*> current{nullptr};

}  // namespace

void use_fake_nccl(FakeNccl& fake) {
  current = &fake;
}

FakeNccl& fake_nccl() {
  return *current;
}

void FakeNccl::note(const std::string& call) {
  const std::lock_guard lock(mutex);
  noted.push_back(call);
}

std::vector<std::string> FakeNccl::calls() {
  const std::lock_guard lock(mutex);
  return noted;
}

bool FakeNccl::called(const std::string& call) {
  const auto all = calls();
  return std::find(all.begin(), all.end(), call) != all.end();
}

}  // namespace lockstep::testing

using lockstep::testing::current;
using lockstep::testing::FakeNccl;

// NOLINTBEGIN: names and linkage are NCCL's
extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = current.load()->version;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::fill(std::begin(id->internal), std::end(id->internal), 'u');
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  FakeNccl& fake = *current;
  fake.note("init " + std::to_string(rank) + " of " + std::to_string(nranks) +
            (config->blocking == 0 ? "" : ", blocking"));
  {
    const std::lock_guard lock(fake.mutex);
    fake.first_id_bytes.push_back(id.internal[0]);
  }
  fake.on_creation();
  if (fake.creation != ncclSuccess) return fake.creation;
  *comm = new ncclComm{fake.polls_until_connected.load(), rank, nranks};
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  if (const ncclResult_t refusal = current.load()->refusal; refusal != ncclSuccess) return refusal;
  const ncclResult_t failure = current.load()->failure;
  const int left = comm->polls_left;
  current.load()->polls_left = left;
  if (left > 0) --comm->polls_left;
  *state = failure != ncclSuccess ? failure : left == 0 ? ncclSuccess : ncclInProgress;
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  FakeNccl& fake = *current;
  if (fake.refusal != ncclSuccess) return fake.refusal;
  const char* name = type == ncclInt64 ? "int64" : type == ncclFloat32 ? "float" : "another type";
  fake.note((op == ncclSum ? "sum of " : "something of ") + std::to_string(count) + " " + name +
            (send == receive ? "" : ", not in place"));
  fake.stream = stream;
  comm->polls_left = fake.polls_left = fake.polls_until_settled.load();
  return comm->polls_left == 0 ? ncclSuccess : ncclInProgress;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  FakeNccl& fake = *current;
  fake.note("finalize");
  comm->polls_left = fake.polls_until_finalized.load();
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  current.load()->note("destroy");
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  FakeNccl& fake = *current;
  fake.note("abort");
  fake.on_abort();
  delete comm;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited" : "some error";
}

const char* ncclGetLastError(ncclComm_t /*comm*/) {
  return "socket closed\nby peer";
}

cudaError_t cudaSetDevice(int device) {
  current.load()->note("device " + std::to_string(device));
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

// The part of the stand-in for NCCL that carries numbers: between threads that are ranks, out of and into the memory
// of the emulated device, which works off its streams at once. In a group everything is sent before anything is
// received, as NCCL does both at the same time.

namespace lockstep::testing {
namespace {

constexpr std::chrono::seconds kPatience{20};

using Bytes = std::vector<std::byte>;

/// Of the calling rank: what it has called between the ends of a group.
struct NcclGroup {
  int depth = 0;
  std::vector<std::function<void()>> sends, receives;
};
thread_local NcclGroup group;

void carry_out() {
  NcclGroup now;
  std::swap(now, group);
  for (const auto& send : now.sends) send();
  for (const auto& receive : now.receives) receive();
}

std::size_t size_of(ncclDataType_t type) {
  return type == ncclInt8 ? 1 : type == ncclInt64 ? 8 : 4;
}

void post(int from, int to, const void* data, std::size_t bytes) {
  FakeNccl& fake = fake_nccl();
  const auto* begin = static_cast<const std::byte*>(data);
  const std::lock_guard lock(fake.mutex);
  fake.under_way[{from, to}].emplace_back(begin, begin + bytes);
  fake.arrived.notify_all();
}

/// Nothing, if it does not come or has another length: the test sees that.
Bytes take(int from, int to, std::size_t bytes) {
  FakeNccl& fake = fake_nccl();
  std::unique_lock lock(fake.mutex);
  auto& waiting = fake.under_way[{from, to}];
  if (!fake.arrived.wait_for(lock, kPatience, [&] { return !waiting.empty(); })) return {};
  Bytes message = std::move(waiting.front());
  waiting.pop_front();
  return message.size() == bytes ? message : Bytes();
}

template <typename T>
void add(const Bytes& terms, Bytes& sums) {
  for (std::size_t at = 0; at + sizeof(T) <= sums.size() && at + sizeof(T) <= terms.size(); at += sizeof(T)) {
    T term, sum;
    std::memcpy(&term, &terms[at], sizeof(T));
    std::memcpy(&sum, &sums[at], sizeof(T));
    sum += term;
    std::memcpy(&sums[at], &sum, sizeof(T));
  }
}

/// What all ranks have sent to this one, added up in order of rank.
void sum_of_all(ncclComm_t comm, ncclDataType_t type, void* into, std::size_t bytes) {
  Bytes sums = take(0, comm->rank, bytes);
  for (int from = 1; from < comm->ranks; ++from) {
    const Bytes terms = take(from, comm->rank, bytes);
    if (type == ncclFloat32) {
      add<float>(terms, sums);
    } else {
      add<std::uint64_t>(terms, sums);
    }
  }
  if (sums.size() == bytes) std::memcpy(into, sums.data(), bytes);
}

void copy_from(int from, ncclComm_t comm, void* into, std::size_t bytes) {
  const Bytes message = take(from, comm->rank, bytes);
  if (message.size() == bytes) std::memcpy(into, message.data(), bytes);
}

/// Now, or at the end of the group.
ncclResult_t call(ncclComm_t comm, cudaStream_t stream, const std::string& note,
                  const std::function<void()>& send, const std::function<void()>& receive) {
  FakeNccl& fake = fake_nccl();
  fake.note(note);
  fake.stream = stream;
  group.sends.push_back(send);
  group.receives.push_back(receive);
  if (group.depth > 0) return ncclSuccess;
  carry_out();
  comm->polls_left = fake.polls_left = fake.polls_until_settled.load();
  return comm->polls_left == 0 ? ncclSuccess : ncclInProgress;
}

const std::function<void()> kNothing = [] {};

}  // namespace
}  // namespace lockstep::testing

using namespace lockstep::testing;

// NOLINTBEGIN: names and linkage are NCCL's
extern "C" {

ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  fake_nccl().note("group");
  if (--group.depth == 0) carry_out();
  return ncclInProgress;
}

ncclResult_t ncclSend(const void* data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return call(
      comm, stream, "send", [=] { post(comm->rank, peer, data, count * size_of(type)); }, kNothing);
}

ncclResult_t ncclRecv(void* data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return call(comm, stream, "receive", kNothing, [=] { copy_from(peer, comm, data, count * size_of(type)); });
}

ncclResult_t ncclBroadcast(const void* send, void* receive, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  const size_t bytes = count * size_of(type);
  return call(
      comm, stream, "broadcast",
      [=] {
        for (int to = 0; comm->rank == root && to < comm->ranks; ++to) post(root, to, send, bytes);
      },
      [=] { copy_from(root, comm, receive, bytes); });
}

ncclResult_t ncclAllGather(const void* send, void* receive, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  const size_t bytes = count * size_of(type);
  return call(
      comm, stream, "all-gather",
      [=] {
        for (int to = 0; to < comm->ranks; ++to) post(comm->rank, to, send, bytes);
      },
      [=] {
        for (int from = 0; from < comm->ranks; ++from)
          copy_from(from, comm, static_cast<std::byte*>(receive) + static_cast<size_t>(from) * bytes, bytes);
      });
}

ncclResult_t ncclReduceScatter(const void* send, void* receive, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  const size_t bytes = count * size_of(type);
  return call(
      comm, stream, op == ncclSum ? "reduce-scatter" : "something else",
      [=] {
        for (int to = 0; to < comm->ranks; ++to)
          post(comm->rank, to, static_cast<const std::byte*>(send) + static_cast<size_t>(to) * bytes, bytes);
      },
      [=] { sum_of_all(comm, type, receive, bytes); });
}

ncclResult_t ncclReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                        int root, ncclComm_t comm, cudaStream_t stream) {
  const size_t bytes = count * size_of(type);
  return call(
      comm, stream, op == ncclSum ? "reduce" : "something else", [=] { post(comm->rank, root, send, bytes); },
      [=] {
        if (comm->rank == root) sum_of_all(comm, type, receive, bytes);
      });
}

}  // extern "C"
// NOLINTEND
