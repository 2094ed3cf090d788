// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Job files in and out: parse_job, load_job, to_yaml, schema_help.
#include "common/error.hpp"
#include "common/installed.hpp"
#include "common/text_layout.hpp"
#include "common/yaml.hpp"
#include "data/sets/catalogue.hpp"
#include "models/network.hpp"
#include "trainer/config/job.hpp"
#include "trainer/config/job_reader.hpp"
#include "trainer/config/job_schema.hpp"
#include "trainer/config/job_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace lockstep {

namespace {

/// The lines that open `section` when the sections that enclose `previous` are open.
std::string section_headers(std::string_view section, std::string_view previous) {
  std::string lines;
  std::size_t depth = 0;
  for (std::size_t end = 0; end != section.npos && !section.empty(); ++depth) {
    const std::size_t begin = end == 0 ? 0 : end + 1;
    end = section.find('.', begin);
    const std::string_view prefix = section.substr(0, end);
    const bool open =
        previous.starts_with(prefix) && (previous.size() == prefix.size() || previous[prefix.size()] == '.');
    if (!open) lines += fmt::format("{:{}}{}:\n", "", 2 * depth, section.substr(begin, end - begin));
  }
  return lines;
}

std::size_t depth_of(const JobKey& key) {
  return static_cast<std::size_t>(std::count(key.path.begin(), key.path.end(), '.'));
}

/// The file of a model that a job file names: beside that file if it is there, otherwise as written, which is
/// relative to the current directory.
std::string beside(const std::string& job_file, const std::string& model) {
  if (!is_model_path(model)) return model;
  const std::filesystem::path file = std::filesystem::path(job_file).parent_path() / model;
  std::error_code ignored;
  return std::filesystem::is_regular_file(file, ignored) ? file.string() : model;
}

/// The file that `lockstep train mnist` means: mnist.yaml here, or a job that comes with the program; "" if none.
std::string job_called(const std::string& name) {
  std::error_code ignored;
  for (const std::string& path : {name + ".yaml", name + ".yml", "launch/jobs/" + name + ".yaml"}) {
    if (std::filesystem::is_regular_file(path, ignored)) return path;
  }
  for (const auto& directory : shared_directories("jobs", LOCKSTEP_JOBS_SOURCE_DIR)) {
    const auto path = directory / (name + ".yaml");
    if (std::filesystem::is_regular_file(path, ignored)) return path.string();
  }
  return "";
}

std::string read_job_file(const std::string& path) {
  try {
    return read_yaml_file(path);
  } catch (const MissingDataError&) {
    const std::string meant = job_called(path);
    if (meant.empty()) throw;
    throw MissingDataError(fmt::format("{}: no such file (did you mean {}?)", path, meant));
  }
}

/// With what `auto` stands for where that is known without the data: so a run's job.yaml says it.
Job with_known_normalisation(Job job) {
  const SetEntry& set = find_set(job.data.set);
  if (job.data.mean.empty()) job.data.mean = set.mean;
  if (job.data.std.empty()) job.data.std = set.std;
  return job;
}

}  // namespace

std::string place_of(const Job& job, std::string_view key) {
  const auto place = job.places.find(std::string(key));
  return place == job.places.end() ? "" : place->second;
}

Job parse_job(const std::string& yaml, const std::string& file, const std::vector<std::string>& overrides) {
  JobReader reader;
  reader.read_file(yaml, file);
  for (const std::string& text : overrides) reader.read_override(text);
  reader.check();
  return with_known_normalisation(reader.job());
}

Job load_job(const std::string& path, const std::vector<std::string>& overrides) {
  JobReader reader;
  reader.read_file(read_job_file(path), path);
  const bool model_is_from_file = reader.gives("model");
  const std::string model = reader.job().model;
  for (const std::string& text : overrides) reader.read_override(text);
  reader.check();
  Job job = with_known_normalisation(reader.job());
  if (model_is_from_file && job.model == model) job.model = beside(path, model);
  return job;
}

ConfigError key_error(const Job& job, std::string_view key, std::string_view cause) {
  const auto place = job.places.find(key);
  return ConfigError(fmt::format("{}{}: {}", place == job.places.end() ? "" : place->second, key, cause));
}

std::string to_yaml(const Job& job) {
  std::string yaml;
  std::string_view section;
  for (const JobKey& key : job_schema()) {
    if (!belongs(key, job)) continue;
    yaml += section_headers(key.section(), section);
    section = key.section();
    yaml += fmt::format("{:{}}{}: {}\n", "", 2 * depth_of(key), key.leaf(), key.write(job));
  }
  return yaml;
}

std::string schema_help() {
  const Job defaults;
  std::size_t width = 0;
  for (const JobKey& key : job_schema()) width = std::max(width, key.path.size());
  std::string help;
  for (const JobKey& key : job_schema()) {
    const std::string value = key.path == "model" ? "(required)" : key.write(defaults);
    const std::string owners = owners_with_defaults(key);
    help += fmt::format("{:<{}}  {:<10}  {} ({}){}\n", key.path, width, value, key.meaning, key.expected,
                        owners.empty() ? "" : fmt::format(" [{}]", owners));
  }
  return help;
}

