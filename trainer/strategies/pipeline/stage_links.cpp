// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "trainer/strategies/pipeline/stage_links.hpp"

#include "trainer/strategies/pipeline/device_stage_links.hpp"
#include "trainer/strategies/pipeline/host_stage_links.hpp"

#include <fmt/format.h>

namespace lockstep {

std::string StageLinks::describe_receive(int from, int to) const {
  return fmt::format("{}, which takes {} from {} on rank {}", plan_.describe(to),
                     from < to ? "activations" : "gradients", plan_.describe(from), world_rank(from));
}

bool messages_stay_on_device(const StagePlan& plan, const Gpu* gpu) {
  return gpu != nullptr && (plan.width == 1 || gpu->make_link != nullptr);
}

std::unique_ptr<StageLinks> make_stage_links(const StagePlan& plan, Communicator& comm, Gpu* gpu,
                                             Stream* passes) {
  if (passes != nullptr) return std::make_unique<DeviceStageLinks>(plan, comm, *gpu, *passes);
  return std::make_unique<HostStageLinks>(plan, comm, gpu != nullptr);
}

}  // namespace lockstep
