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

/// Every rank is connected with each of the first so many: in a small job all ranks are. In a job of more than
/// kMostDirect ranks these watch, and the others are members: a member tells one watcher that it lives, which tells the
/// other watchers, and tells its members of those. A watcher from which nothing comes is replaced by the next one, with
/// which a member is connected before it needs it. Rank 0 has no members, while others can have them.
inline constexpr int kWatchers = 16;
inline constexpr int kMostDirect = 32;

class Connection;

/// All calls on the thread of the io_context. Fills in what `peers` say of others; news from a sender that does
/// not know the token change nothing.
class Heartbeat {
 public:
  struct Callbacks {
    std::function<Beat()> make_beat;
    std::function<void()> changed;  ///< something happened that cannot wait for the next look
  };

  static constexpr std::int64_t kHelloWithinNs = 5'000'000'000;

  /// @param acceptor  listens. Borrows peers, which are as many as ranks.
  /// @param hello_within_ns  a connection that has not said hello by then is closed
  Heartbeat(asio::io_context& context, asio::ip::tcp::acceptor acceptor, int rank, const Token& token,
            Peers& peers, Callbacks callbacks, std::int64_t hello_within_ns = kHelloWithinNs);
  ~Heartbeat();

  void start();
  /// Sends a beat to everyone, and looks after connections. Every interval.
  void beat();
  /// To all that are connected.
  void send_to_all(const Message& message);
  /// The last message, to all that know of this rank. It also goes where its hello has been sent and not been
  /// answered yet. From then on no connection is made, so that no rank misses this one.
  void send_last(const Message& message);
  /// Everything has left this process.
  bool all_sent() const;
  /// For faults on purpose: from now on nothing goes to these ranks, and nothing comes from them.
  void drop_network(const std::function<bool(int rank)>& to);

 private:
  friend class Connection;
  /// One per other rank.
  struct Link {
    std::shared_ptr<Connection> connection;
    std::optional<asio::ip::tcp::endpoint> endpoint;  ///< the address at which its watchdog was reached
    std::size_t next_address = 0;
    bool connecting = false;
    int unanswered = 0;         ///< beats that were sent since the last one came, or tried to
    std::optional<Beat> fresh;  ///< its last one, until it is passed on
  };

  bool linked(int rank) const;
  bool is_dropped(int rank) const { return at(dropped_, rank); }
  bool is_large() const { return peers_.size() > static_cast<std::size_t>(kMostDirect); }
  bool relays() const { return is_large() && rank_ < kWatchers; }
  // Connections.
  void accept();
  void make_room_for_stranger();
  void close_silent_strangers();
  void connect(int rank);
  void on_connected(int rank, const std::shared_ptr<Connection>& connection);
  bool on_hello(Connection& connection, const Hello& hello);
  void on_closed(Connection& connection);
  void probe(int rank, int tries);
  // Messages that arrive.
  bool on_message(Connection& connection, const Message& message);
  bool on_relay(int from, const Relay& relay, std::int64_t now_ns);
  bool on_news(int rank, const Message& said, std::int64_t when_ns);
  void on_beat(int rank, const Beat& beat, std::int64_t when_ns);
  bool found_dead(int rank, std::int64_t when_ns);
  // Messages that are passed on, and those that are sent.
  Relayed relayed(int rank, Message said) const;
  void pass_on(const Relayed& news, bool to_watchers);
  void send_news();
  std::vector<std::uint8_t> take_fresh_beats(int first_rank, int end_rank);
  void beat_as_member();
  void send_beat(int rank, const std::vector<std::uint8_t>& more = {});
  void send_bytes(int rank, const std::vector<std::uint8_t>& bytes);

  asio::io_context& context_;
  asio::ip::tcp::acceptor acceptor_;
  int rank_;
  Hello hello_;
  Peers& peers_;
  Callbacks callbacks_;
  std::int64_t hello_within_ns_;
  std::vector<Link> links_;  ///< by rank
  std::vector<Relayed> for_watchers_,
      for_members_;  ///< news of ranks that ended, until what came with it has been
                     ///< read
  std::set<std::shared_ptr<Connection>> strangers_;  ///< that have not said hello yet
  std::vector<bool> dropped_;                        ///< by rank
  bool last_sent_ = false;
};

}  // namespace lockstep::watchdog
