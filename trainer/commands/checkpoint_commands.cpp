// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Commands for checkpoints: lockstep hash, inspect, verify, diff, export, import. They show one, check it,
/// compare two, and convert to and from other programs' files.
#include "comm/launcher.hpp"
#include "common/error.hpp"
#include "common/json_text.hpp"
#include "common/output.hpp"
#include "common/output_file.hpp"
#include "common/text_layout.hpp"
#include "data/sets/catalogue.hpp"
#include "models/onnx/onnx.hpp"
#include "trainer/checkpoint/checkpoint.hpp"
#include "trainer/checkpoint/directory.hpp"
#include "trainer/checkpoint/inspect.hpp"
#include "trainer/checkpoint/published_hash.hpp"
#include "trainer/checkpoint/rank_file.hpp"
#include "trainer/commands/command_line.hpp"
#include "trainer/ranks/rank_runner.hpp"
#include "trainer/run/run_state.hpp"
#include "trainer/run/saved_model.hpp"
#include "trainer/setup/job_setup.hpp"
#include "trainer/setup/strategies.hpp"
#include "trainer/training/evaluator.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

namespace lockstep {
namespace {

/// Commands that show a checkpoint show also weights that are NaN.
FoundCheckpoint open(const std::string& path) {
  return open_checkpoint(
      Env::posix(), path, [](const std::string& damage) { print_error(damage); }, Weights::kAny);
}

CheckpointState load(const std::string& path) {
  return open(path).state;
}

int hash(const std::string& path, bool json) {
  const FoundCheckpoint found = open(path);
  const std::string digest = weights_sha256(found.state.weights);
  const PublishedComparison published = compare_with_published(found.state.facts, digest);
  if (json)
    return print_json({{"format", kInspectFormat},
                       {"checkpoint", found.path},
                       {"step", found.state.facts.step},
                       {"weights_sha256", digest},
                       {"published_hash", published.same}});
  print("{}{}weights sha256 {}\n", published.line, published.line.empty() ? "" : "\n", digest);
  return 0;
}

/// The directory of RUN@best; "" where it is refused.
std::string best_of_run(const std::string& path) {
  return or_if_unreadable([&] { return named_checkpoint(Env::posix(), path + "@best"); }, "");
}

/// The layers as a table, below an empty line. A program that uses the library may have its own layers, or none: "".
std::string layers_of(const FoundCheckpoint& found) {
  const auto table = [&] { return "\n" + recorded_network(found.state.facts, found.path).summary(); };
  return found.state.facts.world.contains("library") ? or_if_unreadable(table, "") : table();
}

/// Shows a checkpoint; for a run, its list of checkpoints and the newest good one in full.
int inspect(const std::string& path, bool json) {
  const FoundCheckpoint found = open(path);
  const std::string layers = layers_of(found);
  const auto checkpoints = summarise_checkpoints(Env::posix(), path);
  if (json) {
    auto document = inspect_json(found.path, found.state);
    document["checkpoints"] = checkpoints_json(checkpoints);
    return print_json(document);
  }
  const std::string list =
      checkpoints_text(path, checkpoints, {.last = found.path, .best = best_of_run(path)});
  print("{}",
        fold_lines(list + (list.empty() ? "" : "\n") + inspect_checkpoint(found.path, found.state) + layers,
                   output_columns()));
  return 0;
}

/// Every checkpoint of a run, or the one that is named.
std::vector<std::string> checkpoints_to_verify(Env& env, const std::string& path) {
  std::vector<std::string> paths;
  for (const auto& entry : list_checkpoints(env, path)) paths.push_back(entry.path);
  if (paths.empty() && !is_checkpoint(env, path)) throw MissingDataError(why_no_checkpoint(env, path));
  if (paths.empty()) paths.push_back(path);
  return paths;
}

int verify(const std::string& given, bool json) {
  Env& env = Env::posix();
  const NamedAverage named = split_average(env, given);
  const std::string path = named_checkpoint(env, named.path);
  bool good = true;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  const auto doubt = read_doubt(env, is_checkpoint(env, path) ? path + "/../.." : path);
  for (const auto& checkpoint : checkpoints_to_verify(env, path)) {
    try {
      Verification result = verify(env, checkpoint);
      if (result.good && doubt && load_manifest(env, checkpoint).facts.step > doubt->sure_step)
        result = {
            .good = false,
            .report = fmt::format("{}: in doubt: whole, but {}; 'lockstep prove' tells whether it is right\n",
                                  checkpoint, why_in_doubt(*doubt))};
      list.push_back({{"checkpoint", checkpoint}, {"good", result.good}, {"report", result.report}});
      if (!json) print("{}", result.report);
      good = good && result.good;
    } catch (const MissingDataError&) {
      if (checkpoint == path) throw;
      if (!json) print("{}: gone: the run has pruned it meanwhile\n", checkpoint);
    }
  }
  if (good && !named.name.empty()) open(given);  // refuses an average that there is not
  const auto ranks = report_ranks(path + "/" + kRankFile);
  if (ranks && !json) print("{}", ranks->text);
  good = good && (!ranks || ranks->good);
  if (json)
    print_json({{"format", kInspectFormat},
                {"good", good},
                {"checkpoints", list},
                {"ranks", ranks ? nlohmann::ordered_json(ranks->good) : nullptr}});
  return good ? 0 : static_cast<int>(ExitCode::kDataDamaged);
}

/// Like diff(1): 0 if they are the same, 1 if they differ.
int diff(const std::string& a, const std::string& b, bool json) {
  const auto difference = diff_checkpoints(load(a), load(b));
  print("{}", json ? json_text_in_ascii(to_json(difference)) + "\n"
                   : fold_lines(to_text(difference), output_columns()));
  return difference.empty() ? 0 : 1;
}

/// For those who get the file alone.
std::map<std::string, std::string> about(const SavedModel& model, bool has_pixels, bool is_normalised) {
  const ImageShape& input = model.network.input_shape();
  const DatasetOptions& data = model.data.options;
  const std::string shape = fmt::format("float32 [N, {}, {}, {}]", input.channels, input.height, input.width);
  std::map<std::string, std::string> entries = {
      {"input", has_pixels ? fmt::format("image: {}, pixels / 255 as torchvision's ToTensor makes them; the "
                                         "graph computes (pixel - mean) / std first, with mean {} and std {}",
                                         shape, fmt::join(data.mean, ", "), fmt::join(data.std, ", "))
                : is_normalised ? fmt::format("image: {}, the table's numbers as they are, a channel each; "
                                              "the graph computes (number - mean) / std first",
                                              shape)
                                : fmt::format("image: {}, numbers as they are", shape)},
      {"output", fmt::format("logits: float32 [N, {}]; {}", model.network.classes(),
                             are_probabilities(model.loss)
                                 ? fmt::format("{} makes probabilities of them", name_of_scores(model.loss))
                                 : "trained towards 1 for the class and 0 for others, no probabilities")},
      {"data_set", data.set},
      {"checkpoint", model.checkpoint},
      {"step", std::to_string(load_manifest(Env::posix(), model.checkpoint).facts.step)},
      {"weights_sha256", weights_sha256(model.weights.span())},
      {"lockstep_version", LOCKSTEP_VERSION}};
  if (model.network.precision() == Precision::kInt16)
    entries["precision"] = "fp32; the run computed in int16, whose outputs are others";
  if (!model.data.class_names.empty()) entries[kOnnxClassNames] = json_text_in_ascii(model.data.class_names);
  return entries;
}

std::vector<std::byte> export_onnx(const std::string& path) {
  const SavedModel model = load_saved_model(path);
  const bool has_pixels = !find_set(model.data.options.set).is_fp32;
  const bool is_normalised = has_pixels || !is_made_in_memory(model.data.options.set);
  OnnxFacts facts{.program = LOCKSTEP_VERSION, .metadata = about(model, has_pixels, is_normalised)};
  if (is_normalised) facts.mean = model.data.options.mean, facts.std = model.data.options.std;
  return write_onnx(model.network, model.weights.span(), facts);
}

struct ExportOptions {
  std::string checkpoint, npz, onnx;
  bool force = false;
};

int export_to(const ExportOptions& options) {
  if (options.npz.empty() && options.onnx.empty())
    throw UsageError("export: say what to write: --npz FILE or --onnx FILE");
  if (std::filesystem::path(options.npz).lexically_normal() ==
      std::filesystem::path(options.onnx).lexically_normal())
    throw UsageError(fmt::format("export: --npz and --onnx both name {}; give two files", options.npz));
  const auto write = [&](const std::string& file, const std::vector<std::byte>& bytes, const char* reader) {
    write_output_file(Env::posix(), file, bytes, options.force);
    print("{}: {} bytes; {}(\"{}\") reads it\n", file, bytes.size(), reader, file);
  };
  if (!options.npz.empty()) write(options.npz, export_npz(load(options.checkpoint)), "numpy.load");
  if (!options.onnx.empty())
    write(options.onnx, export_onnx(options.checkpoint), "onnxruntime.InferenceSession");
  return 0;
}

void add_simple(CLI::App& app, Action& action, const std::string& name, const std::string& help,
                int (*run)(const std::string& path, bool json)) {
  auto* command = app.add_subcommand(name, help);
  auto path = std::make_shared<std::string>();
  command->add_option("checkpoint", *path, kCheckpointHelp)->required();
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, kJsonHelp);
  on_choice(*command, action, [=] { return run(*path, *json); });
}

}  // namespace

