// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From the manifest and the weights of a checkpoint to a network; from the job file, where an old manifest lacks
/// something.
#include "trainer/run/saved_model.hpp"

#include "common/error.hpp"
#include "common/printable.hpp"
#include "common/safetensors.hpp"
#include "common/text_layout.hpp"
#include "models/foreign_weights.hpp"
#include "models/onnx/onnx.hpp"
#include "trainer/checkpoint/checkpoint.hpp"
#include "trainer/checkpoint/directory.hpp"
#include "trainer/checkpoint/state.hpp"
#include "trainer/config/job_schema.hpp"
#include "trainer/ranks/rank_runner.hpp"
#include "trainer/run/data_record.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace lockstep {

namespace {

/// Of the grains that evaluation works in.
int read_grain(const CheckpointFacts& facts, const std::string& checkpoint) {
  constexpr int kLargest = 4096;
  const RecordedValues job(facts.job, checkpoint, "job");
  const int grain = job.number_or<int>("parallel.grain", ParallelSection{}.grain);
  if (grain >= 1 && grain <= kLargest) return grain;
  throw DataError(
      fmt::format("{}: the manifest's job.parallel.grain is {}, not 1 to {}", checkpoint, grain, kLargest));
}

LossKind read_loss(const CheckpointFacts& facts, const std::string& checkpoint) {
  const RecordedValues job(facts.job, checkpoint, "job");
  const std::string name = job.text_or("train.loss", std::string(spelt(LossKind::kCrossEntropy)));
  for (const auto& [word, kind] : kSpellings<LossKind>)
    if (word == name) return kind;
  throw DataError(fmt::format("{}: the manifest's job.train.loss is '{}', which is no loss of this program",
                              checkpoint, printable(name)));
}

/// A checkpoint that does not say what it was trained on may lie in a run whose job.yaml still does.
void recall_from_job_file(const CheckpointFacts& facts, const std::string& checkpoint, DataRecord& record) {
  if (record.can_be_checked()) return;
  try {
    const auto run_dir = std::filesystem::absolute(checkpoint).lexically_normal().parent_path().parent_path();
    const Job job = load_job((run_dir / "job.yaml").string(), {});
    if (!differing_keys(facts.job, determining_keys(job)).empty()) return;
    record.options.root = job.data.root;
    if (is_made_in_memory(record.options.set)) record.options.test_samples = job.data.test_samples;
  } catch (const Error&) {
    return;  // not a run's directory, or of another job: the defaults stay
  }
}

/// That they are finite and std above 0, read_data_record has seen to.
void check_channels(const DatasetOptions& data, int channels, const std::string& checkpoint) {
  for (const auto& [key, numbers] : {std::pair{"mean", &data.mean}, {"std", &data.std}}) {
    if (numbers->size() == 1 || numbers->size() == static_cast<std::size_t>(channels)) continue;
    throw DataError(fmt::format("{}: the manifest's model.{} has {} for {}", checkpoint, key,
                                counted(numbers->size(), "number"), counted(channels, "channel")));
  }
}

/// One number stands for all channels. Features that are taken as they are have none of their own.
std::string text_of(const std::vector<double>& of_data, const std::vector<double>& of_job) {
  const std::vector<double>& numbers = of_data.empty() ? of_job : of_data;
  return numbers.size() == 1 ? fmt::format("{}", numbers.front())
                             : fmt::format("[{}]", fmt::join(numbers, ", "));
}

}  // namespace

std::map<std::string, std::string> describe_model(const Job& job, const JobSetup& setup) {
  const ImageShape& input = setup.network.input_shape();
  return {{"yaml", setup.network.yaml()},
          {"channels", std::to_string(input.channels)},
          {"height", std::to_string(input.height)},
          {"width", std::to_string(input.width)},
          {"classes", std::to_string(setup.network.classes())},
          {"set", job.data.set},
          {"mean", text_of(setup.data->normalisation.mean, job.data.mean)},
          {"std", text_of(setup.data->normalisation.std, job.data.std)}};
}

