// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Leaks of ours under AddressSanitizer, without the thousands of blocks that Open MPI leaves in unloaded
/// plug-ins at the end. In other builds all of this does nothing.
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