void add_checkpoint_commands(CLI::App& app, Action& action) {
  add_simple(app, action, "hash",
             "SHA-256 over all parameters, as training prints it last, and whether it is the published one",
             hash);
  add_simple(app, action, "inspect", "Show a checkpoint as a table; for a run, its checkpoints", inspect);
  add_simple(app, action, "verify",
             "Check every checksum, of all checkpoints of a run or of one, and that all weights are finite; "
             "say on which hosts a run was",
             verify);

  auto* difference =
      app.add_subcommand("diff", "Compare two checkpoints: tensors, elements, largest difference");
  auto a = std::make_shared<std::string>(), b = std::make_shared<std::string>();
  difference->add_option("a", *a, kCheckpointHelp)->required();
  difference->add_option("b", *b, kCheckpointHelp)->required();
  auto json = std::make_shared<bool>(false);
  difference->add_flag("--json", *json, kJsonHelp);
  difference->footer(
      "Exit code 0: the same weights, optimiser state and facts, such as step, layers and data; 1: they "
      "differ.");
  on_choice(*difference, action, [=] { return diff(*a, *b, *json); });

  auto* exporting = app.add_subcommand("export", "Write a trained network for other programs");
  auto options = std::make_shared<ExportOptions>();
  exporting->add_option("checkpoint", options->checkpoint, kCheckpointHelp)->required();
  exporting->add_option("--npz", options->npz, "File to write for numpy.load: weights and optimiser state");
  exporting->add_option("--onnx", options->onnx,
                        "File to write for ONNX programs: the network with its weights");
  exporting->add_flag("--force", options->force, "Replace the file if it is there already");
  exporting->footer(
      "The ONNX model (operator set 17) takes `image`, float32 [N, channels, height, width] with pixels / "
      "255, as torchvision's ToTensor makes them, normalises them itself, and gives `logits` [N, classes]. "
      "model.safetensors inside a checkpoint is read by Python's safetensors as it is.\n"
      "Example: lockstep export runs/mnist --onnx mnist.onnx");
  on_choice(*exporting, action, [=] { return export_to(*options); });
}

