// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Reads job files and overrides: parse_job and load_job walk the YAML beside the schema.
#include "common/installed.hpp"
#include "common/yaml.hpp"
#include "data/sets/catalogue.hpp"
#include "data/sets/leave_out.hpp"
#include "models/network.hpp"
#include "trainer/config/job_schema.hpp"
#include "trainer/config/key_kinds.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <set>
#include <system_error>
#include <vector>

namespace lockstep {
namespace {

// Descriptions of a node for messages.

/// Hint to append to the message about a refused value.
std::string hint_for(const YAML::Node& node, const JobKey& key) {
  if (node.IsScalar()) return key.hint ? key.hint(node.Scalar()) : did_you_mean(node.Scalar(), key.choices);
  if (!node.IsSequence() || !key.hint) return "";
  for (const auto& entry : node)
    if (std::string hint = entry.IsScalar() ? key.hint(entry.Scalar()) : ""; !hint.empty()) return hint;
  return "";
}

/// " (did you mean train.optimizer.kind=adam?)" for a value of one of a section's keys that was given to the section.
std::string key_that_takes(const YAML::Node& node, std::string_view section) {
  if (!node.IsScalar()) return "";
  for (const JobKey& key : job_schema()) {
    if (key.section() == section && std::ranges::find(key.choices, node.Scalar()) != key.choices.end())
      return fmt::format(" (did you mean {}={}?)", key.path, node.Scalar());
  }
  return "";
}

// The value of an override.

/// True for YAML: nothing, a list, a map, or text in quotes. Anything else is taken literally.
bool is_yaml_value(std::string_view value) {
  static constexpr std::array<std::string_view, 5> kNull = {"", "~", "null", "Null", "NULL"};
  return std::ranges::find(kNull, value) != kNull.end() || value.find_first_of("[{\"'") == 0;
}

constexpr std::string_view kSpace = " \t\r\n";

bool is_space(char c) {
  return kSpace.find(c) != kSpace.npos;
}

/// True if a text in quotes begins there, at the start or after ": ". In lists and maps it may follow [ { , too. A
/// quote anywhere else is a character.
bool opens_text(std::string_view value, std::size_t quote) {
  const std::size_t before = quote == 0 ? value.npos : value.find_last_not_of(kSpace, quote - 1);
  if (before == value.npos) return true;
  const char last = value[before];
  if (last == ':' && before + 1 < quote) return true;
  if (value[0] != '[' && value[0] != '{') return false;
  return last == '[' || last == '{' || last == ',' || (last == ':' && value[before - 1] == '"');  // {"a":"b"}
}

/// True if YAML would drop a part: from a '#' at the start or after white space, outside of quotes.
bool has_comment(std::string_view value) {
  char quote = '\0';  // around the text that is being read
  for (std::size_t i = 0; i < value.size(); ++i) {
    const char c = value[i];
    if (quote != '\0') {
      const bool is_pair = (quote == '"' && c == '\\') || (quote == '\'' && value.substr(i, 2) == "''");
      if (c == quote && !is_pair) quote = '\0';
      if (is_pair) ++i;
    } else if ((c == '"' || c == '\'') && opens_text(value, i)) {
      quote = c;
    } else if (c == '#' && (i == 0 || is_space(value[i - 1]))) {
      return true;
    }
  }
  return false;
}

/// Refuses what YAML would drop: a comment, and white space at the ends.
YAML::Node load_yaml_value(const std::string& value, const std::string& source) {
  const bool padded = !value.empty() && (is_space(value.front()) || is_space(value.back()));
  if (padded || has_comment(value))
    throw ConfigError(
        fmt::format("{}: {}; remove it", source,
                    padded ? "white space at an end of the value" : "in YAML a comment begins with the '#'"));
  return load_strict_yaml(value, source);
}

/// Fills a job from a file and then from overrides, by the schema, and remembers where each value came from.
class JobReader {
 public:
  JobReader(const std::string& yaml, const std::string& file) : source_(file) {
    const auto stem = std::filesystem::path(file).stem().string();  // "mnist" of "launch/jobs/mnist.yaml"
    if (!stem.empty() && !stem.starts_with('.')) job_.name = stem;
    job_.places[""] = file + ": ";
    const YAML::Node root = load_strict_yaml(yaml, file);
    if (root.IsNull()) return;
    if (!root.IsMap()) fail(root.Mark(), "a job file is a map such as 'model: net'");
    if (const YAML::Node layers = root["layers"]; layers.IsDefined())
      fail(layers.Mark(),
           fmt::format("this file describes a network, not a job; a job names it: 'model: {}', or "
                       "'model={}' after another job file",
                       file, file));
    read_section(root, "");
  }

