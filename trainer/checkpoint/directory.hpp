// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The checkpoints of a run: their names, the newest good one, and what may be removed.
#pragma once

#include "common/env.hpp"
#include "trainer/checkpoint/state.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

inline constexpr const char* kCheckpointsDirectory = "checkpoints";
inline constexpr const char* kTemporaryPrefix = ".tmp-";  ///< being written, or being removed
inline constexpr const char* kReplacedSuffix =
    ".replaced";                                           ///< moved aside while its successor takes its name
inline constexpr const char* kDamagedSuffix = ".damaged";  ///< moved aside because it is damaged

/// "step-00001180"
std::string checkpoint_name(std::int64_t step);
/// The step of "step-00001180", which may carry kReplacedSuffix.
std::optional<std::int64_t> checkpoint_step(std::string_view name);

struct CheckpointEntry {
  std::int64_t step = 0;
  std::string path;
};

/// All checkpoints by name, newest first; nothing is verified. Empty if there is no such run.
std::vector<CheckpointEntry> list_checkpoints(Env& env, const std::string& run_dir);

// Checkpoints in doubt. Numbers of a rank were wrong, as a replay has found, and those saved after a step may hold what
// followed: RUN/doubt.json says so until a run has gone on from an earlier one.

inline constexpr const char* kDoubtFile = "doubt.json";

struct CheckpointDoubt {
  std::int64_t sure_step = 0;  ///< checkpoints of later steps are in doubt
  std::int64_t found_step = 0;
  std::string what;  ///< "rank 2 on node3 (cpu): it computed ... otherwise"
};

/// @throws IoError
void write_doubt(Env& env, const std::string& run_dir, const CheckpointDoubt& doubt);
/// Nothing: no checkpoint is in doubt. @throws DataError, ConfigError, IoError
std::optional<CheckpointDoubt> read_doubt(Env& env, const std::string& run_dir);
void remove_doubt(Env& env, const std::string& run_dir);
/// As list_checkpoints(), without those in doubt.
std::vector<CheckpointEntry> sure_checkpoints(Env& env, const std::string& run_dir);
/// "saved after step 8, and at step 12 rank 2 on ..."
std::string why_in_doubt(const CheckpointDoubt& doubt);
/// @returns a line that says that some are in doubt; "": none
/// @throws DataError  there are checkpoints, and all are in doubt: says why, and what to do
std::string require_sure_checkpoint(Env& env, const std::string& run_dir);

struct FoundCheckpoint {
  std::string path;
  CheckpointState state;
};

using OnDamaged = std::function<void(const std::string&)>;

/// The newest checkpoint that verifies. `on_damaged` is told about each newer one, in one line that names it.
/// Only what is proved to be damaged is passed over: a file that cannot be read now is tried again, and then
/// the error leaves. One that goes away meanwhile, because the run that is under way prunes it, makes it look
/// again. Those in doubt are passed over, which is told, too.
/// @param damaged   is given all that were passed over, each proved to be damaged, also where none is good
/// @param accepted  one whose weights are others counts as damaged
/// @throws IoError; DataError  all are in doubt
std::optional<FoundCheckpoint> find_latest(Env& env, const std::string& run_dir, const OnDamaged& on_damaged,
                                           std::vector<std::string>* damaged = nullptr,
                                           Weights accepted = Weights::kUsable);

/// Opens and verifies a checkpoint's directory, or a run's newest good one. A name within a run works, too
/// (named_checkpoint), perhaps with an average of its weights (split_average).
/// @throws MissingDataError if it is neither; DataError, also where all checkpoints of a run are damaged; IoError; as
/// named_checkpoint
FoundCheckpoint open_checkpoint(Env& env, const std::string& path, const OnDamaged& on_damaged,
                                Weights accepted = Weights::kUsable);

// An average of the weights in place of the weights: RUN@ema, RUN@best@swa, CHECKPOINT@ema.

struct NamedAverage {
  std::string path;  ///< the text before it
  std::string name;  ///< "": none is named
};
/// Splits off the name of an average. An existing file of the whole name takes precedence.
NamedAverage split_average(Env& env, const std::string& path);

