// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Rank 0 brings the memory, the others map it. One epoch of access for all its life: loads and stores are
/// the program's own.
#include "comm/mpi/mpi_shared_memory.hpp"

#include "comm/mpi/mpi_error.hpp"
#include "common/console/output.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <exception>

namespace lockstep {
namespace {

constexpr std::size_t kAlignment = 64;

class MpiSharedMemory final : public SharedMemory {
 public:
  MpiSharedMemory(Communicator& comm, std::size_t bytes) : comm_(comm), bytes_(bytes) {
    MPI_Comm host = MPI_COMM_NULL;
    LOCKSTEP_MPI(
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, comm.rank(), MPI_INFO_NULL, &host));
    LOCKSTEP_MPI(MPI_Comm_set_errhandler(host, MPI_ERRORS_RETURN));
    void* mine = nullptr;
    const auto size = static_cast<MPI_Aint>(comm.rank() == 0 ? bytes + kAlignment : 0);
    LOCKSTEP_MPI(MPI_Win_allocate_shared(size, 1, MPI_INFO_NULL, host, &mine, &window_));
    LOCKSTEP_MPI(MPI_Comm_free(&host));
    MPI_Aint whole = 0;
    int unit = 0;
    void* first = nullptr;
    LOCKSTEP_MPI(MPI_Win_shared_query(window_, 0, &whole, &unit, &first));
    LOCKSTEP_MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, window_));
    // Pages are mapped at other addresses in each process, and at the same place in them.
    const auto skip = (kAlignment - reinterpret_cast<std::uintptr_t>(first) % kAlignment) % kAlignment;
    data_ = static_cast<std::byte*>(first) + skip;
    if (comm.rank() == 0) std::fill_n(data_, bytes, std::byte{});
    comm.barrier();
  }

  ~MpiSharedMemory() override {
    if (std::uncaught_exceptions() > exceptions_) return;  // freeing is collective
    if (MPI_Win_unlock_all(window_) != MPI_SUCCESS || MPI_Win_free(&window_) != MPI_SUCCESS)
      print_error(fmt::format("rank {}: MPI_Win_free failed", comm_.rank()));
  }
  MpiSharedMemory(const MpiSharedMemory&) = delete;
  MpiSharedMemory& operator=(const MpiSharedMemory&) = delete;

  std::span<std::byte> bytes() override { return {data_, bytes_}; }

 private:
  Communicator& comm_;
  std::size_t bytes_;
  MPI_Win window_ = MPI_WIN_NULL;
  std::byte* data_ = nullptr;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace

std::unique_ptr<SharedMemory> share_mpi_memory(Communicator& comm, std::size_t bytes) {
  return std::make_unique<MpiSharedMemory>(comm, bytes);
}

}  // namespace lockstep