// lockstep import FILE JOB.yaml DIR [key=value ...]

namespace {

struct ImportOptions {
  std::string weights, job, directory;
  std::vector<std::string> overrides;
};

void refuse_used_directory(const std::string& path) {
  std::error_code ignored;
  const auto status = std::filesystem::symlink_status(path, ignored);
  const bool is_free = !std::filesystem::exists(status) ||
                       (std::filesystem::is_directory(status) && std::filesystem::is_empty(path, ignored));
  if (!is_free) throw UsageError(fmt::format("{}: is there already; name a directory that is not", path));
}

/// A checkpoint of step 0 with what the file holds, evaluated.
int import_on(Communicator& comm, const Job& job) {
  const JobSetup setup = set_up(job, comm, load_in_advance(job), find_strategy(job).setup);
  const auto strategy = find_strategy(job).make(setup, comm);
  const StartingWeights read =
      initialise_weights(job, setup.network, strategy->whole_state().weights, *setup.data);
  strategy->distribute();
  const Evaluation evaluation = strategy->evaluate(EvaluatedPart::kTest, never_leave);
  RunState state;
  state.test_accuracy = evaluation.accuracy();
  if (const EvaluatedPart judge = judging_part(job); judge != EvaluatedPart::kTest)
    accuracy_on(judge, state) = strategy->evaluate(judge, never_leave).accuracy();
  if (const std::error_code error = make_directory_and_parents(Env::posix(), job.run.dir))
    throw IoError(fmt::format("{}: cannot be made: {}", job.run.dir, error.message()));
  const std::string checkpoint = save_checkpoint(
      Env::posix(), job.run.dir, checkpoint_of(state, job, setup, comm, strategy->whole_state()));
  print("{}", fold_lines(fmt::format("{}\n", fmt::join(read.lines, "\n")), output_columns()));
  print("{}: loss {}, accuracy {} % ({} of {})\nsaved as {}\n", setup.data->test.name,
        describe_loss(evaluation), percent_text(evaluation.accuracy()), with_thousands(evaluation.correct),
        with_thousands(evaluation.samples), checkpoint);
  return 0;
}

int import_weights(const ImportOptions& options) {
  refuse_used_directory(options.directory);
  Job job = load_job(options.job, options.overrides);
  if (this_launch().world_size > 1 || job.parallel.ranks > 1)
    throw UsageError("import: runs on one rank; start it without mpirun, and leave out parallel.ranks");
  if (job.train.partial)
    throw UsageError(
        "import: takes all weights of a file, so leave train.partial out; lockstep train with "
        "train.initial_weights=FILE train.partial=true trains what the file has not");
  job.train.initial_weights = options.weights;
  job.train.initial_scale = 0;
  job.run.dir = options.directory;
  return run_on_ranks(job.parallel,
                      [&](Communicator& comm) { return import_on(comm, for_ranks(job, comm.size())); });
}

}  // namespace

void add_import_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "import", "Make a checkpoint of weights that PyTorch or another program has trained");
  auto options = std::make_shared<ImportOptions>();
  command->add_option("weights", options->weights, "A .safetensors or .onnx file")->required();
  command->add_option("job", options->job, "Job file that names the network and the data")->required();
  command->add_option("directory", options->directory, "To be made, for the checkpoint")->required();
  command->add_option("overrides", options->overrides, "key=value, in place of what the job file says");
  command->footer(
      "The weights are judged on the job's test set and saved as DIRECTORY/checkpoints/step-00000000, for "
      "eval, predict, export, inspect and train.initial_weights. They must be those of the job's network, "
      "under the names of its tensors, which inspect prints. Words that their names in the file begin with "
      "(module., _orig_mod.) count for nothing; whatever is missing or of another shape is refused. Numbers "
      "of f16 and bf16 are widened; those of an .onnx may lie in a file beside it.\n"
      "Example: lockstep import resnet.safetensors launch/jobs/cifar10.yaml runs/from-pytorch");
  on_choice(*command, action, [=] { return import_weights(*options); });
}

}  // namespace lockstep
