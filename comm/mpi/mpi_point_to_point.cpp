// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Messages between two ranks, and memory that the processes of a host share.
#include "comm/mpi/mpi_communicator.hpp"
#include "common/error.hpp"
#include "common/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <vector>

namespace lockstep {

// A message is one request, or several in order where it is longer than MPI can count.

namespace {

constexpr std::size_t kPiece = std::size_t{1} << 30;  // MPI counts with int

bool is_truncation(int status) {
  int error_class = MPI_SUCCESS;
  return MPI_Error_class(status, &error_class) == MPI_SUCCESS && error_class == MPI_ERR_TRUNCATE;
}

class Message final : public PendingCollective {
 public:
  /// Begins to send.
  Message(std::span<const std::byte> data, int to, int tag, MPI_Comm comm)
      : Message(data.size(), to, tag, /*is_receive=*/false) {
    for (std::size_t i = 0; i < requests_.size(); ++i)
      LOCKSTEP_MPI(
          MPI_Isend(data.data() + i * kPiece, piece_bytes(i), MPI_BYTE, to, tag, comm, &requests_[i]));
  }
  /// Begins to receive.
  Message(std::span<std::byte> data, int from, int tag, MPI_Comm comm)
      : Message(data.size(), from, tag, /*is_receive=*/true) {
    for (std::size_t i = 0; i < requests_.size(); ++i)
      LOCKSTEP_MPI(
          MPI_Irecv(data.data() + i * kPiece, piece_bytes(i), MPI_BYTE, from, tag, comm, &requests_[i]));
  }
  /// Abandoned: the job is ending, and nothing that still arrives may be written. (A send cannot be taken
  /// back.)
  ~Message() override {
    for (MPI_Request& request : requests_) {
      if (request == MPI_REQUEST_NULL) continue;
      if (is_receive_) MPI_Cancel(&request);
      MPI_Request_free(&request);
    }
  }

  bool test() override {
    if (complete_) return true;
    std::vector<MPI_Status> statuses(requests_.size());
    int done = 0;
    const int status =
        MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, statuses.data());
    if (is_receive_ && status != MPI_SUCCESS) refuse_longer(status, statuses);
    LOCKSTEP_MPI(status);
    if (done == 0) return false;
    for (std::size_t i = 0; is_receive_ && i < statuses.size(); ++i) {
      int received = 0;
      LOCKSTEP_MPI(MPI_Get_count(&statuses[i], MPI_BYTE, &received));
      if (received != piece_bytes(i)) throw_other_length("shorter");
    }
    return complete_ = true;
  }

 private:
  Message(std::size_t bytes, int other, int tag, bool is_receive)
      : bytes_(bytes),
        other_(other),
        tag_(tag),
        is_receive_(is_receive),
        requests_(bytes / kPiece + 1, MPI_REQUEST_NULL) {}

  int piece_bytes(std::size_t piece) const {
    return static_cast<int>(std::min(kPiece, bytes_ - piece * kPiece));
  }
  [[noreturn]] void throw_other_length(const char* is) const {
    throw InternalError(
        fmt::format("a message from rank {} (tag {}) is {} than the {} bytes that this rank "
                    "expects; please report this",
                    other_, tag_, is, bytes_));
  }
  void refuse_longer(int status, const std::vector<MPI_Status>& pieces) const {
    int error_class = MPI_SUCCESS;
    LOCKSTEP_MPI(MPI_Error_class(status, &error_class));
    if (error_class == MPI_ERR_TRUNCATE ||
        (error_class == MPI_ERR_IN_STATUS &&
         std::ranges::any_of(pieces, is_truncation, &MPI_Status::MPI_ERROR)))
      throw_other_length("longer");
  }

  std::size_t bytes_;
  int other_, tag_;
  bool is_receive_;
  std::vector<MPI_Request> requests_;  ///< the last piece may be of no bytes, and is waited for, too
  bool complete_ = false;
};

}  // namespace

std::unique_ptr<PendingCollective> MpiPointToPoint::start_send(std::span<const std::byte> data, int to,
                                                               int tag) {
  LOCKSTEP_CHECK(to >= 0 && to < size_ && tag >= 0 && tag < kTags);
  return std::make_unique<Message>(data, to, tag, comm_);
}

std::unique_ptr<PendingCollective> MpiPointToPoint::start_receive(std::span<std::byte> data, int from,
                                                                  int tag) {
  LOCKSTEP_CHECK(from >= 0 && from < size_ && tag >= 0 && tag < kTags);
  return std::make_unique<Message>(data, from, tag, comm_);
}

// Rank 0 brings the memory, the others map it. One epoch of access for all its life: loads and stores are
// left to the program.

namespace {

constexpr std::size_t kAlignment = 64;

class MpiWindow {
 public:
  MpiWindow(Communicator& comm, std::size_t bytes) : comm_(comm) {
    MPI_Comm host = MPI_COMM_NULL;
    LOCKSTEP_MPI(
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, comm.rank(), MPI_INFO_NULL, &host));
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

  ~MpiWindow() {
    if (std::uncaught_exceptions() > exceptions_) return;  // freeing is collective
    if (MPI_Win_unlock_all(window_) != MPI_SUCCESS || MPI_Win_free(&window_) != MPI_SUCCESS)
      print_error(fmt::format("rank {}: MPI_Win_free failed", comm_.rank()));
  }
  MpiWindow(const MpiWindow&) = delete;
  MpiWindow& operator=(const MpiWindow&) = delete;

  std::byte* data() const { return data_; }

 private:
  Communicator& comm_;
  MPI_Win window_ = MPI_WIN_NULL;
  std::byte* data_ = nullptr;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace

SharedMemory share_mpi_memory(Communicator& comm, std::size_t bytes) {
  const auto window = std::make_shared<MpiWindow>(comm, bytes);
  return {window, window->data()};
}

}  // namespace lockstep
