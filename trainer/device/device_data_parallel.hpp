// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The strategy `data` on a GPU.
#pragma once

#include "comm/communicator.hpp"
#include "trainer/device/gpu.hpp"
#include "trainer/training/setup.hpp"
#include "trainer/training/strategy.hpp"

#include <memory>

namespace lockstep {

/// Borrows all references but the GPU, which it keeps.
std::unique_ptr<ParallelStrategy> make_device_data_parallel(const TrainingSetup& setup,
                                                            const DeviceSetup& device, Communicator& comm);

}  // namespace lockstep
