// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From the manifest and the weights of a checkpoint to a network.
#include "trainer/run/saved_model.hpp"

#include "common/error.hpp"
#include "common/json_text.hpp"
#include "common/printable.hpp"
#include "common/safetensors.hpp"
#include "common/text_layout.hpp"
#include "data/sets/class_names.hpp"
#include "data/sets/names.hpp"
#include "data/sets/table_columns.hpp"
#include "models/foreign_weights.hpp"
#include "models/layer.hpp"
#include "models/onnx/onnx.hpp"
#include "trainer/checkpoint/checkpoint.hpp"
#include "trainer/checkpoint/directory.hpp"
#include "trainer/run/class_order.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

namespace lockstep {

namespace {

/// That they are finite and std above 0, read_data_record has seen to.
void check_channels(const DatasetOptions& data, int channels, const std::string& checkpoint) {
  for (const auto& [key, numbers] : {std::pair{"mean", &data.mean}, {"std", &data.std}}) {
    if (numbers->size() == 1 || numbers->size() == static_cast<std::size_t>(channels)) continue;
    throw DataError(fmt::format("{}: the manifest's model.{} has {} for {}", checkpoint, key,
                                counted(numbers->size(), "number"), counted(channels, "channel")));
  }
}

constexpr const char* kPrecision = "precision";  // absent: fp32
std::string int16_now() {
  return fmt::format("{} {}", spelt(Precision::kInt16), kInt16Version);
}

Precision read_precision(const RecordedValues& model, const std::string& checkpoint) {
  if (!model.has(kPrecision)) return Precision::kFp32;
  if (model.text(kPrecision) == int16_now()) return Precision::kInt16;
  throw DataError(
      fmt::format("{}: the manifest's model.precision is '{}', and this program computes '{}'; use the "
                  "program that wrote it",
                  checkpoint, printable(model.text(kPrecision)), int16_now()));
}

/// The model's file, for messages and as the name of a network whose YAML gives none, as in training. A program that
/// uses the library records no file.
std::string model_file(const CheckpointFacts& facts, const std::string& checkpoint) {
  if (!facts.job.contains("model")) return "network";
  const std::string model = recorded_job(facts, checkpoint).model;
  return is_model_path(model) ? std::filesystem::path(model).filename().string() : model + ".yaml";
}

}  // namespace

/// Features that are taken as they are have no mean and deviation of their own.
std::map<std::string, std::string> describe_model(const Job& job, const JobSetup& setup) {
  auto model = describe_network(setup.network);
  const auto& [mean, deviation] = setup.data->normalisation;
  model["set"] = job.data.set;
  model["mean"] = channels_text(mean.empty() ? job.data.mean : mean);
  model["std"] = channels_text(deviation.empty() ? job.data.std : deviation);
  if (setup.network.precision() == Precision::kInt16) model[kPrecision] = int16_now();
  return model;
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
    return Network::parse(model.text("yaml"), model_file(facts, checkpoint), input, size("classes"),
                          UnreadLayers::kAllowed, read_precision(model, checkpoint));
  } catch (const Error& error) {
    // Whatever is wrong with it, it is the file that is damaged, not the command line.
    if (error.code() != ExitCode::kUsage) throw;
    throw DataError(fmt::format("{}: the network that it records is damaged: {}", checkpoint, error.what()));
  }
}

SavedModel load_saved_model(const std::string& path) {
  const auto [directory, checkpoint] = open_checkpoint(Env::posix(), path, print_error);
  const Job job = recorded_job(checkpoint.facts, directory);
  SavedModel saved{.network = recorded_network(checkpoint.facts, directory),
                   .weights = AlignedBuffer<float>(checkpoint.weights.size()),
                   .data = read_data_record(checkpoint.facts, directory),
                   .loss = job.train.loss,
                   .grain = job.parallel.grain,
                   .checkpoint = directory};
  check_channels(saved.data.options, saved.network.input_shape().channels, directory);
  const std::size_t expected = saved.network.parameters().weights_size();
  if (expected != checkpoint.weights.size())
    throw DataError(fmt::format("{}: {}, but its model has {}", directory,
                                counted(checkpoint.weights.size(), "weight"),
                                with_thousands(static_cast<std::int64_t>(expected))));
  std::copy(checkpoint.weights.begin(), checkpoint.weights.end(), saved.weights.data());
  return saved;
}

