// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Samples with labels: by the name of a set, from memory, or made by a function on request.
#pragma once

#include <lockstep/shape.hpp>
#include <lockstep/version.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

LOCKSTEP_BEGIN_NAMESPACE

/// How bytes become the numbers that a network sees: (byte / 255 - mean) / std. One number for all channels, or one for
/// each. Empty: measured over the samples.
struct Normalisation {
  std::vector<double> mean = {}, std = {};
};

/// Writes sample `index`, shape.features() numbers as [channel][row][column]. Called by several threads at once, and for
/// the same index again and again: the answer must be the same, on every rank.
using SampleFunction = std::function<void(std::int64_t index, std::span<float> sample)>;
/// The class of a sample, in [0, classes).
using LabelFunction = std::function<std::int32_t(std::int64_t index)>;

/// Immutable, and shared: a copy costs a pointer. All ranks of a training have equal ones.
class Dataset {
 public:
  /// Bytes, as images are on disk. Copies them.
  /// @param samples  [sample][channel][row][column]
  /// @param labels   [sample], each in [0, classes)
  /// @param by       for the test half: normalisation() of the training half
  /// @throws ShapeError  sizes that do not fit together; DataError  a label out of range
  static Dataset from_bytes(const ImageShape& shape, int classes, std::span<const std::uint8_t> samples,
                            std::span<const std::int32_t> labels, const Normalisation& by = {});
  /// Numbers that the network sees as they are. Copies them.
  static Dataset from_floats(const ImageShape& shape, int classes, std::span<const float> samples,
                             std::span<const std::int32_t> labels);
  /// Samples that `sample` makes each time; labels are asked for once, here.
  static Dataset from_function(const ImageShape& shape, int classes, std::int64_t size,
                               const SampleFunction& sample, const LabelFunction& label);

  const ImageShape& shape() const;
  int classes() const;
  std::int64_t size() const;  ///< samples
  std::span<const std::int32_t> labels() const;
  const Normalisation& normalisation() const;  ///< how bytes become numbers; empty for floats

  struct Inside;  ///< Lockstep's own
  explicit Dataset(std::shared_ptr<const Inside> inside);
  const Inside& inside() const { return *inside_; }

 private:
  std::shared_ptr<const Inside> inside_;
};

struct TrainTest {
  Dataset train, test;
};

struct DataOptions {
  /// mnist, fashion-mnist, kmnist, or idx: four IDX files of yours in `root`, named as MNIST's. Without files: synthetic (drawn
  /// digits), random.
  std::string set = "mnist";
  /// A folder that holds the files, or SET/ with them. auto: $LOCKSTEP_DATA, ~/.cache/lockstep, /usr/share/datasets.
  std::string root = "auto";
  std::int64_t train_samples = 0, test_samples = 0;  ///< so many of them; 0: all
  std::uint64_t seed = 1234;                         ///< chooses which
  Normalisation normalisation = {};                  ///< empty: the set's own
};

/// Reads a set in IDX files, plain or .gz. The files of each set are fetched once, with lockstep-get-data SET.
/// @throws MissingDataError  says where it looked, and the command that fetches the set
/// @throws DataError         names file, offset, and what is wrong
/// @throws ConfigError       no such set, or one in another format than IDX
TrainTest load_dataset(const DataOptions& options);

LOCKSTEP_END_NAMESPACE
