// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The commands about a run: train, validate, prove.
#include "comm/launcher.hpp"
#include "common/buffers.hpp"
#include "common/machine.hpp"
#include "common/output.hpp"
#include "common/output_file.hpp"
#include "common/text_layout.hpp"
#include "common/yaml.hpp"
#include "data/augmentation.hpp"
#include "data/pictures/picture.hpp"
#include "data/pictures/picture_store.hpp"
#include "data/sets/duplicates.hpp"
#include "data/sets/set_formats.hpp"
#include "models/network.hpp"
#include "trainer/commands/command_line.hpp"
#include "trainer/config/job_schema.hpp"
#include "trainer/config/job_values.hpp"
#include "trainer/reports/batch_pictures.hpp"
#include "trainer/reports/report.hpp"
#include "trainer/run/run_directory.hpp"
#include "trainer/run/run_state.hpp"
#include "trainer/run/step_trace.hpp"
#include "trainer/run/training_run.hpp"
#include "trainer/setup/data_loading.hpp"
#include "trainer/setup/memory_need.hpp"
#include "trainer/tools/prove.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

// lockstep train JOB.yaml [key=value ...]

void add_train_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("train", "Train as a job file says, alone or under mpirun or srun");
  auto job = std::make_shared<std::string>();
  auto overrides = std::make_shared<std::vector<std::string>>();
  command->add_option("job", *job, "Job file, or the name of one that comes with the program, e.g. mnist")
      ->required();
  command->add_option("overrides", *overrides,
                      "key=value instead of the file's; a value that begins with a quote or bracket is YAML");
  command->footer(
      "Examples:\n"
      "  lockstep train launch/jobs/mnist.yaml train.epochs=2 run.dir=runs/short\n"
      "  mpirun -np 2 lockstep train launch/jobs/mnist.yaml\n"
      "  lockstep train JOB.yaml parallel.backend=thread parallel.ranks=3\n\n"
      "The run is in runs/JOB, or in run.dir. The same command resumes it, on any number of ranks, or begins "
      "runs/JOB-2 if it is finished or would have other weights. Ctrl-C or SIGTERM saves and stops (exit "
      "code 75).\n\n"
      "Keys of a job:\n"
      "  lockstep help keys                  all; a section: help train.optimizer\n"
      "  lockstep help train.optimizer.lr    one of them");
  on_choice(*command, action, [=] {
    const Job to_train = load_job(*job, *overrides);
    return train(to_train, [&](const std::string& directory, const TrainTestData& data) {
      if (to_train.run.report) write_report_of_run(directory, data, to_train.parallel.threads);
    });
  });
}

// lockstep validate JOB.yaml [key=value ...]

