// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Listens, and gathers the names and addresses of all ranks over the communicator.
#include "comm/watchdog/roll_call.hpp"

#include "comm/gather.hpp"
#include "comm/watchdog/addresses.hpp"
#include "common/console/output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>

namespace lockstep::watchdog {
namespace {

using asio::ip::tcp;

bool on_one_machine(Communicator& comm) {
  const auto networks = gather_text(comm, network_here());
  return std::ranges::all_of(networks,
                             [&](const std::string& network) { return network == networks.front(); });
}

/// Where this rank listens: its addresses, for others; the one to bind to, if there is but one.
struct Endpoint {
  std::vector<std::string> addresses;
  asio::ip::address bind_to = asio::ip::address_v4::any();
};

Endpoint choose_endpoint(bool one_machine) {
  Endpoint endpoint;
  if (one_machine) {
    endpoint.addresses = {"127.0.0.1"};
    endpoint.bind_to = asio::ip::address_v4::loopback();
    return endpoint;
  }
  const auto chosen = usable(interfaces_here(), included_interfaces());
  for (const Interface& interface : chosen) endpoint.addresses.push_back(address_text(interface.address));
  if (chosen.size() == 1) endpoint.bind_to = asio::ip::address_v4(chosen.front().address);
  return endpoint;
}

/// Empty: it listens.
std::string listen(tcp::acceptor& acceptor, const asio::ip::address& address) {
  asio::error_code error;
  acceptor.open(tcp::v4(), error);
  if (!error) acceptor.bind({address, 0}, error);
  if (!error) acceptor.listen(128, error);
  return error ? error.message() : "";
}

/// Handed over by MPI, and so by a rank of this very job: "PID PORT ADDRESS ...".
Identity read_identity(int rank, const std::string& host, const std::string& text) {
  Identity who{.rank = rank, .host = host, .addresses = {}};
  std::istringstream words(text);
  words >> who.pid >> who.port;
  for (std::string address; words >> address;) who.addresses.push_back(address);
  return who;
}

Token shared_token(Communicator& comm) {
  Token token{};
  if (comm.rank() == 0) token = draw_token();
  comm.broadcast(std::as_writable_bytes(std::span(token)), 0);
  return token;
}

}  // namespace

std::optional<RollCall> call_roll(Communicator& comm) {
  auto context = std::make_unique<asio::io_context>(1);
  tcp::acceptor acceptor(*context);
  const Endpoint endpoint = choose_endpoint(on_one_machine(comm));
  const std::string problem = listen(acceptor, endpoint.bind_to);
  const auto problems = gather_text(comm, problem);
  for (std::size_t rank = 0; rank < problems.size(); ++rank) {
    if (problems[rank].empty()) continue;
    if (comm.rank() == 0)
      print_error(fmt::format(
          "rank {} cannot listen on the network ({}): the ranks do not watch each other, and a rank "
          "that is lost shows when the others have waited for {:g} s",
          rank, problems[rank], comm.timeout().count()));
    return std::nullopt;
  }
  const auto hosts = gather_hosts(comm);
  const auto texts = gather_text(comm, fmt::format("{} {} {}", ::getpid(), acceptor.local_endpoint().port(),
                                                   fmt::join(endpoint.addresses, " ")));
  RollCall roll{std::move(context), std::move(acceptor), shared_token(comm), {}};
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    Peer peer;
    peer.who = read_identity(static_cast<int>(rank), hosts[rank], texts[rank]);
    roll.peers.push_back(std::move(peer));
  }
  return roll;
}

}  // namespace lockstep::watchdog
