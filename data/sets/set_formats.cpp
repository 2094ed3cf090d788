// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The table of formats, and what follows from the format of a set.
#include "data/sets/set_formats.hpp"

#include "common/error.hpp"
#include "common/machine.hpp"
#include "data/sets/set_files.hpp"
#include "data/sets/shards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace lockstep {

// The table of formats, but for the basic ones.

namespace {

constexpr SetFormat kFormats[] = {
    {.name = "cifar", .files = cifar_set_files, .load = load_cifar_set},
    {.name = "cifar-fine", .files = cifar_set_files, .load = load_cifar_set},
    {.name = "shards",
     .files = [](const SetEntry& /*set*/) { return std::vector<FileNames>{{kShardIndexFile}}; },
     .load = load_shard_set,
     .outline = outline_of_shard_set,
     .may_stay_on_disk = true},
    {.name = "pictures", .load = load_picture_set, .has_pictures = true, .may_stay_on_disk = true},
    {.name = "webdataset", .load = load_tar_set, .has_pictures = true, .may_stay_on_disk = true},
};

}  // namespace

const SetFormat& format_of(const SetEntry& set) {
  if (const SetFormat* basic = find_basic_format(set.format)) return *basic;
  const auto found = std::ranges::find(kFormats, set.format, &SetFormat::name);
  if (found != std::end(kFormats)) return *found;
  throw ConfigError(
      fmt::format("catalogue of data sets: '{}' has the unknown format '{}'", set.name, set.format));
}

// From the catalogue where a set is known by name; otherwise its format is asked.

SetOutline outline_of(const DatasetOptions& options) {
  const SetEntry& entry = find_set(options.set);
  if (entry.is_known_by_name())
    return {.shape = entry.shape,
            .classes = static_cast<int>(entry.class_names.size()),
            .train_samples = entry.train_samples,
            .test_samples = entry.test_samples,
            .is_fp32 = entry.is_fp32};
  const SetFormat& format = format_of(entry);
  const SetFiles files = format.find(entry, {resolve_data_root(options.set, options.root)});
  if (!format.has_pictures) return format.outline(entry, files, options);
  const TrainTestData data = format.load(entry, files, options);  // decodes a picture at most
  return {.shape = data.train.shape,
          .classes = data.train.classes,
          .train_samples = data.train.size(),
          .test_samples = data.test.size(),
          .validation_samples = data.validation.size(),
          .on_disk = true,
          .remarks = data.remarks};
}

// Answers that follow from the format of a set.

std::string resolve_data_root(const std::string& set, const std::string& root, const std::string& first) {
  const SetEntry& entry = find_set(set);
  const SetFormat& format = format_of(entry);
  if (format.is_made()) return "";
  std::vector<std::filesystem::path> places = candidate_places(entry, root);
  if (!first.empty()) places.insert(places.begin(), first);
  if (places.empty())
    throw DatasetOptionError(
        "root", fmt::format("set {} needs the directory that holds its files, such as my-data", set));
  return format.find(entry, places).directory.string();
}

std::string resolve_data_root(const DatasetOptions& before, const std::string& named) {
  return named.empty() ? resolve_data_root(before.set, before.root, before.directory)
                       : resolve_data_root(before.set, named);
}

bool has_pictures(const std::string& set) {
  return format_of(find_set(set)).has_pictures;
}

std::vector<std::string_view> made_sets() {
  std::vector<std::string_view> names;
  for (const SetEntry& set : catalogue())
    if (format_of(set).is_made()) names.push_back(set.name);
  return names;
}

bool loads_into_memory(const DatasetOptions& options) {
  const SetEntry& set = find_set(options.set);
  const SetFormat& format = format_of(set);
  if (options.in_memory || !format.may_stay_on_disk) return true;
  if (format.has_pictures) return false;
  return !format.outline(set, format.find(set, {options.directory}), options).on_disk;
}

TrainTestData load_dataset(const DatasetOptions& options) {
  const SetEntry& set = find_set(options.set);
  return load_set(set, format_of(set), options);
}

// The combinations of labels that there are, each once.

std::int32_t LabelSets::row_of(std::span<const std::uint32_t> labels) {
  std::string set(classes_, '\0');
  for (const std::uint32_t label : labels) set[label] = 1;
  const auto [row, is_new] = row_of_.try_emplace(set, static_cast<std::int32_t>(row_of_.size()));
  if (!is_new) return row->second;
  if (table_.size() + classes_ > looked_at_) {
    looked_at_ = std::max(2 * looked_at_, std::size_t{1} << 24);
    require_memory(2 * looked_at_, "the combinations of labels in " + what_, "use fewer classes or samples");
  }
  table_.insert(table_.end(), set.begin(), set.end());
  return row->second;
}

void LabelSets::give_to(TrainTestData& data) const {
  data.train.label_sets = data.test.label_sets = table_;
  if (data.validation.size() > 0) data.validation.label_sets = table_;
}

std::vector<std::uint32_t> labels_in(std::span<const std::uint8_t> row) {
  std::vector<std::uint32_t> labels;
  for (std::uint32_t c = 0; c < row.size(); ++c)
    if (row[c] != 0) labels.push_back(c);
  return labels;
}

}  // namespace lockstep