namespace {

DataSizes sizes_of(const Job& job, const SetOutline& data) {
  const std::size_t element = data.is_fp32 ? sizeof(float) : sizeof(std::uint8_t);
  const bool is_made = is_made_in_memory(job.data.set);
  const auto all = [is_made](std::int64_t asked, std::int64_t usual) {
    return is_made && asked > 0 ? asked : usual;
  };
  const PartSizes parts = parts_of(job, {.train = all(job.data.train_samples, data.train_samples),
                                         .test = all(job.data.test_samples, data.test_samples),
                                         .validation = data.validation_samples});
  const std::uint64_t bytes = checked_product(data.shape.features(), element);
  const bool on_disk = data.on_disk && !job.data.in_memory;
  std::uint64_t kept_bytes = 0;
  if (on_disk && has_pictures(job.data.set))
    for (const std::int64_t samples : {data.train_samples, data.test_samples, data.validation_samples})
      kept_bytes += std::min<std::uint64_t>(checked_product(samples, bytes), ReadyImages::kKeptBytes);
  return {.train_samples = parts.train,
          .test_samples = parts.test,
          .sample_bytes = checked_sum(bytes, sizeof(std::int32_t)),
          .validation_samples = parts.validation,
          .on_disk = on_disk,
          .streams = job.data.on_device == OnDevice::kStream,
          .kept_bytes = kept_bytes};
}

bool is_on_gpu(const Job& job) {
  const auto device = parse_device_name(job.parallel.device);
  return device && (device->kind == DeviceKind::kCuda || device->kind == DeviceKind::kEmulated);
}

/// Ranks of the job, as far as they are known before it starts; 0: not known.
int ranks_known(const ParallelSection& parallel) {
  const Launch launch = this_launch();
  return launch.is_alone() ? parallel.ranks : launch.world_size;
}

std::string memory_text(const TrainingMemory& memory, bool on_gpu) {
  std::string text = fmt::format("memory of one rank: {}", to_string(memory.host));
  if (on_gpu) text += fmt::format("; on its GPU: {}", to_string(memory.device));
  return text;
}

/// For scripts: a line each, words that stay.
std::string launch_text(const Job& job) {
  const RestartRule rule = restart_rule(job);
  return fmt::format("threads={}\nranks={}\nhosts={}\ntimeout={:.0f}\nresume={}\n", job.parallel.threads,
                     rule.any_ranks && !rule.one_host ? "any" : "same", rule.one_host ? "one" : "any",
                     std::ceil(job.parallel.timeout_seconds), job.run.takes_newest() ? "auto" : "other");
}

nlohmann::ordered_json job_json(const Job& job, const Network& network, const DataSizes& sizes,
                                const TrainingMemory& memory, const std::vector<std::string>& notes) {
  const bool on_gpu = is_on_gpu(job);
  return {{"format", 1},
          {"job", texts_of_keys(job)},
          {"model", network.name()},
          {"parameters", network.parameters().size},
          {"train_samples", sizes.train_samples},
          {"test_samples", sizes.test_samples},
          {"validation_samples", sizes.validation_samples},
          {"host_bytes", memory.host.total()},
          {"device_bytes", on_gpu ? memory.device.total() : 0},
          {"notes", notes}};
}

struct ValidateOptions {
  std::string path;
  std::vector<std::string> overrides;
  bool for_launch = false, json = false;
  bool data = false;          ///< read the set, too
  std::string pictures = {};  ///< path for a sheet of them; empty: none is asked for
  bool force = false;
};

/// @returns a line that says so, and the labels of mixed images
std::string write_pictures(const Job& job, const std::string& path, bool replace) {
  OutputFile file(Env::posix(), path, replace);
  const BatchPictures pictures = picture_first_batch(job);
  const std::vector<std::uint8_t> png = write_png(pictures.sheet);
  file.write(std::as_bytes(std::span(png)));
  file.publish();
  std::string text = fmt::format("{}: {} of {} of the first batch, as they are trained on\n", path,
                                 pictures.shown, counted(pictures.batch, "image"));
  for (std::size_t i = 0; i < pictures.labels.size(); ++i)
    text += fmt::format("  row {}, column {}: {}\n", i / pictures.columns + 1, i % pictures.columns + 1,
                        pictures.labels[i]);
  return text;
}

/// Looks into the parts that the job takes, as their files have the samples.
Duplicates duplicates_of(const Job& job) {
  Job raw = job;
  raw.data.mean = {0};
  raw.data.std = {1};
  return find_duplicates(*load_in_advance(raw).get().sets);
}

/// Refuses what training refuses of keys about the set's images and classes, and of the device.
void require_keys_that_fit(const Job& job, const SetOutline& data, bool on_gpu) {
  check_numbers_of_set(job, data.shape.channels, data.classes);
  with_places(job, [&] {
    check_augmentations(job.data.augment, data.shape, !data.is_fp32);
    check_recompute(job, on_gpu);
  });
}

/// Refuses what training refuses of a run's steps and ranks.
void require_possible_steps(const Job& job, const Network& network, std::int64_t train_samples) {
  const bool shares = find_strategy_kind(job.parallel.strategy).shares_batches;  // else ranks have layers
  const int ranks = std::max({1, job.parallel.ranks, this_launch().world_size});
  const DistributedSampler::Options sampling{.samples = train_samples,
                                             .global_batch = std::min(job.data.global_batch, train_samples),
                                             .grain = job.parallel.grain,
                                             .world_size = shares ? ranks : 1};
  with_places(job, [&] { check_sampling(job, network, sampling); });
  require_traced_steps(job, steps_asked(job, DistributedSampler::steps_per_epoch(sampling)));
}

/// A note on memory that training takes and that is not here; another machine may have it.
std::vector<std::string> missing_memory(const TrainingMemory& memory) {
  const FreeMemory free = free_memory();
  if (memory.host.total() <= free.bytes) return {};
  return {fmt::format("{} leaves {}: training would be refused here", free.limited_by,
                      format_memory(free.bytes))};
}

/// Notes on files that a start reads and that are not here. As with data, another machine may have them.
std::vector<std::string> missing_files(const Job& job) {
  if (job.run.starts_anew() || job.run.takes_newest()) {
    const std::string why = why_no_initial_weights(job);
    return why.empty() ? std::vector<std::string>() : std::vector{why + ": a first start is refused here"};
  }
  try {
    const auto [path, checkpoint] = named_resume_point(Env::posix(), job);
    if (job.data.per_rank_batch == 0) require_same_job(checkpoint.facts.job, job, path);
    return {};
  } catch (const MissingDataError& error) {
    return {error.what()};
  }
}

int validate(const ValidateOptions& options) {
  const auto& [path, overrides, for_launch, json, data_too, pictures, force] = options;
  const Job asked = load_job(path, overrides);
  if (for_launch) print("{}", launch_text(asked));
  const Job job =
      for_launch ? asked : for_ranks(asked, std::max(asked.parallel.ranks, this_launch().world_size));
  const SetOutline data = outline_of(dataset_options(job));
  const auto network = Network::load(job.model, data.shape, data.classes, job.train.precision);
  if (for_launch) return 0;
  const bool on_gpu = is_on_gpu(job);
  require_keys_that_fit(job, data, on_gpu);
  with_places(job, [&] {
    require_patterns_that_match(job.train, network.parameters());
    if (on_gpu) require_no_cuts_in_micro_batches(job, network);
  });
  const DataSizes sizes = sizes_of(job, data);
  const TrainingMemory memory = with_places(
      job, [&] { return foreseen_memory(job, network, sizes, on_gpu, ranks_known(job.parallel)); });
  if (job.data.per_rank_batch == 0) require_possible_steps(job, network, sizes.train_samples);
  const std::string sheet = pictures.empty() ? "" : write_pictures(job, pictures, force);
  const std::optional<Duplicates> duplicates = data_too ? std::optional(duplicates_of(job)) : std::nullopt;
  if (duplicates) say_duplicates(*duplicates);
  std::vector<std::string> notes = data.remarks;
  for (const auto& more :
       {missing_memory(memory), batch_remarks(job, sizes.train_samples, on_gpu), missing_files(job)})
    notes.insert(notes.end(), more.begin(), more.end());
  if (json) {
    auto facts = job_json(job, network, sizes, memory, notes);
    if (duplicates) facts["duplicates"] = duplicates_json(*duplicates);
    return print_json(facts);
  }
  std::string remarks;
  for (const std::string& note : notes) remarks += "note: " + note + "\n";
  if (duplicates)
    remarks += fmt::format("data: {} in two halves, {} under two labels\n",
                           counted(duplicates->test + duplicates->validation, "sample"),
                           with_thousands(duplicates->under_two_labels));
  print("{}\n{}\n{}\n{}{}{}: ok\n", to_yaml(job), network.summary(), memory_text(memory, on_gpu), remarks,
        sheet, path);
  return 0;
}

}  // namespace

