// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From a set in any format to one in shards.
#include "common/error.hpp"
#include "data/dataset.hpp"
#include "data/sets/catalogue.hpp"
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
  if (data.train.has_label_sets()) refuse("has several labels a sample, and shards hold one");
}

/// @param add  takes image, label and the picture that it was made of
template <typename Add>
void add_half(const Dataset& half, const SampleNames& names, const Add& add) {
  for (std::int32_t i = 0; i < half.size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const ImageRows rows(half, {&i, 1});
    add(rows[0], static_cast<std::uint32_t>(half.labels[at]),
        names.names.empty() ? fs::path() : fs::path(names.names[at]));
  }
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
                           const ShardWriter::Options& options) {
  const TrainTestData data = load_dataset(set);
  require_convertible(set, data);
  const auto names_of = [&](bool is_test, const Dataset& half) {
    return data.directory.empty()
               ? SampleNames{}
               : read_sample_names(env, sample_names_in(data.directory, is_test), half.size());
  };
  ShardWriter writer(env, directory, data.train.shape, data.class_names, options);
  add_half(data.train, names_of(false, data.train),
           [&](const auto&... sample) { writer.add_train(sample...); });
  add_half(data.test, names_of(true, data.test), [&](const auto&... sample) { writer.add_test(sample...); });
  writer.publish();
  return writer.index();
}

}  // namespace lockstep
