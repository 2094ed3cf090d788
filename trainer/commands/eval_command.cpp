// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// lockstep eval CHECKPOINT
#include "kernels/runtime/output.hpp"
#include "trainer/agreement.hpp"
#include "trainer/checkpoint/state.hpp"
#include "trainer/commands/command.hpp"
#include "trainer/config/device_name.hpp"
#include "trainer/device/device_evaluator.hpp"
#include "trainer/evaluator.hpp"
#include "trainer/job_setup.hpp"
#include "trainer/progress.hpp"
#include "trainer/rank_runner.hpp"
#include "trainer/saved_model.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>

namespace lockstep {
namespace {

struct Options {
  std::string checkpoint;
  std::string set;  ///< empty: what it was trained on
  std::string root = "auto";
  bool train_set = false;
  ParallelSection parallel;
};

/// The data that the options and the model ask for, described as a job so that it loads as in training.
Job data_job(const Options& options, const SavedModel& model) {
  Job job;
  job.data.set = options.set.empty() ? model.set : options.set;
  job.data.root = options.root;
  job.data.mean = model.mean;
  job.data.std = model.std;
  job.parallel = options.parallel;
  return job;
}

void check_fit(const SavedModel& model, const Dataset& data) {
  if (data.shape == model.network.input_shape() && data.classes == model.network.classes()) return;
  throw ShapeError(
      fmt::format("{} has samples of another shape than {} was trained on", data.name, model.checkpoint));
}

Evaluation evaluate_on_cpu(Communicator& comm, const DeviceChoice& device, const ParallelSection& parallel,
                           const SavedModel& model, const Dataset& data) {
  WorkerPool pool(parallel.threads);
  std::vector<Lane> lanes;
  for (int i = 0; i < pool.threads(); ++i)
    lanes.emplace_back(model.network, device.make_ops(), parallel.grain);
  return evaluate(comm, pool, lanes, data, parallel.grain, model.weights.span());
}

Evaluation evaluate_on_device(Communicator& comm, const Gpu& gpu, const SavedModel& model,
                              const Dataset& data) {
  const auto stream = gpu.device->make_stream();
  DeviceBuffer<float> weights(*gpu.device, model.weights.size());
  stream->copy_to_device(weights.data(), model.weights.data(), weights.bytes());
  stream->synchronize();
  DeviceEvaluator evaluator(model.network, gpu, *stream, data);
  return evaluator.evaluate(comm, weights.data());
}

int evaluate_checkpoint(const Options& options, Communicator& comm) {
  std::optional<SavedModel> model;
  std::shared_ptr<const TrainTestData> sets;
  agree(comm, [&] {
    model = load_saved_model(options.checkpoint);
    sets = load_in_advance(data_job(options, *model)).get();
    check_fit(*model, sets->test);
  });
  const Dataset& data = options.train_set ? sets->train : sets->test;
  const DeviceChoice device = choose_device(options.parallel, comm);
  const Evaluation result = device.gpu != nullptr
                                ? evaluate_on_device(comm, *device.gpu, *model, data)
                                : evaluate_on_cpu(comm, device, options.parallel, *model, data);
  if (comm.rank() != 0) return 0;
  if (!device.remark.empty()) print_error(device.remark);
  print("{}\n{}: loss {:.4f}, accuracy {:.2f} % ({} of {})\nweights sha256 {}\n", model->checkpoint,
        data.name, result.loss, 100 * result.accuracy(), with_thousands(result.correct),
        with_thousands(result.samples), weights_sha256(model->weights.span()));
  return 0;
}

}  // namespace

void add_eval_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("eval", "Loss and accuracy of a checkpoint, alone or under mpirun");
  auto options = std::make_shared<Options>();
  command->add_option("checkpoint", options->checkpoint, "A run directory or one of its checkpoints")
      ->required();
  command->add_option("--set", options->set, "Data set; default: the one it was trained on");
  command->add_option("--root", options->root, "Where the set lies, as data.root of a job file")
      ->capture_default_str();
  command->add_flag("--train", options->train_set, "The training half instead of the test half");
  command
      ->add_option("--device", options->parallel.device,
                   fmt::format("{}, as parallel.device of a job file", kDeviceNames))
      ->check([](const std::string& text) {
        return parse_device_name(text) ? "" : fmt::format("'{}' is not {}", text, kDeviceNames);
      })
      ->capture_default_str();
  command->add_option("--threads", options->parallel.threads, "Of each rank")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->callback([=, &action] {
    action = [=] {
      return run_on_ranks(options->parallel,
                          [&](Communicator& comm) { return evaluate_checkpoint(*options, comm); });
    };
  });
}

}  // namespace lockstep