/// Makes this average the weights; other tensors of the model stay. Measurements of the old weights are dropped
/// (they would be of other weights).
/// @throws MissingDataError  the checkpoint, which lies at `path`, has none
void take_average(CheckpointState& state, const std::string& average, const std::string& path);

// Checkpoints by what they are to their run: RUN@best, RUN@last, RUN@epoch:3, RUN@step:500.

/// The directory that is meant. RUN@best is the checkpoint of the highest accuracy, the older among equals: on the
/// held-out samples of a run that has some, otherwise on the test set;
/// RUN@last is RUN itself, whose newest good one is meant; RUN@epoch:3 is the one after three epochs. Any other path,
/// and one that is there under such a name, is returned as it is. The name of an average (split_average)
/// stays after the directory.
/// @throws MissingDataError  the run has no such checkpoint: says which there are, and how to keep one
/// @throws UsageError        of a run, but with something else after @
std::string named_checkpoint(Env& env, const std::string& path);

/// A checkpoint as its manifest tells of it; its other files are not looked at.
struct CheckpointSummary : RunState {
  std::int64_t test_samples = -1;  ///< as JudgedAccuracy has them
  std::string path;
  // Why its manifest tells nothing, and its step alone is known; both are "" where it does.
  std::string damage;
  std::string unreadable;  ///< it cannot be read now, or only by another version: it may be good

  /// "damaged" or "unreadable"; "" where its manifest tells of it.
  std::string trouble() const {
    return !damage.empty() ? "damaged" : !unreadable.empty() ? "unreadable" : "";
  }
};

/// Checkpoints of a run, newest first, without those in doubt.
std::vector<CheckpointSummary> summarise_checkpoints(Env& env, const std::string& run_dir);
/// The one of the highest accuracy, the older among equals; null: none was evaluated. Where data.test_samples has
/// changed, only those count that were tested on as many samples as the newest.
const CheckpointSummary* best_checkpoint(const std::vector<CheckpointSummary>& newest_first);

/// For the end of a run: "best: accuracy 68.94 % after epoch 3, checkpoint RUN@epoch:3", which is RUN@best. "" where its
/// metrics tell of fewer than two accuracies.
std::string best_line(Env& env, const std::string& run_dir);

/// True if a regular file has this name; links are not followed.
bool is_file(Env& env, const std::string& path);

/// True if a checkpoint's directory is there, good or damaged.
bool is_checkpoint(Env& env, const std::string& path);

/// True if `path` is the directory of a run; a folder with a user's own job file is not.
bool is_run(Env& env, const std::string& path);

/// Why `path` is no run, and which runs may have been meant: for MissingDataError.
std::string why_no_run(Env& env, const std::string& path);
/// As why_no_run, for commands that accept a checkpoint, too.
std::string why_no_checkpoint(Env& env, const std::string& path);

/// Takes damaged checkpoints out of the way, to step-N.damaged (or .damaged-2, ...), and says what became of
/// each. Nothing reads or removes them there.
void set_aside_damaged(Env& env, const std::string& run_dir, const std::vector<std::string>& paths,
                       const std::function<void(const std::string&)>& say);

/// Removes checkpoints such that a crash on the way leaves none of them half there under its name. Of each
/// only the files that a checkpoint has; what else lies there stays, below a name that begins with
/// kTemporaryPrefix.
void remove_checkpoints(Env& env, const std::string& run_dir, const std::vector<std::string>& paths);

/// True if the directory is of the run's own and holds only a checkpoint's files. It has no symbolic link and
/// no foreign files. Only such a one is ever pruned.
bool is_own_checkpoint(Env& env, const std::string& path);

/// Removes the leftovers of interrupted saves and removals. Only names given by this program are removed, and
/// in them only the files of a checkpoint. Call it with the run's lock held and no save in flight.
void remove_leftovers(Env& env, const std::string& run_dir);

/// The names of the files of a checkpoint.
std::span<const std::string> checkpoint_files();

}  // namespace lockstep
