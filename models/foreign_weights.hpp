// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Weights that another program has saved, for a network of ours: by name, and by nothing else.
#pragma once

#include "common/safetensors.hpp"
#include "models/network.hpp"

#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// Tensors of a file for a network.
struct FittingWeights {
  std::string words;    ///< "_orig_mod.module.", which begin the names of all that fit, and count for nothing
  std::string widened;  ///< "bf16", "bf16 and f16": narrower types whose numbers were taken as fp32; or ""
  std::vector<std::string> taken;      ///< the network's tensors of the same name and shape
  std::vector<std::string> fresh;      ///< its others: "fc2.bias [5], of which the file has [10]"
  std::vector<std::string> left_over;  ///< tensors of the file under names that the network does not have
};

enum class WeightsFit { kAll, kPart };

/// Fills what fits. With kPart the other weights stay as they are; with kAll there must be none, and the file must
/// have no more of a layer than the network. Layers that the network does not have are not read.
/// @param path     for messages
/// @param weights  [network.parameters().weights_size()]
/// @throws DataError  nothing fits, or not all: names what the file and the network have. Or names fit without two
///                    beginnings, such as "encoder." and "decoder."
FittingWeights read_foreign_weights(const SafetensorsFile& file, const std::string& path,
                                    const Network& network, std::span<float> weights, WeightsFit fit);

/// "conv1.weight, conv1.bias, ..., fc2.bias": of many, the first ones and the last.
std::string first_and_last(const std::vector<std::string>& all);

}  // namespace lockstep