// Multiplies, and refuses a global batch that says something else; what a batch costs and a job promises about ranks,
// in words.

namespace {

constexpr std::int64_t kLargestBatch = 1'000'000'000;  // as in the schema

}  // namespace

Job for_ranks(Job job, int ranks) {
  DataSection& data = job.data;
  if (data.per_rank_batch == 0) return job;
  const std::int64_t wanted = data.per_rank_batch * ranks;
  const std::string product = fmt::format("{} with data.per_rank_batch {} {} {}", counted(ranks, "rank"),
                                          data.per_rank_batch, ranks == 1 ? "makes" : "make", wanted);
  if (wanted > kLargestBatch) {
    throw ConfigError(fmt::format("{}data.per_rank_batch: {}, and a global batch has {} samples at most",
                                  place_of(job, "data.per_rank_batch"), product, kLargestBatch));
  }
  if (job.places.contains("data.global_batch") && data.global_batch != wanted) {
    throw ConfigError(
        fmt::format("{}data.global_batch: {}, but {}; remove data.global_batch, or set data.per_rank_batch=0 "
                    "to have it count",
                    place_of(job, "data.global_batch"), data.global_batch, product));
  }
  data.global_batch = wanted;
  return job;
}

RestartRule restart_rule(const Job& job) {
  const StrategyKind& strategy = find_strategy_kind(job.parallel.strategy);
  return {.any_ranks = strategy.any_ranks && job.data.per_rank_batch == 0,
          .one_host = strategy.one_host,
          .same_weights = strategy.same_bits && job.parallel.determinism == Determinism::kWorld};
}

std::string restart_advice(const Job& job, int ranks) {
  const RestartRule rule = restart_rule(job);
  std::string text = "run the same command again: it goes on from the last checkpoint, on ";
  if (rule.any_ranks) {
    text += rule.one_host ? "any number of ranks of one host" : "any number of ranks";
  } else if (job.data.per_rank_batch > 0) {
    text += fmt::format("{} ranks as before (data.per_rank_batch)", ranks);
  } else {
    text += fmt::format("{} ranks as before, or as many as its stages come out on", ranks);
  }
  return text + (rule.same_weights ? "" : "; the weights will be others than without this loss");
}

std::vector<std::string> batch_remarks(const Job& job, std::int64_t train_samples, bool on_gpu) {
  constexpr std::int64_t kColumns = 16;  // that the CPU's kernels take at once
  std::vector<std::string> remarks;
  const std::int64_t asked = job.data.global_batch, batch = std::min(asked, train_samples);
  if (asked > train_samples) {
    const bool scales = job.train.optimizer.lr_scaling.rule != LrScalingSection().rule;
    remarks.push_back(fmt::format(
        "data.global_batch {} is more than the {} training samples: every step takes all of them{}",
        with_thousands(asked), with_thousands(train_samples),
        scales ? fmt::format("; the learning rate is scaled for {}", with_thousands(asked)) : ""));
  }
  const bool cut = job.parallel.grain <= batch;
  const std::int64_t samples = cut ? job.parallel.grain : batch;
  const std::int64_t padded = (samples + kColumns - 1) / kColumns * kColumns;
  if (!on_gpu && padded != samples) {
    remarks.push_back(
        fmt::format("{} of {} are padded to {}, a multiple of {}: {:.0f} % of the arithmetic is for nothing; "
                    "{}={} needs none",
                    cut ? "grains" : "batches", samples, padded, kColumns,
                    100 * static_cast<double>(padded - samples) / static_cast<double>(padded),
                    cut ? "parallel.grain" : "data.global_batch", padded));
  }
  return remarks;
}

// An option is taken for a key by its last part or by another name that it has.

namespace {

/// "--batch-size" → "batch_size"
std::string name_of(const std::string& option) {
  std::string name = option.substr(std::min(option.find_first_not_of('-'), option.size()));
  name.resize(std::min(name.find('='), name.size()));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

/// The key with this path, or else the first whose last part or other name it is.
const JobKey* key_called(const std::string& name) {
  if (const JobKey* exact = find_job_key(name)) return exact;
  for (const JobKey& key : job_schema()) {
    const auto& others = key.other_names;
    if (key.leaf() == name || std::find(others.begin(), others.end(), name) != others.end()) return &key;
  }
  return nullptr;
}

std::string value_of(const std::vector<std::string>& arguments, std::size_t option) {
  const std::string& text = arguments[option];
  if (const std::size_t equals = text.find('='); equals != text.npos) return text.substr(equals + 1);
  const bool has_next = option + 1 < arguments.size();
  const bool is_value = has_next && !arguments[option + 1].empty() && arguments[option + 1].front() != '-' &&
                        arguments[option + 1].find('=') == std::string::npos;
  return is_value ? arguments[option + 1] : "VALUE";
}

}  // namespace

std::optional<std::string> override_for_option(const std::vector<std::string>& arguments,
                                               const std::vector<std::string>& unknown) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].starts_with("-")) continue;
    if (std::find(unknown.begin(), unknown.end(), arguments[i]) == unknown.end()) continue;
    if (const JobKey* key = key_called(name_of(arguments[i])))
      return key->path + "=" + value_of(arguments, i);
  }
  return std::nullopt;
}

}  // namespace lockstep
