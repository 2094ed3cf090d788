// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From a set in any format to one in shards.
#include "common/error.hpp"
#include "data/dataset.hpp"
#include "data/sets/catalogue.hpp"
#include "data/sets/label_sets.hpp"
#include "data/sets/sample_names.hpp"
#include "data/sets/set_formats.hpp"
#include "data/sets/shards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

void require_convertible(const DatasetOptions& options, const TrainTestData& data) {
  const auto refuse = [&](const char* cause) {
    throw UsageError(fmt::format("{}: {}; train on it as it is", options.set, cause));
  };
  if (!data.train.has_images()) refuse("has features, and shards hold images");
}

void add_half(const Dataset& half, SetHalf to, const SampleNames& names, ShardWriter& writer) {
  for (std::int32_t i = 0; i < half.size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const ImageRows rows(half, {&i, 1});
    const auto labels = half.has_label_sets() ? labels_in(half.label_set_of(i))
                                              : std::vector{static_cast<std::uint32_t>(half.labels[at])};
    writer.add(to, rows[0], labels, names.names.empty() ? fs::path() : fs::path(names.names[at]));
  }
}

/// With its validation half, if it has one.
TrainTestData load_whole(DatasetOptions options) {
  TrainTestData data = load_dataset(options);
  if (!data.has_validation_half) return data;
  options.validation = {.is_files = true};
  return load_dataset(options);
}

}  // namespace

std::optional<DatasetOptions> find_whole_set(const std::string& name_or_directory) {
  std::error_code ignored;
  if (!fs::is_directory(name_or_directory, ignored)) {
    const auto names = set_names();
    if (std::ranges::find(names, name_or_directory) == names.end()) return std::nullopt;
    return DatasetOptions{.set = name_or_directory};
  }
  for (const SetEntry& set : catalogue()) {
    if (set.is_known_by_name() || format_of(set).has_pictures) continue;
    try {
      resolve_data_root(set.name, name_or_directory);
      return DatasetOptions{.set = set.name, .root = name_or_directory};
    } catch (const MissingDataError&) {  // NOLINT(bugprone-empty-catch): the next format's files may be there
    }
  }
  return std::nullopt;
}

ShardIndex write_in_shards(Env& env, const DatasetOptions& set, const std::string& directory,
                           ShardWriter::Options options) {
  TrainTestData data = load_whole(set);
  require_convertible(set, data);
  options.has_label_sets = data.train.has_label_sets();
  options.fit = data.fit;
  ShardWriter writer(env, directory, data.train.shape, data.class_names, options);
  for (const SetHalf half : {SetHalf::kTrain, SetHalf::kTest, SetHalf::kValidation}) {
    const auto names = data.directory.empty() ? SampleNames{}
                                              : read_sample_names(env, sample_names_in(data.directory, half),
                                                                  data.half(half).size());
    add_half(data.half(half), half, names, writer);
  }
  writer.publish();
  return writer.index();
}

}  // namespace lockstep
