// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What commands that compute on a trained run let users choose: --device and --threads.
#pragma once

#include "trainer/config/job.hpp"

#include <CLI/CLI.hpp>

namespace lockstep {

/// Writes into `parallel`, which has the defaults and must outlive the parsing.
void add_parallel_options(CLI::App& command, ParallelSection& parallel);

}  // namespace lockstep
