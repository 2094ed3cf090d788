// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Weights that another program has saved, for a network of ours.
#pragma once

#include "common/safetensors.hpp"
#include "models/network.hpp"

#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// Fills `weights` from the tensors of a file, by the first of these rules that applies:
/// - by name: the file has every tensor of the network under its name, perhaps behind one word that all have in common
///   ("module."). What belongs to no layer of the network is not read.
/// - by shape: modules of the file ("features.0" with its weight and bias) and layers of the network are the same but
///   for their names. Those of one name belong together, then those that alone have their shapes, then those whose
///   names differ in numbers alone, in the order of these numbers; a batch_norm belongs to the convolution before it
///   ("conv1" and "bn1", "downsample.0" and "downsample.1"). What is still ambiguous is refused.
///
/// @param path     for messages
/// @param weights  [network.parameters().weights_size()], overwritten
/// @returns "24 tensors by name", or "24 tensors by shape, ...: conv1 from 'features.0', ..."
/// @throws DataError  names what is missing, of another type or shape, left over, or ambiguous
std::string read_foreign_weights(const SafetensorsFile& file, const std::string& path, const Network& network,
                                 std::span<float> weights);

/// What a file has for a network that it fits in part.
struct FittingWeights {
  std::vector<std::string> taken;      ///< the network's tensors of the same name and shape
  std::vector<std::string> fresh;      ///< its others: "fc2.bias [5], of which the file has [10]"
  std::vector<std::string> left_over;  ///< tensors of the file under names that the network does not have
};

/// Fills what fits, by name, perhaps behind one word that all names of the file have in common. The other weights stay
/// as they are.
/// @param weights  [network.parameters().weights_size()]
FittingWeights read_fitting_weights(const SafetensorsFile& file, const Network& network,
                                    std::span<float> weights);

/// "conv1 from 'features.0', fc1 from 'classifier.1'": of many, the first ones and the last.
std::string first_and_last(const std::vector<std::string>& all);

}  // namespace lockstep