// A file, a checkpoint or a run, whichever is at the path.

namespace {

struct WeightsFile {
  std::string path;  ///< for messages
  std::vector<std::byte> bytes;
  std::string position = {};              ///< epoch, step and accuracy of its checkpoint; may be empty
  std::vector<std::string> classes = {};  ///< that checkpoint's, or the ONNX file's; may be empty
  std::string columns = {};               ///< as of DataRecord
};

/// " (epoch 3, step 1,407, test accuracy 45.34 %)"
std::string position_of(const CheckpointFacts& facts) {
  std::string text = fmt::format(" (epoch {}, step {}", facts.epoch, with_thousands(facts.step));
  if (const auto accuracy = facts.accuracy())
    text += fmt::format(", {} accuracy {} %", facts.validation_accuracy ? "validation" : "test",
                        percent_text(*accuracy));
  return text + ")";
}

void add_facts(const CheckpointFacts& facts, const std::string& checkpoint, WeightsFile& file) {
  file.position = position_of(facts);
  DataRecord data = read_data_record(facts, checkpoint);
  file.classes = std::move(data.class_names);
  file.columns = std::move(data.columns);
}

WeightsFile file_at(const std::string& path) {
  WeightsFile file{.path = path, .bytes = Env::posix().read(path)};
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const std::string directory = folder.empty() ? "." : folder.string();
  try {
    if (Env::posix().exists(directory + "/" + kManifestFile))
      add_facts(load_manifest(Env::posix(), directory).facts, directory, file);
  } catch (const Error&) {
    return file;  // the manifest is damaged; the weights are read all the same
  }
  return file;
}

/// Reads a file as it is, and verifies a checkpoint, or the newest good one of a run. The file of an average of weights
/// is made here.
WeightsFile read_weights_file(const std::string& given) {
  Env& env = Env::posix();
  if (!split_average(env, given).name.empty()) {
    const FoundCheckpoint found = open_checkpoint(env, given, print_error);
    WeightsFile file{
        .path = found.path,
        .bytes = write_safetensors(tensors_of(found.state.facts.tensors(), found.state.weights, ""))};
    add_facts(found.state.facts, found.path, file);
    return file;
  }
  const std::string path = named_checkpoint(env, given);
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return file_at(path);
  const std::string model = path + "/" + kModelFile;  // in a folder that is no checkpoint of ours
  if (env.exists(model) && !env.exists(path + "/" + kManifestFile) &&
      !env.exists(path + "/" + kOptimizerFile))
    return file_at(model);
  return file_at(open_checkpoint(env, path, print_error).path + "/" + kModelFile);
}

/// Refuses a file of torch.save(): a zip archive of a pickle. Reading a pickle can run a program in it.
void refuse_pickle(std::span<const std::byte> bytes, const std::string& path) {
  if (!as_text(bytes).starts_with("PK\x03\x04")) return;
  throw DataError(fmt::format(
      "{}: is a file of torch.save(), which is not read, since a pickle can run programs; in Python: from "
      "safetensors.torch import save_file; save_file(torch.load({}, weights_only=True), "
      "\"weights.safetensors\")",
      path, json_text(nlohmann::json(path))));  // Python reads such a text, too
}

/// True for "add1/value" and "onnx::Reshape_7" in an ONNX file, but not for "fc2.weight".
bool is_constant_of_graph(const std::string& tensor) {
  const std::size_t last = tensor.find_last_of("./:");
  return last == tensor.npos || tensor[last] != '.';
}

/// The names in an ONNX file's metadata. Of another program the entry may be anything: then there are none.
std::vector<std::string> class_names_in(const std::string& entry) {
  const nlohmann::json list = parse_json_or_discard(entry);
  const auto is_name = [](const nlohmann::json& name) {
    return name.is_string() && trouble_with_class_name(name.get_ref<const std::string&>()) == nullptr;
  };
  if (!list.is_array() || !std::ranges::all_of(list, is_name)) return {};
  auto names = list.get<std::vector<std::string>>();
  if (std::set<std::string_view>(names.begin(), names.end()).size() != names.size()) names.clear();
  return names;
}

/// All tensors, or an error; with train.partial what fits, by name.
/// @param classes  replaced by those of an ONNX file
void read_tensors(std::vector<std::byte> bytes, bool partial, const Network& network,
                  std::span<float> weights, StartingWeights& initial, std::vector<std::string>& classes) {
  const std::string& path = initial.source;
  refuse_pickle(bytes, path);
  const bool is_onnx = in_small_letters(path).ends_with(".onnx");
  std::map<std::string, std::string> metadata;
  const auto file =
      is_onnx ? read_onnx(std::move(bytes), path, &metadata) : SafetensorsFile::parse(std::move(bytes), path);
  if (is_onnx) classes = class_names_in(metadata[kOnnxClassNames]);
  FittingWeights fitting =
      read_foreign_weights(file, path, network, weights, partial ? WeightsFit::kPart : WeightsFit::kAll);
  initial.taken = fitting.taken.size();
  std::string words = fitting.words.empty() ? "" : ", without " + quoted_text(fitting.words);
  if (!fitting.widened.empty()) words += ", widened from " + fitting.widened;
  const std::string count = counted(initial.taken + fitting.fresh.size(), "tensor");
  initial.lines = {fmt::format("{} by name{}", count, words)};
  initial.fresh = std::move(fitting.fresh);
  initial.left_over = std::move(fitting.left_over);
  if (partial)
    initial.lines = {fmt::format("{} of {} by name{} (train.partial)", initial.taken, count, words),
                     "  taken: " + first_and_last(fitting.taken)};
  else if (is_onnx)
    std::erase_if(initial.left_over, is_constant_of_graph);
  if (!initial.fresh.empty())
    initial.lines.push_back(fmt::format("  new, from train.seed: {}", fmt::join(initial.fresh, "; ")));
  if (!initial.left_over.empty()) initial.lines.push_back("  not used: " + first_and_last(initial.left_over));
}

/// Each weight of the first layer is one column's. @param then  of the weights
void require_same_columns(const std::string& path, const std::string& then, const TrainTestData& now) {
  if (then.empty() || now.columns.empty()) return;
  const auto known = names_of_numbers(parse_table_columns(then, path)),
             names = names_of_numbers(parse_table_columns(now.columns, now.origin));
  if (known == names || known.empty() || names.empty()) return;
  throw DataError(fmt::format(
      "{}: was trained on columns in the order {}, and {} has {} (column {} is another); convert the table "
      "with its columns as they were, in that order",
      path, first_names(known), now.origin, first_names(names),
      std::ranges::mismatch(known, names).in1 - known.begin() + 1));
}

/// True if none of its tensors comes from the seed.
bool is_taken(const Layer& layer, const StartingWeights& initial) {
  const auto is_fresh = [&](const Parameter& tensor) {
    return std::ranges::any_of(initial.fresh, [&](const std::string& described) {
      return described.starts_with(tensor.name + " [");  // as FittingWeights::fresh has it
    });
  };
  return std::ranges::none_of(layer.parameters(), is_fresh) && std::ranges::none_of(layer.kept(), is_fresh);
}

}  // namespace