Network recorded_network(const CheckpointFacts& facts, const std::string& checkpoint) {
  const RecordedValues model(facts.model, checkpoint, "model");
  const auto size = [&](const char* key) {
    const int value = model.number<int>(key);
    if (value >= 1) return value;
    throw DataError(fmt::format("{}: the manifest's model.{} is {}, not 1 or more", checkpoint, key, value));
  };
  const ImageShape input{size("channels"), size("height"), size("width")};
  try {
    return Network::parse(model.text("yaml"), checkpoint, input, size("classes"), UnreadLayers::kAllowed);
  } catch (const Error& error) {
    // Whatever is wrong with it, it is the file that is damaged, not the command line.
    if (error.code() != ExitCode::kUsage) throw;
    throw DataError(fmt::format("{}; the manifest's model is damaged", error.what()));
  }
}

SavedModel load_saved_model(const std::string& path) {
  Env& env = Env::posix();
  const auto [directory, checkpoint, damaged] =
      open_checkpoint(env, path, [](const std::string& damage) { print_error(damage); });
  SavedModel saved{.network = recorded_network(checkpoint.facts, directory),
                   .weights = AlignedBuffer<float>(checkpoint.weights.size()),
                   .data = read_data_record(checkpoint.facts, directory),
                   .loss = read_loss(checkpoint.facts, directory),
                   .grain = read_grain(checkpoint.facts, directory),
                   .checkpoint = directory};
  check_channels(saved.data.options, saved.network.input_shape().channels, directory);
  recall_from_job_file(checkpoint.facts, directory, saved.data);
  const std::size_t expected = saved.network.parameters().weights_size();
  if (expected != checkpoint.weights.size()) {
    throw DataError(fmt::format("{}: {}, but its model has {}", directory,
                                counted(checkpoint.weights.size(), "weight"),
                                with_thousands(static_cast<std::int64_t>(expected))));
  }
  std::copy(checkpoint.weights.begin(), checkpoint.weights.end(), saved.weights.data());
  return saved;
}

// A file, a checkpoint or a run, by what stands at the path.

namespace {

/// A directory is a checkpoint, or a run whose newest good one is meant.
std::string file_of_weights(const std::string& given) {
  const std::string path = named_checkpoint(Env::posix(), given);
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return path;
  std::string in_checkpoint = path + "/" + kModelFile;
  if (std::filesystem::exists(in_checkpoint, ignored)) return in_checkpoint;
  return resolve_checkpoint(Env::posix(), path, [](const std::string& damage) { print_error(damage); }) +
         "/" + kModelFile;
}

/// What torch.save() writes: a zip archive of a pickle, which can run a program that is in it where it is read.
void refuse_pickle(std::span<const std::byte> bytes, const std::string& path) {
  const std::string_view start(reinterpret_cast<const char*>(bytes.data()),
                               std::min<std::size_t>(bytes.size(), 4));
  if (start != "PK\x03\x04") return;
  throw DataError(fmt::format(
      "{}: is a file of torch.save(), which is not read, since a pickle can run programs; in Python: from "
      "safetensors.torch import save_file; save_file(torch.load(\"{}\", weights_only=True), "
      "\"weights.safetensors\")",
      path, printable(path)));
}

}  // namespace

std::string initialise_weights(const Job& job, const Network& network, std::span<float> weights) {
  const TrainSection& train = job.train;
  if (train.initial_weights.empty()) {
    network.initialise(train.seed, weights, train.initial_scale);
    return "";
  }
  const std::string path = file_of_weights(train.initial_weights);
  std::vector<std::byte> bytes = Env::posix().read(path);
  refuse_pickle(bytes, path);
  const std::string how =
      path.ends_with(".onnx")
          ? read_onnx(bytes, path, network, weights)
          : read_foreign_weights(SafetensorsFile::parse(std::move(bytes), path), path, network, weights);
  for (const Parameter& tensor : network.parameters().tensors()) {
    const std::string wrong = unusable_numbers(tensor.name, weights.subspan(tensor.offset, tensor.size));
    if (!wrong.empty()) throw DataError(fmt::format("{}: {}; give a file of finite weights", path, wrong));
  }
  return fmt::format("initial weights: {}: {}", path, how);
}

}  // namespace lockstep