  void read_override(const std::string& text) {
    source_ = "override " + quoted_text(text);
    is_override_ = true;
    const std::size_t equals = text.find('=');
    if (equals == text.npos || equals == 0) fail({}, "expected key=value such as train.epochs=3");
    const std::string path = text.substr(0, equals), value = text.substr(equals + 1);
    const bool is_scalar = find_job_key(path) != nullptr && !is_yaml_value(value);
    read_node(is_scalar ? YAML::Node(value) : load_yaml_value(value, source_), path, YAML::Mark::null_mark());
  }

  /// Fills in the defaults of the chosen optimiser, schedule and so on. Then checks the conditions between
  /// keys.
  Job finish() {
    for (const JobKey& key : job_schema()) settle(key);
    check_job(job_);
    // Replace `auto` where the value is known without the data, so that a run's job.yaml has it.
    const SetEntry& set = find_set(job_.data.set);
    if (job_.data.mean.empty()) job_.data.mean = set.mean;
    if (job_.data.std.empty()) job_.data.std = set.std;
    return job_;
  }

  const Job& job() const { return job_; }
  bool overrides(const std::string& path) const { return overridden_.contains(path); }

 private:
  void read_section(const YAML::Node& node, const std::string& section) {
    for (const auto& entry : node) {
      const std::string& name = entry.first.Scalar();
      const YAML::Mark mark = entry.first.Mark();
      if (name.find('.') != name.npos)
        fail(mark, quoted_text(name) + " has a dot; nest keys instead: 'train: {epochs: 3}'");
      read_node(entry.second, section.empty() ? name : section + "." + name, mark);
    }
  }

  void read_node(const YAML::Node& node, const std::string& path, const YAML::Mark& key_mark) {
    if (const JobKey* key = find_job_key(path)) {
      read_value(node, *key, node.IsNull() ? key_mark : node.Mark());
    } else if (path.empty() || !is_job_section(path)) {
      fail(key_mark, unknown_key(path));
    } else if (node.IsMap()) {
      read_section(node, path);
    } else if (!node.IsNull() || is_override_) {
      fail(node.Mark(), fmt::format("{}: expected a map with some of {}, got {}{}", path,
                                    fmt::join(names_in_section(path), ", "), job_keys::shown(node),
                                    key_that_takes(node, path)));
    }
  }

  void read_value(const YAML::Node& node, const JobKey& key, const YAML::Mark& mark) {
    if (!key.read(node, job_)) {
      const FoundFault found = key.fault ? key.fault(node) : FoundFault();
      if (!found.text.empty())
        fail(found.place.is_null() ? mark : found.place, fmt::format("{}: {}", key.path, found.text));
      fail(mark, fmt::format("{}: expected {}, got {}{}", key.path, key.expected, job_keys::shown(node),
                             hint_for(node, key)));
    }
    job_.places[key.path] = config_error(source_, is_override_ ? YAML::Mark::null_mark() : mark, "").what();
    if (is_override_) overridden_.insert(key.path);
  }

