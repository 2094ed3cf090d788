// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Facts that Trainer::save and load move between a strategy's state and a checkpoint of the program's form.
#pragma once

#include "models/network.hpp"
#include "trainer/checkpoint/state.hpp"
#include "trainer/library/inside.hpp"
#include "trainer/training/setup.hpp"
#include "trainer/training/trained_state.hpp"

#include <string>

namespace lockstep::v0 {

/// @param train  the set's name and normalisation are recorded, by which `lockstep eval` finds the set again
CheckpointState state_to_save(const RunState& at, const TrainingSetup& setup, const Dataset::Inside& train,
                              int ranks, const TrainedState& trained);

/// Reads a checkpoint, and puts it where it is trained. @throws as Trainer::load
/// @param steps_per_epoch  of the training that goes on
RunState restore_state(const std::string& checkpoint, const TrainingSetup& setup,
                       std::int64_t steps_per_epoch, const TrainedState& trained);

/// Makes the folder where there is none, and saves below it.
std::string save_below(const std::string& folder, const CheckpointState& state);

}  // namespace lockstep::v0
