// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Conditions between the keys of a job: a function for each rule, called in the order of check_job.
#include "comm/backend.hpp"
#include "common/text_layout.hpp"
#include "data/sets/catalogue.hpp"
#include "data/sets/set_loading.hpp"
#include "trainer/config/job_schema.hpp"
#include "trainer/config/job_values.hpp"
#include "trainer/training/optimizers/optimizers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

namespace lockstep {
namespace {

/// As fail_at, with a message that is formatted.
template <typename... Values>
[[noreturn]] void refuse(const Job& job, std::string_view key, fmt::format_string<Values...> message,
                         Values&&... values) {
  fail_at(job, key, fmt::format(message, std::forward<Values>(values)...));
}

void complain(const Job& job, const std::optional<KeyComplaint>& complaint) {
  if (complaint) fail_at(job, complaint->key, complaint->message);
}

/// The first of two keys that is given; the second if neither is.
std::string_view given_of(const Job& job, std::string_view first, std::string_view second) {
  return job.gives(first) ? first : second;
}

void check_model(const Job& job) {
  if (!job.gives("model")) refuse(job, "model", "no model given; add a line such as 'model: net'");
}

void check_optimizer(const Job& job) {
  const OptimizerSection& section = job.train.optimizer;
  const OptimizerKind& kind = find_optimizer(section);
  if (kind.check != nullptr) complain(job, kind.check(section));
}

void check_warmup(const Job& job) {
  const ScheduleSection& section = job.train.schedule;
  if (section.warmup_epochs > 0 && section.warmup_steps > 0)
    refuse(job, "train.schedule.warmup_steps",
           "the warm-up is either train.schedule.warmup_steps or train.schedule.warmup_epochs; remove one");
  if (section.warmup_epochs >= job.train.epochs)
    refuse(job, "train.schedule.warmup_epochs",
           "train.schedule.warmup_epochs: {} is not shorter than the run, which has train.epochs: {}",
           section.warmup_epochs, job.train.epochs);
}

// Learning rates. @param lr  after scaling

void check_rate(const Job& job, double lr) {
  if (static_cast<float>(lr) == 0)
    refuse(job, "train.optimizer.lr",
           "train.optimizer.lr: {} scaled to {} is 0 as fp32, whose smallest number is 1.4e-45",
           job.train.optimizer.lr, lr);
}

/// Checks that a group's rate and decay are fp32 numbers after scaling, too.
void check_groups(const Job& job, double lr) {
  const OptimizerSection& section = job.train.optimizer;
  for (const GroupSection& group : job.train.groups) {
    if (static_cast<float>(lr * group.lr_factor) == 0)
      refuse(job, "train.groups",
             "train.groups: lr_factor: {} of '{}' times the rate, {}, is 0 as fp32, whose smallest number is "
             "1.4e-45",
             group.lr_factor, group.match, lr);
    const double share =
        group.weight_decay.value_or(0) / (section.weight_decay > 0 ? section.weight_decay : 1);
    if (group.weight_decay.value_or(0) > 0 && (share < 1e-30 || share > 1e30))
      refuse(job, "train.groups",
             "train.groups: weight_decay: {} of '{}' and train.optimizer.weight_decay: {} differ too much; "
             "give 0, or "
             "no more than 1e30 times the other",
             *group.weight_decay, group.match, section.weight_decay);
  }
}

void check_schedule(const Job& job, double lr) {
  const ScheduleSection& section = job.train.schedule;
  const ScheduleKind& kind = find_schedule(section);
  auto complaint = kind.check != nullptr ? kind.check(section, lr) : std::nullopt;
  if (complaint && complaint->key == "train.schedule.min_lr" && lr != job.train.optimizer.lr)
    complaint->message +=
        fmt::format(" after train.optimizer.lr_scaling to a global batch of {}", job.data.global_batch);
  complain(job, complaint);
}

/// Leaves rates that are scaled to for_ranks() where ranks make the global batch.
void check_known_rates(const Job& job) {
  const bool scales = job.train.optimizer.lr_scaling.rule != LrScalingSection().rule;
  if (job.data.per_rank_batch == 0 || !scales) check_rates(job);
}

/// The order of the two would show, and no one order is known for them.
void check_clipping(const Job& job) {
  const TrainSection& train = job.train;
  if (train.clip_norm > 0 && train.clip_value > 0)
    refuse(job, "train.clip_value",
           "train.clip_norm: {} and train.clip_value: {} both clip the gradient; remove one", train.clip_norm,
           train.clip_value);
  const std::string& strategy = job.parallel.strategy;
  if (train.clip_norm > 0 && !find_strategy_kind(strategy).sums_whole_batches)
    refuse(job, "train.clip_norm",
           "train.clip_norm: the norm is that of the gradient of a whole global batch, which "
           "parallel.strategy {} "
           "never has; use parallel.strategy=data, or train.clip_value",
           strategy);
}

void check_balance(const Job& job) {
  if (job.data.balance_classes && !job.data.shuffle)
    refuse(
        job, "data.balance_classes",
        "data.balance_classes: the samples of a class are drawn at random, so it needs data.shuffle; remove "
        "data.shuffle: {}, or data.balance_classes",
        job.data.shuffle);
}

void check_window(const Job& job) {
  if (job.data.shuffle_window == 0 || (job.data.shuffle && !job.data.balance_classes)) return;
  refuse(job, "data.shuffle_window",
         "data.shuffle_window: there is no window where samples {}; remove data.shuffle_window, or {}",
         job.data.shuffle ? "of a class are drawn from the whole set" : "keep the order of the files",
         job.data.shuffle ? "data.balance_classes" : "data.shuffle: false");
}

/// A set without a catalogue entry is where the job says.
void check_root(const Job& job) {
  const DataSection& data = job.data;
  if (data.root != "auto" || is_made_in_memory(data.set) || find_set(data.set).is_known_by_name()) return;
  refuse(job, given_of(job, "data.root", "data.set"),
         "data.set {} needs the directory that holds its files; set data.root", data.set);
}

/// Refuses keys of pictures for other sets, and keys of an archive's labels likewise.
void check_pictures(const Job& job) {
  const DataSection& data = job.data;
  if (data.label != DataSection().label && data.set != "webdataset")
    refuse(job, "data.label",
           "data.label: is for data.set webdataset, and data.set {} has its own labels; remove it", data.set);
  const PictureForm& form = data.pictures;
  if (form == PictureForm{}) return;
  const bool is_colour = form.colour == PictureColour::kRgb;
  const char* key = form.has_size() ? "data.size" : is_colour ? "data.colour" : "data.fit";
  if (!has_pictures(data.set))
    refuse(job, key,
           "{}: is for sets of pictures, and the images of data.set {} are taken as they are; remove it", key,
           data.set);
  if (form.fit != PictureFit::kSqueeze && !form.has_size())
    refuse(job, "data.fit", "data.fit: {} fits pictures to data.size; set data.size too", spelt(form.fit));
}

/// Only the files of people's own sets know their channels and classes.
void check_set(const Job& job) {
  const SetEntry& set = find_set(job.data.set);
  check_numbers_of_set(job, set.shape.channels, static_cast<int>(set.class_names.size()));
}

/// A file of weights has its own scale.
void check_initial_scale(const Job& job) {
  if (job.train.initial_scale != 0 && !job.train.initial_weights.empty())
    refuse(job, "train.initial_scale",
           "train.initial_scale: the run starts from the weights of train.initial_weights; remove one");
}

/// PyTorch's other losses have no weights of classes either.
void check_class_weights(const Job& job) {
  const ClassWeights& weights = job.train.class_weights;
  if (!weights.is_given()) return;
  if (job.train.loss != LossKind::kCrossEntropy)
    refuse(job, "train.class_weights",
           "train.class_weights are for train.loss cross_entropy, and it is {}; leave them out",
           spelt(job.train.loss));
}

/// A mixed label is a share of two classes, which the other losses have no target for.
void check_mixed_labels(const Job& job) {
  if (!mixes_images(job.data.augment) || job.train.loss == LossKind::kCrossEntropy) return;
  refuse(
      job, "data.augment",
      "data.augment: mixup and cutmix mix labels for train.loss cross_entropy, and it is {}; leave them out",
      spelt(job.train.loss));
}

void check_partial(const Job& job) {
  if (job.train.partial && job.train.initial_weights.empty())
    refuse(job, "train.partial",
           "train.partial: chooses tensors of train.initial_weights, which is not given; add "
           "train.initial_weights=RUN or a file, or remove it");
}

/// Under hogwild every rank moves the weights at any moment, so that no step has weights of its own.
void check_averages(const Job& job) {
  for (const auto& [key, given] :
       {std::pair{"train.ema", job.train.ema > 0}, {"train.swa.from_epoch", job.train.swa.from_epoch > 0}}) {
    if (given && !find_strategy_kind(job.parallel.strategy).same_bits)
      refuse(job, key,
             "{}: under parallel.strategy {} ranks move the weights at any time, so no step has weights to "
             "average; remove it, or use parallel.strategy=data",
             key, job.parallel.strategy);
  }
  if (job.train.swa.from_epoch > job.train.epochs)
    refuse(job, "train.swa.from_epoch",
           "train.swa.from_epoch: {} comes after the run, which has train.epochs: {}",
           job.train.swa.from_epoch, job.train.epochs);
}

void check_ranks(const Job& job) {
  const int ranks = job.parallel.ranks;
  const Backend& backend = backend_named(job.parallel.backend);
  if (backend.runs_threads(ranks) || backend.chooses_itself() || ranks == 0) return;
  refuse(job, "parallel.ranks",
         "parallel.ranks is for backends thread and nccl; remove it and start with 'mpirun -np {}'", ranks);
}

void check_backend(const Job& job) {
  const auto& [backend, device] = std::tie(job.parallel.backend, job.parallel.device);
  if (backend_named(backend).needs_gpus && (device == "cpu" || device == "emulated"))
    refuse(job, "parallel.backend",
           "parallel.backend={} needs GPUs, but parallel.device is {}; use backend auto or mpi", backend,
           device);
}

/// Those that promise no bits want that said, and run where they can.
void check_strategy(const Job& job) {
  const ParallelSection& parallel = job.parallel;
  const std::string& name = parallel.strategy;
  if (find_strategy_kind(name).same_bits) return;
  if (parallel.determinism != Determinism::kOff)
    refuse(job, given_of(job, "parallel.determinism", "parallel.strategy"),
           "parallel.determinism: {} promises the same weights every time, which parallel.strategy {} cannot "
           "give; add "
           "parallel.determinism=off",
           spelt(parallel.determinism), name);
  const bool on_gpu = parallel.device.starts_with("cuda") || parallel.device == "emulated";
  if (on_gpu || backend_named(parallel.backend).needs_gpus)
    refuse(job, on_gpu ? "parallel.device" : "parallel.backend",
           "parallel.strategy {} trains on CPUs, in the memory of one host; use parallel.device=cpu and "
           "parallel.backend=mpi or thread",
           name);
}

/// Only exact sums are the same on every processor.
void check_replays(const Job& job) {
  if (job.parallel.replay_every_steps <= 0 || job.parallel.determinism != Determinism::kOff) return;
  refuse(
      job, given_of(job, "parallel.replay_every_steps", "parallel.determinism"),
      "parallel.replay_every_steps compares exact sums, which parallel.determinism=off has not; remove one "
      "of the two");
}

/// A sum of integers is exact, and no GPU kernel has it yet.
void check_precision(const Job& job) {
  if (job.train.precision == Precision::kFp32) return;
  const ParallelSection& parallel = job.parallel;
  const auto refuse_beside = [&](std::string_view key, std::string_view value, const char* instead) {
    refuse(job, given_of(job, key, "train.precision"), "{}: {} has no train.precision int16; use {}, or fp32",
           key, value, instead);
  };
  if (parallel.device.starts_with("cuda") || parallel.device == "emulated")
    refuse_beside("parallel.device", parallel.device, "parallel.device=cpu");
  if (backend_named(parallel.backend).needs_gpus)
    refuse_beside("parallel.backend", parallel.backend, "parallel.backend=mpi or thread");
  if (parallel.kernels == Kernels::kVendor)
    refuse_beside("parallel.kernels", "vendor", "parallel.kernels=native");
  if (parallel.determinism == Determinism::kOff)
    refuse_beside("parallel.determinism", "off", "parallel.determinism=world");
}

/// A pipeline's micro-batches are its grains, on CPUs and on GPUs.
void check_micro_batch(const Job& job) {
  if (job.data.micro_batch == 0 || find_strategy_kind(job.parallel.strategy).shares_batches) return;
  refuse(job, "data.micro_batch",
         "data.micro_batch: parallel.strategy {} computes grain by grain, so its micro-batches are those of "
         "parallel.grain: {}; remove data.micro_batch",
         job.parallel.strategy, job.parallel.grain);
}

void check_recompute(const Job& job) {
  if (job.train.recompute && job.parallel.strategy != "data")
    refuse(job, "train.recompute",
           "train.recompute: parallel.strategy {} keeps all activations; use parallel.strategy=data, or "
           "remove the key",
           job.parallel.strategy);
}

/// Refuses keys about each rank's samples where ranks have layers.
void check_shares(const Job& job) {
  const std::string& name = job.parallel.strategy;
  if (find_strategy_kind(name).shares_batches) return;
  constexpr const char* kMessage =
      "{}: the ranks of parallel.strategy {} have layers, not samples of their own; {}";
  if (job.data.per_rank_batch > 0)
    refuse(job, "data.per_rank_batch", kMessage, "data.per_rank_batch", name,
           "give data.global_batch instead");
  if (job.run.print_shapes) refuse(job, "run.print_shapes", kMessage, "run.print_shapes", name, "remove it");
}

void check_threads(const Job& job) {
  const ParallelSection& parallel = job.parallel;
  if (find_strategy_kind(parallel.strategy).one_thread && parallel.threads != 1)
    refuse(job, "parallel.threads",
           "parallel.threads: {}, but each rank of parallel.strategy {} computes with one; start more ranks, "
           "or leave "
           "it out",
           parallel.threads, parallel.strategy);
}

/// `resume: no` is YAML for "do not", not a directory of that name.
void check_resume(const Job& job) {
  for (const std::string_view word : {"no", "off", "false", "none", "yes", "on", "true"})
    if (job.run.resume == word)
      refuse(job, "run.resume", "run.resume: expected auto, never or a checkpoint directory, got '{}'", word);
}

void check_trace(const Job& job) {
  const TracedSteps& trace = job.run.trace;
  if (!trace.is_given()) return;
  if (trace.last < trace.first)
    refuse(job, "run.trace", "run.trace: {}..{} ends before it begins; write {}..{}", trace.first, trace.last,
           trace.last, trace.first);
  if (trace.count() > kMostTracedSteps)
    refuse(job, "run.trace", "run.trace: {}..{} are {}, and at most {} can be traced; write {}..{}",
           trace.first, trace.last, counted(trace.count(), "step"), with_thousands(kMostTracedSteps),
           trace.first, trace.first + kMostTracedSteps - 1);
}

void check_inject(const Job& job) {
  const InjectSection& inject = job.inject;
  if (!inject.is_given()) return;
  if (inject.what == kNoFault) {
    const auto names = fault_names();
    refuse(job, given_of(job, "inject.what", given_of(job, "inject.step", "inject.rank")),
           "inject needs what happens: inject.what, one of {}",
           fmt::join(names.begin() + 1, names.end(), ", "));
  }
  if (inject.step == 0)
    refuse(job, given_of(job, "inject.step", "inject.what"),
           "inject needs the step before which it happens: inject.step, counted from 1");
}

}  // namespace

void check_numbers_of_set(const Job& job, int channels, int classes) {
  const DataSection& data = job.data;
  for (const auto& [path, numbers] : {std::pair{"data.mean", &data.mean}, {"data.std", &data.std}}) {
    if (channels > 0 && numbers->size() > 1 && std::ssize(*numbers) != channels)
      refuse(job, path, "{}: {}, but the images of {} have {}; give one, or one for each", path,
             counted(numbers->size(), "number"), data.set, counted(channels, "channel"));
  }
  const auto given = std::ssize(job.train.class_weights.numbers);
  if (given > 0 && classes > 0 && given != classes)
    refuse(job, "train.class_weights",
           "train.class_weights: {} for the {} of {}; give one for each, in the order of the labels",
           counted(given, "number"), counted(classes, "class"), data.set);
}

void check_rates(const Job& job) {
  const double lr = scaled_lr(job.train.optimizer, job.data.global_batch);
  for (const auto check : {check_rate, check_groups, check_schedule}) check(job, lr);
}

void check_job(const Job& job) {
  for (const auto check :
       {check_model,   check_optimizer, check_warmup,        check_known_rates, check_clipping,
        check_root,    check_pictures,  check_balance,       check_window,      check_initial_scale,
        check_partial, check_averages,  check_class_weights, check_set,         check_mixed_labels,
        check_ranks,   check_backend,   check_strategy,      check_shares,      check_recompute,
        check_replays, check_precision, check_micro_batch,   check_threads,     check_resume,
        check_trace,   check_inject})
    check(job);
}

}  // namespace lockstep