  void settle(const JobKey& key) {
    if (!belongs(key, job_)) {
      if (!choice_path(key).empty()) settle_foreign(key);
      return;
    }
    const MemberKey* own = member_key(key, job_);
    if (own == nullptr || job_.gives(key.path)) return;
    if (own->required) {
      const JobKey& choice = *find_job_key(choice_path(key));
      fail_at(job_, choice.path,
              fmt::format("{} {} needs {}: {}; expected {}", choice.path, choice.write(job_), key.path,
                          key.meaning, key.expected));
    }
    if (!own->fallback.empty()) key.read(YAML::Load(std::string(own->fallback)), job_);
  }

  /// Refuses a key of another choice, unless the choice was overridden: then the file meant it for its own
  /// choice.
  void settle_foreign(const JobKey& key) {
    if (!job_.gives(key.path)) return;
    const JobKey& choice = *find_job_key(choice_path(key));
    if (!overridden_.contains(choice.path) || overridden_.contains(key.path))
      fail_at(job_, key.path,
              fmt::format("{} is for {} {}; remove it for {}", key.path, choice.leaf(), owners_text(key),
                          choice.write(job_)));
    key.read(YAML::Load(key.write(Job())), job_);
    job_.places.erase(key.path);
  }

  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& message) const {
    throw config_error(source_, is_override_ ? YAML::Mark::null_mark() : mark, message);
  }

  Job job_;
  std::string source_;  ///< for messages: the file, or the override
  bool is_override_ = false;
  std::set<std::string> overridden_;
};

// Search for job files and models.

bool is_file(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

/// "mnist" of "mnist.yaml" and "mnist.yml".
std::string without_ending(const std::string& word) {
  const std::filesystem::path path = word;
  return path.extension() == ".yaml" || path.extension() == ".yml" ? path.stem().string() : word;
}

/// " (did you mean 'mnist.yaml'?)": the YAML file in its folder whose name is nearest to that of `path`. ""
/// if none is near.
std::string near_file(const std::string& path) {
  const std::filesystem::path file = path, folder = file.has_parent_path() ? file.parent_path() : ".";
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    if (name != without_ending(name) && !find_unprintable(name)) names.push_back(name);
  }
  std::ranges::sort(names);
  return did_you_mean(file.filename().string(), names_of(names));
}

[[noreturn]] void fail_unknown_job(const std::string& word) {
  std::vector<std::string> names;
  for (const std::string& job : shipped_jobs()) names.push_back(std::filesystem::path(job).stem().string());
  throw MissingDataError(
      fmt::format("{}: no such file{}; jobs of the program: {}; after one, model=NAME and "
                  "data.set=NAME take others",
                  word, did_you_mean(without_ending(word), names_of(names)), fmt::join(names, ", ")));
}

/// Finds the job for `lockstep train mnist`: a file of that name, or else the job of the program. @throws
/// MissingDataError  mnist.yaml lies here, or there is nothing of that name
std::string find_job(const std::string& path) {
  if (path.empty() || is_file(path)) return path;
  for (const char* ending : {".yaml", ".yml"})
    if (is_file(path + ending))
      throw MissingDataError(fmt::format("{}: no such file (did you mean {}{}?)", path, path, ending));
  std::error_code ignored;
  const bool exists = std::filesystem::exists(path, ignored);
  const std::string near = exists || path == without_ending(path) ? "" : near_file(path);
  if (!near.empty()) throw MissingDataError(fmt::format("{}: no such file{}", path, near));
  if (path.find_first_of("/~") != path.npos) return path;
  for (const auto& directory : shared_directories("launch/jobs"))
    if (const auto file = directory / (path + ".yaml"); is_file(file)) return file.string();
  if (!exists) fail_unknown_job(path);
  return path;
}

/// The folder of a job file. Empty for ./mine.yaml, as for mine.yaml: a model beside it has one path.
std::filesystem::path folder_of(const std::string& job_file) {
  std::filesystem::path folder;
  for (const auto& part : std::filesystem::path(job_file).parent_path())
    if (part != ".") folder /= part;
  return folder;
}

/// Path of a model, data or list that a job file names: beside that file if it is there. Otherwise as
/// written, relative to the current directory.
std::string file_beside(const std::string& job_file, const std::string& name) {
  const std::filesystem::path file = folder_of(job_file) / name;
  return is_file(file) ? file.string() : name;
}

std::string data_beside(const std::string& job_file, const std::string& root) {
  if (root == "auto") return root;
  const std::filesystem::path directory = folder_of(job_file) / root;
  std::error_code error;  // one that cannot be examined is taken, so that the cause is told
  const auto status = std::filesystem::status(directory, error);
  const bool may_be_there = error && status.type() != std::filesystem::file_type::not_found;
  return may_be_there || std::filesystem::is_directory(status) ? directory.string() : root;
}

/// The folder of a run whose job.yaml this is; "": it is another job file. A run that was copied or moved has the folder
/// that it was begun in as its run.dir.
std::string run_of_job(const std::string& path, const std::string& yaml) {
  const std::filesystem::path file = path, folder = file.has_parent_path() ? file.parent_path() : ".";
  if (file.filename() != "job.yaml" || !yaml.starts_with("# job ")) return "";
  std::error_code ignored;
  const bool has_run =
      is_file(folder / "metrics.jsonl") || std::filesystem::is_directory(folder / "checkpoints", ignored);
  return has_run ? folder.string() : "";
}

}  // namespace

