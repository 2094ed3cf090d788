// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A file, a checkpoint or a run, by what stands at the path.
#include "trainer/run/starting_weights.hpp"

#include "common/safetensors/safetensors.hpp"
#include "trainer/checkpoint/directory.hpp"
#include "trainer/checkpoint/manifest.hpp"
#include "trainer/ranks/rank_runner.hpp"

#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

namespace lockstep {
namespace {

/// A directory is a checkpoint, or a run whose newest good one is meant.
std::string file_of_weights(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return path;
  const std::string in_checkpoint = path + "/" + kModelFile;
  if (std::filesystem::exists(in_checkpoint, ignored)) return in_checkpoint;
  return resolve_checkpoint(Env::posix(), path, [](const std::string& damage) { print_error(damage); }) +
         "/" + kModelFile;
}

}  // namespace

void initialise_weights(const Job& job, const Network& network, std::span<float> weights) {
  const TrainSection& train = job.train;
  if (train.initial_weights.empty()) return network.initialise(train.seed, weights, train.initial_scale);
  const auto file = SafetensorsFile::read(file_of_weights(job.train.initial_weights));
  for (const Parameter& parameter : network.parameters().tensors()) {
    const auto& tensor =
        file.require(parameter.name, "F32", {parameter.shape.begin(), parameter.shape.end()});
    std::memcpy(weights.data() + parameter.offset, tensor.bytes.data(), tensor.bytes.size());
  }
}

}  // namespace lockstep
