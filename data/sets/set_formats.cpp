// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From the name of a data set to the set: the table of formats, and loading.
#include "data/sets/set_formats.hpp"

#include "common/error.hpp"
#include "common/machine.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "data/sets/made_sets.hpp"
#include "data/sets/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace lockstep {

// The table of formats.

namespace {

constexpr SetFormat kFormats[] = {
    {.name = "idx", .files = idx_set_files, .load = load_idx_set, .outline = outline_of_idx_set},
    {.name = "cifar", .files = cifar_set_files, .load = load_cifar_set},
    {.name = "cifar-fine", .files = cifar_set_files, .load = load_cifar_fine_set},
    {.name = "shards",
     .files = shard_set_files,
     .load = load_shard_set,
     .outline = outline_of_shard_set,
     .may_stay_on_disk = true},
    {.name = "pictures",
     .files = picture_set_files,
     .load = load_picture_set,
     .outline = outline_of_picture_set,
     .has_pictures = true,
     .may_stay_on_disk = true},
    {.name = "webdataset",
     .files = tar_set_files,
     .load = load_tar_set,
     .outline = outline_of_tar_set,
     .has_pictures = true,
     .may_stay_on_disk = true},
    {.name = "random", .make = make_random_set},
    {.name = "drawn", .make = make_synthetic_set},
};

}  // namespace

const SetFormat& format_of(const SetEntry& set) {
  for (const SetFormat& format : kFormats) {
    if (format.name == set.format) return format;
  }
  throw ConfigError(
      fmt::format("catalogue of data sets: '{}' has the unknown format '{}'", set.name, set.format));
}

// From the catalogue where a set is known by name; otherwise its format is asked.

SetOutline outline_of(const DatasetOptions& options) {
  const SetEntry& entry = find_set(options.set);
  if (entry.is_known_by_name()) {
    return {.shape = entry.shape,
            .classes = static_cast<int>(entry.class_names.size()),
            .train_samples = entry.train_samples,
            .test_samples = entry.test_samples,
            .is_fp32 = entry.is_fp32};
  }
  const SetFormat& format = format_of(entry);
  const std::string directory = resolve_data_root(options.set, options.root);
  return format.outline(entry, find_set_files(entry, format.files(entry), {directory}), options);
}

// From the name of a data set to the set.

