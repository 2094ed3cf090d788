// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Leaks of ours under AddressSanitizer, without those of Open MPI, which leaves thousands of blocks behind
/// in plug-ins that it has already unloaded when the process ends. In other builds all of this does nothing.
#pragma once

namespace lockstep::testing {

/// While it lives, what this thread allocates is not counted as leaked: for MPI_Init.
class LeaksAllowed {
 public:
  LeaksAllowed();
  ~LeaksAllowed();  // NOLINT(performance-trivially-destructible): does something under AddressSanitizer
  LeaksAllowed(const LeaksAllowed&) = delete;
  LeaksAllowed& operator=(const LeaksAllowed&) = delete;
};

/// Reports leaks on standard error, in place of the check at exit. To be called before MPI_Finalize.
/// @returns true if there are any
bool leaks_found();

}  // namespace lockstep::testing
