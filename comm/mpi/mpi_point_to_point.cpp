// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A message is one request, or several in order where it is longer than MPI can count.
#include "comm/mpi/mpi_point_to_point.hpp"

#include "comm/mpi/mpi_error.hpp"
#include "common/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace lockstep {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 30;  // MPI counts with int

/// A message of no bytes is a piece, too: its receiver waits for it.
std::size_t piece_count(std::size_t bytes) {
  return std::max<std::size_t>(1, (bytes + kPiece - 1) / kPiece);
}

int piece_bytes(std::size_t bytes, std::size_t piece) {
  return static_cast<int>(std::min(kPiece, bytes - piece * kPiece));
}

class Message : public PendingCollective {
 public:
  Message(std::size_t bytes, bool is_receive)
      : bytes_(bytes), is_receive_(is_receive), requests_(piece_count(bytes), MPI_REQUEST_NULL) {}
  /// Abandoned: the job is ending, and nothing that still arrives may be written. (A send cannot be taken
  /// back.)
  ~Message() override {
    for (MPI_Request& request : requests_) {
      if (request == MPI_REQUEST_NULL) continue;
      if (is_receive_) MPI_Cancel(&request);
      MPI_Request_free(&request);
    }
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  bool test() override {
    if (complete_) return true;
    std::vector<MPI_Status> statuses(requests_.size());
    int done = 0;
    check(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, statuses.data()),
          statuses);
    if (done == 0) return false;
    finish(statuses);
    return complete_ = true;
  }

 protected:
  std::size_t bytes() const { return bytes_; }
  std::vector<MPI_Request>& requests() { return requests_; }

 private:
  virtual void check(int status, const std::vector<MPI_Status>& /*statuses*/) { LOCKSTEP_MPI(status); }
  virtual void finish(const std::vector<MPI_Status>& /*statuses*/) {}

  std::size_t bytes_;
  bool is_receive_;
  std::vector<MPI_Request> requests_;
  bool complete_ = false;
};

class Send final : public Message {
 public:
  Send(std::span<const std::byte> data, int to, int tag, MPI_Comm comm) : Message(data.size(), false) {
    for (std::size_t i = 0; i < requests().size(); ++i)
      LOCKSTEP_MPI(MPI_Isend(data.data() + i * kPiece, piece_bytes(data.size(), i), MPI_BYTE, to, tag, comm,
                             &requests()[i]));
  }
};

class Receive final : public Message {
 public:
  Receive(std::span<std::byte> data, int from, int tag, MPI_Comm comm)
      : Message(data.size(), true), from_(from), tag_(tag) {
    for (std::size_t i = 0; i < requests().size(); ++i)
      LOCKSTEP_MPI(MPI_Irecv(data.data() + i * kPiece, piece_bytes(data.size(), i), MPI_BYTE, from, tag, comm,
                             &requests()[i]));
  }

 private:
  [[noreturn]] void throw_other_length(const char* is) const {
    throw InternalError(
        fmt::format("a message from rank {} (tag {}) is {} than the {} bytes that this rank "
                    "expects; please report this",
                    from_, tag_, is, bytes()));
  }
  static bool is_truncation(int status) {
    int error_class = MPI_SUCCESS;
    return status != MPI_SUCCESS && MPI_Error_class(status, &error_class) == MPI_SUCCESS &&
           error_class == MPI_ERR_TRUNCATE;
  }
  void check(int status, const std::vector<MPI_Status>& statuses) override {
    int error_class = MPI_SUCCESS;
    if (status != MPI_SUCCESS) LOCKSTEP_MPI(MPI_Error_class(status, &error_class));
    if (error_class == MPI_ERR_IN_STATUS) {
      for (const MPI_Status& piece : statuses) {
        if (is_truncation(piece.MPI_ERROR)) throw_other_length("longer");
      }
    }
    if (is_truncation(status)) throw_other_length("longer");
    LOCKSTEP_MPI(status);
  }
  void finish(const std::vector<MPI_Status>& statuses) override {
    for (std::size_t i = 0; i < statuses.size(); ++i) {
      int received = 0;
      LOCKSTEP_MPI(MPI_Get_count(&statuses[i], MPI_BYTE, &received));
      if (received != piece_bytes(bytes(), i)) throw_other_length("shorter");
    }
  }

  int from_, tag_;
};

}  // namespace

std::unique_ptr<PendingCollective> MpiPointToPoint::start_send(std::span<const std::byte> data, int to,
                                                               int tag) {
  LOCKSTEP_CHECK(to >= 0 && to < size_ && tag >= 0 && tag < kTags);
  return std::make_unique<Send>(data, to, tag, comm_);
}

std::unique_ptr<PendingCollective> MpiPointToPoint::start_receive(std::span<std::byte> data, int from,
                                                                  int tag) {
  LOCKSTEP_CHECK(from >= 0 && from < size_ && tag >= 0 && tag < kTags);
  return std::make_unique<Receive>(data, from, tag, comm_);
}

}  // namespace lockstep
