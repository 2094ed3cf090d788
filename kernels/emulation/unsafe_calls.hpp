// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What CUDA calls potentially unsafe: calls that no graph can hold, so a thread that captures must not make
/// them (cudaThreadExchangeStreamCaptureMode's manual). Other threads may, also beside a capture in global
/// mode.
#pragma once

#include "kernels/emulation/status.hpp"
#include "kernels/emulation/stream.hpp"

#include <memory>

namespace lockstep::emulation {

/// From now until the capture ends, the calling thread may make no such call.
void forbid_unsafe_calls(const std::shared_ptr<Capture>& capture);

/// cudaErrorStreamCaptureUnsupported if it may not; the captures that forbid it are then invalid, as on a
/// GPU.
cudaError_t check_unsafe_call();

}  // namespace lockstep::emulation
