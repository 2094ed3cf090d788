// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Streams, events and graphs over the CUDA runtime.
#pragma once

#include "kernels/device.hpp"

#include <gpu/launch.cuh>

#include <memory>

namespace lockstep::LOCKSTEP_GPU {

std::unique_ptr<Stream> make_stream(int device, Device::Priority priority);
std::unique_ptr<Event> make_event(int device, Device::Timing timing);

}  // namespace lockstep::LOCKSTEP_GPU
