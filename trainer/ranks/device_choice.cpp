// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Devices by name, and what `auto` means on the machines at hand.
#include "trainer/ranks/device_choice.hpp"

#include "comm/agreement.hpp"
#include "comm/backends/device_reducers.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "common/text_layout.hpp"
#include "kernels/cpu/simd_choice.hpp"
#include "kernels/vendor/vendor.hpp"
#include "trainer/config/job_values.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace lockstep {
namespace {

/// Why this process cannot use a GPU; no problem: it can.
struct GpuProblem {
  std::string text;
  bool is_worth_a_word = false;  ///< there is something that looks like a GPU, and its user may wonder
};

/// Tries the GPU that this rank would take; with too few for all ranks, any: make_gpu() refuses that.
GpuProblem gpu_problem(const Platform& gpus, const Communicator& comm) {
  try {
    const int visible = static_cast<int>(gpus.devices().size());
    gpus.make_device(comm.local_rank() < visible ? comm.local_rank() : 0);
    return {};
  } catch (const NoGpuError& error) {
    return {error.what(), false};
  } catch (const Error& error) {
    return {error.what(), true};
  }
}

struct KindChoice {
  DeviceKind kind = DeviceKind::kCpu;
  std::string remark;
};

/// What `auto` means: GPUs if every rank can use one, the CPU if none can.
KindChoice choose_kind(const ParallelSection& parallel, const Platform& gpus, Communicator& comm) {
  const GpuProblem problem = gpu_problem(gpus, comm);
  const auto with_gpu = gather(comm, problem.text.empty() ? 1 : 0);
  if (std::ranges::count(with_gpu, 0) == 0) return {DeviceKind::kCuda, ""};
  agree(comm, [&] {
    if (backend_named(parallel.backend).needs_gpus && !problem.text.empty()) {
      throw DeviceError(fmt::format("parallel.backend={}: {}", parallel.backend, problem.text));
    }
    if (std::ranges::count(with_gpu, 1) > 0 && !problem.text.empty()) {
      throw DeviceError(fmt::format(
          "parallel.device=auto: other ranks have a GPU, but on {} there is none to use: {}; leave "
          "this host out, or set parallel.device=cpu",
          comm.host(), problem.text));
    }
  });
  return {DeviceKind::kCpu, problem.is_worth_a_word ? "no GPU is used: " + problem.text : ""};
}

std::shared_ptr<Gpu> make_gpu(const Platform& platform, const ParallelSection& parallel,
                              std::optional<int> requested, const Communicator& comm) {
  const int visible = static_cast<int>(platform.devices().size());
  auto gpu = std::make_shared<Gpu>();
  gpu->device = platform.make_device(choose_gpu(comm.local_rank(), comm.local_size(), visible, requested));
  gpu->ops =
      parallel.kernels == Kernels::kVendor ? make_vendor_ops(*gpu->device) : platform.make_ops(*gpu->device);
  return gpu;
}

/// What is worth a word about the instructions in use; else empty.
std::string simd_remark() {
  return cpu::simd_fuses() ? ""
                           : fmt::format(
                                 "{} has no fused multiply-add (FMA): several instructions take its "
                                 "place, to the same bits, but slowly",
                                 cpu::simd_name());
}

DeviceChoice choose_cpu(Communicator& comm, const std::string& remark) {
  const std::string slow = simd_remark();
  return {.kind = "cpu",
          .description = "cpu (" + cpu::simd_name() + ")",
          .backend = std::string(comm.backend()),
          .remark = remark.empty() || slow.empty() ? remark + slow : remark + "; " + slow};
}

DeviceChoice choose_gpu_of(const Platform& platform, const ParallelSection& parallel,
                           std::optional<int> requested, Communicator& comm) {
  std::shared_ptr<Gpu> gpu;
  agree(comm, [&] { gpu = make_gpu(platform, parallel, requested, comm); });
  AllReduceSetup setup = set_up_all_reduce(comm, *gpu->device, backend_named(parallel.backend).gradients);
  gpu->all_reduce = std::move(setup.all_reduce);
  if (setup.path != GradientPath::kNone) gpu->make_link = device_reducer(setup.path).make_link;
  return {.kind = std::string(gpu->device->kind()),
          .description = gpu->device->properties().name,
          .gpu = gpu,
          .communication = "gradients: " + setup.description,
          .backend = setup.backend};
}

}  // namespace

DeviceChoice choose_device(const ParallelSection& parallel, Communicator& comm, const Platform& gpus) {
  const auto name = parse_device_name(parallel.device);
  if (!name) throw ConfigError(fmt::format("'{}' is no device: {}", parallel.device, kDeviceNames));
  KindChoice choice{name->kind, ""};
  if (name->kind == DeviceKind::kAuto) choice = choose_kind(parallel, gpus, comm);
  if (choice.kind == DeviceKind::kCuda) return choose_gpu_of(gpus, parallel, name->index, comm);
  if (choice.kind == DeviceKind::kEmulated) {
    return choose_gpu_of(emulated::platform(), parallel, /*requested=*/0, comm);
  }
  return choose_cpu(comm, choice.remark);
}

ParallelSection for_precision(ParallelSection parallel, Precision precision) {
  if (precision == Precision::kFp32 || parallel.device == "cpu") return parallel;
  if (parallel.device != "auto")
    throw ConfigError(
        fmt::format("{} has no train.precision int16; use cpu, or a run in fp32", parallel.device));
  parallel.device = "cpu";
  return parallel;
}

// Local rank to index, and ranks that turn out to hold one GPU.

namespace {

[[noreturn]] void throw_too_few(int local_size, int visible) {
  throw DeviceError(
      fmt::format("{} on this host see {}: start at most {} a host (mpirun --map-by ppr:{}:node, srun "
                  "--ntasks-per-node={}), or give each rank a GPU of its own (srun --gpus-per-task=1)",
                  counted(local_size, "rank"), counted(visible, "GPU"), visible, visible, visible));
}

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

int choose_gpu(int local_rank, int local_size, int visible, std::optional<int> requested) {
  LOCKSTEP_CHECK(visible >= 1 && local_rank >= 0 && local_rank < local_size);
  if (requested) {
    if (*requested < visible) return *requested;
    throw DeviceError(
        fmt::format("parallel.device=cuda:{}: this process sees {}, and they count from 0; use "
                    "parallel.device=cuda, or see CUDA_VISIBLE_DEVICES and 'lockstep devices'",
                    *requested, counted(visible, "GPU")));
  }
  if (local_size <= visible) return local_rank;
  if (visible == 1) return 0;
  throw_too_few(local_size, visible);
}

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
    if (why_not.empty()) return decision;
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

/// Whether all ranks may share GPUs over `reducer`; where one cannot load it, not. Collective.
bool all_may_share(const DeviceReducer& reducer, Communicator& comm) {
  std::int64_t refusals = 1;
  try {
    if (reducer.may_share_gpus != nullptr && reducer.may_share_gpus()) refusals = 0;
  } catch (const Error&) {  // find_problem() says it, if it comes to that
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

std::string describe(const DeviceAllReduce* all_reduce, const std::string& reason) {
  const std::string name = all_reduce == nullptr ? "none" : std::string(all_reduce->name());
  return reason.empty() ? name : fmt::format("{}: {}", name, reason);
}

/// Of this rank, as it was started.
std::string advice_on_binding() {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (sched_getaffinity(0, sizeof usable, &usable) != 0) return "";
  return binding_advice(CPU_COUNT(&usable), static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
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
  setup.description = describe(setup.all_reduce.get(), advise ? advice_on_binding() : decision.reason);
  return setup;
}

}  // namespace lockstep
