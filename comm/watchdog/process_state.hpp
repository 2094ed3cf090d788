// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What /proc says of processes that have gone quiet.
#pragma once

namespace lockstep::watchdog {

/// Of /proc/PID/stat: R, S, D, T (stopped), t (held by a debugger), Z (ended); '?': it says nothing.
char state_of_process(int pid);

/// Whether its process runs the program of this one: then it is no stranger of that number in another container.
bool runs_this_program(int pid);

/// Whether it ends, was killed, or is gone: the kernel says so before its connections close.
bool is_ending(int pid);

/// Whether a debugger is attached to this process.
bool is_traced();

}  // namespace lockstep::watchdog
