// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Makes the record, writes it into manifests, and reads it.
#include "trainer/run/data_record.hpp"

#include "common/printable.hpp"
#include "common/yaml.hpp"
#include "data/batch_loader.hpp"
#include "data/pictures/picture.hpp"
#include "data/sets/class_names.hpp"
#include "data/sets/leave_out.hpp"
#include "data/sets/names.hpp"
#include "data/sets/table_columns.hpp"
#include "trainer/checkpoint/checkpoint.hpp"
#include "trainer/checkpoint/directory.hpp"
#include "trainer/config/job_schema.hpp"
#include "trainer/run/run_directory.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>

namespace lockstep {
namespace {

constexpr std::int64_t kImagesLookedAt = 1000;

void compare(const std::string& what, const std::string& then, const std::string& now,
             std::vector<std::string>& differences) {
  if (then == now) return;
  constexpr std::size_t kShownDigits = 16;
  differences.push_back(fmt::format("{} (sha256 {} then, {} now)", what, then.substr(0, kShownDigits),
                                    now.substr(0, kShownDigits)));
}

constexpr char kBetweenNames = '\n';  // no name holds it

/// @throws DataError  they are not fit to be shown
std::vector<std::string> split_names(std::string_view text, const std::string& checkpoint) {
  std::vector<std::string> names;
  for (bool more = !text.empty(); more;) {
    const auto end = text.find(kBetweenNames);
    names.emplace_back(text.substr(0, end));
    more = end != text.npos;
    if (more) text.remove_prefix(end + 1);
    if (const char* trouble = trouble_with_class_name(names.back()))
      throw DataError(fmt::format("{}: a name in the manifest's data.class_names {}", checkpoint, trouble));
  }
  return names;
}

/// A changed list of names is a changed set: its answers mean something else.
/// @param first  number of the first name
void compare_names(const char* of, const std::vector<std::string>& then, const std::vector<std::string>& now,
                   int first, std::vector<std::string>& differences) {
  if (then == now || then.size() != now.size()) return;
  const auto [was, is] = std::ranges::mismatch(then, now);
  differences.push_back(
      fmt::format("the name of {} {} ({} then, {} now)", of, was - then.begin() + first, *was, *is));
}

/// @param size  of the half in its file
void compare_half(const Fingerprint& then, std::int64_t samples, const Dataset& now, std::int64_t size,
                  const Fingerprint& is, std::vector<std::string>& differences) {
  if (samples != size)
    differences.push_back(fmt::format("the number of {} samples ({} then, {} now)", now.name, samples, size));
  compare(now.name + " samples", then.samples, is.samples, differences);
  compare(now.name + " labels", then.labels, is.labels, differences);
}

std::string known_set(const std::string& set, const std::string& checkpoint) {
  try {
    is_made_in_memory(set);
    return set;
  } catch (const ConfigError& error) {
    throw DataError(
        fmt::format("{}: the manifest's model.set is none of this program's: {}", checkpoint, error.what()));
  }
}

/// Refuses values that load_dataset would report as a mistake in a job file.
void require_possible(const DatasetOptions& options, const std::string& checkpoint) {
  bool normal =
      options.mean.size() == options.std.size() || options.mean.size() == 1 || options.std.size() == 1;
  for (const double mean : options.mean) normal = normal && std::isfinite(mean);
  for (const double std : options.std) normal = normal && std::isfinite(std) && std > 0;
  const std::int64_t most =
      is_made_in_memory(options.set) ? kMostMadeSamples : std::numeric_limits<std::int32_t>::max();
  const auto possible = [most](std::int64_t samples) { return samples >= 0 && samples <= most; };
  if (normal && possible(options.train_samples) && possible(options.test_samples)) return;
  throw DataError(
      fmt::format("{}: the manifest says mean {}, std {}, {} and {} samples, and no data set is like that",
                  checkpoint, fmt::join(options.mean, ", "), fmt::join(options.std, ", "),
                  options.train_samples, options.test_samples));
}

}  // namespace

bool has_light_background(const Job& job, const Dataset& train) {
  if (!train.has_images() || has_pictures(job.data.set)) return false;
  std::vector<std::int32_t> first(static_cast<std::size_t>(std::min(train.size(), kImagesLookedAt)));
  std::iota(first.begin(), first.end(), 0);
  const ImageRows rows(train, first);
  std::size_t light = 0;
  for (std::size_t i = 0; i < first.size(); ++i) light += has_light_border(rows[i], train.shape) ? 1U : 0U;
  return 2 * light > first.size();
}

std::map<std::string, std::string> describe_data(const Job& job, const TrainTestData& data,
                                                 const SetFingerprints& fingerprints, bool light_background) {
  std::map<std::string, std::string> entries = {{"set", job.data.set},
                                                {"train_samples", std::to_string(data.train_in_file())},
                                                {"test_samples", std::to_string(data.test_in_file())},
                                                {"train_samples_sha256", fingerprints.train.samples},
                                                {"train_labels_sha256", fingerprints.train.labels},
                                                {"test_samples_sha256", fingerprints.test.samples},
                                                {"test_labels_sha256", fingerprints.test.labels}};
  if (data.is_validated_by_files()) {
    entries["validation_samples"] = std::to_string(data.validation.size());
    entries["validation_samples_sha256"] = fingerprints.validation.samples;
    entries["validation_labels_sha256"] = fingerprints.validation.labels;
  }
  if (data.fit != PictureFit::kSqueeze) entries["fit"] = spelt(data.fit);
  if (has_pictures(job.data.set)) entries["pictures"] = "stored, upright";
  if (data.test.size() != data.test_in_file()) entries[kTestSubset] = std::to_string(data.test.size());
  if (data.train.has_images()) entries["background"] = light_background ? "light" : "dark";
  entries["class_names"] = fmt::format("{}", fmt::join(data.class_names, std::string(1, kBetweenNames)));
  if (!data.columns.empty()) entries["columns"] = data.columns;
  if (!job.data.leave_out_file.empty()) entries["leave_out"] = job.data.leave_out_file;
  if (!data.directory.empty())
    entries["directory"] = std::filesystem::absolute(data.directory).lexically_normal().string();
  return entries;
}

Job recorded_job(const CheckpointFacts& facts, const std::string& checkpoint) {
  Job job;
  const auto read = [&](const std::string& path, const std::map<std::string, std::string>& from,
                        const std::string& name, const char* section) {
    const auto value = from.find(name);
    if (value == from.end()) return;  // the run is older than the key, or on a set of another kind
    const JobKey& key = *find_job_key(path);
    try {
      if (key.read(load_strict_yaml(value->second, checkpoint), job)) return;
    } catch (const ConfigError&) {
      // is told below
    }
    throw DataError(fmt::format("{}: the manifest's {}.{} is '{}', not {}", checkpoint, section, name,
                                printable_line(value->second), key.expected));
  };
  for (const char* path : {"model", "train.loss", "parallel.grain", "data.train_samples", "data.validation",
                           "data.size", "data.fit", "data.colour", "data.label"})
    read(path, facts.job, path, "job");
  read("data.fit", facts.data, "fit", "data");
  return job;
}

DataRecord read_data_record(const CheckpointFacts& facts, const std::string& checkpoint) {
  const RecordedValues model(facts.model, checkpoint, "model"), data(facts.data, checkpoint, "data");
  const DataSection asked = recorded_job(facts, checkpoint).data;
  DataRecord record;
  record.fingerprints.train = {data.text("train_samples_sha256"), data.text("train_labels_sha256")};
  record.fingerprints.test = {data.text("test_samples_sha256"), data.text("test_labels_sha256")};
  record.fingerprints.validation = {data.text("validation_samples_sha256", ""),
                                    data.text("validation_labels_sha256", "")};
  record.validation_samples = data.number<std::int64_t>("validation_samples", 0);
  record.train_samples = data.number<std::int64_t>("train_samples");
  record.test_samples = data.number<std::int64_t>("test_samples");
  record.light_background = data.text("background", "dark") == "light";
  DatasetOptions& options = record.options;
  options.set = known_set(model.text("set"), checkpoint);
  options.directory = data.text("directory", "");
  options.mean = model.numbers("mean");
  options.std = model.numbers("std");
  record.class_names = split_names(data.text("class_names"), checkpoint);
  record.columns = options.columns = data.text("columns", "");
  record.leave_out = data.text("leave_out", "");
  record.leave_out_contents = RecordedValues(facts.job, checkpoint, "job").text("data.leave_out", "");
  options.seed = facts.seed;
  options.validation = asked.validation;
  options.pictures = asked.pictures;
  options.label = asked.label;
  if (is_made_in_memory(options.set)) {
    options.train_samples = record.train_samples;
    options.test_samples = record.test_samples;
  } else {
    options.train_samples = asked.train_samples;
    options.test_samples = data.number<std::int64_t>(kTestSubset, 0);
  }
  require_possible(options, checkpoint);
  return record;
}

std::shared_ptr<const LeaveOutList> recorded_leave_out(const DataRecord& record,
                                                       const std::string& checkpoint) {
  if (record.leave_out.empty()) return nullptr;
  auto list = std::make_shared<const LeaveOutList>(read_leave_out(record.leave_out));
  if (list->contents() == record.leave_out_contents) return list;
  throw DataError(
      fmt::format("{}: names other samples than the list that {} was trained without "
                  "(data.leave_out: {} then, {} now); bring it back as it was",
                  record.leave_out, checkpoint, record.leave_out_contents, list->contents()));
}

std::vector<std::string> data_differences(const DataRecord& record, const TrainTestData& now,
                                          const SetFingerprints& fingerprints) {
  std::vector<std::string> differences;
  if (const auto classes = static_cast<int>(record.class_names.size());
      classes != 0 && classes != now.train.classes)
    differences.push_back(fmt::format("the number of classes ({} then, {} now)", classes, now.train.classes));
  // A set without names of classes may be given some. So may one that was converted without those of columns.
  if (!are_only_numbers(record.class_names))
    compare_names("class", record.class_names, now.class_names, 0, differences);
  if (!record.columns.empty() && !now.columns.empty())
    compare_names("column", names_of_numbers(parse_table_columns(record.columns, "the manifest")),
                  names_of_numbers(parse_table_columns(now.columns, "the set")), 1, differences);
  compare_half(record.fingerprints.train, record.train_samples, now.train, now.train_in_file(),
               fingerprints.train, differences);
  compare_half(record.fingerprints.test, record.test_samples, now.test, now.test_in_file(), fingerprints.test,
               differences);
  if (record.validation_samples > 0 && now.is_validated_by_files())
    compare_half(record.fingerprints.validation, record.validation_samples, now.validation,
                 now.validation.size(), fingerprints.validation, differences);
  return differences;
}

std::string names_taken(const CheckpointFacts& facts, const TrainTestData& now) {
  const auto then = read_data_record(facts, fmt::format("the checkpoint of step {}", facts.step)).class_names;
  if (!are_only_numbers(then) || then == now.class_names) return "";
  return fmt::format("its classes had no names, and have those of {} from here on: {}", now.origin,
                     first_names(now.class_names));
}

void require_same_data(const CheckpointFacts& facts, const Job& job, const TrainTestData& now,
                       const SetFingerprints& fingerprints) {
  const std::string checkpoint = fmt::format("the checkpoint of step {}", facts.step);
  DataRecord record = read_data_record(facts, checkpoint);
  const bool other_size_asked_for = is_made_in_memory(job.data.set) && record.test_samples != now.test.size();
  if (other_size_asked_for) {  // sets in files: the whole half is compared, whatever part is asked for
    record.fingerprints.test = fingerprints.test;
    record.test_samples = now.test.size();
  }
  const auto differences = data_differences(record, now, fingerprints);
  if (differences.empty()) return;
  const std::string& directory = record.options.directory;
  throw DataError(
      fmt::format("{} was trained on other data than these ({}): {}. Its own were {}: bring them back, or "
                  "name their place with data.root; or start afresh with run.resume=never or another run.dir",
                  checkpoint, now.origin, fmt::join(differences, ", "),
                  directory.empty() ? "made in memory" : "in " + directory));
}

std::string recorded_directory(const Job& job) noexcept {
  try {
    if (job.run.starts_anew() || is_made_in_memory(job.data.set)) return "";
    if (job.run.takes_newest() && job.run.dir == kChosenDirectory) return "";  // not known yet
    Env& env = Env::posix();
    const bool automatic = job.run.takes_newest();
    const std::string named = automatic ? job.run.dir : named_checkpoint(env, job.run.resume);
    const auto checkpoints = list_checkpoints(env, named);
    if (automatic && checkpoints.empty()) return "";
    const std::string path = checkpoints.empty() ? named : checkpoints.front().path;
    return read_data_record(load_manifest(env, path).facts, path).options.directory;
  } catch (const std::exception&) {
    return "";
  }
}

}  // namespace lockstep
