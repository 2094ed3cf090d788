// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Checkpoints of programs with their own weights: safetensors and a sealed manifest (docs/checkpoint-format.md).
/// `lockstep inspect`, `verify`, `hash`, `diff` and `export --npz` read them. (Trainer::save writes more.)
#pragma once

#include <lockstep/gradient_reducer.hpp>
#include <lockstep/version.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

LOCKSTEP_BEGIN_NAMESPACE

struct CheckpointTensor {
  std::string name;
  std::vector<std::size_t> shape;
};

struct Checkpoint {
  std::int64_t step = 0;
  std::uint64_t seed = 0;
  std::vector<CheckpointTensor> tensors = {};
  std::vector<float> weights = {};  ///< all tensors, one after the other
  /// The optimizer's state: "momentum", as many numbers as weights. Names are of small letters, digits and '_'.
  std::map<std::string, std::vector<float>> optimizer = {};
  GradientReducer::Units units = {};  ///< one exponent a tensor
};

/// Writes FOLDER/checkpoints/step-NNNNNNNN, and makes FOLDER if need be. When it returns it survives a power loss; when it
/// throws, what was there is untouched. Not collective: one rank calls it.
/// @returns the directory. @throws IoError; ShapeError  sizes that do not fit together; ConfigError  names or units that a
/// checkpoint cannot have; InternalError  weights that are NaN or infinite
std::string save_checkpoint(const std::string& folder, const Checkpoint& checkpoint);
/// Nothing is used before every checksum was compared. Not collective.
/// @throws DataError  names file and tensor; MissingDataError; IoError
Checkpoint load_checkpoint(const std::string& directory);

LOCKSTEP_END_NAMESPACE
