// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sentences about jobs: to_yaml, the meaning of batches and ranks, and guesses at unknown keys.
#include "common/error.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "common/yaml.hpp"
#include "kernels/cpu/ops.hpp"
#include "trainer/config/job.hpp"
#include "trainer/config/job_schema.hpp"
#include "trainer/config/job_values.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

std::string place_of(const Job& job, std::string_view key) {
  const auto place = job.places.find(key);
  return place == job.places.end() ? "" : place->second;
}

void fail_at(const Job& job, std::string_view key, const std::string& message) {
  throw ConfigError(place_of(job, job.gives(key) ? key : "") + message);
}

ConfigError key_error(const Job& job, std::string_view key, std::string_view cause) {
  return ConfigError(fmt::format("{}{}: {}", place_of(job, key), key, cause));
}

namespace {

/// With a point before each exponent, without which YAML 1.1 readers (PyYAML) take a number for text: 1.0e-05.
std::string with_points(std::string_view value) {
  enum { kStart, kDigits, kOther } scalar = kStart;  // the part read so far
  bool quoted = false;
  std::string text;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const char c = value[i];
    if (c == '"') quoted = !quoted;
    if (c == 'e' && scalar == kDigits && !quoted) text += ".0";
    text += c;
    if (c == '\\') text += value[++i];  // only in quotes, and never last
    if (std::string_view(" ,:[]{}").find(c) != std::string_view::npos) {
      scalar = kStart;
    } else if (c >= '0' && c <= '9' && scalar != kOther) {
      scalar = kDigits;
    } else if (c != '-' || scalar != kStart) {
      scalar = kOther;
    }
  }
  return text;
}

/// Refuses paths that no job file can give. Those made of its own name or folder may have any bytes.
void require_readable(const Job& job, const JobKey& key, const std::string& value) {
  const auto bad = find_unprintable(value);
  if (!bad && value.find_first_of("\r\n\t") == value.npos) return;
  throw key_error(job, key.path,
                  fmt::format("{} has {}, and a job.yaml with it could not be read again; choose other names",
                              printable_line(value), bad ? bad->cause : "a line break or a tab"));
}

}  // namespace

std::string to_yaml(const Job& job) {
  std::string yaml, before;
  for (const JobKey& key : job_schema()) {
    if (!belongs(key, job)) continue;
    std::size_t depth = 0, begin = 0;
    for (std::size_t dot = key.path.find('.'); dot != key.path.npos; dot = key.path.find('.', begin)) {
      const bool is_open = before.starts_with(key.path.substr(0, dot + 1));
      if (!is_open) yaml += fmt::format("{:{}}{}:\n", "", 2 * depth, key.path.substr(begin, dot - begin));
      begin = dot + 1;
      ++depth;
    }
    const std::string value = key.write(job);
    require_readable(job, key, value);
    yaml += fmt::format("{:{}}{}: {}\n", "", 2 * depth, key.leaf(), with_points(value));
    before = key.path;
  }
  return yaml;
}

namespace {

/// In lists and maps, text is quoted only where it could be taken for several.
std::string with_few_quotes(const YAML::Node& node, bool inside = false) {
  if (node.IsScalar()) {
    const bool is_one = !inside || node.Scalar().find_first_of(",:[]{}\"") == std::string::npos;
    return is_one ? node.Scalar() : format_yaml_text(node.Scalar());
  }
  std::vector<std::string> items;
  for (const auto& entry : node)
    items.push_back(node.IsSequence() ? with_few_quotes(entry, true)
                                      : fmt::format("{}: {}", with_few_quotes(entry.first, true),
                                                    with_few_quotes(entry.second, true)));
  return fmt::format("{1}{0}{2}", fmt::join(items, ", "), node.IsSequence() ? '[' : '{',
                     node.IsSequence() ? ']' : '}');
}

}  // namespace

std::map<std::string, std::string> texts_of_keys(const Job& job) {
  std::map<std::string, std::string> texts;
  for (const JobKey& key : job_schema()) {
    if (!belongs(key, job)) continue;
    const std::string text = with_points(key.write(job));
    texts[key.path] = text.find('"') == text.npos ? text : with_few_quotes(YAML::Load(text));
  }
  return texts;
}

// Batch arithmetic: multiplies, and refuses a global batch that says something else. Describes a batch's cost
// and the promise about ranks.

Job for_ranks(Job job, int ranks) {
  DataSection& data = job.data;
  if (data.per_rank_batch == 0) return job;
  const std::int64_t wanted = data.per_rank_batch * ranks;
  const std::string product = fmt::format("{} with data.per_rank_batch {} {} {}", counted(ranks, "rank"),
                                          data.per_rank_batch, ranks == 1 ? "makes" : "make", wanted);
  if (wanted > DataSection::kLargestBatch)
    throw ConfigError(fmt::format("{}data.per_rank_batch: {}, and a global batch has {} samples at most",
                                  place_of(job, "data.per_rank_batch"), product, DataSection::kLargestBatch));
  if (job.gives("data.global_batch") && data.global_batch != wanted)
    throw ConfigError(
        fmt::format("{}data.global_batch: {}, but {}; remove data.global_batch, or set data.per_rank_batch=0 "
                    "to have it count",
                    place_of(job, "data.global_batch"), data.global_batch, product));
  data.global_batch = wanted;
  check_rates(job);
  return job;
}

RestartRule restart_rule(const Job& job) {
  const StrategyKind& strategy = find_strategy_kind(job.parallel.strategy);
  return {.any_ranks = strategy.any_ranks && job.data.per_rank_batch == 0,
          .one_host = strategy.one_host,
          .same_weights = strategy.same_bits && job.parallel.determinism == Determinism::kWorld};
}

