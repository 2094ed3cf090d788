// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Data sets of a program's own, and those in IDX files by their names.
#include "common/error.hpp"
#include "common/text_layout.hpp"
#include "data/sample_store.hpp"
#include "data/sets/catalogue.hpp"
#include "data/sets/set_formats.hpp"
#include "trainer/library/inside.hpp"

#include <fmt/format.h>
#include <lockstep/dataset.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace lockstep::v0 {

namespace {

constexpr std::int64_t kMostSamples = std::numeric_limits<std::int32_t>::max();

/// Checked before anything is allocated.
void check_sizes(const ImageShape& shape, int classes, std::int64_t samples) {
  if (shape.channels < 1 || shape.height < 1 || shape.width < 1 ||
      checked_product(shape.channels, shape.height, shape.width) > kMaxFeatures)
    throw ShapeError(fmt::format("a data set: samples of {} are not of one to {} numbers",
                                 channels_rows_columns(shape), kMaxFeatures));
  if (classes < 2 || classes > kMaxClasses)
    throw ShapeError(fmt::format("a data set: {} classes; expected 2 to {}", classes, kMaxClasses));
  if (samples < 1 || samples > kMostSamples)
    throw ShapeError(fmt::format("a data set: {} samples; expected 1 to {}", samples, kMostSamples));
}

/// @param numbers  those of all samples
lockstep::Dataset make_set(const ImageShape& shape, int classes, std::span<const std::int32_t> labels,
                           std::size_t numbers) {
  check_sizes(shape, classes, std::ssize(labels));
  const std::size_t expected = static_cast<std::size_t>(shape.features()) * labels.size();
  if (numbers != expected)
    throw ShapeError(fmt::format("a data set: {} numbers for {} of {}; expected {}", numbers,
                                 counted(labels.size(), "label"), channels_rows_columns(shape), expected));
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (labels[i] < 0 || labels[i] >= classes)
      throw DataError(
          fmt::format("a data set: label {} of sample {} is not in 0..{}", labels[i], i, classes - 1));
  lockstep::Dataset set;
  set.name = "a data set";
  set.shape = shape;
  set.classes = classes;
  set.labels.assign(labels.begin(), labels.end());
  return set;
}

/// @param about  all but the set
Dataset share(lockstep::Dataset set, Dataset::Inside about = {}) {
  about.set = std::make_shared<const lockstep::Dataset>(std::move(set));
  return Dataset(std::make_shared<const Dataset::Inside>(std::move(about)));
}

/// Measured, where nothing is given.
Normalisation normalisation_of(const lockstep::Dataset& set, const Normalisation& given) {
  const auto fits = [&](const std::vector<double>& numbers) {
    return numbers.empty() || numbers.size() == 1 ||
           numbers.size() == static_cast<std::size_t>(set.shape.channels);
  };
  if (!fits(given.mean) || !fits(given.std))
    throw ConfigError(fmt::format("a data set: {} means and {} deviations for {}; give one, or one for each",
                                  given.mean.size(), given.std.size(),
                                  counted(set.shape.channels, "channel")));
  const bool possible = std::ranges::all_of(given.mean, [](double m) { return std::isfinite(m); }) &&
                        std::ranges::all_of(given.std, [](double s) { return std::isfinite(s) && s > 0; });
  if (!possible) throw ConfigError("a data set: means must be finite, and deviations above 0");
  if (!given.mean.empty() && !given.std.empty()) return given;
  const lockstep::Normalisation measured = measure(set);
  return {given.mean.empty() ? measured.mean : given.mean, given.std.empty() ? measured.std : given.std};
}

/// Samples that a function makes, in the place of those on a disk: it is asked each time.
class FunctionStore final : public SampleStore {
 public:
  FunctionStore(const ImageShape& shape, std::int64_t size, SampleFunction make)
      : features_(static_cast<std::size_t>(shape.features())), size_(size), make_(std::move(make)) {}

  std::int64_t size() const override { return size_; }
  /// Nothing asks for those of features.
  const PixelSums& sums() const override { return no_sums_; }
  void read(std::span<const std::int64_t> samples, std::span<std::uint8_t> to) const override {
    std::vector<float> sample(features_);
    const std::size_t bytes = features_ * sizeof(float);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      make_(samples[i], sample);
      std::memcpy(to.data() + i * bytes, sample.data(), bytes);
    }
  }
  void prefetch(std::vector<std::int64_t> /*samples*/) const override {}

