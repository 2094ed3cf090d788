// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "trainer/starting_weights.hpp"

#include "trainer/checkpoint/safetensors.hpp"

#include <cstring>

namespace lockstep {

void initialise_weights(const Job& job, const Network& network, std::span<float> weights) {
  if (job.train.initial_weights.empty()) return network.initialise(job.train.seed, weights);
  const auto file = SafetensorsFile::read(job.train.initial_weights);
  for (const Parameter& parameter : network.parameters().parameters) {
    const auto& tensor =
        file.require(parameter.name, "F32", {parameter.shape.begin(), parameter.shape.end()});
    std::memcpy(weights.data() + parameter.offset, tensor.bytes.data(), tensor.bytes.size());
  }
}

}  // namespace lockstep