std::string train_command(const std::string& run_dir) {
  return "lockstep train " + shell_word(run_dir + "/job.yaml");
}

std::string way_to_go_on(const Job& job) {
  return job.run.takes_newest() ? "the same command" : train_command(job.run.dir);
}

std::string restart_advice(const Job& job, int ranks) {
  const RestartRule rule = restart_rule(job);
  std::string text = fmt::format("run {}{}: it goes on from the last checkpoint, on ", way_to_go_on(job),
                                 job.run.takes_newest() ? " again" : "");
  if (rule.any_ranks) {
    text += rule.one_host ? "any number of ranks of one host" : "any number of ranks";
  } else if (job.data.per_rank_batch > 0) {
    text += counted(ranks, "rank") + " as before (data.per_rank_batch)";
  } else {
    text += counted(ranks, "rank") + " as before, or as many as its stages come out on";
  }
  return text + (rule.same_weights ? "" : "; the weights will be others than without this loss");
}

std::vector<std::string> batch_remarks(const Job& job, std::int64_t train_samples, bool on_gpu) {
  constexpr std::int64_t kColumns = cpu::kLanes;
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
  // A larger grain, or a larger batch in one grain, as far as there are samples for it.
  const bool is_cured = padded <= (cut ? batch : std::min<std::int64_t>(job.parallel.grain, train_samples));
  const double wasted = 100 * static_cast<double>(padded - samples) / static_cast<double>(padded);
  if (!on_gpu && padded != samples)
    remarks.push_back(fmt::format(
        "{} of {} are padded to {}, a multiple of {}: {} % of the arithmetic is for nothing{}",
        cut ? "grains" : "batches", samples, padded, kColumns,
        wasted < 1 ? fmt::format("{:.2g}", wasted) : fmt::format("{:.0f}", wasted),
        is_cured ? fmt::format("; {}={} needs none", cut ? "parallel.grain" : "data.global_batch", padded)
                 : ""));
  const std::int64_t bound = job.data.micro_batch,
                     at_a_time = samples_at_a_time(bound, job.parallel.grain, batch);
  if (on_gpu && bound > 0 && at_a_time < batch && at_a_time != bound)
    remarks.push_back(
        fmt::format("data.micro_batch {}: {} samples are computed at a time, in whole grains of {}", bound,
                    at_a_time, job.parallel.grain));
  return remarks;
}

// An option is taken for a key by its last part or by another name that it has.

namespace {

/// Names in other programs whose value is no value of the key: of another unit, or the contrary.
constexpr std::array<std::string_view, 4> kNotTheSameValue = {"bucket_cap_mb", "no_bias_decay",
                                                              "requires_grad", "trainable"};

/// "--batch-size" → "batch_size"
std::string name_of(const std::string& option) {
  std::string name = option.substr(std::min(option.find_first_not_of('-'), option.size()));
  name.resize(std::min(name.find('='), name.size()));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
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
    if (!arguments[i].starts_with("-") || std::ranges::find(unknown, arguments[i]) == unknown.end()) continue;
    const std::string name = name_of(arguments[i]);
    const JobKey* exact = find_job_key(name);
    const bool has_value = std::ranges::find(kNotTheSameValue, name) == kNotTheSameValue.end();
    if (const JobKey* key = exact != nullptr ? exact : key_called(name))
      return key->path + "=" + (has_value ? value_of(arguments, i) : "VALUE");
  }
  return std::nullopt;
}

// Suggestions for an unknown key.

namespace {

/// The section that unknown path lies in, as far as it exists, and the name that is unknown there.
std::pair<std::string_view, std::string_view> split_unknown(std::string_view path) {
  std::size_t begin = 0;
  for (std::size_t dot = path.find('.'); dot != path.npos; dot = path.find('.', begin)) {
    if (!is_job_section(path.substr(0, dot))) break;
    begin = dot + 1;
  }
  return {path.substr(0, begin == 0 ? 0 : begin - 1), path.substr(begin)};
}

/// A section of a section that is called nearly so.
std::string section_elsewhere(const std::string& name) {
  for (const JobKey& key : job_schema()) {
    const std::string_view section = key.section();
    const std::size_t dot = section.rfind('.');
    if (dot == section.npos) continue;
    const std::string_view leaf = section.substr(dot + 1);
    if (!did_you_mean(name, std::span(&leaf, 1)).empty())
      return fmt::format(" (did you mean '{}'?)", section);
  }
  return "";
}

}  // namespace

std::string key_hint(const std::string& path) {
  const auto [section, name] = split_unknown(path);
  if (const JobKey* called = key_called(name, section))
    return fmt::format(" (did you mean '{}'?)", called->path);
  return did_you_mean(path, names_of(job_schema(), &JobKey::path));
}

std::string unknown_key(const std::string& path) {
  const auto [section, name] = split_unknown(path);
  const std::vector<std::string_view> known = names_in_section(section);
  const bool is_dotted = name.find('.') != name.npos;  // a long section would make any such name look near
  const JobKey* called = key_called(name, section);
  const bool is_called_here = called != nullptr && called->section() == section;
  std::string hint = is_called_here ? "" : did_you_mean(std::string(name), known);
  if (called != nullptr && hint.empty()) hint = fmt::format(" (did you mean '{}'?)", called->path);
  if (hint.empty() && !is_dotted) hint = section_elsewhere(std::string(name));
  if (hint.empty() && is_dotted) hint = key_hint(path);
  if (hint.empty()) hint = fmt::format("; known: {}", fmt::join(known, ", "));
  return fmt::format("unknown key {}{}{}", quoted_text(name),
                     section.empty() ? "" : fmt::format(" in '{}'", section), hint);
}

}  // namespace lockstep
