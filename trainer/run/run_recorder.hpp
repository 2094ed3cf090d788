// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How a run is recorded: its trail, and its state in checkpoints. No state is evaluated or saved before it was checked.
#pragma once

#include "trainer/run/run_context.hpp"
#include "trainer/training/step_series.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep {

/// All ranks make the same calls, and each is collective.
class RunRecorder {
 public:
  /// Borrows it.
  explicit RunRecorder(RunContext& run);

  /// Keeps the fingerprints of the steps just taken, where the job keeps a trail.
  void add(const StepSeries& series);
  /// Compares the copies that several ranks hold, as used in each step and as they are now. @throws WrongRankError
  void compare_copies();
  /// As compare_copies(); then brings the state to rank 0 and looks at its weights.
  /// @throws AgreedError  70, names tensors and step
  void check_state();
  /// True if run.keep.best wants a checkpoint of this state. The best weights are those that were evaluated:
  /// they are saved at once, or they are gone. Rank 0's word.
  bool is_best() const;
  /// The state is in a checkpoint, or on its way into one.
  void note_saved();
  /// Starts saving in the background, unless this state is saved, or being saved. Errors as check_state().
  /// @throws IoError  of an earlier save
  void save();
  /// No step follows: returns when the state is safely on disk.
  /// @param what_ends  "stopped on request", for the message
  /// @throws AgreedError  it is not on disk: then this is no end of a run
  void save_at_end(const char* what_ends);

 private:
  bool is_saved() const;
  void wait_for_disk();
  void flush_trail();

  RunContext& run_;
  std::optional<std::int64_t> finite_step_;  ///< the last one whose weights were looked at
  std::optional<std::int64_t> saved_step_;   ///< the last checkpoint's, saved or being saved
  int saved_evaluations_ = 0;                ///< and how many evaluations of that step it holds
  std::size_t trail_slots_;                  ///< per step; 0: no trail is kept
  std::vector<std::uint64_t> trail_rows_;    ///< the last steps', not yet written
  std::vector<std::uint64_t> own_sums_;      ///< the last steps', not yet written
};

}  // namespace lockstep
