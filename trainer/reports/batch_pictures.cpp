// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The sheet is as nearly square as its pictures allow, with a few grey pixels between them.
#include "trainer/reports/batch_pictures.hpp"

#include "common/buffers.hpp"
#include "data/augmentation.hpp"
#include "data/batch_loader.hpp"
#include "data/sampler.hpp"
#include "kernels/cpu/ops.hpp"
#include "trainer/setup/job_setup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>

namespace lockstep {
namespace {

constexpr std::size_t kMostShown = 256;
constexpr std::int64_t kMostSheetPixels = std::int64_t{1} << 24;
constexpr int kBetween = 2;
constexpr std::uint8_t kBetweenGrey = 128;

Picture empty_sheet(const ImageShape& image, int columns, int rows) {
  Picture sheet{.name = "",
                .width = columns * (image.width + kBetween) - kBetween,
                .height = rows * (image.height + kBetween) - kBetween,
                .channels = image.channels};
  sheet.pixels.assign(sheet.plane_size() * static_cast<std::size_t>(image.channels), kBetweenGrey);
  return sheet;
}

/// @param row, column  the image's place on the sheet
void put(const std::vector<std::uint8_t>& pixels, const ImageShape& image, int row, int column,
         Picture& sheet) {
  const int left = column * (image.width + kBetween), top = row * (image.height + kBetween);
  auto from = pixels.begin();
  for (int c = 0; c < image.channels; ++c)
    for (int y = 0; y < image.height; ++y, from += image.width) {
      const auto line = static_cast<std::size_t>(c) * sheet.plane_size() +
                        static_cast<std::size_t>(top + y) * static_cast<std::size_t>(sheet.width);
      std::copy_n(from, image.width, sheet.pixels.begin() + static_cast<std::ptrdiff_t>(line) + left);
    }
}

void check_images(const Dataset& set) {
  if (!set.has_images())
    throw ConfigError(fmt::format("data.set: {} has features, and no images to show", set.name));
  if (set.shape.channels != 1 && set.shape.channels != 3)
    throw ConfigError(fmt::format("data.set: the images of {} have {} channels; a picture shows 1 or 3",
                                  set.name, set.shape.channels));
}

/// Label of each sample, or its two labels with their weights.
/// @param names  the classes'
std::vector<std::string> texts_of(const Dataset& set, const std::vector<std::string>& names,
                                  std::span<const std::int32_t> indices, std::span<const SampleMix> mixes) {
  std::vector<std::int32_t> first(mixes.size());
  take_labels(set.labels, indices.first(mixes.size()), mixes, first.data());
  const std::vector<MixedLabel> second = second_labels(set.labels, indices, mixes);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < mixes.size(); ++i)
    texts.push_back(mixes[i].is_mixed()
                        ? fmt::format("{:.2f} {} + {:.2f} {}", 1 - second[i].share, at(names, first[i]),
                                      second[i].share, at(names, second[i].label))
                        : at(names, first[i]));
  return texts;
}

}  // namespace

BatchPictures picture_first_batch(const Job& job) {
  const LoadedData loaded = load_in_advance(job).get();
  const Dataset& train = loaded.sets->train;
  check_images(train);
  const auto plan = augment_plan_of(job, train);
  DistributedSampler sampler(sampler_options(training_options(job), train, 0, 1));
  sampler.set_epoch(0);
  const auto batch = static_cast<std::size_t>(sampler.batch_samples(0));
  const std::int64_t each =
      std::int64_t{1} * (train.shape.width + kBetween) * (train.shape.height + kBetween);
  const auto most = std::clamp<std::int64_t>(kMostSheetPixels / each, 1, kMostShown);
  const std::size_t shown = std::min(batch, static_cast<std::size_t>(most));
  const auto indices = sampler.order().first(shown);
  const auto features = static_cast<std::size_t>(train.shape.features());
  const auto mixes = SampleMixer(job.data.augment, train.shape, job.train.seed)
                         .draw(0, sampler.order(), 0, static_cast<std::int64_t>(shown));
  // As few columns as make no more rows than columns.
  const int columns = static_cast<int>(std::ceil(std::sqrt(static_cast<double>(shown))));
  Picture sheet = empty_sheet(train.shape, columns, (static_cast<int>(shown) + columns - 1) / columns);
  std::vector<std::uint8_t> image(features), partner(features);
  const auto make = [&](std::int32_t sample, std::vector<std::uint8_t>& to) {
    const ImageRows rows(train, {&sample, 1});
    if (plan)
      cpu::augment_image(*plan, 0, static_cast<std::uint32_t>(sample), rows[0].data(), to.data());
    else
      std::ranges::copy(rows[0], to.begin());
  };
  for (std::size_t i = 0; i < shown; ++i) {
    make(indices[i], image);
    if (!mixes.empty() && mixes[i].is_mixed()) {
      make(mixes[i].partner, partner);
      cpu::mix_images(*plan, mixes[i], partner.data(), image.data());
    }
    put(image, train.shape, static_cast<int>(i) / columns, static_cast<int>(i) % columns, sheet);
  }
  return {.sheet = std::move(sheet),
          .columns = static_cast<std::size_t>(columns),
          .shown = shown,
          .batch = batch,
          .labels = texts_of(train, loaded.sets->class_names, indices, mixes)};
}

}  // namespace lockstep
