// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Before the watch begins: names of the ranks, where each listens, and the token of the job.
#pragma once

#include "comm/communicator.hpp"
#include "comm/watchdog/peer.hpp"

#include <asio.hpp>

#include <memory>
#include <optional>
#include <vector>

namespace lockstep::watchdog {

struct RollCall {
  std::unique_ptr<asio::io_context> context;
  asio::ip::tcp::acceptor acceptor;  ///< listens; of that context
  Token token{};
  std::vector<Peer> peers;  ///< by rank
};

/// Collective. Ranks of one machine listen on its loopback interface alone; others on the interface that MPI
/// was told to use, or on all. Nothing, on all ranks, if one cannot listen: rank 0 says so.
std::optional<RollCall> call_roll(Communicator& comm);

}  // namespace lockstep::watchdog
