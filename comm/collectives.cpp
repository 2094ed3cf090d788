// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Everything a rank has to send and to receive is started at once, then waited for.
#include "comm/collectives.hpp"

#include "comm/agreement.hpp"
#include "common/error.hpp"

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

/// Visits the pieces of a whole, in order of rank, on its root.
void for_each_piece(Communicator& comm, auto whole, std::span<const std::size_t> bytes, int root,
                    const auto& visit) {
  if (comm.rank() != root) return;
  LOCKSTEP_CHECK(std::ssize(bytes) == comm.size() &&
                 std::accumulate(bytes.begin(), bytes.end(), std::size_t{0}) == whole.size());
  std::size_t begin = 0;
  for (int rank = 0; rank < comm.size(); begin += at(bytes, rank++))
    visit(whole.subspan(begin, at(bytes, rank)), rank);
}

}  // namespace

void scatter(Communicator& comm, std::span<const std::byte> whole, std::span<const std::size_t> bytes,
             std::span<std::byte> mine, int root) {
  Messages messages(comm);
  messages.receive(mine, root);
  for_each_piece(comm, whole, bytes, root, [&](auto piece, int rank) { messages.send(piece, rank); });
  messages.wait("a scatter");
}

void gather_to(Communicator& comm, std::span<const std::byte> mine, std::span<const std::size_t> bytes,
               std::span<std::byte> whole, int root) {
  Messages messages(comm);
  messages.send(mine, root);
  for_each_piece(comm, whole, bytes, root, [&](auto piece, int rank) { messages.receive(piece, rank); });
  messages.wait("a gather");
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
