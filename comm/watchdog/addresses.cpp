// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The interfaces of this host, less those that no other host can reach.
#include "comm/watchdog/addresses.hpp"

#include "common/host_name.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace lockstep::watchdog {
namespace {

bool is_private_bridge(const Interface& interface) {
  for (const std::string_view prefix : {"docker", "virbr", "br-", "veth", "lxc", "cni", "podman"}) {
    if (interface.name.starts_with(prefix)) return true;
  }
  return false;
}

/// "10.1.0.0/16"
bool lies_in(std::uint32_t address, const std::string& subnet) {
  const std::size_t slash = subnet.find('/');
  in_addr network{};
  if (slash == subnet.npos || inet_pton(AF_INET, subnet.substr(0, slash).c_str(), &network) != 1)
    return false;
  unsigned bits = 0;
  const auto [end, error] = std::from_chars(subnet.data() + slash + 1, subnet.data() + subnet.size(), bits);
  if (error != std::errc() || end != subnet.data() + subnet.size() || bits > 32) return false;
  const std::uint32_t mask = bits == 0 ? 0 : ~std::uint32_t{0} << (32 - bits);
  return (address & mask) == (ntohl(network.s_addr) & mask);
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
  for (const char* name : {"OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_oob_tcp_if_include"}) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): the environment does not change
    if (value != nullptr && *value != '\0') return value;
  }
  return "";
}

std::string address_text(std::uint32_t address) {
  return fmt::format("{}.{}.{}.{}", address >> 24, address >> 16 & 255U, address >> 8 & 255U, address & 255U);
}

std::string network_here() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat space {};
  const bool known = ::stat("/proc/self/ns/net", &space) == 0;
  return fmt::format("{}/{}/{}", host_name(), boot, known ? space.st_ino : 0);
}

}  // namespace lockstep::watchdog