void add_validate_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "validate",
      "Check a job file and its model, with the shapes of the set as it is published (of your own: as the "
      "files say); print both in full, and the memory that training takes");
  auto options = std::make_shared<ValidateOptions>();
  command->add_option("job", options->path, "Job file")->required();
  command->add_option("overrides", options->overrides, "key=value, in place of what the file says");
  auto* launch = command->add_flag(
      "--launch", options->for_launch,
      "Print for scripts how a launcher may start it: threads=N of a rank; ranks=any or same, on which it "
      "may go on after a loss; hosts=any or one; timeout=SECONDS of every wait; resume=auto or other, as "
      "run.resume says");
  command->add_flag("--json", options->json, "One JSON object: every key as text, sizes, memory in bytes")
      ->excludes(launch);
  command
      ->add_flag("--data", options->data,
                 "Read the set, too: warn of samples that are in two of its halves, and of equal ones under "
                 "two labels")
      ->excludes(launch);
  command
      ->add_option("--pictures", options->pictures,
                   "Write a PNG with the training images of the first batch, augmented as data.augment says; "
                   "reads the data")
      ->excludes(launch)
      ->type_name("FILE.png");
  command->add_flag("--force", options->force, "Replace that file if it is there already");
  command->footer("Keys of a job: lockstep help keys, lockstep help KEY");
  on_choice(*command, action, [=] { return validate(*options); });
}

