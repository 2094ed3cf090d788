// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Each thread remembers the captures that it began, as long as they last.
#include "kernels/emulation/unsafe_calls.hpp"

#include <vector>

namespace lockstep::emulation {
namespace {

/// Captures that this thread has begun. Those that are over go when they are next looked at.
thread_local std::vector<std::weak_ptr<Capture>> captures;

}  // namespace

void forbid_unsafe_calls(const std::shared_ptr<Capture>& capture) {
  captures.push_back(capture);
}

cudaError_t check_unsafe_call() {
  std::erase_if(captures, [](const auto& held) {
    const std::shared_ptr<Capture> capture = held.lock();
    return capture == nullptr || capture->ended;
  });
  for (const auto& held : captures) held.lock()->invalid = true;
  return finish(captures.empty() ? cudaSuccess : cudaErrorStreamCaptureUnsupported);
}

}  // namespace lockstep::emulation
