// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// lockstep import FILE JOB.yaml DIR [key=value ...]
#include "common/error.hpp"
#include "common/output.hpp"
#include "common/text_layout.hpp"
#include "trainer/checkpoint/checkpoint.hpp"
#include "trainer/commands/command_line.hpp"
#include "trainer/engine/evaluator.hpp"
#include "trainer/engine/job_setup.hpp"
#include "trainer/ranks/rank_runner.hpp"
#include "trainer/run/run_state.hpp"
#include "trainer/run/saved_model.hpp"
#include "trainer/strategies/strategy.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

namespace lockstep {
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
  const auto strategy = find_strategy(job).make(job, setup, comm);
  const StartingWeights read = initialise_weights(job, setup.network, strategy->whole_state().weights);
  strategy->distribute();
  const Evaluation evaluation = strategy->evaluate(EvaluatedPart::kTest, never_leave);
  RunState state;
  state.note(EvaluatedPart::kTest, evaluation.accuracy());
  if (const EvaluatedPart judge = judging_part(job); judge != EvaluatedPart::kTest)
    state.note(judge, strategy->evaluate(judge, never_leave).accuracy());
  const TrainedState trained = strategy->whole_state();
  CheckpointState imported{.facts = checkpoint_facts(state, job, setup, comm, trained.units),
                           .weights = {trained.weights.begin(), trained.weights.end()},
                           .optimizer = {}};
  for (const OptimizerBufferView& buffer : trained.optimizer)
    imported.optimizer.push_back({buffer.name, {buffer.values.begin(), buffer.values.end()}});
  std::error_code error;
  std::filesystem::create_directories(job.run.dir, error);
  if (error) throw IoError(fmt::format("{}: cannot be made: {}", job.run.dir, error.message()));
  const std::string checkpoint = save_checkpoint(Env::posix(), job.run.dir, imported);
  print("{}", fold_lines(fmt::format("{}\n", fmt::join(read.lines, "\n")), output_columns()));
  print("{}: loss {}, accuracy {:.2f} % ({} of {})\nsaved as {}\n", setup.data->test.name,
        describe_loss(evaluation), 100 * evaluation.accuracy(), with_thousands(evaluation.correct),
        with_thousands(evaluation.samples), checkpoint);
  return 0;
}

int import_weights(const ImportOptions& options) {
  refuse_used_directory(options.directory);
  Job job = load_job(options.job, options.overrides);
  if (job.train.partial)
    throw UsageError(
        "import: takes all weights of a file, so leave train.partial out; lockstep train with "
        "train.initial_weights=FILE train.partial=true trains what the file has not");
  job.train.initial_weights = options.weights;
  job.train.initial_scale = 0;
  job.run.dir = options.directory;
  return run_on_ranks(job.parallel, [&](Communicator& comm) {
    if (comm.size() > 1) throw UsageError("import: runs on one rank; start it without mpirun");
    return import_on(comm, for_ranks(job, comm.size()));
  });
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
      "eval,\n"
      "predict, export, inspect and train.initial_weights. They must be those of the job's network: an ONNX "
      "file is\n"
      "followed along its graph; a safetensors file is read by names, or where these differ by shapes. One "
      "line says\n"
      "what was taken for what; whatever differs or is ambiguous is refused.\n"
      "Example: lockstep import resnet.onnx launch/jobs/cifar10.yaml runs/from-pytorch");
  command->callback([=, &action] { action = [=] { return import_weights(*options); }; });
}

}  // namespace lockstep
