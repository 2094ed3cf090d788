// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// lockstep eval CHECKPOINT
#include "comm/agreement.hpp"
#include "common/output.hpp"
#include "common/text_layout.hpp"
#include "trainer/commands/command_line.hpp"
#include "trainer/device/device_evaluator.hpp"
#include "trainer/ranks/equal_ranks.hpp"
#include "trainer/ranks/rank_runner.hpp"
#include "trainer/reports/class_evaluation.hpp"
#include "trainer/run/class_order.hpp"
#include "trainer/run/data_record.hpp"
#include "trainer/run/saved_model.hpp"
#include "trainer/setup/memory_need.hpp"
#include "trainer/training/evaluator.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace lockstep {
namespace {

struct EvalOptions {
  std::string checkpoint;
  std::string set;   ///< empty: what it was trained on
  std::string data;  ///< a directory; empty: where the run had it
  bool train_set = false, validation = false, whole = false;
  bool classes = false, json = false;
  ParallelSection parallel;
};

/// The data to judge a model on, and what they have to do with those that it was trained on.
struct EvaluationData {
  std::shared_ptr<const TrainTestData> sets;
  std::string relation;
};

/// Data to load: the run's own unless the options name others.
DatasetOptions data_options(const EvalOptions& options, const SavedModel& model) {
  DatasetOptions wanted = model.data.options;
  if (!options.set.empty() && options.set != wanted.set) {
    wanted.set = options.set;
    wanted.root = "auto";
    wanted.directory.clear();
    wanted.train_samples = wanted.test_samples = 0;
    wanted.validation = {};
  }
  if (options.whole && !is_made_in_memory(wanted.set)) wanted.train_samples = wanted.test_samples = 0;
  if (options.validation && !wanted.validation.is_given()) wanted.validation = {.is_files = true};
  if (!options.train_set && !options.validation)
    wanted.validation = {};  // the test half alone is looked at
  else if ((options.validation || !options.whole) && wanted.set == model.data.options.set)
    wanted.leave_out = recorded_leave_out(model.data, model.checkpoint);
  if (!options.data.empty() && is_made_in_memory(wanted.set))
    throw UsageError(
        fmt::format("--data: {} is made in memory, no directory holds it; leave --data out, or name a "
                    "set that has files with --set",
                    wanted.set));
  wanted.directory = resolve_data_root(wanted, options.data);
  return wanted;
}

/// @throws DataError  these are not the run's own data, and no others were asked for
std::string relation_of(const EvalOptions& options, const SavedModel& model, const TrainTestData& found) {
  const DataRecord& own = model.data;
  if (!options.set.empty() && options.set != own.options.set) return "not the set that it was trained on";
  const auto differences = data_differences(own, found, fingerprints_of(found));
  if (differences.empty()) return "what it was trained on";
  const std::string what = fmt::format("{}", fmt::join(differences, ", "));
  if (!options.data.empty() || !options.set.empty()) return "not what it was trained on: " + what;
  const std::string place = own.options.directory.empty() ? "memory" : own.options.directory;
  throw DataError(fmt::format(
      "{}: was trained on other data ({}) than those found ({}): {}; say --data DIR with the directory that "
      "holds its own, or --data {} to judge it on these",
      model.checkpoint, place, found.origin, what, found.directory.empty() ? "DIR" : found.directory));
}

/// Samples are left out of the run's own data alone, wherever they are now.
/// @param checking  whether this rank compares them with those that the model was trained on; all have the
/// same
EvaluationData load_data(const EvalOptions& options, const SavedModel& model, bool checking) {
  DatasetOptions wanted = data_options(options, model);
  std::shared_ptr<TrainTestData> loaded;
  try {
    if (wanted.leave_out != nullptr && !options.data.empty()) {
      const auto list = std::exchange(wanted.leave_out, nullptr);
      const TrainTestData whole = load_dataset(wanted);
      if (data_differences(model.data, whole, fingerprints_of(whole)).empty()) wanted.leave_out = list;
    }
    loaded = std::make_shared<TrainTestData>(load_dataset(wanted));
  } catch (const DatasetOptionError& error) {
    if (!options.validation || error.option() != "validation") throw;
    throw UsageError(
        fmt::format("--validation: the run held no samples out (data.validation), and {} has no validation "
                    "half of its own; leave --validation out",
                    wanted.set));
  }
  std::string relation = checking ? relation_of(options, model, *loaded) : "";
  if (const std::string said = number_as(model.data.class_names, *loaded); !said.empty())
    relation += "; " + said;
  return {std::move(loaded), std::move(relation)};
}

void check_fit(const SavedModel& model, const Dataset& data) {
  check_loss_of_labels(model.loss, data);
  if (data.shape == model.network.input_shape() && data.classes == model.network.classes()) return;
  if (data.shape == model.network.input_shape())
    throw ShapeError(fmt::format("{} has {}, and {} was trained on {}", data.name,
                                 counted(data.classes, "class"), model.checkpoint, model.network.classes()));
  throw ShapeError(
      fmt::format("{} has samples of another shape than {} was trained on", data.name, model.checkpoint));
}

Evaluation evaluate_on_cpu(Communicator& comm, const ParallelSection& parallel, const SavedModel& model,
                           const Dataset& data) {
  WorkerPool pool(parallel.threads);
  std::vector<ThreadContext> threads = make_threads(model.network, pool.threads(), model.grain);
  return evaluate(comm, pool, threads, data, evaluation_rule(model.loss, data), model.grain,
                  model.weights.span());
}

Evaluation evaluate_on_device(Communicator& comm, const Gpu& gpu, const SavedModel& model,
                              const Dataset& data) {
  const auto stream = gpu.device->make_stream();
  const auto weights = upload(*gpu.device, *stream, model.weights.span());
  const Job defaults;
  const MemoryNeed whole{.activations = evaluation_bytes(defaults, model.network, data.size()),
                         .data = checked_product(data.size(), row_bytes_of(data) + sizeof(std::int32_t))};
  const bool streams = must_stream(defaults, whole, gpu.device->properties());
  DeviceEvaluator evaluator(model.network, gpu, *stream, data, model.loss, kEvaluatedAtOnce,
                            streams ? &comm : nullptr);
  return evaluator.evaluate(comm, weights.data());
}

/// Report of rank 0 at the end.
void print_evaluation(bool json, const SavedModel& model, const EvaluationData& loaded, const Dataset& data,
                      const Evaluation& result, const std::optional<ClassEvaluation>& classes) {
  const std::string sha256 = weights_sha256(model.weights.span());
  if (json) {
    nlohmann::ordered_json object = {{"format", 1},
                                     {"checkpoint", model.checkpoint},
                                     {"data", data.name},
                                     {"origin", loaded.sets->origin},
                                     {"relation", loaded.relation},
                                     {"samples", result.samples},
                                     {"correct", result.correct},
                                     {"not_finite", result.not_finite},
                                     {"accuracy", result.accuracy()},
                                     {"loss", result.loss},  // null if not finite
                                     {"weights_sha256", sha256}};
    if (classes) object.update(classes_json(*classes, loaded.sets->class_names));
    print_json(object);
    return;
  }
  print("{}\n{}: loss {}, accuracy {} % ({} of {})\ndata: {} ({})\n{}weights sha256 {}\n", model.checkpoint,
        data.name, describe_loss(result), percent_text(result.accuracy()), with_thousands(result.correct),
        with_thousands(result.samples), loaded.sets->origin, loaded.relation,
        classes ? classes_text(*classes, loaded.sets->class_names) : "", sha256);
}

/// While a run goes on, two ranks may find two newest checkpoints.
RankFacts model_facts(const SavedModel& model) {
  return RankFacts{{FactKind::kCheckpoint, "the sha256 of the weights", weights_sha256(model.weights.span()),
                    model.checkpoint}} +
         network_facts(model.network);
}

int evaluate_checkpoint(const EvalOptions& options, const CLI::App& command, Communicator& comm) {
  expect_equal_ranks(comm, program_facts("eval", comm) + option_facts(command));
  std::optional<SavedModel> model;
  EvaluationData loaded;
  agree(comm, [&] { model = load_saved_model(options.checkpoint); });
  expect_equal_ranks(comm, model_facts(*model));
  agree(comm, [&] {
    loaded = load_data(options, *model, comm.rank() == 0);
    check_fit(*model, loaded.sets->test);
  });
  const DeviceChoice device =
      choose_device(for_precision(options.parallel, model->network.precision()), comm);
  if (options.classes && loaded.sets->test.has_label_sets())
    throw ConfigError(fmt::format(
        "--classes: samples of {} have several labels, and it counts answers of one; leave it out",
        loaded.sets->test.name));
  expect_equal_ranks(comm, data_facts(*loaded.sets) + device_facts(device));
  const Dataset& data = options.train_set    ? loaded.sets->train
                        : options.validation ? loaded.sets->validation
                                             : loaded.sets->test;
  const Evaluation result = device.gpu != nullptr ? evaluate_on_device(comm, *device.gpu, *model, data)
                                                  : evaluate_on_cpu(comm, options.parallel, *model, data);
  std::optional<ClassEvaluation> classes;
  if (options.classes)  // on the processor also where a GPU evaluates: the answers are the same
    classes = over_all(comm, evaluate_classes(*model, data, options.parallel.threads,
                                              {.rank = comm.rank(), .ranks = comm.size()}));
  if (comm.rank() != 0) return 0;
  if (!device.remark.empty()) print_error(device.remark);
  if (classes)
    if (const std::string warning = locate_mistakes(*classes, *loaded.sets, data); !warning.empty())
      print_error("warning: " + warning);
  print_evaluation(options.json, *model, loaded, data, result, classes);
  return 0;
}

}  // namespace

