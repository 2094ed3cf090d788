// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What is known to go wrong when ranks are started, and how each of it shows in what the ranks see.
#pragma once

#include "trainer/doctor/rank_view.hpp"

#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// One thing that is wrong.
struct Finding {
  std::string what;  ///< with ranks and hosts
  std::string fix;   ///< one line
};

using Views = std::span<const RankView>;

/// What has to be there for a check to have anything to say.
enum class Needs { kNothing, kSrun, kGpus, kNeighbours, kHosts };

struct Check {
  const char* id;         ///< "docker-network": stands in --json, stays
  const char* healthy;    ///< what holds where nothing is found
  bool before_every_run;  ///< cheap, and about what hurts a run at once
  std::vector<Finding> (*find)(Views ranks);
  Needs needs = Needs::kNothing;
};

/// What these ranks lack of it, in words: "GPUs"; "" if they have it.
std::string missing(Needs needs, Views ranks);

/// All of them, in the order in which they are shown. A new one is a function and a line in checks.cpp.
std::span<const Check> checks();

/// What `find` functions share.
bool on_several_hosts(Views ranks);
/// The first rank of each host, in order of ranks.
std::vector<const RankView*> one_of_each_host(Views ranks);
/// A setting of this rank, or "".
std::string setting(const RankView& view, const std::string& name);

// launch_checks.cpp: how ranks were started and placed.
std::vector<Finding> find_other_world_size(Views ranks);
std::vector<Finding> find_crowded_cores(Views ranks);
std::vector<Finding> find_crowded_hosts(Views ranks);
std::vector<Finding> find_missing_cpus_per_task(Views ranks);
std::vector<Finding> find_shared_gpu(Views ranks);
std::vector<Finding> find_translating_iommu(Views ranks);

// host_checks.cpp: the hosts and what is between them.
std::vector<Finding> find_equal_addresses(Views ranks);
std::vector<Finding> find_loopback_name(Views ranks);
std::vector<Finding> find_unreadable_neighbour(Views ranks);
std::vector<Finding> find_small_shm(Views ranks);
std::vector<Finding> find_oom_kills(Views ranks);
std::vector<Finding> find_clocks_apart(Views ranks);
std::vector<Finding> find_unshared_directory(Views ranks);
std::vector<Finding> find_full_disk(Views ranks);

}  // namespace lockstep
