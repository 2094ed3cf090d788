// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Saving, loading and verifying one checkpoint: RUN/checkpoints/step-00001180/ with model.safetensors,
/// optimizer.safetensors and manifest.json. And those of a run: written while training goes on, and which of them stay.
#pragma once

#include "common/env.hpp"
#include "trainer/checkpoint/directory.hpp"
#include "trainer/checkpoint/file_record.hpp"
#include "trainer/checkpoint/state.hpp"

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// manifest.json: the facts of a checkpoint and the checksums of its files, sealed by a checksum of its own.
// The format is described in docs/checkpoint-format.md.

/// The newest version that this program reads. It writes the oldest one that can say what there is, so that
/// older programs read it, too: version 1 has momentum or nothing of the optimiser, version 2 buffers of any
/// names, version 3 tensors that are kept beside the parameters.
inline constexpr std::int64_t kCheckpointFormatVersion = 3;
/// The one buffer that version 1 knows.
inline constexpr const char* kVersion1Buffer = "momentum";
/// True of names that a manifest may have: at most 16, each there once, of small letters, digits and '_'.
bool are_buffers(const std::vector<std::string>& names);
inline constexpr std::size_t kMaxManifestBytes = std::size_t{64} << 20;
inline constexpr const char* kModelFile = "model.safetensors";
inline constexpr const char* kOptimizerFile = "optimizer.safetensors";
inline constexpr const char* kManifestFile = "manifest.json";

struct Manifest {
  CheckpointFacts facts;
  std::vector<FileRecord> files;                    ///< model, optimizer
  std::vector<std::string> optimizer_buffers = {};  ///< their names
  friend bool operator==(const Manifest&, const Manifest&) = default;
};

/// The facts as the manifest has them.
nlohmann::ordered_json facts_json(const CheckpointFacts& facts);

/// Formats a manifest. Equal manifests give equal text.
std::string write_manifest(Manifest manifest);

/// Treats the text as hostile: seal, structure, sizes and ranges are checked; memory is proportional to the
/// text.
/// @throws DataError naming `file` and the key; ConfigError if another version of this program wrote it
Manifest read_manifest(std::string_view text, const std::string& file);

/// Last line of every manifest: the SHA-256 of all text before it. Used by the writer, the reader and its
/// fuzzer.
std::string manifest_seal(std::string_view body);

/// Writes a checkpoint below `run_dir` (which must exist) and returns its directory. When this returns, the
/// checkpoint survives a power loss. When it throws, or the power fails meanwhile, earlier checkpoints are
/// untouched; one of the same step is replaced only by a complete new one. Temporary directory, fsync of each
/// file, fsync of the directory, rename, fsync of the parent.
/// @throws IoError
std::string save_checkpoint(Env& env, const std::string& run_dir, const CheckpointState& state);

/// Reads a checkpoint's directory; nothing is used before everything is verified.
/// @throws DataError naming file and tensor; MissingDataError if there is no such directory; IoError
CheckpointState load_checkpoint(Env& env, const std::string& path, Weights accepted = Weights::kUsable);

/// Only the manifest, for commands that do not need the tensors.
Manifest load_manifest(Env& env, const std::string& path);

/// Every checksum and every weight, and every damage rather than the first. Empty: the checkpoint is good.
/// @throws MissingDataError if there is no such directory; IoError
std::vector<Damage> verify_checkpoint(Env& env, const std::string& path);

// Retention of a run's checkpoints: the job's `run.keep`.

struct KeepPolicy {
  std::int64_t last = 3;         ///< the newest so many; at least 1
  std::int64_t every_steps = 0;  ///< and those whose step is a multiple of this; 0: none
  bool best = true;              ///< and the best one, as best_checkpoint() says
};

/// Facts about checkpoints that this process wrote or read, so that they are not read again. Pruning after
/// each save would otherwise cost more than the save.
struct KnownCheckpoints {
  std::map<std::string, JudgedAccuracy> accuracy;  ///< path → accuracy
  std::string good;                                ///< path of one that is whole: just written
  /// RunState::replayed of the newest checkpoint. The newest checkpoint up to this step is kept, in case a
  /// later replay finds a wrong rank.
  std::int64_t replayed = 0;
};

/// Removes what the policy does not keep. The newest good checkpoint is never among it, whatever the policy says; nor
/// is one that cannot be read now, or that is not the run's own (is_own_checkpoint).
/// @param known  is asked before the disk, learns what was read, and forgets what was removed
/// @returns how many. @throws IoError
std::size_t prune_checkpoints(Env& env, const std::string& run_dir, const KeepPolicy& keep,
                              KnownCheckpoints& known);

/// That of best_checkpoint() among those that are not in doubt. Damaged ones do not count, and none that cannot be read.
/// @throws as summarise_checkpoints
JudgedAccuracy best_accuracy(Env& env, const std::string& run_dir);

// Writes checkpoints while training goes on.

/// Takes a snapshot by value and writes it on a background thread. If no thread can be started, it
/// writes on the caller's. Then it removes the checkpoints that the policy does not keep. At most
/// one save is in flight: the next one waits for it, so that a requested checkpoint is always
/// written.
///
/// Errors of a background save are thrown once, by the next save() or finish(), in place of that call's work.
/// Called by one thread.
class AsyncCheckpointer {
 public:
  /// @param before_each  runs on the background thread before each save: what must be on disk before the
  /// checkpoint is
  /// @param after_each  runs there after each save, once the checkpoint is on disk
  AsyncCheckpointer(Env& env, std::string run_dir, const KeepPolicy& keep,
                    std::function<void()> before_each = {}, std::function<void()> after_each = {});
  /// Waits for the save in flight. Its error, if any, is lost: call finish() before.
  ~AsyncCheckpointer();

  /// Waits for the save in flight, then starts this one.
  void save(CheckpointState state);
  /// Returns when nothing is in flight: the last save survives a power loss.
  void finish();
  /// Waits, but not longer than `limit`. True if nothing is in flight any more; finish() then returns at
  /// once.
  bool finished_within(std::chrono::milliseconds limit) const;

 private:
  void write(const CheckpointState& state);

  Env& env_;
  std::string run_dir_;
  KeepPolicy keep_;
  std::function<void()> before_each_, after_each_;
  KnownCheckpoints known_;  ///< used by the save in flight only
  std::future<void> in_flight_;
};

}  // namespace lockstep
