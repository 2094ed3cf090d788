// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The sheet is as nearly square as its pictures allow, with a few grey pixels between them.
#include "trainer/reports/batch_pictures.hpp"

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

/// The smallest number of columns that makes no more rows than columns.
int columns_for(std::size_t count) {
  return static_cast<int>(std::ceil(std::sqrt(static_cast<double>(count))));
}

class Sheet {
 public:
  Sheet(const ImageShape& image, std::size_t count) : image_(image), columns_(columns_for(count)) {
    const int rows = (static_cast<int>(count) + columns_ - 1) / columns_;
    picture_.width = columns_ * (image.width + kBetween) - kBetween;
    picture_.height = rows * (image.height + kBetween) - kBetween;
    picture_.channels = image.channels;
    picture_.pixels.assign(picture_.plane_size() * static_cast<std::size_t>(image.channels), kBetweenGrey);
  }

  void put(std::size_t place, const std::vector<std::uint8_t>& image) {
    const int left = static_cast<int>(place) % columns_ * (image_.width + kBetween);
    const int top = static_cast<int>(place) / columns_ * (image_.height + kBetween);
    auto from = image.begin();
    for (int c = 0; c < image_.channels; ++c) {
      for (int y = 0; y < image_.height; ++y, from += image_.width) {
        const auto row = static_cast<std::size_t>(c) * picture_.plane_size() +
                         static_cast<std::size_t>(top + y) * static_cast<std::size_t>(picture_.width);
        std::copy_n(from, image_.width, picture_.pixels.begin() + static_cast<std::ptrdiff_t>(row) + left);
      }
    }
  }

  Picture take() { return std::move(picture_); }

 private:
  ImageShape image_;
  int columns_;
  Picture picture_;
};

/// So many that the sheet stays small.
std::size_t most_shown(const ImageShape& image) {
  const std::int64_t each = std::int64_t{1} * (image.width + kBetween) * (image.height + kBetween);
  return static_cast<std::size_t>(std::clamp<std::int64_t>(kMostSheetPixels / each, 1, kMostShown));
}

void check_images(const Dataset& set) {
  if (!set.has_images())
    throw ConfigError(fmt::format("data.set: {} has features, and no images to show", set.name));
  if (set.shape.channels != 1 && set.shape.channels != 3)
    throw ConfigError(fmt::format("data.set: the images of {} have {} channels; a picture shows 1 or 3",
                                  set.name, set.shape.channels));
}

/// Label of each sample, or its two labels with their weights.
std::vector<std::string> texts_of(const Dataset& set, std::span<const std::int32_t> indices,
                                  std::span<const SampleMix> mixes) {
  std::vector<std::int32_t> first(mixes.size());
  take_labels(set.labels, indices.first(mixes.size()), mixes, first.data());
  const std::vector<MixedLabel> second = second_labels(set.labels, indices, mixes);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < mixes.size(); ++i)
    texts.push_back(mixes[i].is_mixed() ? fmt::format("{:.2f} {} + {:.2f} {}", 1 - second[i].share, first[i],
                                                      second[i].share, second[i].label)
                                        : fmt::format("{}", first[i]));
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
  const std::size_t shown = std::min(batch, most_shown(train.shape));
  const auto indices = sampler.order().first(shown);
  const auto features = static_cast<std::size_t>(train.shape.features());
  const auto mixes = SampleMixer(job.data.augment, train.shape, job.train.seed)
                         .draw(0, sampler.order(), 0, static_cast<std::int64_t>(shown));
  Sheet sheet(train.shape, shown);
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
    sheet.put(i, image);
  }
  return {.sheet = sheet.take(),
          .columns = static_cast<std::size_t>(columns_for(shown)),
          .shown = shown,
          .batch = batch,
          .labels = texts_of(train, indices, mixes)};
}

}  // namespace lockstep
