// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/comm/nccl/fake_nccl.hpp"

#include "tests/support/prelude.hpp"

namespace lockstep::testing {
namespace {

std::atomic<FakeNccl*> current{nullptr};

}  // namespace

void use_fake_nccl(FakeNccl& fake) {
  current = &fake;
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

namespace {

/// The result of a call that settles later.
ncclResult_t started(ncclComm_t comm, cudaStream_t stream, const std::string& note) {
  FakeNccl& fake = *current;
  fake.note(note);
  fake.stream = stream;
  comm->polls_left = fake.polls_left = fake.polls_until_settled.load();
  return comm->polls_left == 0 ? ncclSuccess : ncclInProgress;
}

}  // namespace
}  // namespace lockstep::testing

using namespace lockstep::testing;

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
  std::string blocks;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 17, 0)
  if (config->maxCTAs != NCCL_CONFIG_UNDEF_INT) blocks = ", blocks: " + std::to_string(config->maxCTAs);
#endif
  fake.note("init " + std::to_string(rank) + " of " + std::to_string(nranks) +
            (config->blocking == 0 ? "" : ", blocking") + blocks);
  {
    const std::lock_guard lock(fake.mutex);
    fake.first_id_bytes.push_back(id.internal[0]);
  }
  fake.on_creation();
  if (fake.creation != ncclSuccess) return fake.creation;
  *comm = new ncclComm{fake.polls_until_connected.load()};
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
  return started(comm, stream,
                 (op == ncclSum ? "sum of " : "something of ") + std::to_string(count) + " " + name +
                     (send == receive ? "" : ", not in place"));
}

ncclResult_t ncclSend(const void* /*data*/, size_t count, ncclDataType_t /*int8*/, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return started(comm, stream, "send " + std::to_string(count) + " to " + std::to_string(peer));
}

ncclResult_t ncclRecv(void* /*data*/, size_t count, ncclDataType_t /*int8*/, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return started(comm, stream, "receive " + std::to_string(count) + " from " + std::to_string(peer));
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  FakeNccl& fake = *current;
  fake.note("finalize");
  comm->polls_left = fake.polls_until_finalized.load();
  return fake.finalizing;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  current.load()->note("destroy");
  delete comm;
  return current.load()->destruction;
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
  return last_nccl_error;
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
