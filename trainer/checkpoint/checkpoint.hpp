// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Saving, loading and verifying one checkpoint: RUN/checkpoints/step-00001180/ with model.safetensors,
/// optimizer.safetensors and manifest.json.
#pragma once

#include "common/env.hpp"
#include "trainer/checkpoint/state.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
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
inline constexpr std::size_t kMaxManifestBytes = std::size_t{64} << 20;
inline constexpr const char* kModelFile = "model.safetensors";
inline constexpr const char* kOptimizerFile = "optimizer.safetensors";
inline constexpr const char* kManifestFile = "manifest.json";

struct Manifest {
  CheckpointFacts facts;
  std::vector<FileRecord> files;  ///< model, optimizer
  /// The names of the optimiser's buffers; nothing in older checkpoints, see checkpoint.cpp.
  std::optional<std::vector<std::string>> optimizer_buffers = {};
  friend bool operator==(const Manifest&, const Manifest&) = default;
};

/// The same manifest always gives the same text.
std::string write_manifest(Manifest manifest);

/// Treats the text as hostile: seal, structure, sizes and ranges are checked; memory is proportional to the
/// text.
/// @throws DataError naming `file` and the key; ConfigError if another version of this program wrote it
Manifest read_manifest(std::string_view text, const std::string& file);

/// What ends every manifest: the SHA-256 of all text before it. Used by the writer, the reader and its
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

}  // namespace lockstep
