// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What must hold between the keys of a job.
#include "comm/backend.hpp"
#include "common/text_layout.hpp"
#include "data/dataset.hpp"
#include "data/sets/catalogue.hpp"
#include "trainer/config/job_reader.hpp"
#include "trainer/config/job_values.hpp"
#include "trainer/config/optimizers/optimizer.hpp"
#include "trainer/config/optimizers/schedule.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace lockstep {
namespace {

void check_model(const JobReader& reader) {
  if (!reader.gives("model")) reader.fail_at("model", "no model given; add a line such as 'model: net'");
}

void complain(const JobReader& reader, const std::optional<KeyComplaint>& complaint) {
  if (complaint) reader.fail_at(complaint->key, complaint->message);
}

void check_optimizer(const JobReader& reader) {
  const OptimizerSection& section = reader.job().train.optimizer;
  const auto& kinds = optimizer_kinds();
  const auto kind = std::ranges::find(kinds, section.kind, &OptimizerKind::name);
  if (kind->check != nullptr) complain(reader, kind->check(section));
  const double lr = scaled_lr(section, reader.job().data.global_batch);
  if (static_cast<float>(lr) == 0) {
    reader.fail_at(
        "train.optimizer.lr",
        fmt::format("train.optimizer.lr: {} scaled to {} is 0 as fp32, whose smallest number is 1.4e-45",
                    section.lr, lr));
  }
}

void check_schedule(const JobReader& reader) {
  const TrainSection& train = reader.job().train;
  const ScheduleSection& section = train.schedule;
  const ScheduleKind& kind = find_schedule(section);
  if (kind.check != nullptr) complain(reader, kind.check(section, train.optimizer.lr));
  if (section.warmup_epochs > 0 && section.warmup_steps > 0) {
    reader.fail_at(
        "train.schedule.warmup_steps",
        "the warm-up is either train.schedule.warmup_steps or train.schedule.warmup_epochs; remove one");
  }
  if (section.warmup_epochs >= train.epochs) {
    reader.fail_at("train.schedule.warmup_epochs",
                   fmt::format("train.schedule.warmup_epochs: {} is not shorter than the run, which has "
                               "train.epochs: {}",
                               section.warmup_epochs, train.epochs));
  }
}

void check_sample_counts(const JobReader& reader) {
  const DataSection& data = reader.job().data;
  if (is_made_in_memory(data.set)) return;
  for (const auto& [path, count] :
       {std::pair{"data.train_samples", data.train_samples}, {"data.test_samples", data.test_samples}}) {
    if (count > 0)
      reader.fail_at(path, fmt::format("{} is for sets made in memory ({}); remove it for {}", path,
                                       fmt::join(made_sets(), " and "), data.set));
  }
}

/// A set without a catalogue entry is where the job says.
void check_root(const JobReader& reader) {
  const DataSection& data = reader.job().data;
  if (data.root != "auto" || is_made_in_memory(data.set) || find_set(data.set).is_known_by_name()) return;
  reader.fail_at(
      reader.gives("data.root") ? "data.root" : "data.set",
      fmt::format("data.set {} needs the directory that holds its files; set data.root", data.set));
}

/// Of people's own sets only the files know how many channels there are.
void check_channels(const JobReader& reader) {
  const DataSection& data = reader.job().data;
  const SetEntry& set = find_set(data.set);
  if (!set.is_known_by_name()) return;
  for (const auto& [path, numbers] : {std::pair{"data.mean", &data.mean}, {"data.std", &data.std}}) {
    if (numbers->size() <= 1 || numbers->size() == static_cast<std::size_t>(set.shape.channels)) continue;
    reader.fail_at(path, fmt::format("{}: {}, but the images of {} have {}; give one, or one "
                                     "for each",
                                     path, counted(numbers->size(), "number"), data.set,
                                     counted(set.shape.channels, "channel")));
  }
}

/// A file of weights has its own scale.
void check_initial_scale(const JobReader& reader) {
  const TrainSection& train = reader.job().train;
  if (train.initial_scale == 0 || train.initial_weights.empty()) return;
  reader.fail_at("train.initial_scale",
                 "train.initial_scale: the run starts from the weights of train.initial_weights; remove one");
}

void check_ranks(const JobReader& reader) {
  const ParallelSection& parallel = reader.job().parallel;
  const Backend& backend = backend_named(parallel.backend);
  if (backend.runs_threads(parallel.ranks) || backend.chooses_itself() || parallel.ranks == 0) return;
  reader.fail_at(
      "parallel.ranks",
      fmt::format("parallel.ranks is for backends thread and nccl; remove it and start with 'mpirun -np {}'",
                  parallel.ranks));
}

void check_backend(const JobReader& reader) {
  const ParallelSection& parallel = reader.job().parallel;
  if (!backend_named(parallel.backend).needs_gpus) return;
  if (parallel.device != "cpu" && parallel.device != "emulated") return;
  reader.fail_at(
      "parallel.backend",
      fmt::format("parallel.backend={} needs GPUs, but parallel.device is {}; use backend auto or mpi",
                  parallel.backend, parallel.device));
}

/// Those that promise no bits want that said, and run where they can.
void check_strategy(const JobReader& reader) {
  const ParallelSection& parallel = reader.job().parallel;
  const std::string& name = parallel.strategy;
  if (find_strategy_kind(name).same_bits) return;
  if (parallel.determinism != Determinism::kOff) {
    reader.fail_at(reader.gives("parallel.determinism") ? "parallel.determinism" : "parallel.strategy",
                   fmt::format("parallel.determinism: {} promises the same weights every time, which "
                               "parallel.strategy {} cannot give; add parallel.determinism=off",
                               spelt(parallel.determinism), name));
  }
  const bool on_gpu = parallel.device.starts_with("cuda") || parallel.device == "emulated";
  if (on_gpu || backend_named(parallel.backend).needs_gpus) {
    reader.fail_at(on_gpu ? "parallel.device" : "parallel.backend",
                   fmt::format("parallel.strategy {} trains on CPUs, in the memory of one host; use "
                               "parallel.device=cpu and parallel.backend=mpi or thread",
                               name));
  }
}

void check_threads(const JobReader& reader) {
  const ParallelSection& parallel = reader.job().parallel;
  if (!find_strategy_kind(parallel.strategy).one_thread || parallel.threads == 1) return;
  reader.fail_at("parallel.threads",
                 fmt::format("parallel.threads: {}, but each rank of parallel.strategy {} computes with one; "
                             "start more ranks, or leave it out",
                             parallel.threads, parallel.strategy));
}

/// What is said of each rank's samples means nothing where ranks have layers.
void check_shares(const JobReader& reader) {
  const Job& job = reader.job();
  const std::string& name = job.parallel.strategy;
  if (find_strategy_kind(name).shares_batches) return;
  const auto refuse = [&](std::string_view key, std::string_view help) {
    reader.fail_at(
        key, fmt::format("{}: the ranks of parallel.strategy {} have layers, not samples of their own; {}",
                         key, name, help));
  };
  if (job.data.per_rank_batch > 0) refuse("data.per_rank_batch", "give data.global_batch instead");
  if (job.run.print_shapes) refuse("run.print_shapes", "remove it");
}

/// `resume: no` is YAML for "do not", not a directory of that name.
void check_resume(const JobReader& reader) {
  for (const std::string_view word : {"no", "off", "false", "none", "yes", "on", "true"}) {
    if (reader.job().run.resume != word) continue;
    reader.fail_at("run.resume",
                   fmt::format("run.resume: expected auto, never or a checkpoint directory, got '{}'", word));
  }
}

/// The first of two keys that is given.
std::string_view given_of(const JobReader& reader, std::string_view first, std::string_view second) {
  return reader.gives(first) ? first : second;
}

void check_inject(const JobReader& reader) {
  const InjectSection& inject = reader.job().inject;
  if (!inject.is_given()) return;
  if (inject.what == kNoFault) {
    const auto names = fault_names();
    reader.fail_at(
        reader.gives("inject.what") ? "inject.what" : given_of(reader, "inject.step", "inject.rank"),
        fmt::format("inject needs what happens: inject.what, one of {}",
                    fmt::join(names.begin() + 1, names.end(), ", ")));
  }
  if (inject.step == 0) {
    reader.fail_at(given_of(reader, "inject.step", "inject.what"),
                   "inject needs the step before which it happens: inject.step, counted from 1");
  }
}

}  // namespace

void check_job(const JobReader& reader) {
  check_model(reader);
  check_optimizer(reader);
  check_schedule(reader);
  check_sample_counts(reader);
  check_root(reader);
  check_channels(reader);
  check_initial_scale(reader);
  check_ranks(reader);
  check_backend(reader);
  check_strategy(reader);
  check_shares(reader);
  check_threads(reader);
  check_resume(reader);
  check_inject(reader);
}

}  // namespace lockstep
