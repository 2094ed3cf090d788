// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Standard input, output and error as the program finds and leaves them.
#pragma once

namespace lockstep {

/// Opens those of the three that are closed on /dev/null. Otherwise the next file that is opened gets the
/// number of standard output, and what is printed lands in it. Call before anything else.
void open_standard_streams();

/// Flushes standard output. For commands whose output is what they were started for.
/// @throws IoError if part of it was not written, unless its reader has gone (a pipe into head)
void finish_standard_output();

}  // namespace lockstep
