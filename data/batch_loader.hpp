// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From data set indices to the input of a network: normalised, batch innermost.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

namespace lockstep {

struct AugmentPlan;  // kernels/numerics/augment.hpp
struct Dataset;      // data/dataset.hpp
struct SampleMix;    // kernels/mix.hpp

/// The numbers of some samples as the set has them. Images are bytes; features are fp32, normalised, one after the
/// other.
/// @param samples  each in [0, set.size())
/// @param to       overwritten; all of it
/// @throws DataError, IoError  as SampleStore::read
void read_samples(const Dataset& set, std::span<const std::int32_t> samples, std::span<std::uint8_t> to);

/// The images of some samples, as bytes: in the set's memory, or read into separate memory.
class ImageRows {
 public:
  /// Borrows the set, which has images and must outlive the rows.
  /// @param samples  each in [0, set.size())
  /// @throws DataError, IoError  as SampleStore::read
  ImageRows(const Dataset& set, std::span<const std::int32_t> samples);

  /// [sample] → [channel][row][column]
  const std::uint8_t* const* data() const { return rows_.data(); }
  std::span<const std::uint8_t> operator[](std::size_t i) const { return {rows_[i], size_}; }

 private:
  std::size_t size_;
  std::vector<const std::uint8_t*> rows_;
  std::unique_ptr<std::uint8_t[]> read_;
};

/// The fp32 features of some samples, normalised: in the set's memory, or read into separate memory.
class FeatureRows {
 public:
  /// Borrows set and samples, which must outlive the rows. The set has features.
  /// @throws DataError, IoError  as SampleStore::read and normalise_features
  FeatureRows(const Dataset& set, std::span<const std::int32_t> samples);
  FeatureRows(const FeatureRows&) = delete;
  FeatureRows& operator=(const FeatureRows&) = delete;

  /// Rows of [features], of which indices() are those of the samples.
  const float* data() const { return data_; }
  const std::int32_t* indices() const { return indices_.data(); }
  /// All of them in the order of the samples, of a set on disk.
  std::span<const float> read() const { return read_; }
  std::span<const float> operator[](std::size_t i) const {
    return {data_ + static_cast<std::size_t>(indices_[i]) * size_, size_};
  }

 private:
  std::size_t size_;
  const float* data_;
  std::span<const std::int32_t> indices_;
  std::vector<float> read_;
  std::vector<std::int32_t> order_;
};

/// Rows of a set with `rows`, as the file has them. @param to  [samples][features], overwritten
void read_rows(const Dataset& set, std::span<const std::int32_t> samples, std::span<float> to);

/// Calls take(indices) with all samples in their order, at most so many at a time, but one at least.
template <typename Take>
void for_each_batch(std::int64_t samples, std::size_t most, const Take& take) {
  std::vector<std::int32_t> indices;
  for (std::int64_t first = 0; first < samples; first += std::ssize(indices)) {
    indices.resize(std::min(std::max<std::size_t>(most, 1), static_cast<std::size_t>(samples - first)));
    std::iota(indices.begin(), indices.end(), static_cast<std::int32_t>(first));
    take(indices);
  }
}

/// Gathers samples of a data set straight into the layout that the kernels read. Holds no state: one loader
/// serves all threads of a rank.
class BatchLoader {
 public:
  /// Borrows the set and the plan, which must outlive the loader.
  /// @param augment  augmentation of images on their way; null: none
  explicit BatchLoader(const Dataset& dataset, const AugmentPlan* augment = nullptr)
      : dataset_(dataset), augment_(augment) {}

  /// Column n of x becomes sample indices[n]. Columns beyond them become 0. labels[n] becomes its label; for a mixed
  /// sample that of the larger part.
  ///
  /// @param epoch          the epoch that the batch is trained on in: keys what augmentation draws
  /// @param indices        each in [0, dataset.size()), not more than batch_columns
  /// @param batch_columns  a multiple of cpu::kLanes
  /// @param x              [features, batch_columns], overwritten
  /// @param labels         [indices.size()], overwritten
  /// @param mixes          one for each sample; empty: none is mixed
  void load(std::span<const std::int32_t> indices, int batch_columns, float* x, std::int32_t* labels,
            std::int64_t epoch = 0, std::span<const SampleMix> mixes = {}) const;

  /// Asks the processor to have these samples in its cache soon, or the system to have them in memory. Returns at once.
  /// Worth it while computing on the batch before: random samples come from main memory or disk, which a gather would
  /// wait for.
  void prefetch(std::span<const std::int32_t> indices) const;

 private:
  const Dataset& dataset_;
  const AugmentPlan* augment_;
};

}  // namespace lockstep
