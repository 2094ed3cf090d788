// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The lines that tell how far a run is, as wide as there is room.
#pragma once

#include "common/text/text_layout.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

struct ProgressStatus {
  std::int64_t epoch = 0, epochs = 0;
  std::int64_t step = 0, steps = 0;  ///< of this epoch
  double samples_per_second = 0;
  double loss = 0;         ///< a sample's
  double eta_seconds = 0;  ///< of the run
};

/// "epoch  1/10  120/469 steps  54,321 samples/s  loss 0.1234  ETA 1:05"; what matters least goes first where
/// `columns` are too few.
std::string progress_line(const ProgressStatus& facts, int columns);
/// The same with a bar behind the epoch, as long as the others leave room for one.
std::string progress_line_with_bar(const ProgressStatus& facts, int columns, bool unicode);

struct EpochSummary {
  std::int64_t epoch = 0, epochs = 0;
  double train_loss = 0;
  std::string test_loss;     ///< as it is to be shown
  double test_accuracy = 0;  ///< from 0 to 1
  double seconds = 0;
  double samples_per_second = 0;
};

/// What is said after an epoch.
std::vector<Field> epoch_fields(const EpochSummary& facts);

}  // namespace lockstep