StartingWeights initialise_weights(const Job& job, const Network& network, std::span<float> weights,
                                   const TrainTestData& data) {
  const TrainSection& train = job.train;
  if (train.initial_weights.empty() || train.partial)
    network.initialise(train.seed, weights, train.initial_scale);
  if (train.initial_weights.empty()) return {};
  auto [path, bytes, position, known, columns] = read_weights_file(train.initial_weights);
  StartingWeights initial{.source = path, .lines = {}};
  read_tensors(std::move(bytes), train.partial, network, weights, initial, known);
  for (const Parameter& tensor : network.parameters().tensors()) {
    const std::string wrong = unusable_numbers(tensor.name, weights.subspan(tensor.offset, tensor.size));
    if (!wrong.empty())
      throw DataError(fmt::format("{}: {}; give a file of finite weights", initial.source, wrong));
  }
  const auto& layers = network.layers();
  const auto first =
      std::ranges::find_if(layers, [](const auto& layer) { return !layer->parameters().empty(); });
  if (first != layers.end() && is_taken(**first, initial)) require_same_columns(path, columns, data);
  if (is_taken(*layers.back(), initial))
    if (std::string said = order_last_layer(network, weights, known, data.class_names); !said.empty())
      initial.lines.push_back(std::move(said));
  initial.sha256 = weights_sha256(weights);
  initial.lines.front() = fmt::format("initial weights: {}{}: {}", path, position, initial.lines.front());
  return initial;
}

}  // namespace lockstep
