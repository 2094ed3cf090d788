// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Scales from mean and standard deviation. Both are measured in whole numbers over all pixels, or in doubles over fp32
/// features in the order of the samples.
#include "data/normalisation.hpp"

#include "common/error.hpp"
#include "data/batch_loader.hpp"
#include "data/dataset.hpp"
#include "data/sample_store.hpp"
#include "data/sampler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <span>
#include <vector>

namespace lockstep {

namespace {

__extension__ using Wide = unsigned __int128;
constexpr double kWhite = 255;

/// Numbers of a channel in a sample.
std::size_t plane_of(const ImageShape& shape) {
  return static_cast<std::size_t>(shape.height) * static_cast<std::size_t>(shape.width);
}

/// @param n  pixels of a channel
Normalisation measured(const PixelSums& sums, std::uint64_t n) {
  Normalisation found;
  for (std::size_t c = 0; c < sums.values.size(); ++c) {
    const Wide values = sums.values[c],
               spread = Wide{n} * sums.squares[c] - values * values;  // n^2 times the variance
    const double std = std::sqrt(static_cast<double>(spread)) / static_cast<double>(n) / kWhite;
    found.mean.push_back(static_cast<double>(sums.values[c]) / static_cast<double>(n) / kWhite);
    found.std.push_back(std > 0 ? std : 1);
  }
  return found;
}

/// The places of a file that are not among these, which are ascending.
std::vector<std::int32_t> other_places(std::span<const std::int32_t> places, std::int64_t samples) {
  std::vector<std::int32_t> others;
  std::ranges::set_difference(file_order(samples), places, std::back_inserter(others));
  return others;
}

/// Sums of a part on disk: reads the samples in it or the others, whichever are fewer.
PixelSums sums_of_part(const SampleStore& store, std::span<const std::int32_t> places,
                       const ImageShape& shape) {
  if (2 * std::ssize(places) <= store.size()) return sums_of_samples(store, shape, places);
  PixelSums sums = store.sums();  // first: it says how many of the pictures read so far had 16 bits
  const PixelSums others = sums_of_samples(store, shape, other_places(places, store.size()));
  for (std::size_t c = 0; c < sums.values.size(); ++c) {
    sums.values[c] -= others.values[c];
    sums.squares[c] -= others.squares[c];
  }
  return sums;
}

/// Calls take(samples) with all of them in their order, as the file has them: [sample][channel][plane].
template <typename Take>
void for_each_part(const Dataset& set, const Take& take) {
  if (set.rows == nullptr) return take(set.features.span());
  constexpr std::size_t kPartBytes = std::size_t{4} << 20;
  const auto features = static_cast<std::size_t>(set.shape.features());
  std::vector<float> numbers;
  for_each_batch(set.size(), kPartBytes / (features * sizeof(float)),
                 [&](std::span<const std::int32_t> samples) {
                   numbers.resize(samples.size() * features);
                   read_rows(set, samples, numbers);
                   take(std::span<const float>(numbers));
                 });
}

/// Calls take(channel, value) for each number, in this order.
template <typename Take>
void for_each_feature(const Dataset& set, const Take& take) {
  const auto channels = static_cast<std::size_t>(set.shape.channels), plane = plane_of(set.shape);
  for_each_part(set, [&](std::span<const float> features) {
    for (std::size_t at = 0; at < features.size();)
      for (std::size_t c = 0; c < channels; ++c)
        for (const std::size_t end = at + plane; at < end; ++at) take(c, static_cast<double>(features[at]));
  });
}

/// Sums differences from the channel's first number: the deviation of equal numbers is exactly 0.
Normalisation measure_features(const Dataset& set) {
  const auto channels = static_cast<std::size_t>(set.shape.channels);
  const double n = static_cast<double>(static_cast<std::size_t>(set.size()) * plane_of(set.shape));
  std::vector<double> sums(channels), squares(channels);
  std::vector<std::optional<double>> first(channels);
  for_each_feature(set, [&](std::size_t c, double value) {
    if (!first[c]) first[c] = value;
    sums[c] += value - *first[c];
  });
  Normalisation found;
  for (std::size_t c = 0; c < channels; ++c) found.mean.push_back(first[c].value_or(0) + sums[c] / n);
  for_each_feature(set, [&](std::size_t c, double value) {
    squares[c] += (value - found.mean[c]) * (value - found.mean[c]);
  });
  for (const double sum : squares) found.std.push_back(sum > 0 ? std::sqrt(sum / n) : 1);
  return found;
}

double number_for(const std::vector<double>& numbers, std::size_t channel) {
  return numbers.size() == 1 ? numbers.front() : numbers[channel];
}

float normalised(float value, std::size_t channel, const Normalisation& by) {
  return static_cast<float>((static_cast<double>(value) - number_for(by.mean, channel)) /
                            number_for(by.std, channel));
}

}  // namespace

PixelSums no_pixels(int channels) {
  const std::vector<std::uint64_t> none(static_cast<std::size_t>(channels));
  return {.values = none, .squares = none};
}

void add_pixels(std::span<const std::uint8_t> images, std::size_t plane, PixelSums& sums) {
  const std::size_t channels = sums.values.size();
  for (std::size_t at = 0; at < images.size(); at += plane) {
    std::uint64_t values = 0, squares = 0;
    for (const std::uint8_t pixel : images.subspan(at, plane)) {
      values += pixel;
      squares += std::uint64_t{pixel} * pixel;
    }
    sums.values[at / plane % channels] += values;
    sums.squares[at / plane % channels] += squares;
  }
}

bool are_possible(const PixelSums& sums, std::uint64_t pixels) {
  for (std::size_t c = 0; c < sums.values.size(); ++c) {
    const Wide values = sums.values[c], squares = sums.squares[c];
    if (squares > 255 * values || values * values > squares * pixels) return false;
  }
  return true;
}

PixelSums sums_of_samples(const SampleStore& store, const ImageShape& shape,
                          std::span<const std::int32_t> samples,
                          const std::function<void(std::int64_t done)>& on_progress) {
  constexpr std::size_t kAtOnce = 64;
  PixelSums sums = no_pixels(shape.channels);
  std::vector<std::uint8_t> images;
  for (std::size_t done = 0; done < samples.size();) {
    const auto some = samples.subspan(done, std::min(kAtOnce, samples.size() - done));
    images.resize(some.size() * static_cast<std::size_t>(shape.features()));
    store.read(std::vector<std::int64_t>(some.begin(), some.end()), images);
    add_pixels(images, plane_of(shape), sums);
    done += some.size();
    if (on_progress) on_progress(static_cast<std::int64_t>(done));
  }
  return sums;
}

ChannelScales scales_of(const Normalisation& by, int channels) {
  ChannelScales scales;
  for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c) {
    const double mean = number_for(by.mean, c), std = number_for(by.std, c);
    scales.scale.push_back(static_cast<float>(1.0 / (kWhite * std)));
    scales.shift.push_back(static_cast<float>(-mean / std));
  }
  return scales;
}

