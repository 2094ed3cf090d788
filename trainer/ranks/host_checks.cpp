// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The hosts and what is between them: networks, memory, clocks, disks.
#include "common/machine.hpp"
#include "common/text_layout.hpp"
#include "trainer/ranks/checks.hpp"

#include <arpa/inet.h>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>

namespace lockstep {
namespace {

constexpr double kMostClockSeconds = 2;
constexpr std::uint64_t kLeastDiskBytes = 64ULL << 20;
constexpr std::uint64_t kContainerShmBytes = 64ULL << 20;  // what container engines give unasked

struct Subnet {
  std::uint32_t address = 0;
  int prefix = 0;
};

std::uint32_t mask_of(int prefix) {
  return prefix <= 0 ? 0 : ~std::uint32_t{0} << (32 - std::min(prefix, 32));
}

std::optional<std::uint32_t> number_of(const std::string& address) {
  in_addr number{};
  if (inet_pton(AF_INET, address.c_str(), &number) != 1) return std::nullopt;
  return ntohl(number.s_addr);
}

std::string in_words(const Subnet& network) {
  const std::uint32_t a = network.address & mask_of(network.prefix);
  return fmt::format("{}.{}.{}.{}/{}", a >> 24, a >> 16 & 255, a >> 8 & 255, a & 255, network.prefix);
}

/// One that every host has an address of its own in: where ranks can talk.
std::optional<Subnet> common_network(const std::vector<const RankView*>& hosts) {
  for (const Interface& candidate : hosts.front()->interfaces) {
    const auto number = number_of(candidate.address);
    if (!number) continue;
    std::vector<std::string> addresses;
    for (const RankView* host : hosts) {
      const auto inside = std::ranges::find_if(host->interfaces, [&](const Interface& i) {
        const auto n = number_of(i.address);
        return n && (*n & mask_of(candidate.prefix)) == (*number & mask_of(candidate.prefix));
      });
      if (inside != host->interfaces.end()) addresses.push_back(inside->address);
    }
    std::ranges::sort(addresses);
    if (addresses.size() == hosts.size() && std::ranges::adjacent_find(addresses) == addresses.end())
      return Subnet{*number, candidate.prefix};
  }
  return std::nullopt;
}

/// Whether a setting already says which networks to use, or which not.
bool network_is_chosen(const RankView& view) {
  return !setting(view, "OMPI_MCA_btl_tcp_if_include").empty() ||
         !setting(view, "OMPI_MCA_btl_tcp_if_exclude").empty();
}

}  // namespace

/// docker0 and virbr0 have the same address everywhere; MPI takes two hosts with one network for neighbours
/// in it, and connects to itself.
std::vector<Finding> find_equal_addresses(Views ranks) {
  const auto hosts = one_of_each_host(ranks);
  if (network_is_chosen(ranks.front())) return {};
  for (std::size_t a = 0; a < hosts.size(); ++a) {
    for (std::size_t b = a + 1; b < hosts.size(); ++b) {
      for (const Interface& mine : hosts[a]->interfaces) {
        const auto same = std::ranges::find(hosts[b]->interfaces, mine.address, &Interface::address);
        if (same == hosts[b]->interfaces.end()) continue;
        const auto network = common_network(hosts);
        const std::string name = network ? in_words(*network) : "NETWORK";
        return {{fmt::format("{} of {} and {} of {} both have the address {}: MPI may try to use it between "
                             "hosts, and hang",
                             mine.name, hosts[a]->host, same->name, hosts[b]->host, mine.address),
                 fmt::format("mpirun --mca btl_tcp_if_include {0} --mca oob_tcp_if_include {0} (with NCCL: "
                             "NCCL_SOCKET_IFNAME=^{1})",
                             name, mine.name)}};
      }
    }
  }
  return {};
}

std::vector<Finding> find_loopback_name(Views ranks) {
  if (!on_several_hosts(ranks)) return {};
  for (const RankView* host : one_of_each_host(ranks)) {
    if (!host->own_address.starts_with("127.")) continue;
    return {{fmt::format("{} takes its own name for {}, where no other host reaches it", host->host,
                         host->own_address),
             fmt::format("in /etc/hosts of {0} give {0} its address in the network (not 127.0.1.1)",
                         host->host)}};
  }
  return {};
}

std::vector<Finding> find_unreadable_neighbour(Views ranks) {
  for (const RankView& view : ranks) {
    if (view.neighbour_read_error.empty()) continue;
    const std::string mechanism = setting(view, "OMPI_MCA_btl_vader_single_copy_mechanism");
    if (mechanism == "none" || mechanism == "emulated") continue;
    return {
        {fmt::format("rank {} on {} may not read the memory of its neighbour (process_vm_readv: {}): Open "
                     "MPI says 'Read -1, expected ...' and hangs or fails",
                     view.rank, view.host, view.neighbour_read_error),
         "export OMPI_MCA_btl_vader_single_copy_mechanism=none, or start the container with "
         "--cap-add=SYS_PTRACE"}};
  }
  return {};
}

std::vector<Finding> find_small_shm(Views ranks) {
  for (const RankView& view : ranks) {
    if (view.local_size < 2 || view.shm_bytes == 0 || view.shm_bytes > kContainerShmBytes) continue;
    return {{fmt::format("/dev/shm of {} has {} for {}", view.host, format_memory(view.shm_bytes),
                         counted(view.local_size, "rank")),
             "start the container with --shm-size=1g (or --ipc=host); in Kubernetes mount an emptyDir with "
             "medium: Memory"}};
  }
  return {};
}

std::vector<Finding> find_oom_kills(Views ranks) {
  for (const RankView* host : one_of_each_host(ranks)) {
    if (host->oom_kills == 0) continue;
    return {
        {fmt::format("on {} the kernel killed {} of this container or job for want of memory", host->host,
                     counted(host->oom_kills, "process")),
         "raise the limit (docker --memory, Slurm's --mem, resources.limits.memory), or start fewer ranks a "
         "host"}};
  }
  return {};
}

std::vector<Finding> find_clocks_apart(Views ranks) {
  const auto [early, late] = std::ranges::minmax_element(ranks, {}, &RankView::clock_seconds);
  const double apart = late->clock_seconds - early->clock_seconds;
  if (apart < kMostClockSeconds || early->host == late->host) return {};
  return {{fmt::format("the clocks of {} and {} are {:.1f} s apart", late->host, early->host, apart),
           "switch on time synchronisation on both (chrony, systemd-timesyncd): times in logs mislead, and "
           "builds and caches on shared disks, too"}};
}

std::vector<Finding> find_unshared_directory(Views ranks) {
  for (const RankView* host : one_of_each_host(ranks)) {
    if (host->sees_run_directory) continue;
    return {{fmt::format("{} does not see the run directory of rank 0 on {}: a run cannot go on from there",
                         host->host, ranks.front().host),
             "put run.dir on a disk that all hosts share (NFS, Lustre), at the same path"}};
  }
  return {};
}

std::vector<Finding> find_full_disk(Views ranks) {
  const RankView& writer = ranks.front();
  if (writer.disk_free_bytes >= kLeastDiskBytes) return {};
  return {{fmt::format("the disk of the run directory on {} has {} left", writer.host,
                       format_memory(writer.disk_free_bytes)),
           "free some, or set run.dir to another disk; run.keep.last=1 keeps fewer checkpoints"}};
}

}  // namespace lockstep
