// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How a view looks as JSON: the names are those of the fields. Part of what 'lockstep doctor --json' promises.
#pragma once

#include "trainer/doctor/rank_view.hpp"

#include <nlohmann/json.hpp>

namespace lockstep {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Interface, name, address, prefix)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankDevice, kind, description, uuid, pci_bus)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankView, rank, local_rank, local_size, world_size, launched, launcher,
                                   host, pid, device, threads, cores, launcher_cores, cpus_per_task,
                                   translated, free_bytes, free_limited_by, shm_bytes, oom_kills,
                                   neighbour_read_error, interfaces, own_address, clock_seconds,
                                   sees_run_directory, disk_free_bytes, settings, versions)

}  // namespace lockstep
