// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Listens, and gathers the names and addresses of all ranks over the communicator.
#include "comm/watch/rendezvous.hpp"

#include "comm/agreement.hpp"
#include "common/machine.hpp"
#include "common/output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <sstream>
#include <utility>

namespace lockstep::watchdog {

namespace {

using asio::ip::tcp;

/// Identifies host, boot and network namespace: equal for two processes that reach each other over the loopback
/// interface.
std::string network_here() {
  struct stat space {};
  const bool known = ::stat("/proc/self/ns/net", &space) == 0;
  return fmt::format("{}/{}/{}", host_name(), host_boot_id(), known ? space.st_ino : 0);
}

bool on_one_machine(Communicator& comm) {
  const auto networks = gather_text(comm, network_here());
  return std::ranges::count(networks, networks.front()) == comm.size();
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

}  // namespace

std::optional<Rendezvous> call_roll(Communicator& comm) {
  auto context = std::make_unique<asio::io_context>(1);
  tcp::acceptor acceptor(*context);
  const Endpoint endpoint =
      choose_endpoint(on_one_machine(comm), usable(interfaces_here(), included_interfaces()));
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
  Rendezvous roll{std::move(context), std::move(acceptor), comm.rank() == 0 ? draw_token() : Token{}, {}};
  broadcast(comm, roll.token);
  const std::int64_t now = clock_ns();
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    Peer& peer = roll.peers.emplace_back();
    peer.who = read_identity(static_cast<int>(rank), hosts[rank], texts[rank]);
    peer.heard_ns = peer.where.since_ns = now;  // as long as it says no more, it starts since now
  }
  return roll;
}

// The interfaces of this host, less those that no other host can reach.

namespace {

bool is_private_bridge(const Interface& interface) {
  for (const std::string_view prefix : {"docker", "virbr", "br-", "veth", "lxc", "cni", "podman"})
    if (interface.name.starts_with(prefix)) return true;
  return false;
}

/// "10.1.0.0/16"
bool lies_in(std::uint32_t address, const std::string& subnet) {
  asio::error_code bad;
  const auto network = asio::ip::make_network_v4(subnet, bad);
  return !bad && (address & network.netmask().to_uint()) == network.network().to_uint();
}

bool matches(const Interface& interface, std::string_view included) {
  while (!included.empty()) {
    const std::string item(included.substr(0, included.find(',')));
    if (interface.name == item || lies_in(interface.address, item)) return true;
    included.remove_prefix(std::min(included.size(), item.size() + 1));
  }
  return false;
}

}  // namespace

Endpoint choose_endpoint(bool one_machine, const std::vector<Interface>& chosen) {
  if (one_machine) return {{"127.0.0.1"}, asio::ip::address_v4::loopback()};
  Endpoint endpoint;
  for (const Interface& interface : chosen)
    endpoint.addresses.push_back(asio::ip::address_v4(interface.address).to_string());
  if (chosen.size() == 1) endpoint.bind_to = asio::ip::address_v4(chosen.front().address);
  return endpoint;
}

std::vector<Interface> interfaces_here() {
  std::vector<Interface> found;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return found;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    const bool up = (entry->ifa_flags & IFF_UP) != 0;
    if (!up || entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_in address{};
    std::memcpy(&address, entry->ifa_addr, sizeof(address));
    found.push_back(
        {entry->ifa_name, ntohl(address.sin_addr.s_addr), (entry->ifa_flags & IFF_LOOPBACK) != 0});
  }
  freeifaddrs(first);
  return found;
}

std::vector<Interface> usable(std::vector<Interface> all, std::string_view included) {
  std::erase_if(all, [](const Interface& interface) { return interface.loopback; });
  std::vector<Interface> chosen;
  std::ranges::copy_if(all, std::back_inserter(chosen),
                       [&](const Interface& interface) { return matches(interface, included); });
  if (!chosen.empty()) return chosen;
  std::stable_partition(all.begin(), all.end(),
                        [](const Interface& interface) { return !is_private_bridge(interface); });
  return all;
}

std::string included_interfaces() {
  for (const char* name : {"OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_oob_tcp_if_include"})
    if (std::string value = environment_variable(name); !value.empty()) return value;
  return "";
}

}  // namespace lockstep::watchdog
