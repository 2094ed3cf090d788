// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "trainer/ranks/all_reduce_choice.hpp"

#include "comm/agreement.hpp"
#include "comm/gather.hpp"
#include "comm/nccl/nccl.hpp"
#include "comm/staged/staged_all_reduce.hpp"
#include "common/error.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

namespace lockstep {
namespace {

AllReduceDecision demand_nccl(const AllReduceSituation& situation) {
  if (situation.device_kind != "cuda") {
    throw ConfigError(
        fmt::format("parallel.backend=nccl needs GPUs, but the device is {}; use parallel.device=cuda or "
                    "parallel.backend=mpi",
                    situation.device_kind));
  }
  if (!situation.shared_gpus.empty()) {
    throw DeviceError(
        fmt::format("parallel.backend=nccl needs a whole GPU for each rank, but {}: start one rank a GPU "
                    "(srun --gpus-per-task=1), or use parallel.backend=mpi",
                    describe(situation.shared_gpus.front())));
  }
  if (!situation.nccl_problem.empty()) throw DeviceError("parallel.backend=nccl: " + situation.nccl_problem);
  return {AllReducePath::kNccl, ""};
}

/// Why NCCL cannot be loaded on the lowest rank where that is so; empty if all can. Collective.
std::string find_nccl_problem(Communicator& comm) {
  std::string mine;
  try {
    load_nccl();
  } catch (const Error& error) {
    mine = fmt::format("on {}, {}", comm.host(), error.what());
  }
  for (const std::string& problem : gather_text(comm, mine)) {
    if (!problem.empty()) return problem;
  }
  return "";
}

AllReduceDecision agree_on_all_reduce(Communicator& comm, AllReduceSituation situation) {
  AllReduceDecision decision;
  const auto decide = [&] { decision = choose_all_reduce(situation); };
  agree(comm, decide);
  if (decision.path == AllReducePath::kNccl) {
    situation.nccl_problem = find_nccl_problem(comm);
    agree(comm, decide);
  }
  return decision;
}

std::unique_ptr<DeviceAllReduce> make_all_reduce(AllReducePath path, Communicator& comm, Device& device) {
  switch (path) {
    case AllReducePath::kNccl:
      return make_nccl_all_reduce(comm, device);
    case AllReducePath::kStaged:
      return make_staged_all_reduce(comm, device);
    case AllReducePath::kNone:
      break;
  }
  return nullptr;
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
  if (situation.backend == "nccl") return demand_nccl(situation);
  if (situation.device_kind == "cpu") return {AllReducePath::kNone, ""};
  if (situation.world_size == 1) return {AllReducePath::kNone, "one rank"};
  if (situation.backend != "auto" || situation.device_kind != "cuda") return {AllReducePath::kStaged, ""};
  if (!situation.shared_gpus.empty())
    return {AllReducePath::kStaged, describe(situation.shared_gpus.front())};
  if (!situation.nccl_problem.empty()) return {AllReducePath::kStaged, situation.nccl_problem};
  return {AllReducePath::kNccl, ""};
}

std::string binding_advice(int usable, int all) {
  if (usable != 1 || all <= 2) return "";
  return "this rank is bound to one core, which NCCL's threads share: use mpirun --bind-to none, or srun "
         "--cpus-per-task";
}

AllReduceSetup set_up_all_reduce(Communicator& comm, Device& device, const std::string& backend) {
  const auto by_rank = gather_gpus(comm, device.facts());
  const auto decision = agree_on_all_reduce(comm, {.backend = backend,
                                                   .device_kind = std::string(device.kind()),
                                                   .world_size = comm.size(),
                                                   .shared_gpus = find_shared_gpus(by_rank),
                                                   .nccl_problem = ""});
  AllReduceSetup setup{.all_reduce = make_all_reduce(decision.path, comm, device), .description = ""};
  const bool has_threads = decision.path == AllReducePath::kNccl;
  setup.description = describe(setup.all_reduce.get(), has_threads ? advice_on_binding() : decision.reason);
  return setup;
}

}  // namespace lockstep
