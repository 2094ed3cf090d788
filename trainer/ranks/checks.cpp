// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The list of checks, and each of them.
#include "trainer/ranks/checks.hpp"

#include "common/machine.hpp"
#include "common/text_layout.hpp"
#include "common/yaml.hpp"
#include "trainer/device/gradient_path.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace lockstep {

namespace {

constexpr double kMostClockSeconds = 2;
constexpr std::uint64_t kLeastDiskBytes = 64ULL << 20;

/// The first rank of each host, in order of ranks.
std::vector<const RankView*> one_of_each_host(Views ranks) {
  std::vector<const RankView*> hosts;
  for (const RankView& view : ranks)
    if (std::ranges::none_of(hosts, [&](const RankView* h) { return h->host == view.host; }))
      hosts.push_back(&view);
  return hosts;
}

// How ranks were started and placed: sizes, cores, GPUs.

/// The ranks of a host together: no core counts twice.
struct HostLoad {
  const RankView* first = nullptr;
  int ranks = 0, threads = 0, launcher_cores = 0;
  std::set<int> cores;

  bool is_crowded() const { return !cores.empty() && threads > static_cast<int>(cores.size()); }
  /// More than it handed on.
  bool launcher_has_more() const { return launcher_cores > static_cast<int>(cores.size()); }
};

std::vector<HostLoad> loads_of_hosts(Views ranks) {
  std::vector<HostLoad> loads;
  for (const RankView* first : one_of_each_host(ranks)) {
    HostLoad load{.first = first, .cores = {}};
    for (const RankView& view : ranks) {
      if (view.host != first->host) continue;
      ++load.ranks;
      load.threads += view.threads;
      load.launcher_cores = std::max(load.launcher_cores, view.launcher_cores);
      load.cores.insert(view.cores.begin(), view.cores.end());
    }
    loads.push_back(std::move(load));
  }
  return loads;
}

std::vector<Finding> find_other_world_size(Views ranks) {
  const RankView& first = ranks.front();
  if (first.launched == first.world_size || first.launcher.empty()) return {};
  return {{fmt::format("the launcher started {}, MPI on {} sees {}", counted(first.launched, "process"),
                       first.host, first.world_size),
           "start with the mpirun of the MPI that the program was built with, or srun --mpi=pmix; in a "
           "container both sides need the same MPI"}};
}

/// salloc and sbatch make room for tasks, and start none.
std::vector<Finding> find_unused_tasks(Views ranks) {
  const RankView& first = ranks.front();
  const auto tasks = first.settings.find("SLURM_NTASKS");
  if (tasks == first.settings.end() || !first.launcher.empty() || first.world_size > 1) return {};
  const auto count = parse_int64(tasks->second);
  if (!count || *count < 2) return {};
  return {{fmt::format("Slurm has made room for {} tasks, and one process runs, on {}", *count, first.host),
           "start it with srun --mpi=pmix, or mpirun"}};
}

/// Counts only cores that the launcher has and did not pass on; missing cores cannot be passed on.
std::vector<Finding> find_crowded_cores(Views ranks) {
  for (const RankView& view : ranks) {
    const auto cores = static_cast<int>(view.cores.size());
    if (view.threads <= cores || cores == 0 || view.launcher_cores <= cores) continue;
    const std::string fix =
        view.launcher == "srun"
            ? fmt::format("srun --cpus-per-task={}", view.threads)
            : fmt::format("mpirun --bind-to none, or --map-by slot:PE={} --bind-to core", view.threads);
    return {{fmt::format("rank {} on {} is bound to {} and has {}", view.rank, view.host,
                         counted(view.cores.size(), "core"), counted(view.threads, "thread")),
             fix}};
  }
  for (const HostLoad& load : loads_of_hosts(ranks)) {
    if (!load.is_crowded() || !load.launcher_has_more()) continue;
    return {
        {fmt::format("{} ranks on {} with {} threads are bound to {}, and the launcher has {}", load.ranks,
                     load.first->host, load.threads, counted(load.cores.size(), "core"), load.launcher_cores),
         load.first->launcher == "srun" ? fmt::format("srun --cpus-per-task={}", load.first->threads)
                                        : "mpirun --bind-to none"}};
  }
  return {};
}

/// Slurm 22.05's srun no longer takes it from the job.
std::vector<Finding> find_missing_cpus_per_task(Views ranks) {
  for (const RankView& view : ranks) {
    if (view.launcher != "srun" || view.launcher_cores > static_cast<int>(view.cores.size())) continue;
    const bool step_has_fewer = view.cpus_per_task > static_cast<int>(view.cores.size());
    const bool step_was_not_told = view.threads > 1 && view.cpus_per_task < view.threads &&
                                   view.threads > static_cast<int>(view.cores.size());
    if (!step_has_fewer && !step_was_not_told) continue;
    const int wanted = step_has_fewer ? view.cpus_per_task : view.threads;
    return {{fmt::format("srun gave rank {} on {} {}, and it is to have {}: srun does not take "
                         "--cpus-per-task from sbatch",
                         view.rank, view.host, counted(view.cores.size(), "core"), wanted),
             fmt::format("srun --cpus-per-task={0} (or export SRUN_CPUS_PER_TASK={0})", wanted)}};
  }
  return {};
}

/// No launcher can hand on what the machine does not have: the doctor says so, a run does not.
std::vector<Finding> find_crowded_hosts(Views ranks) {
  std::vector<Finding> findings;
  if (!find_missing_cpus_per_task(ranks).empty()) return findings;  // srun has them
  for (const HostLoad& load : loads_of_hosts(ranks)) {
    if (!load.is_crowded() || load.launcher_has_more()) continue;
    findings.push_back(
        {fmt::format("{} on {} with {} have {} together", counted(load.ranks, "rank"), load.first->host,
                     counted(load.threads, "thread"), counted(load.cores.size(), "core")),
         "start fewer ranks there, or set fewer parallel.threads; where the machine has more "
         "cores, taskset, a container or the batch system keeps them back"});
  }
  return findings;
}

std::vector<Finding> find_shared_gpu(Views ranks) {
  std::vector<RankGpu> gpus;
  for (const RankView& view : ranks) {
    if (view.device.kind != "cuda" || view.device.uuid.empty()) return {};
    gpus.push_back({view.host, view.device.uuid, view.device.pci_bus});
  }
  std::vector<Finding> findings;
  for (const SharedGpu& shared : find_shared_gpus(gpus))
    findings.push_back({describe(shared),
                        "one rank a GPU: mpirun --map-by ppr:GPUS:node, srun --gpus-per-task=1 without a "
                        "CUDA_VISIBLE_DEVICES of your own"});
  return findings;
}

std::vector<Finding> find_other_drivers(Views ranks) {
  const RankView& first = ranks.front();
  std::vector<Finding> findings;
  for (const RankView* host : one_of_each_host(ranks))
    if (host->device.driver != first.device.driver)
      findings.push_back({fmt::format("{} has the GPU {}, and {} has the GPU {}", first.host,
                                      first.device.driver, host->host, host->device.driver),
                          "install the same GPU driver on all hosts"});
  return findings;
}

// The hosts: memory, clocks, disks.

std::vector<Finding> find_oom_kills(Views ranks) {
  std::vector<Finding> findings;
  for (const RankView* host : one_of_each_host(ranks))
    if (host->oom_kills != 0)
      findings.push_back(
          {fmt::format("on {} the kernel killed {} of this container or job because memory ran out",
                       host->host, counted(host->oom_kills, "process")),
           "raise the limit (docker --memory, Slurm's --mem, resources.limits.memory), or start fewer "
           "ranks a host"});
  return findings;
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
  std::vector<Finding> findings;
  for (const RankView* host : one_of_each_host(ranks))
    if (!host->sees_run_directory)
      findings.push_back(
          {fmt::format("{} does not see the run directory of rank 0 on {}: a run cannot go on from there",
                       host->host, ranks.front().host),
           "put run.dir on a disk that all hosts share (NFS, Lustre), at the same path"});
  return findings;
}

std::vector<Finding> find_full_disk(Views ranks) {
  const RankView& writer = ranks.front();
  if (writer.disk_free_bytes >= kLeastDiskBytes) return {};
  return {{fmt::format("the disk of the run directory on {} has {} left", writer.host,
                       format_memory(writer.disk_free_bytes)),
           "free some, or set run.dir to another disk; run.keep.last=1 keeps fewer checkpoints"}};
}

constexpr std::array kChecks{
    Check{"world-size", "launcher and MPI count the same ranks", true, find_other_world_size},
    Check{"tasks", "the tasks of Slurm are not left to one process", true, find_unused_tasks, Needs::kSlurm},
    Check{"cores", "the launcher hands all of its cores on", true, find_crowded_cores},
    Check{"host-cores", "every thread of every rank has a core of its own", false, find_crowded_hosts},
    Check{"cpus-per-task", "srun gave each task the cores of the job", true, find_missing_cpus_per_task,
          Needs::kSrun},
    Check{"shared-gpu", "no two ranks on one GPU", false, find_shared_gpu, Needs::kGpus},
    Check{"gpu-driver", "all hosts have the same GPU driver", false, find_other_drivers, Needs::kGpus},
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
  const auto none = [&](const auto& is_it) { return std::ranges::none_of(ranks, is_it); };
  if (needs == Needs::kSlurm && none([](const RankView& v) { return v.settings.contains("SLURM_NTASKS"); }))
    return "Slurm";
  if (needs == Needs::kSrun && none([](const RankView& v) { return v.launcher == "srun"; })) return "srun";
  if (needs == Needs::kGpus && none([](const RankView& v) { return v.device.kind == "cuda"; })) return "GPUs";
  if (needs == Needs::kHosts && one_of_each_host(ranks).size() <= 1) return "several hosts";
  return "";
}

}  // namespace lockstep
