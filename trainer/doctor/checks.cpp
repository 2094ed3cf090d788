// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The list of checks, and what they share.
#include "trainer/doctor/checks.hpp"

#include <algorithm>
#include <array>

namespace lockstep {
namespace {

constexpr std::array kChecks{
    Check{"world-size", "launcher and MPI count the same ranks", true, find_other_world_size},
    Check{"cores", "the launcher hands all of its cores on", true, find_crowded_cores},
    Check{"host-cores", "every thread of every rank has a core of its own", false, find_crowded_hosts},
    Check{"cpus-per-task", "srun gave each task the cores of the job", true, find_missing_cpus_per_task,
          Needs::kSrun},
    Check{"shared-gpu", "no two ranks on one GPU", false, find_shared_gpu, Needs::kGpus},
    Check{"iommu", "GPUs reach each other directly", true, find_translating_iommu, Needs::kGpus},
    Check{"docker-network", "no address is on two hosts", true, find_equal_addresses, Needs::kHosts},
    Check{"loopback-name", "no host takes its name for 127.x", true, find_loopback_name, Needs::kHosts},
    Check{"process-vm-readv", "ranks of a host may read each other's memory", true, find_unreadable_neighbour,
          Needs::kNeighbours},
    Check{"shm", "/dev/shm is large enough", true, find_small_shm, Needs::kNeighbours},
    Check{"oom-kill", "nothing was killed for its memory", false, find_oom_kills},
    Check{"clocks", "the hosts' clocks agree", true, find_clocks_apart, Needs::kHosts},
    Check{"shared-directory", "all hosts see the run directory", false, find_unshared_directory,
          Needs::kHosts},
    Check{"disk", "the run directory's disk has room", true, find_full_disk}};

}  // namespace

std::span<const Check> checks() {
  return kChecks;
}

std::string missing(Needs needs, Views ranks) {
  switch (needs) {
    case Needs::kSrun:
      return std::ranges::any_of(ranks, [](const RankView& v) { return v.launcher == "srun"; }) ? "" : "srun";
    case Needs::kGpus:
      return std::ranges::any_of(ranks, [](const RankView& v) { return v.device.kind == "cuda"; }) ? ""
                                                                                                   : "GPUs";
    case Needs::kNeighbours:
      return std::ranges::any_of(ranks, [](const RankView& v) { return v.local_size > 1; })
                 ? ""
                 : "two ranks on a host";
    case Needs::kHosts:
      return on_several_hosts(ranks) ? "" : "several hosts";
    case Needs::kNothing:
      break;
  }
  return "";
}

std::vector<const RankView*> one_of_each_host(Views ranks) {
  std::vector<const RankView*> hosts;
  for (const RankView& view : ranks)
    if (std::ranges::none_of(hosts, [&](const RankView* h) { return h->host == view.host; }))
      hosts.push_back(&view);
  return hosts;
}

bool on_several_hosts(Views ranks) {
  return one_of_each_host(ranks).size() > 1;
}

std::string setting(const RankView& view, const std::string& name) {
  const auto found = view.settings.find(name);
  return found == view.settings.end() ? "" : found->second;
}

}  // namespace lockstep
