// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Keys of a job file: all of them, those of each choice, and those that a resume compares. Also their
/// spelling in messages.
#pragma once

#include "common/error.hpp"
#include "trainer/config/job.hpp"
#include "trainer/config/job_key.hpp"
#include "trainer/training/optimizers/sections.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// Table of all keys of a job file. Parsing, messages, help, to_yaml and the resume check are made from
// it.

/// All keys in the order of the job file; the keys of a section are together.
const std::vector<JobKey>& job_schema();

/// The key with this path, or null.
const JobKey* find_job_key(std::string_view path);

/// Finds the key whose last part, or name in other programs, this is; null if none. Keys of `section` come
/// first, then last parts.
const JobKey* key_called(std::string_view name, std::string_view section = "");

/// True if `path` is a section: "train", "train.optimizer". "" is the whole job and counts.
bool is_job_section(std::string_view path);

/// The names of the keys and sections directly in a section, in order.
std::vector<std::string_view> names_in_section(std::string_view section);

// Keys that not every job has. They belong to the chosen optimiser, schedule, scaling rule or strategy, or to
// a deliberate fault.

/// True if the job's choice has this key, or if the key belongs to no choice. Keys of `inject` count only
/// where it is given.
bool belongs(const JobKey& key, const Job& job);

/// Description of this key by the job's choice, or null.
const MemberKey* member_key(const JobKey& key, const Job& job);

/// The path of the choice that the key depends on, "train.optimizer.kind"; "" if it depends on none.
std::string choice_path(const JobKey& key);

/// For people: which choices have the key, "sgd, adam"; "" for a key that belongs to no choice.
/// @param with_defaults  "sgd, adam: 0.001, adamw: 0.001": with those that are not the key's own
std::string owners_text(const JobKey& key, bool with_defaults = false);

/// The key as the choices that have it describe it, under their names. None for a key of no choice, or one that all of
/// them share.
std::vector<MemberKey> owners_of(const JobKey& key);

/// The names that a section's choice takes: of "train.optimizer", "train.optimizer.lr_scaling", "train.schedule" and
/// "parallel".
std::vector<std::string_view> choices_of(std::string_view section);

/// The keys that a job has, as one types them: "train.optimizer.lr" → "0.05"; a list is "[1, 2]".
std::map<std::string, std::string> texts_of_keys(const Job& job);

// Conditions between keys.

/// @throws ConfigError  with the place of the key that does not go with the others
void check_job(const Job& job);
/// Refuses rates and schedules that do not go together once lr_scaling has scaled them to the global batch. Part of
/// check_job() where the batch is known, and of for_ranks(), which makes it.
/// @throws ConfigError  as check_job
void check_rates(const Job& job);
/// Refuses numbers that are not one for each channel or class of the set. 0: not known yet.
/// @throws ConfigError  as check_job
void check_numbers_of_set(const Job& job, int channels, int classes);
/// Throws ConfigError that points to where the key was given, or only to the file where it was not.
[[noreturn]] void fail_at(const Job& job, std::string_view key, const std::string& message);

// Part of a job that determines its weights: it must not change when a run is resumed.

/// Keys and values that determine a run's weights at a given step. They are model, data order and scaling,
/// seed, optimiser, schedule, determinism, and under `determinism: world` the grain. Not how long it runs,
/// unless a schedule is as long as the run, and not where: epochs, max_steps, ranks, threads, device,
/// backend, buckets, directories and logging may change from one resume to the next.
std::map<std::string, std::string> determining_keys(const Job& job);

/// One entry for each key that differs or is only in one of the two: "train.seed (was 1, now 1234)".
std::vector<std::string> differing_keys(const std::map<std::string, std::string>& stored,
                                        const std::map<std::string, std::string>& now);

/// May a job go on from a checkpoint? Compares the determining keys as the checkpoint stored them and as the
/// job has them now. A key that is younger than the checkpoint had its default then.
/// @throws ConfigError naming `checkpoint` and every key that differs, with both values
void require_same_job(const std::map<std::string, std::string>& stored, const Job& job,
                      const std::string& checkpoint);

// Suggestions for unknown keys, and for --epochs 3, as other programs have it.

/// " (did you mean 'train.optimizer.lr'?)" for train.lr or learning_rate; "" where no key is near.
std::string key_hint(const std::string& path);

/// "unknown key 'trian' (did you mean 'train'?)" for a path that is neither a key nor a section.
std::string unknown_key(const std::string& path);

/// Suggests an override for the first unknown option that would be a key of a job file: "train.epochs=3". The
/// option is one of `arguments`, and among `unknown`. The value is the next argument or the text after '=';
/// VALUE if there is none.
std::optional<std::string> override_for_option(const std::vector<std::string>& arguments,
                                               const std::vector<std::string>& unknown);

// How keys are described to people: --help, `lockstep help KEY`, and the reference pages.

/// A line of what there is to know of a key: "default", "0.02".
struct KeyFact {
  std::string_view name;
  std::string text;
};
/// Facts about a key: accepted values, default, choices that read it, effect on a run, other names, an
/// example.
std::vector<KeyFact> facts_of(const JobKey& key);

/// A value that the key takes and that is not its default, as far as there is one.
std::string example_of(const JobKey& key);

/// Words that may follow "key=", for completion: choices, true and false, auto.
std::vector<std::string> value_words(const JobKey& key);
/// True if the value may be a path.
bool takes_path(const JobKey& key);

/// Keys that a question is about: those of a section, or of this name here or elsewhere.
std::vector<const JobKey*> keys_asked_for(const std::string& question);
/// Description of a key, in lines of at most so many columns.
std::string key_help(const JobKey& key, int columns);

// Advice from the rooms below, in the words of a job file.

/// Names of settings in advice: keys of a job file, which also work on the command line.
inline constexpr Spelling kJobSpelling{.global_batch = "data.global_batch",
                                       .per_rank_batch = "data.per_rank_batch",
                                       .grain = "parallel.grain",
                                       .sample_counts = "data.train_samples and data.test_samples",
                                       .device = "parallel.device=",
                                       .backend = "parallel.backend=",
                                       .kernels = "parallel.kernels=",
                                       .timeout = "parallel.timeout_seconds",
                                       .run_directory = "run.dir",
                                       .learning_rate = "train.optimizer.lr",
                                       .mean = "data.mean",
                                       .deviation = "data.std",
                                       .initial_weights = "train.initial_weights"};

/// Names of settings for commands that take options (trainer/commands/command_line.hpp) in place of a job
/// file. A setting without an option keeps the name of the run's key.
inline constexpr Spelling kOptionSpelling = [] {
  Spelling spelling = kJobSpelling;
  spelling.device = "--device ";
  spelling.kernels = "--kernels ";
  return spelling;
}();

}  // namespace lockstep
