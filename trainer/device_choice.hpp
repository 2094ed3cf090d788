// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Which device a rank computes on, as the job asks and the machine allows.
#pragma once

#include "kernels/ops.hpp"
#include "trainer/config/job.hpp"

#include <functional>
#include <memory>
#include <string>
namespace lockstep {

/// Makes the ops of one thread.
using OpsFactory = std::function<std::unique_ptr<Ops>()>;

struct DeviceChoice {
  std::string kind;         ///< "cpu"
  std::string description;  ///< "cpu (AVX3)"
  OpsFactory make_ops;
};

/// @throws DeviceError if the device that the job names cannot be used here
DeviceChoice choose_device(const ParallelSection& parallel);

}  // namespace lockstep