 private:
  std::size_t features_;
  std::int64_t size_;
  SampleFunction make_;
  PixelSums no_sums_;
};

}  // namespace

lockstep::Dataset borrow(const std::shared_ptr<const lockstep::Dataset>& set) {
  lockstep::Dataset view;
  view.name = set->name;
  view.shape = set->shape;
  view.classes = set->classes;
  view.labels = set->labels;
  // Memory that is only read: so it is here.
  view.images = {const_cast<std::uint8_t*>(set->images.data()), set->images.size(), set};  // NOLINT
  view.features = {const_cast<float*>(set->features.data()), set->features.size(), set};   // NOLINT
  view.rows = set->rows;
  view.of_rows = set->of_rows;
  view.scales = set->scales;
  return view;
}

Dataset::Dataset(std::shared_ptr<const Inside> inside) : inside_(std::move(inside)) {}

const ImageShape& Dataset::shape() const {
  return inside_->set->shape;
}

int Dataset::classes() const {
  return inside_->set->classes;
}

std::int64_t Dataset::size() const {
  return inside_->set->size();
}

std::span<const std::int32_t> Dataset::labels() const {
  return inside_->set->labels;
}

const Normalisation& Dataset::normalisation() const {
  return inside_->normalisation;
}

Dataset Dataset::from_bytes(const ImageShape& shape, int classes, std::span<const std::uint8_t> samples,
                            std::span<const std::int32_t> labels, const Normalisation& by) {
  lockstep::Dataset set = make_set(shape, classes, labels, samples.size());
  set.images = AlignedBuffer<std::uint8_t>(samples.size());
  std::ranges::copy(samples, set.images.data());
  const Normalisation used = normalisation_of(set, by);
  set.scales = scales_of({used.mean, used.std}, shape.channels);
  return share(std::move(set), {.normalisation = used});
}

Dataset Dataset::from_floats(const ImageShape& shape, int classes, std::span<const float> samples,
                             std::span<const std::int32_t> labels) {
  lockstep::Dataset set = make_set(shape, classes, labels, samples.size());
  const auto bad = std::ranges::find_if(samples, [](float value) { return !std::isfinite(value); });
  if (bad != samples.end())
    throw DataError(fmt::format("a data set: sample {} has a number that is NaN or infinite",
                                (bad - samples.begin()) / shape.features()));
  set.features = AlignedBuffer<float>(samples.size());
  std::ranges::copy(samples, set.features.data());
  return share(std::move(set));
}

Dataset Dataset::from_function(const ImageShape& shape, int classes, std::int64_t size,
                               const SampleFunction& sample, const LabelFunction& label) {
  check_sizes(shape, classes, size);
  std::vector<std::int32_t> labels;
  labels.reserve(static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < size; ++i) labels.push_back(label(i));
  lockstep::Dataset set =
      make_set(shape, classes, labels, static_cast<std::size_t>(shape.features()) * labels.size());
  set.rows = std::make_shared<FunctionStore>(shape, size, sample);
  set.of_rows = {.mean = {0}, .std = {1}};  // keeps the bits
  return share(std::move(set));
}

TrainTest load_dataset(const DataOptions& options) {
  const SetEntry& set = find_set(options.set);
  const SetFormat* const format = find_basic_format(set.format);
  if (format == nullptr)  // it takes a library of pictures or of tables
    throw ConfigError(fmt::format(
        "data set '{}' is in the format {}, and load_dataset reads IDX files; read it yourself, and give it "
        "to Dataset::from_bytes or from_function",
        set.name, set.format));
  if (!format->is_made() && !set.is_known_by_name() && options.root == "auto")
    throw ConfigError(fmt::format("data set '{}': root must name the folder that holds its files", set.name));
  TrainTestData data = load_set(set, *format,
                                {.set = options.set,
                                 .root = options.root,
                                 .mean = options.normalisation.mean,
                                 .std = options.normalisation.std,
                                 .seed = options.seed,
                                 .train_samples = options.train_samples,
                                 .test_samples = options.test_samples});
  const Dataset::Inside about{.normalisation = {data.normalisation.mean, data.normalisation.std},
                              .name = set.name,
                              .directory = data.directory,
                              .class_names = data.class_names};
  return {share(std::move(data.train), about), share(std::move(data.test), about)};
}

}  // namespace lockstep::v0
