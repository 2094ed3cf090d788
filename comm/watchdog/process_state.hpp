// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What /proc says of processes that have gone quiet.
#pragma once

namespace lockstep::watchdog {

/// Of /proc/PID/stat: R, S, D, T (stopped), t (held by a debugger), Z (ended); '?': it says nothing.
char state_of_process(int pid);

/// Whether a debugger is attached to this process.
bool is_traced();

}  // namespace lockstep::watchdog
