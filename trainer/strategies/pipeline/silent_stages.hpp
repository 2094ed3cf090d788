// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Which stage is dead, when ranks have waited in vain for their neighbours.
#pragma once

#include "comm/communicator.hpp"
#include "common/error.hpp"
#include "trainer/strategies/pipeline/stage_plan.hpp"

namespace lockstep {

/// A rank that waits for a dead stage lets others wait: all give up at about the same time, and each knows only its
/// neighbour. So every rank that gives up tells all others that it lives, and listens to them for a moment. Where ranks
/// are watched (Communicator::watch) there is nothing to find out.
/// @throws PeerLostError  that names the stages and ranks that were silent; or `error`, if none was
[[noreturn]] void throw_silent_stages(const PeerLostError& error, const StagePlan& plan, Communicator& comm);

}  // namespace lockstep
