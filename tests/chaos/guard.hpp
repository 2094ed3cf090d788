// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A campaign and its guard, two processes that watch each other: whichever ends first, and be it by SIGKILL, nothing
/// that the campaign started lives on.
#pragma once

#include <functional>

namespace lockstep::chaos {

/// Runs `campaign` in a process of its own and returns what it returns. If this one is told to end (TERM, INT, HUP),
/// the campaign is killed, with all its descendants, its scratch directories are removed, and this process ends by
/// that signal; if the campaign dies, the same, and 128 + its signal is returned; if this process is killed, the
/// campaign does it. Call it before there are threads.
int run_guarded(const std::function<int()>& campaign);

}  // namespace lockstep::chaos
