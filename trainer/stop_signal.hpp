// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// SIGINT, SIGTERM, SIGUSR1 and SIGUSR2 ask for a stop at the end of the current step; a second one leaves at
/// once.
#pragma once

namespace lockstep {

/// Installs the handlers, which set a flag and nothing else. Call once, before anything that takes time: Open
/// MPI leaves these four signals alone.
void catch_stop_signals();

/// Whether a stop was asked for since the process started.
bool stop_requested() noexcept;

/// The signal that asked for it, 0 if none.
int stop_signal() noexcept;

}  // namespace lockstep
