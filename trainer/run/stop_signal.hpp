// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 and SIGXCPU ask for a stop at the end of the current step.
#pragma once

namespace lockstep {

/// Installs the handlers. Call once, before anything that takes time: Open MPI leaves these signals alone.
///
/// The first signal is noted, and rank 0 says at once that it stops. Signals close to each other are one
/// (trainer/run/stop_requests.hpp). One that shows that patience has run out ends the process with 128 + its
/// number and nothing saved, and says so: exit code 75 is only for what was saved.
///
/// SIGXCPU comes every second once the soft limit on processor time is passed: only the first one counts.
///
/// A SIGHUP that was ignored when the program started (nohup) stays ignored. SIGPIPE is ignored from now on:
/// a run goes on when the reader of its output has gone.
void catch_stop_signals();

/// Whether a stop was asked for since the process started.
bool stop_requested() noexcept;

/// The signal that asked for it, 0 if none.
int stop_signal() noexcept;

/// "SIGTERM", for SIGXCPU with its meaning; "a signal" for one that is not caught here.
const char* stop_signal_name(int signal) noexcept;

}  // namespace lockstep
