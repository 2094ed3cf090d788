// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Reads samples wherever they are, and puts them into a batch.
#include "data/batch_loader.hpp"

#include "data/augmentation.hpp"
#include "data/dataset.hpp"
#include "data/normalisation.hpp"
#include "kernels/cpu/ops.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <numeric>

namespace lockstep {

namespace {

std::vector<std::int64_t> places_of(const Dataset& set, std::span<const std::int32_t> samples) {
  std::vector<std::int64_t> places;
  for (const std::int32_t sample : samples) places.push_back(set.place_in_file(sample));
  return places;
}

std::vector<std::int32_t> partners_of(std::span<const SampleMix> mixes,
                                      std::span<const std::int32_t> indices) {
  std::vector<std::int32_t> partners(mixes.size());
  for (std::size_t i = 0; i < mixes.size(); ++i)
    partners[i] = mixes[i].is_mixed() ? mixes[i].partner : indices[i];
  return partners;
}

}  // namespace

void read_samples(const Dataset& set, std::span<const std::int32_t> samples, std::span<std::uint8_t> to) {
  if (set.store != nullptr) return set.store->read(places_of(set, samples), to);
  if (set.rows != nullptr) {
    const FeatureRows rows(set, samples);
    LOCKSTEP_CHECK(to.size() == rows.read().size_bytes());
    std::ranges::copy(std::as_bytes(rows.read()), std::as_writable_bytes(to).begin());
    return;
  }
  const auto all = set.samples_in_memory();
  if (samples.empty()) return;
  const std::size_t bytes = all.size() / set.labels.size();
  LOCKSTEP_CHECK(to.size() == samples.size() * bytes);
  for (std::size_t i = 0; i < samples.size(); ++i)
    std::memcpy(to.data() + i * bytes, all.data() + static_cast<std::size_t>(samples[i]) * bytes, bytes);
}

ImageRows::ImageRows(const Dataset& set, std::span<const std::int32_t> samples)
    : size_(static_cast<std::size_t>(set.shape.features())), rows_(samples.size()) {
  if (set.store == nullptr) {
    for (std::size_t i = 0; i < samples.size(); ++i)
      rows_[i] = set.images.data() + static_cast<std::size_t>(samples[i]) * size_;
    return;
  }
  read_ = std::make_unique_for_overwrite<std::uint8_t[]>(samples.size() * size_);
  set.store->read(places_of(set, samples), {read_.get(), samples.size() * size_});
  for (std::size_t i = 0; i < samples.size(); ++i) rows_[i] = read_.get() + i * size_;
}

void read_rows(const Dataset& set, std::span<const std::int32_t> samples, std::span<float> to) {
  static_assert(std::endian::native == std::endian::little);
  set.rows->read(places_of(set, samples), {reinterpret_cast<std::uint8_t*>(to.data()), to.size_bytes()});
}

FeatureRows::FeatureRows(const Dataset& set, std::span<const std::int32_t> samples)
    : size_(static_cast<std::size_t>(set.shape.features())), data_(set.features.data()), indices_(samples) {
  if (set.rows == nullptr) return;
  read_.resize(samples.size() * size_);
  read_rows(set, samples, read_);
  for (std::size_t i = 0; i < samples.size(); ++i)
    normalise_features(std::span(read_).subspan(i * size_, size_), set.shape, set.of_rows, set.name,
                       set.place_in_file(samples[i]));
  order_.resize(samples.size());
  std::iota(order_.begin(), order_.end(), 0);
  data_ = read_.data();
  indices_ = order_;
}

void BatchLoader::load(std::span<const std::int32_t> indices, int batch_columns, float* x,
                       std::int32_t* labels, std::int64_t epoch, std::span<const SampleMix> mixes) const {
  const GatherShape shape{batch_columns, static_cast<int>(indices.size()), dataset_.shape.features(),
                          dataset_.shape.channels};
  LOCKSTEP_CHECK(shape.samples <= batch_columns && batch_columns % cpu::kLanes == 0);
  LOCKSTEP_CHECK(mixes.empty() || (augment_ != nullptr && mixes.size() == indices.size()));
  for (const std::int32_t index : indices) LOCKSTEP_CHECK(index >= 0 && index < dataset_.size());
  take_labels(dataset_.labels, indices, mixes, labels);
  if (!dataset_.has_images()) {
    const FeatureRows rows(dataset_, indices);
    return cpu::gather_features(shape, rows.data(), rows.indices(), x);
  }
  const ImageRows rows(dataset_, indices);
  const float *scale = dataset_.scales.scale.data(), *shift = dataset_.scales.shift.data();
  if (augment_ == nullptr) return cpu::gather_images(shape, rows.data(), scale, shift, x);
  const ImageRows partners(dataset_, partners_of(mixes, indices));
  cpu::gather_augmented(shape, rows.data(), indices.data(), scale, shift, *augment_, epoch,
                        {mixes.empty() ? nullptr : mixes.data(), partners.data()}, x);
}

void BatchLoader::prefetch(std::span<const std::int32_t> indices) const {
  constexpr std::size_t kLineBytes = 64;
  if (dataset_.store != nullptr) return dataset_.store->prefetch(places_of(dataset_, indices));
  if (dataset_.rows != nullptr) return dataset_.rows->prefetch(places_of(dataset_, indices));
  if (dataset_.images.size() == 0) return;
  const auto bytes = static_cast<std::size_t>(dataset_.shape.features());
  for (const std::int32_t index : indices) {
    const std::uint8_t* image = dataset_.images.data() + static_cast<std::size_t>(index) * bytes;
    for (std::size_t at = 0; at < bytes; at += kLineBytes) __builtin_prefetch(image + at);
  }
}

}  // namespace lockstep
