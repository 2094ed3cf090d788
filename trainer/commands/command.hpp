// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The commands of the program. Each adds itself to the command line and says what to run when it is chosen.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>

namespace lockstep {

/// What main runs after parsing; returns the exit code.
using Action = std::function<int()>;

void add_train_command(CLI::App& app, Action& action);
void add_eval_command(CLI::App& app, Action& action);
void add_predict_command(CLI::App& app, Action& action);
void add_prove_command(CLI::App& app, Action& action);
void add_validate_command(CLI::App& app, Action& action);
void add_checkpoint_commands(CLI::App& app, Action& action);  ///< hash, inspect, verify, diff, export
void add_flight_command(CLI::App& app, Action& action);
void add_convert_command(CLI::App& app, Action& action);
void add_devices_command(CLI::App& app, Action& action);
void add_doctor_command(CLI::App& app, Action& action);
void add_bench_command(CLI::App& app, Action& action);

}  // namespace lockstep
