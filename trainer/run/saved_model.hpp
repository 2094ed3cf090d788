// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A trained network as it comes back from a checkpoint: all that evaluation and prediction need, with no job
/// file.
#pragma once

#include "common/buffers.hpp"
#include "models/network.hpp"
#include "trainer/checkpoint/state.hpp"
#include "trainer/config/job.hpp"
#include "trainer/run/data_record.hpp"
#include "trainer/setup/job_setup.hpp"

#include <map>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

struct SavedModel {
  Network network;
  AlignedBuffer<float> weights;             ///< arena order
  DataRecord data;                          ///< set it was trained on, normalisation included
  LossKind loss = LossKind::kCrossEntropy;  ///< that the run made small
  int grain = 64;          ///< the run's own; of runs without exact sums, which do not say, the default
  std::string checkpoint;  ///< the directory it was read from
};

/// Record of a checkpoint from which load_saved_model can build the network again.
std::map<std::string, std::string> describe_model(const Job& job, const JobSetup& setup);

/// The network that a checkpoint records. That of a run has the name that it had in training.
/// @throws DataError  it says none, or one that cannot be built: damaged, or beyond the limits of
/// models/layer_options.hpp
Network recorded_network(const CheckpointFacts& facts, const std::string& checkpoint);

/// Reads a checkpoint's directory or, given a run's, its newest good checkpoint; every checksum is verified.
/// @throws MissingDataError, DataError, IoError
SavedModel load_saved_model(const std::string& path);

// The weights that a run starts from.

/// The entry of an exported ONNX file's metadata with the names of its classes: a list in JSON.
inline constexpr const char* kOnnxClassNames = "class_names";

/// Source of the weights, for people and for the event "start".
struct StartingWeights {
  std::string source;              ///< the file that was read; "": the network's own initialisation
  std::vector<std::string> lines;  ///< the sentences about it that the run prints
  std::size_t taken = 0;           ///< tensors
  std::string sha256 = {};         ///< weights_sha256() of all weights
  std::vector<std::string> fresh = {}, left_over = {};  ///< as FittingWeights has them
};

/// Initialises weights from train.initial_weights, or without it from the seed. It names a safetensors or ONNX file
/// (models/foreign_weights.hpp), a checkpoint, or a run. Every checksum of a checkpoint is verified. With train.partial,
/// tensors that do not fit come from the seed.
/// @param data  is trained on: its classes are matched by name with those of a checkpoint or an ONNX file that has
/// names, its columns with those of a checkpoint
/// @throws MissingDataError, DataError, IoError
StartingWeights initialise_weights(const Job& job, const Network& network, std::span<float> weights,
                                   const TrainTestData& data = {});

}  // namespace lockstep
