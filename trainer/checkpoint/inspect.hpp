// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Tools for checkpoints: show, compare, export.
#pragma once

#include "common/env.hpp"
#include "trainer/checkpoint/directory.hpp"
#include "trainer/checkpoint/state.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

/// Version of the JSON that `hash`, `inspect`, `verify` and `diff` print.
inline constexpr int kInspectFormat = 1;

// Contents of a checkpoint, and the differences between two.

// Describes a checkpoint for people: `lockstep inspect` and `lockstep verify`.

/// Facts and a table of tensors with shape, smallest, largest and mean value, and the weights' SHA-256.
std::string inspect_checkpoint(const std::string& path, const CheckpointState& state);

/// Describes a checkpoint for programs: all facts of its manifest, tensors, the weights' SHA-256.
nlohmann::ordered_json inspect_json(const std::string& path, const CheckpointState& state);

/// Paths of the checkpoints that RUN@last and RUN@best mean; "": none.
struct MeantCheckpoints {
  std::string last, best;
};

/// Table of a run's checkpoints, newest first: name, epoch, accuracy, and which is last and best. "" where there is
/// none.
std::string checkpoints_text(const std::string& run_dir, const std::vector<CheckpointSummary>& newest_first,
                             const MeantCheckpoints& meant);

/// A list of "step", "epoch", "step_in_epoch", "test_accuracy", "validation_accuracy", "damage" and "unreadable".
nlohmann::ordered_json checkpoints_json(const std::vector<CheckpointSummary>& newest_first);

struct Verification {
  bool good = false;
  std::string report;  ///< "PATH: good: 3 files, 31 checksums", or one line for each damage
};

/// Every checksum of one checkpoint.
/// @throws MissingDataError if there is no such directory; IoError
Verification verify(Env& env, const std::string& path);

// How two checkpoints differ: `lockstep diff A B`.

/// One tensor that is not the same bits in both. Those of the optimiser are called
/// "momentum.NAME" and the like.
struct TensorDifference {
  std::string tensor;
  std::size_t elements = 0;                   ///< that the tensor has
  std::size_t different = 0;                  ///< elements whose bits differ
  std::vector<std::size_t> first_index = {};  ///< position of the first of them
  float first_a = 0, first_b = 0;
  double largest = 0;  ///< |a - b|; infinity if one of them is not a number
  std::vector<std::size_t> largest_index = {};
};

struct CheckpointDifference {
  std::vector<std::string> facts;  ///< "step: 100 in A, 200 in B"; the world is not compared
  std::vector<TensorDifference> tensors;
  bool same_model = true;  ///< false: tensors are not compared
  bool empty() const { return facts.empty() && tensors.empty(); }
};

/// Weights and optimiser state are compared if the parameters have the same names and shapes; otherwise
/// `facts` says why not.
CheckpointDifference diff_checkpoints(const CheckpointState& a, const CheckpointState& b);

/// A table for people; one line if there is no difference.
std::string to_text(const CheckpointDifference& difference);
nlohmann::ordered_json to_json(const CheckpointDifference& difference);

// Weights for other programs, in files that are there whole or not at all.

// NumPy's .npz: `lockstep export --npz`, read by numpy.load().

/// A zip archive, stored without compression, of one .npy file (version 1.0, C order) a tensor. Weights have their names,
/// and what the optimiser remembers "momentum.NAME" and the like.
/// @param most_bytes  that a zip archive has: its numbers have 32 bits
/// @throws UsageError if it would not fit into that, or has more than 65,535 tensors
std::vector<std::byte> export_npz(const CheckpointState& state, std::uint64_t most_bytes = 0xFFFFFFFFU);

}  // namespace lockstep
