// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The watchdogs' network: TCP connections between ranks, beside MPI and NCCL.
#pragma once

#include "comm/watch/message.hpp"

#include <asio.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace lockstep::watchdog {

/// Every rank is connected with each of the first so many: in a small job all with all; in a large one these
/// watch, and the others hear from them.
inline constexpr int kWatchers = 16;

class Connection;

/// All calls on the thread of the io_context. Fills in what `peers` say of others; what comes from no rank
/// who knows the token changes nothing.
class Heartbeat {
 public:
  struct Callbacks {
    std::function<Beat(const Peer&)> make_beat;
    std::function<void(int rank, const Arrivals&)> arrivals;
    std::function<void()> changed;  ///< something happened that cannot wait for the next look
  };

  static constexpr std::int64_t kHelloWithinNs = 5'000'000'000;

  /// @param acceptor  listens. Borrows peers, which are as many as ranks.
  /// @param hello_within_ns  a connection that has not said hello by then is closed
  Heartbeat(asio::io_context& context, asio::ip::tcp::acceptor acceptor, int rank, const Token& token,
            std::vector<Peer>& peers, Callbacks callbacks, std::int64_t hello_within_ns = kHelloWithinNs);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  void start();
  /// Sends a beat to everyone, and looks after connections. Every interval.
  void beat();
  /// To all that are connected.
  void send_to_all(const Message& message);
  void send(int rank, const Message& message);
  /// The last message, to all that know of this rank: also where its hello has been sent and not been answered yet.
  /// From then on no connection is made, so that no rank misses this one.
  void send_last(const Message& message);
  /// Everything has left this process.
  bool all_sent() const;
  /// For faults on purpose.
  void drop_network() { dropped_ = true; }

  /// By how much rank's clock is ahead of this one, and half of the round trip in which that was measured.
  struct Offset {
    std::int64_t ahead_ns = 0, accuracy_ns = 0;
  };
  std::optional<Offset> offset(int rank) const;

 private:
  friend class Connection;
  struct Link;

  bool linked(int rank) const;
  void accept();
  void make_room_for_stranger();
  void connect(int rank);
  void on_connected(int rank, const std::shared_ptr<Connection>& connection);
  bool on_message(Connection& connection, const Message& message);
  bool on_hello(Connection& connection, const Hello& hello);
  void on_beat(int rank, const Beat& beat);
  void on_closed(Connection& connection);
  void probe(int rank, int tries);
  void found_dead(int rank);
  void measure_offset(Link& link, const Beat& beat, std::int64_t now_ns) const;

  asio::io_context& context_;
  asio::ip::tcp::acceptor acceptor_;
  int rank_;
  Token token_;
  std::vector<Peer>& peers_;
  Callbacks callbacks_;
  std::int64_t hello_within_ns_;
  std::vector<Link> links_;                          ///< by rank
  std::set<std::shared_ptr<Connection>> strangers_;  ///< that have not said hello yet
  bool dropped_ = false;
  bool last_sent_ = false;
};

}  // namespace lockstep::watchdog