// lockstep prove RUN

void add_prove_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("prove", "Replay steps of a run and check its recorded results");
  auto options = std::make_shared<ProveOptions>();
  auto steps = std::make_shared<std::string>();
  command->add_option("run", options->run, "A run directory, with its trail.bin")->required();
  auto* range =
      command->add_option("--steps", *steps, "7, 1..100, 400.. or ..100, counted from 1; default all");
  command
      ->add_option("--sample", options->question.sample,
                   "Number of those steps, at random, always the last one and that of the last checkpoint; "
                   "each is replayed from the nearest checkpoint before it")
      ->check(CLI::Range(1, 1000000000));
  auto* seed =
      command->add_option("--seed", options->question.seed, "Seed of the sample; default: another each time");
  command->add_option(
      "--data", options->data,
      "The directory that holds its data; default where the run had them, then as data.root=auto");
  command->add_flag("--json", options->json, kJsonHelp);
  add_parallel_options(*command, options->parallel);
  auto kernels = std::make_shared<std::string>(spelt(Kernels::kNative));
  command->add_option("--kernels", *kernels, "On a GPU: native or vendor, as parallel.kernels")
      ->check(CLI::IsMember({spelt(Kernels::kNative), spelt(Kernels::kVendor)}))
      ->capture_default_str();
  command
      ->add_option("--timeout", options->parallel.timeout_seconds,
                   "Seconds that a rank waits for others before it gives up, as parallel.timeout_seconds")
      ->check(CLI::Range(1e-3, 1e9))  // lets NaN pass
      ->check(parsed_by(parse_double, "is not a number such as 60"))
      ->capture_default_str();
  command->add_option("--ranks", options->parallel.ranks, "Ranks as threads of this process, without mpirun")
      ->check(CLI::Range(1, 1024));
  command->footer(
      "Ranks take the intervals between checkpoints in turns, or share one where there are more ranks than "
      "intervals; any number of them, on any machine, gives the same result.\n\n"
      "Losses, accuracies and the hash of metrics.jsonl, and the labels and sums of manifests, are compared "
      "with the results of the replayed steps.\n\n"
      "Exit codes: 0 all steps asked for are proved, 1 the run is refuted: the first step that differs is "
      "named, with what differs in it and the likely cause; 2 usage, 65 the data found are not those of the "
      "run, or its trail cannot be read, 66 there is no trail, or nothing to start from, for some of the "
      "steps, 69 some were computed with another arithmetic, 71 a rank was lost.\n"
      "Examples:\n"
      "  lockstep prove runs/mnist\n"
      "  lockstep prove runs/mnist --steps 400..800\n"
      "  mpirun -np 8 lockstep prove runs/mnist --sample 100");
  on_choice(*command, action, [=] {
    if (*kernels == spelt(Kernels::kVendor)) options->parallel.kernels = Kernels::kVendor;
    options->question.steps = range->count() > 0 ? parse_steps(*steps) : StepRange{0, 0};
    if (seed->count() == 0) options->question.seed = std::random_device()();
    if (options->parallel.ranks > 0) options->parallel.backend = "thread";
    return prove(*options);
  });
}

}  // namespace lockstep