std::vector<std::string> shipped_jobs() {
  std::vector<std::string> jobs;
  std::error_code ignored;
  for (const auto& directory : shared_directories("launch/jobs")) {
    for (const auto& entry : std::filesystem::directory_iterator(directory, ignored))
      if (entry.path().extension() == ".yaml") jobs.push_back(entry.path().string());
    if (!jobs.empty()) break;
  }
  std::ranges::sort(jobs);
  return jobs;
}

Job parse_job(const std::string& yaml, const std::string& file, const std::vector<std::string>& overrides) {
  JobReader reader(yaml, file);
  for (const std::string& text : overrides) reader.read_override(text);
  return reader.finish();
}

Job load_job(const std::string& name, const std::vector<std::string>& overrides) {
  const std::string path = find_job(name), yaml = read_yaml_file(path);
  JobReader reader(yaml, path);
  const Job file = reader.job();
  for (const std::string& text : overrides) reader.read_override(text);
  Job job = reader.finish();
  const std::string run = run_of_job(path, yaml);
  std::error_code ignored;
  if (!run.empty() && !reader.overrides("run.dir") && !std::filesystem::equivalent(run, job.run.dir, ignored))
    job.run.dir = run;
  // Begun anew by a version that wrote it so: the file is of the run as it is now.
  if (!run.empty() && !reader.overrides("run.resume") && job.run.starts_anew()) job.run.resume = "auto";
  if (job.model == file.model && is_model_path(job.model)) job.model = file_beside(path, job.model);
  if (job.data.root == file.data.root) job.data.root = data_beside(path, job.data.root);
  if (job.data.leave_out_file.empty()) return job;
  if (job.data.leave_out_file == file.data.leave_out_file)
    job.data.leave_out_file = file_beside(path, job.data.leave_out_file);
  if (!is_file(job.data.leave_out_file))
    throw MissingDataError(
        fmt::format("{}data.leave_out: {}: no regular file of that name beside the job or in the current "
                    "directory; bring the list back, or remove the key",
                    place_of(job, "data.leave_out"), job.data.leave_out_file));
  job.data.leave_out_file = std::filesystem::absolute(job.data.leave_out_file).lexically_normal().string();
  job.data.leave_out = std::make_shared<const LeaveOutList>(read_leave_out(job.data.leave_out_file));
  return job;
}

}  // namespace lockstep
