// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Demanded ways are taken or refused; `auto` goes down the catalogue until one works.
#include "trainer/device/gradient_path.hpp"

#include "comm/agreement.hpp"
#include "comm/backends/device_reducers.hpp"
#include "comm/device/device_all_reduce.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace lockstep {

// Ranks that turn out to hold one GPU.

namespace {

/// "0, 1 and 4"
std::string listed(const std::vector<int>& ranks) {
  const std::span<const int> all_but_last(ranks.data(), ranks.size() - 1);
  return fmt::format("{} and {}", fmt::join(all_but_last, ", "), ranks.back());
}

bool on_same_machine(const RankGpu& a, const RankGpu& b) {
  const bool known = !a.boot_id.empty() && !b.boot_id.empty();
  return known ? a.boot_id == b.boot_id : a.host == b.host;
}

bool on_same_gpu(const RankGpu& a, const RankGpu& b) {
  return on_same_machine(a, b) && (a.uuid == b.uuid || (!a.pci_bus.empty() && a.pci_bus == b.pci_bus));
}

}  // namespace

std::vector<SharedGpu> find_shared_gpus(std::span<const RankGpu> by_rank) {
  std::vector<SharedGpu> used;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    auto gpu = std::find_if(used.begin(), used.end(),
                            [&](const SharedGpu& u) { return on_same_gpu(u.gpu, by_rank[rank]); });
    if (gpu == used.end()) gpu = used.insert(gpu, {by_rank[rank], {}});
    gpu->ranks.push_back(static_cast<int>(rank));
    gpu->in_slices |= gpu->gpu.uuid != by_rank[rank].uuid;
  }
  std::erase_if(used, [](const SharedGpu& gpu) { return gpu.ranks.size() < 2; });
  return used;
}

std::string describe(const SharedGpu& shared) {
  if (shared.in_slices) {
    return fmt::format("ranks {} have slices (MIG) of the GPU at {} on {}", listed(shared.ranks),
                       shared.gpu.pci_bus, shared.gpu.host);
  }
  return fmt::format("ranks {} share {} on {}", listed(shared.ranks), shared.gpu.uuid, shared.gpu.host);
}

std::vector<RankGpu> gather_gpus(Communicator& comm, const DeviceProperties& mine) {
  const auto hosts = gather_hosts(comm);
  const auto uuids = gather_text(comm, mine.uuid);
  const auto buses = gather_text(comm, mine.pci_bus);
  const auto boots = gather_text(comm, host_boot_id());
  std::vector<RankGpu> by_rank;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank)
    by_rank.push_back({hosts[rank], uuids[rank], buses[rank], boots[rank]});
  return by_rank;
}

// How gradients travel: demanded ways are taken or refused; `auto` goes down the catalogue until one works.

