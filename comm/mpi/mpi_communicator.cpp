// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// MPI's non-blocking collectives for control, and our all-reduce beside them.
#include "comm/mpi/mpi_communicator.hpp"

#include "comm/mpi/mpi_all_reduce.hpp"
#include "common/buffers.hpp"
#include "common/machine.hpp"
#include "common/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <limits>

namespace lockstep {
namespace {

int int_count(std::size_t bytes) {
  LOCKSTEP_CHECK(bytes <= static_cast<std::size_t>(std::numeric_limits<int>::max()));
  return static_cast<int>(bytes);
}

/// The ranks of one host, and the cores that they may use together.
struct HostShare {
  int rank = 0, size = 1, cores = 1;
};

/// A launcher may bind each rank to separate cores: only all masks together say how many there are.
int cores_of(MPI_Comm host) {
  const std::vector<int> mine = usable_cpus();
  const int end = mine.empty() ? 1 : mine.back() + 1;
  int all_end = 0;
  LOCKSTEP_MPI(MPI_Allreduce(&end, &all_end, 1, MPI_INT, MPI_MAX, host));
  std::vector<std::uint8_t> usable(static_cast<std::size_t>(all_end));  // 1: a rank may use that CPU
  for (const int cpu : mine) at(usable, cpu) = 1;
  LOCKSTEP_MPI(MPI_Allreduce(MPI_IN_PLACE, usable.data(), all_end, MPI_BYTE, MPI_BOR, host));
  return available_cores("/", std::ranges::count(usable, 1));
}

/// @param rank  this one's in `comm`
HostShare share_of_host(MPI_Comm comm, int rank) {
  MPI_Comm host = MPI_COMM_NULL;
  HostShare share;
  LOCKSTEP_MPI(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host));
  LOCKSTEP_MPI(MPI_Comm_rank(host, &share.rank));
  LOCKSTEP_MPI(MPI_Comm_size(host, &share.size));
  share.cores = cores_of(host);
  LOCKSTEP_MPI(MPI_Comm_free(&host));
  return share;
}

/// How many ranks of `comm` each host has, if they are neighbours and only the last host has fewer. Otherwise 1.
int ranks_per_host(MPI_Comm comm, int rank) {
  const HostShare share = share_of_host(comm, rank);
  int most = 1;
  LOCKSTEP_MPI(MPI_Allreduce(&share.size, &most, 1, MPI_INT, MPI_MAX, comm));
  int in_place = rank % most == share.rank ? 1 : 0,
      all_in_place = 0;  // so a host ends only where the next one begins
  LOCKSTEP_MPI(MPI_Allreduce(&in_place, &all_in_place, 1, MPI_INT, MPI_LAND, comm));
  return all_in_place != 0 ? most : 1;
}

/// All of MPI's communicators have the error handler of those they are made from, and so MPI_COMM_WORLD's.
class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(const MpiRuntime& runtime, std::chrono::duration<double> timeout)
      : rank_(runtime.rank()),
        size_(runtime.size()),
        host_share_(share_of_host(MPI_COMM_WORLD, rank_)),
        host_(host_name()),
        timeout_(timeout) {
    LOCKSTEP_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm_));
    open();
  }

  MpiCommunicator(const MpiCommunicator& whole, int colour)
      : host_share_(whole.host_share_), host_(whole.host_), timeout_(whole.timeout_) {
    LOCKSTEP_MPI(MPI_Comm_split(whole.comm_, colour, whole.rank_, &comm_));
    LOCKSTEP_MPI(MPI_Comm_rank(comm_, &rank_));
    LOCKSTEP_MPI(MPI_Comm_size(comm_, &size_));
    open();
  }

  ~MpiCommunicator() override {
    if (std::uncaught_exceptions() > exceptions_)
      return;  // freeing is collective, and the others may be gone
    for (MPI_Comm* comm : {&comm_, &message_comm_})
      if (MPI_Comm_free(comm) != MPI_SUCCESS)
        print_error(fmt::format("rank {}: MPI_Comm_free failed", rank_in_whole()));
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int local_rank() const override { return host_share_.rank; }
  int local_size() const override { return host_share_.size; }
  const std::string& host() const override { return host_; }
  std::string_view backend() const override { return "mpi"; }
  std::string library() const override { return mpi_library(); }
  std::chrono::duration<double> timeout() const override { return timeout_; }
  int local_cores() const override { return host_share_.cores; }

  AllReduce& host_all_reduce() override { return *all_reduce_; }
  PointToPoint& point_to_point() override { return *messages_; }

  /// In pieces: MPI counts with int, and the weights of a large network are more bytes than that.
  void broadcast(std::span<std::byte> data, int root) override {
    constexpr std::size_t kPiece = std::size_t{1} << 30;
    do {
      const auto piece = data.first(std::min(data.size(), kPiece));
      MPI_Request request = MPI_REQUEST_NULL;
      LOCKSTEP_MPI(MPI_Ibcast(piece.data(), int_count(piece.size()), MPI_BYTE, root, comm_, &request));
      finish(request, fmt::format("a broadcast from rank {}", root));
      data = data.subspan(piece.size());
    } while (!data.empty());
  }

  std::vector<std::byte> all_gather(std::span<const std::byte> mine) override {
    const int count = int_count(mine.size());
    std::vector<std::byte> all(mine.size() * static_cast<std::size_t>(size_));
    MPI_Request request = MPI_REQUEST_NULL;
    LOCKSTEP_MPI(MPI_Iallgather(mine.data(), count, MPI_BYTE, all.data(), count, MPI_BYTE, comm_, &request));
    finish(request, "an all-gather");
    return all;
  }

  void barrier() override {
    MPI_Request request = MPI_REQUEST_NULL;
    LOCKSTEP_MPI(MPI_Ibarrier(comm_, &request));
    finish(request, "a barrier");
  }

  void abort(int exit_code) noexcept override { MPI_Abort(MPI_COMM_WORLD, exit_code); }
  /// MPI waits for all ranks without a deadline: they have come before it does.
  std::unique_ptr<Communicator> make_part(int colour) override {
    barrier();
    return std::make_unique<MpiCommunicator>(*this, colour);
  }

 private:
  /// Makes the parts that live as long as comm_.
  void open() {
    LOCKSTEP_MPI(MPI_Comm_dup(comm_, &message_comm_));
    all_reduce_ = std::make_unique<MpiAllReduce>(comm_, rank_, size_, ranks_per_host(comm_, rank_));
    messages_ = std::make_unique<MpiPointToPoint>(message_comm_, size_);
  }

  /// Waits for a collective. MPI cannot cancel one: if it is abandoned it is left to it, the job is ending.
  void finish(MPI_Request request, std::string_view what) {
    PendingWork pending([&request] {
      int complete = 0;
      LOCKSTEP_MPI(MPI_Test(&request, &complete, MPI_STATUS_IGNORE));
      return complete != 0;
    });
    wait(pending, what, Waiting::kForAll);
  }

  int rank_ = 0, size_ = 1;
  HostShare host_share_;
  std::string host_;
  std::chrono::duration<double> timeout_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  MPI_Comm message_comm_ = MPI_COMM_NULL;  ///< for messages between two ranks: sums use tags of comm_
  std::unique_ptr<MpiAllReduce> all_reduce_;
  std::unique_ptr<MpiPointToPoint> messages_;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator(const MpiRuntime& runtime,
                                                    std::chrono::duration<double> timeout) {
  return std::make_unique<MpiCommunicator>(runtime, timeout);
}

std::string mpi_library() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  LOCKSTEP_MPI(MPI_Get_library_version(text.data(), &length));
  return text.data();
}

}  // namespace lockstep
