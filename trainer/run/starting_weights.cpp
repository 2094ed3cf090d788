// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A file, a checkpoint or a run, by what stands at the path.
#include "trainer/run/starting_weights.hpp"

#include "common/error.hpp"
#include "common/safetensors/safetensors.hpp"
#include "common/text/printable.hpp"
#include "models/layer.hpp"
#include "trainer/checkpoint/directory.hpp"
#include "trainer/checkpoint/manifest.hpp"
#include "trainer/checkpoint/state.hpp"
#include "trainer/ranks/rank_runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace lockstep {
namespace {

/// A directory is a checkpoint, or a run whose newest good one is meant.
std::string file_of_weights(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return path;
  std::string in_checkpoint = path + "/" + kModelFile;
  if (std::filesystem::exists(in_checkpoint, ignored)) return in_checkpoint;
  return resolve_checkpoint(Env::posix(), path, [](const std::string& damage) { print_error(damage); }) +
         "/" + kModelFile;
}

bool has(const std::vector<Parameter>& tensors, const std::string& name) {
  return std::ranges::find(tensors, name, &Parameter::name) != tensors.end();
}

/// A tensor of one of the network's layers that the layer does not have would be dropped, and the rest be another
/// network. What PyTorch counts beside the running statistics is no part of it.
void require_whole_layers(const SafetensorsFile& file, const Network& network, const std::string& path) {
  const std::vector<Parameter> tensors = network.parameters().tensors();
  for (const TensorView& tensor : file.tensors()) {
    const std::size_t dot = tensor.name.rfind('.');
    if (dot == tensor.name.npos || has(tensors, tensor.name)) continue;
    const std::string layer = tensor.name.substr(0, dot), what = tensor.name.substr(dot + 1);
    if (what == "num_batches_tracked" ||
        std::ranges::find(network.layers(), layer, &Layer::name) == network.layers().end())
      continue;
    throw DataError(fmt::format("{}: it has {}, but the model's {} has none; give both the same layers", path,
                                quoted_text(tensor.name), layer));
  }
}

}  // namespace

void initialise_weights(const Job& job, const Network& network, std::span<float> weights) {
  const TrainSection& train = job.train;
  if (train.initial_weights.empty()) return network.initialise(train.seed, weights, train.initial_scale);
  const std::string path = file_of_weights(train.initial_weights);
  const auto file = SafetensorsFile::read(path);
  require_whole_layers(file, network, path);
  for (const Parameter& parameter : network.parameters().tensors()) {
    const auto& tensor =
        file.require(parameter.name, "F32", {parameter.shape.begin(), parameter.shape.end()});
    std::memcpy(weights.data() + parameter.offset, tensor.bytes.data(), tensor.bytes.size());
    const std::string wrong =
        unusable_numbers(parameter.name, weights.subspan(parameter.offset, parameter.size));
    if (!wrong.empty()) throw DataError(fmt::format("{}: {}; give a file of finite weights", path, wrong));
  }
}

}  // namespace lockstep