namespace {

std::string problem_of(const DeviceReducer& reducer, const AllReduceSituation& situation) {
  const auto problem = situation.problems.find(reducer.path);
  return problem == situation.problems.end() ? "" : problem->second;
}

bool is_for(const DeviceReducer& reducer, const AllReduceSituation& situation) {
  return reducer.device_kind.empty() || reducer.device_kind == situation.device_kind;
}

bool lacks_whole_gpus(const DeviceReducer& reducer, const AllReduceSituation& situation) {
  return reducer.whole_gpus && !situation.shared_gpus.empty();
}

/// One that only sums on devices of its kind: nothing else will do.
AllReduceDecision demand(const DeviceReducer& reducer, const AllReduceSituation& situation) {
  if (!is_for(reducer, situation)) {
    throw ConfigError(
        fmt::format("parallel.backend={} needs GPUs, but the device is {}; use parallel.device={} or "
                    "parallel.backend=mpi",
                    reducer.name, situation.device_kind, reducer.device_kind));
  }
  const bool shares = lacks_whole_gpus(reducer, situation);
  if (shares && !situation.may_share_gpus) {
    throw DeviceError(fmt::format(
        "parallel.backend={} needs a whole GPU for each rank, but {}: start one rank a GPU "
        "(srun --gpus-per-task=1), or use parallel.backend=mpi (for tests, NCCL 2.30 or newer shares "
        "GPUs where NCCL_MULTI_RANK_GPU_ENABLE=1 is set)",
        reducer.name, describe(situation.shared_gpus.front())));
  }
  if (const auto problem = problem_of(reducer, situation); !problem.empty())
    throw DeviceError(fmt::format("parallel.backend={}: {}", reducer.name, problem));
  return {reducer.path, shares ? describe(situation.shared_gpus.front()) + ", for tests" : ""};
}

/// The first that works; with the reason why no better one does.
AllReduceDecision best_of_all(const AllReduceSituation& situation) {
  AllReduceDecision decision;
  for (const DeviceReducer& reducer : device_reducers()) {
    if (!is_for(reducer, situation)) continue;
    decision.path = reducer.path;
    std::string why_not = problem_of(reducer, situation);
    if (lacks_whole_gpus(reducer, situation)) why_not = describe(situation.shared_gpus.front());
    if (why_not.empty()) break;
    if (decision.reason.empty()) decision.reason = why_not;
  }
  return decision;
}

/// Why it cannot be loaded on the lowest rank where that is so; empty if all can. Collective.
std::string find_problem(const DeviceReducer& reducer, Communicator& comm) {
  std::string mine;
  try {
    reducer.load();
  } catch (const Error& error) {
    mine = fmt::format("on {}, {}", comm.host(), error.what());
  }
  for (const std::string& problem : gather_text(comm, mine)) {
    if (!problem.empty()) return problem;
  }
  return "";
}

/// True if all ranks may share GPUs over `reducer`; where one cannot load it, not. Collective.
bool all_may_share(const DeviceReducer& reducer, Communicator& comm) {
  std::int64_t refusals = 1;
  try {
    if (reducer.may_share_gpus != nullptr && reducer.may_share_gpus()) refusals = 0;
  } catch (const Error&) {  // find_problem() says it, if need be
  }
  comm.all_reduce(std::span(&refusals, 1));
  return refusals == 0;
}

/// Null: none is needed.
const DeviceReducer* reducer_of(const AllReduceDecision& decision) {
  return decision.path == GradientPath::kNone ? nullptr : &device_reducer(decision.path);
}

/// Decides, tries whether that can be loaded, and if not decides again.
AllReduceDecision agree_on_all_reduce(Communicator& comm, AllReduceSituation situation) {
  while (true) {
    AllReduceDecision decision;
    agree(comm, [&] { decision = choose_all_reduce(situation); });
    const DeviceReducer* reducer = reducer_of(decision);
    const bool settled =
        reducer == nullptr || reducer->load == nullptr || situation.problems.contains(decision.path);
    if (settled) return decision;
    situation.problems[decision.path] = find_problem(*reducer, comm);
  }
}

/// Advice for this rank, as it was started.
std::string advice_on_binding() {
  return binding_advice(static_cast<int>(usable_cpus().size()),
                        static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
}

}  // namespace

AllReduceDecision choose_all_reduce(const AllReduceSituation& situation) {
  const DeviceReducer* wanted = situation.wanted ? &device_reducer(*situation.wanted) : nullptr;
  if (wanted != nullptr && !wanted->device_kind.empty()) return demand(*wanted, situation);
  if (situation.device_kind == "cpu") return {GradientPath::kNone, ""};
  if (situation.world_size == 1) return {GradientPath::kNone, "one rank"};
  return wanted != nullptr ? AllReduceDecision{wanted->path, ""} : best_of_all(situation);
}

std::string binding_advice(int usable, int all) {
  if (usable != 1 || all <= 2) return "";
  return "this rank is bound to one core, which NCCL's threads share: use mpirun --bind-to none, or srun "
         "--cpus-per-task";
}

AllReduceSetup set_up_all_reduce(Communicator& comm, Device& device, std::optional<GradientPath> wanted) {
  AllReduceSituation situation{.wanted = wanted,
                               .device_kind = std::string(device.kind()),
                               .world_size = comm.size(),
                               .shared_gpus = find_shared_gpus(gather_gpus(comm, device.properties()))};
  if (wanted && !situation.shared_gpus.empty())
    situation.may_share_gpus = all_may_share(device_reducer(*wanted), comm);
  const auto decision = agree_on_all_reduce(comm, std::move(situation));
  AllReduceSetup setup{.backend = std::string(comm.backend()), .path = decision.path};
  const DeviceReducer* reducer = reducer_of(decision);
  if (reducer != nullptr) setup.all_reduce = reducer->make(comm, device);
  if (reducer != nullptr && !reducer->name.empty()) setup.backend = reducer->name;
  const bool advise = decision.reason.empty() && reducer != nullptr && reducer->threads;
  setup.description = setup.all_reduce ? setup.all_reduce->name() : "none";
  const std::string reason = advise ? advice_on_binding() : decision.reason;
  if (!reason.empty()) setup.description += ": " + reason;
  return setup;
}

}  // namespace lockstep