void add_eval_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("eval", "Loss and accuracy of a checkpoint, alone or under mpirun");
  auto options = std::make_shared<EvalOptions>();
  command->add_option("checkpoint", options->checkpoint, kCheckpointHelp)->required();
  command->add_option("--set", options->set, "Data set; default: the one it was trained on");
  command->add_option(
      "--data,--root", options->data,
      "A directory to take the set from, whatever the run was trained on; default: where the run "
      "had it, then as data.root=auto, and the data must be those that it was trained on");
  auto* train =
      command->add_flag("--train", options->train_set, "Evaluate the training half instead of the test half");
  command
      ->add_flag("--validation", options->validation,
                 "The samples that the run held out of the training half (data.validation), or those of the "
                 "set's own validation half")
      ->excludes(train);
  command->add_flag("--whole", options->whole,
                    "All samples of that half, where the run took a part of them (data.test_samples, "
                    "data.train_samples)");
  command->add_flag("--classes", options->classes,
                    "Also precision and recall of each class, which class is mistaken for which, and the "
                    "surest mistakes (on the processor, whatever --device says)");
  command->add_flag("--json", options->json, "Print one JSON object (docs/report.md)");
  add_parallel_options(*command, options->parallel);
  command->footer(
      "The data are those that the run was trained on: looked for where it had them, compared by SHA-256, "
      "and refused (exit code 65) if they are others, unless --data or --set asks for others.\n"
      "Examples:\n"
      "  mpirun -np 2 lockstep eval runs/mnist\n"
      "  lockstep eval runs/mnist --classes");
  on_choice(*command, action, [=] {
    return run_on_ranks(options->parallel,
                        [&](Communicator& comm) { return evaluate_checkpoint(*options, *command, comm); });
  });
}

}  // namespace lockstep
