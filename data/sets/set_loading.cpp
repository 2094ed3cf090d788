// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Loading a set in whichever format: its files, its parts, and the numbers that normalise it.
#include "data/sets/set_loading.hpp"

#include "common/error.hpp"
#include "common/machine.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "data/batch_loader.hpp"
#include "data/sets/made_sets.hpp"
#include "data/sets/names.hpp"
#include "data/sets/set_files.hpp"
#include "data/sets/set_formats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// Formats that need no library of pictures. All sets that are made are among them.

const SetFormat* find_basic_format(std::string_view name) {
  static constexpr SetFormat kFormats[] = {
      {.name = "idx", .files = idx_set_files, .load = load_idx_set, .outline = outline_of_idx_set},
      {.name = "random", .make = make_random_set},
      {.name = "drawn", .make = make_synthetic_set},
  };
  const auto found = std::ranges::find(kFormats, name, &SetFormat::name);
  return found == std::end(kFormats) ? nullptr : &*found;
}

bool is_made_in_memory(const std::string& set) {
  const SetFormat* format = find_basic_format(find_set(set).format);
  return format != nullptr && format->is_made();
}

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

/// Sample by sample, so that a message has the place in its file.
void normalise_in_memory(Dataset& part, const TrainTestData& data) {
  const auto each = static_cast<std::size_t>(part.shape.features());
  const std::string what = fmt::format("{}: {}", data.origin, part.name);
  for (std::int64_t i = 0; i < part.size(); ++i)
    normalise_features(part.features.span().subspan(static_cast<std::size_t>(i) * each, each), part.shape,
                       data.normalisation, what, part.place_in_file(i));
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
      normalise_in_memory(*part, data);
  }
}

/// Reads into memory what could stay on disk.
void take_into_memory(Dataset& set) {
  const auto size = static_cast<std::size_t>(set.shape.features());
  const auto samples = static_cast<std::size_t>(set.size());
  require_memory(checked_product(samples, size), "the images of " + set.name + " in memory",
                 "leave them on disk: data.in_memory=false");
  AlignedBuffer<std::uint8_t> images(samples * size);
  // Decoded pictures are in memory twice until they are copied: 32 MiB of them, but one for each thread.
  constexpr std::size_t kAtOnce = 1024, kLeastAtOnce = 16, kBytesAtOnce = std::size_t{32} << 20;
  const std::size_t most = std::clamp(kBytesAtOnce / size, kLeastAtOnce, kAtOnce);
  for_each_batch(set.size(), most, [&](std::span<const std::int32_t> indices) {
    const auto first = static_cast<std::size_t>(indices.front());
    read_samples(set, indices, images.span().subspan(first * size, indices.size() * size));
  });
  set.images = std::move(images);
  if (samples > 0 && !set.picture_name(0).empty())
    for (std::int64_t i = 0; i < set.size(); ++i) set.picture_names.emplace_back(set.picture_name(i));
  set.store.reset();
}

TrainTestData load_files(const SetEntry& set, const SetFormat& format, const DatasetOptions& options) {
  const auto places = options.directory.empty() ? candidate_places(set, options.root)
                                                : std::vector<std::filesystem::path>{options.directory};
  const SetFiles files = format.find(set, places);
  TrainTestData data = format.load(set, files, options);
  data.directory = files.directory.string();
  data.origin = data.directory;
  if (!set.is_known_by_name() && !format.has_pictures) data.fit = read_fit(Env::posix(), files.directory);
  return data;
}

TrainTestData make_in_memory(const SetEntry& set, const SetFormat& format, const DatasetOptions& options) {
  TrainTestData data = format.make(set, options);
  data.origin = "made in memory";
  data.class_names = set.class_names;
  return data;
}

}  // namespace

TrainTestData load_set(const SetEntry& set, const SetFormat& format, const DatasetOptions& options) {
  check_options(options, format.is_made());
  TrainTestData data =
      format.is_made() ? make_in_memory(set, format, options) : load_files(set, format, options);
  if (data.train.classes == 1 && !data.train.has_label_sets())
    throw DataError(fmt::format(
        "{}: all samples are of class {}, which cannot be distinguished from others; make a set of two "
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

}  // namespace lockstep