Normalisation measure(const Dataset& set) {
  if (!set.has_images()) return measure_features(set);
  PixelSums sums = no_pixels(set.shape.channels);
  if (set.store == nullptr)
    add_pixels(set.images.span(), plane_of(set.shape), sums);
  else
    sums = set.places.empty() ? set.store->sums() : sums_of_part(*set.store, set.places, set.shape);
  return measured(sums, static_cast<std::uint64_t>(set.size()) * plane_of(set.shape));
}

void normalise_features(std::span<float> features, const ImageShape& shape, const Normalisation& by,
                        const std::string& what, std::int64_t first_sample) {
  const auto each = static_cast<std::size_t>(shape.features());
  for (std::size_t i = 0; i < features.size(); ++i) {
    const std::size_t channel = i % each / plane_of(shape);
    const float value = normalised(features[i], channel, by);
    if (!std::isfinite(value))
      throw DataError(fmt::format(
          "{}: value {} of sample {} is {}, too far from the mean {} for the standard deviation {}; "
          "leave the column out, or give data.mean and data.std",
          what, i % each, first_sample + static_cast<std::int64_t>(i / each), features[i],
          number_for(by.mean, channel), number_for(by.std, channel)));
    features[i] = value;
  }
}

std::int64_t find_beyond_fp32(std::span<const float> sample, const ImageShape& shape,
                              const Normalisation& by) {
  for (std::size_t i = 0; i < sample.size(); ++i)
    if (!std::isfinite(normalised(sample[i], i / plane_of(shape), by))) return static_cast<std::int64_t>(i);
  return -1;
}

}  // namespace lockstep
