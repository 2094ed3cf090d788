// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What to do with a rank's GPU when another rank is lost: nothing.
#pragma once

#include "comm/agreement.hpp"

#include <memory>

namespace lockstep {

/// Runs `action` on `object`, and destroys it; but not when an error strikes that the ranks have not agreed
/// on. Freeing GPU memory waits for the work that is queued, and an all-reduce that a lost rank will never
/// join does not end: this rank would hang in a destructor before it has said why and ended the others. The
/// process is about to end anyway.
template <typename Object, typename Action>
auto run_leaking_on_peer_loss(std::unique_ptr<Object> object, const Action& action) {
  try {
    return action(*object);
  } catch (const AgreedError&) {
    throw;
  } catch (...) {
    static_cast<void>(object.release());
    throw;
  }
}

}  // namespace lockstep
