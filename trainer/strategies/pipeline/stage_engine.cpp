// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The choice of the engine.
#include "trainer/strategies/pipeline/stage_engine.hpp"

#include "trainer/strategies/pipeline/cpu_stage_engine.hpp"
#include "trainer/strategies/pipeline/device_stage_engine.hpp"

namespace lockstep {

std::unique_ptr<StageEngine> make_stage_engine(const StageEngineParts& parts) {
  if (parts.setup.device.gpu) return std::make_unique<DeviceStageEngine>(parts);
  return std::make_unique<CpuStageEngine>(parts);
}

}  // namespace lockstep
