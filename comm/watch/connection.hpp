// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One TCP connection of a heartbeat: bytes in, messages out, and the other way round.
#pragma once

#include "comm/watch/message.hpp"

#include <asio.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace lockstep::watchdog {

class Heartbeat;

/// Lives as long as something is under way on it. A peer that sends anything but messages is disconnected.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Heartbeat& owner, asio::ip::tcp::socket socket);

  /// Tries to connect; `done` hears whether it worked, once.
  void connect(const asio::ip::tcp::endpoint& endpoint, std::chrono::milliseconds limit,
               std::function<void(bool)> done);
  /// From now on it reads.
  void start();
  void send(std::vector<std::uint8_t> bytes);
  /// Closes it; the owner hears nothing more of it.
  void abandon();

  int expected = -1;                         ///< the rank that was called; -1: this one was
  int rank = -1;                             ///< the one at the other end; -1: not known yet
  const std::int64_t since_ns = clock_ns();  ///< when it began
  std::optional<asio::ip::address> remote_address() const;

  bool all_sent() const { return out_.empty(); }
  /// It has not taken what was sent before.
  bool is_behind() const { return out_.size() > 4; }

 private:
  void read();
  void write();
  void close();

  Heartbeat* owner_;  ///< null: abandoned
  asio::ip::tcp::socket socket_;
  asio::steady_timer timer_;
  Parser parser_;
  std::array<std::uint8_t, 16384> in_{};
  std::deque<std::vector<std::uint8_t>> out_;
};

}  // namespace lockstep::watchdog
