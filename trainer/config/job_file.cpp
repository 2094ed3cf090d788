// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Job files in and out: parse_job, load_job, to_yaml, schema_help.
#include "common/files/shared_files.hpp"
#include "common/yaml/strict_yaml.hpp"
#include "data/catalogue.hpp"
#include "models/find_model.hpp"
#include "trainer/config/job.hpp"
#include "trainer/config/job_reader.hpp"
#include "trainer/config/job_schema.hpp"
#include "trainer/config/key_families.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

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

}  // namespace lockstep
