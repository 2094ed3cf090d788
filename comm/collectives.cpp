// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Everything a rank has to send and to receive is started at once, then waited for.
#include "comm/collectives.hpp"

#include "comm/agreement.hpp"
#include "common/error.hpp"

#include <memory>
#include <numeric>
#include <string_view>

namespace lockstep {
namespace {

/// Tag of collectives alone: other messages do not mix with them.
constexpr int kCollectiveTag = PointToPoint::kTags - 1;

/// Messages under way.
class Messages {
 public:
  explicit Messages(Communicator& comm) : comm_(comm) {}

  void send(std::span<const std::byte> data, int to) {
    pending_.push_back(comm_.point_to_point().start_send(data, to, kCollectiveTag));
  }
  void receive(std::span<std::byte> data, int from) {
    pending_.push_back(comm_.point_to_point().start_receive(data, from, kCollectiveTag));
  }
  void wait(std::string_view what) {
    for (const auto& message : pending_) comm_.wait(*message, what);
  }

 private:
  Communicator& comm_;
  std::vector<std::unique_ptr<PendingCollective>> pending_;
};

std::size_t sum_of(std::span<const std::size_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

/// Visits the pieces of a whole, in order of rank, on its root.
void for_each_piece(Communicator& comm, auto whole, std::span<const std::size_t> counts, int root,
                    const auto& visit) {
  if (comm.rank() != root) return;
  LOCKSTEP_CHECK(std::ssize(counts) == comm.size() && sum_of(counts) == whole.size());
  std::size_t begin = 0;
  for (int rank = 0; rank < comm.size(); begin += at(counts, rank++))
    visit(whole.subspan(begin, at(counts, rank)), rank);
}

}  // namespace

void replicate(Communicator& comm, std::span<float> data, int root) {
  comm.broadcast(std::as_writable_bytes(data), root);
}

std::vector<float> scatter(Communicator& comm, std::span<const float> whole,
                           std::span<const std::size_t> counts, int root) {
  std::vector<float> mine(at(counts, comm.rank()));
  Messages messages(comm);
  messages.receive(std::as_writable_bytes(std::span(mine)), root);
  for_each_piece(comm, whole, counts, root,
                 [&](auto piece, int rank) { messages.send(std::as_bytes(piece), rank); });
  messages.wait("a scatter");
  return mine;
}

std::vector<float> gather_to(Communicator& comm, std::span<const float> mine,
                             std::span<const std::size_t> counts, int root) {
  std::vector<float> whole(comm.rank() == root ? sum_of(counts) : 0);
  Messages messages(comm);
  messages.send(std::as_bytes(mine), root);
  for_each_piece(comm, std::span(whole), counts, root,
                 [&](auto piece, int rank) { messages.receive(std::as_writable_bytes(piece), rank); });
  messages.wait("a gather");
  return whole;
}

void parallel_apply(Communicator& comm, const std::function<void()>& body) {
  agree(comm, body);
}

void send_and_receive(Communicator& comm, std::span<const std::byte> data, int to, std::span<std::byte> into,
                      int from) {
  Messages messages(comm);
  messages.receive(into, from);
  messages.send(data, to);
  messages.wait("an exchange of messages");
}

}  // namespace lockstep