namespace {

constexpr std::int64_t kMostIndices = std::numeric_limits<std::int32_t>::max();

void check_samples(const char* key, std::int64_t samples, bool is_made) {
  if (samples < 0 || (is_made && samples > kMostMadeSamples))
    throw DatasetOptionError(
        key, fmt::format("{} is not in 0..{} (0: {})", samples, is_made ? kMostMadeSamples : kMostIndices,
                         is_made ? "the set's default" : "all"));
}

void check_options(const DatasetOptions& options, bool is_made) {
  check_samples("train_samples", options.train_samples, is_made);
  check_samples("test_samples", options.test_samples, is_made);
  for (const double mean : options.mean)
    if (!std::isfinite(mean))
      throw DatasetOptionError("mean", fmt::format("{} is not a finite number", mean));
  for (const double std : options.std)
    if (!std::isfinite(std) || std <= 0)
      throw DatasetOptionError("std", fmt::format("{} is not a number above 0", std));
}

/// The numbers of the job, of the set, or measured: the first of them that there are.
const std::vector<double>& first_given(const char* key, const std::vector<double>& of_job,
                                       const std::vector<double>& of_set, const std::vector<double>& measured,
                                       const ImageShape& shape) {
  if (of_job.empty()) return of_set.empty() ? measured : of_set;
  if (of_job.size() == 1 || of_job.size() == static_cast<std::size_t>(shape.channels)) return of_job;
  throw DatasetOptionError(
      key, fmt::format("{} for images with {}; give one, or one for each", counted(of_job.size(), "number"),
                       counted(shape.channels, "channel")));
}

void normalise(TrainTestData& data, const DatasetOptions& options, const SetEntry& set) {
  const ImageShape& shape = data.train.shape;
  const bool measures =
      (options.mean.empty() && set.mean.empty()) || (options.std.empty() && set.std.empty());
  const Normalisation measured = measures ? measure(data.train) : Normalisation{};
  data.normalisation = {.mean = first_given("mean", options.mean, set.mean, measured.mean, shape),
                        .std = first_given("std", options.std, set.std, measured.std, shape)};
  for (Dataset* part : {&data.train, &data.test, &data.validation}) {
    part->of_rows = data.normalisation;
    if (data.train.has_images())
      part->scales = scales_of(data.normalisation, shape.channels);
    else if (part->rows == nullptr)
      normalise_features(part->features.span(), shape, data.normalisation, data.origin);
  }
}

/// Reads into memory what could stay on disk.
void take_into_memory(Dataset& set) {
  const auto size = static_cast<std::size_t>(set.shape.features());
  const auto samples = static_cast<std::size_t>(set.size());
  require_memory(checked_product(samples, size), "the images of " + set.name + " in memory",
                 "leave them on disk: data.in_memory=false");
  AlignedBuffer<std::uint8_t> images(samples * size);
  std::vector<std::int32_t> indices;
  for (std::size_t first = 0; first < samples; first += indices.size()) {
    constexpr std::size_t kAtOnce = 1024;
    indices.resize(std::min(kAtOnce, samples - first));
    std::iota(indices.begin(), indices.end(), static_cast<std::int32_t>(first));
    const ImageRows rows(set, indices);
    std::copy_n(rows.data()[0], indices.size() * size, images.data() + first * size);
  }
  set.images = std::move(images);
  set.store.reset();
}

TrainTestData load_files(const SetEntry& set, const SetFormat& format, const DatasetOptions& options) {
  const auto places = options.directory.empty() ? candidate_places(set, options.root)
                                                : std::vector<std::filesystem::path>{options.directory};
  const SetFiles files = find_set_files(set, format.files(set), places);
  TrainTestData data = format.load(set, files, options);
  data.directory = files.directory.string();
  data.origin = data.directory;
  if (!set.is_known_by_name() && !format.has_pictures) data.fit = read_fit(Env::posix(), files.directory);
  return data;
}

TrainTestData make_in_memory(const SetEntry& set, const SetFormat& format, const DatasetOptions& options) {
  TrainTestData data = format.make(options);
  data.origin = "made in memory";
  data.class_names = set.class_names;
  return data;
}

}  // namespace

std::string resolve_data_root(const std::string& set, const std::string& root, const std::string& first) {
  const SetEntry& entry = find_set(set);
  const SetFormat& format = format_of(entry);
  if (format.is_made()) return "";
  std::vector<std::filesystem::path> places = candidate_places(entry, root);
  if (!first.empty()) places.insert(places.begin(), first);
  if (places.empty())
    throw DatasetOptionError(
        "root", fmt::format("set {} needs the directory that holds its files, such as my-data", set));
  return find_set_files(entry, format.files(entry), places).directory.string();
}

bool has_pictures(const std::string& set) {
  return format_of(find_set(set)).has_pictures;
}

bool is_made_in_memory(const std::string& set) {
  return format_of(find_set(set)).is_made();
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
  return !format.outline(set, find_set_files(set, format.files(set), {options.directory}), options).on_disk;
}

TrainTestData load_dataset(const DatasetOptions& options) {
  const SetEntry& set = find_set(options.set);
  const SetFormat& format = format_of(set);
  check_options(options, format.is_made());
  TrainTestData data =
      format.is_made() ? make_in_memory(set, format, options) : load_files(set, format, options);
  if (data.train.classes == 1 && !data.train.has_label_sets())
    throw DataError(
        fmt::format("{}: all samples are of class {}, which cannot be told from others; make a set of two "
                    "or more",
                    data.origin, quoted_text(data.class_names.front())));
  choose_parts(data, options);
  for (Dataset* part : {&data.train, &data.test, &data.validation}) {
    if (options.in_memory && part->store != nullptr) take_into_memory(*part);
    part->quick = quick_fingerprint_of(*part);
  }
  if (data.train.has_images() || !format.is_made()) normalise(data, options, set);
  return data;
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
