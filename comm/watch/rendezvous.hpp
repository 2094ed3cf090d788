// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Before the watch begins: names of the ranks, where each listens, and the token of the job.
#pragma once

#include "comm/communicator.hpp"
#include "comm/watch/message.hpp"

#include <asio.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::watchdog {

struct Rendezvous {
  std::unique_ptr<asio::io_context> context;
  asio::ip::tcp::acceptor acceptor;  ///< listens; of that context
  Token token{};
  Peers peers;  ///< by rank
};

/// Collective. Ranks of one machine listen on its loopback interface alone; others on the interface that MPI
/// was told to use, or on all. Nothing, on all ranks, if one cannot listen: rank 0 says so.
std::optional<Rendezvous> call_roll(Communicator& comm);

// Under which addresses other hosts may reach this one.

/// An IPv4 address of an interface that is up.
struct Interface {
  std::string name;
  std::uint32_t address = 0;  ///< host order
  bool loopback = false;
};

std::vector<Interface> interfaces_here();

/// Addresses of a rank: for others; the one to bind to, if there is but one.
struct Endpoint {
  std::vector<std::string> addresses;
  asio::ip::address bind_to = asio::ip::address_v4::any();
};
/// @param chosen  interfaces that other hosts can use
Endpoint choose_endpoint(bool one_machine, const std::vector<Interface>& chosen);

/// Those that other hosts can use, the likeliest first. Bridges of containers and virtual machines, which have
/// the same address on many hosts, come last.
/// @param included  as Open MPI's btl_tcp_if_include has it: names and subnets, "eth0,10.1.0.0/16"; empty: all.
///                  Only those, if there are any
std::vector<Interface> usable(std::vector<Interface> all, std::string_view included);

/// Interfaces that the job named for MPI: OMPI_MCA_btl_tcp_if_include, or OMPI_MCA_oob_tcp_if_include.
std::string included_interfaces();

}  // namespace lockstep::watchdog
