// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A labelled data set, in memory or on disk, and its halves.
#pragma once

#include "common/buffers.hpp"
#include "common/error.hpp"
#include "data/normalisation.hpp"
#include "data/picture_form.hpp"
#include "data/sample_store.hpp"
#include "data/set_fingerprints.hpp"
#include "kernels/shapes.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// "3 x 20 x 32 (channels x rows x columns)": shapes of pictures that people read are in this order.
std::string channels_rows_columns(const ImageShape& shape);

/// Samples and labels. Images stay uint8 as they are on disk and are normalised on the way into a batch:
/// value = byte * scale + shift, with the numbers of its channel. Sets that are not images hold fp32 features
/// instead, which load_dataset has normalised where they come from files, or which FeatureRows normalises as it reads
/// them. Exactly one of `images`, `store`, `features` and `rows` is there.
struct Dataset {
  std::string name{};  ///< "mnist train"
  ImageShape shape{};  ///< a sample's
  int classes = 0;
  std::vector<std::int32_t> labels{};  ///< [sample], each in [0, classes), or a row of label_sets
  /// Labels of samples that may have several, [rows, classes]. An entry is 1 if the class is a label, else 0. All
  /// parts of a set have the same rows. Empty: a sample has one label.
  std::vector<std::uint8_t> label_sets{};
  std::vector<std::int32_t> places{};    ///< [sample] in the file of its half, ascending; empty: 0, 1, 2 ...
  AlignedBuffer<std::uint8_t> images{};  ///< [sample][channel][row][column], or empty
  std::shared_ptr<const SampleStore> store{};  ///< images on disk: all of its file, see place_in_file
  std::vector<std::string> picture_names{};    ///< [sample] of images that were read from a store; or empty
  AlignedBuffer<float> features{};             ///< [sample][features], or empty
  std::shared_ptr<const SampleStore> rows{};   ///< features on disk, as the file has them
  Normalisation of_rows{};                     ///< normalises `rows` as they are read
  ChannelScales scales{};                      ///< for images
  Fingerprint quick{};                         ///< quick_fingerprint_of it, by load_dataset
  std::optional<Fingerprint> file_fingerprint{};  ///< its file's, where that says so itself

  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
  bool stays_on_disk() const { return store != nullptr || rows != nullptr; }
  bool has_images() const { return images.size() > 0 || store != nullptr; }
  /// Images or features in memory, whichever the set has.
  std::span<const std::byte> samples_in_memory() const {
    return images.size() > 0 ? std::as_bytes(images.span()) : std::as_bytes(features.span());
  }
  bool has_label_sets() const { return !label_sets.empty(); }
  /// The row of a sample. has_label_sets().
  std::span<const std::uint8_t> label_set_of(std::int64_t sample) const {
    const auto row = static_cast<std::size_t>(labels[static_cast<std::size_t>(sample)]);
    return std::span(label_sets)
        .subspan(row * static_cast<std::size_t>(classes), static_cast<std::size_t>(classes));
  }
  /// The picture that a sample is, as people call it; empty: not known here.
  std::string_view picture_name(std::int64_t sample) const {
    if (store != nullptr) return store->name_of(place_in_file(sample));
    return picture_names.empty() ? std::string_view() : picture_names[static_cast<std::size_t>(sample)];
  }
  /// Place of the index-th sample in the file of its half.
  std::int64_t place_in_file(std::int64_t index) const {
    return places.empty() ? index : places[static_cast<std::size_t>(index)];
  }
};

/// Bytes of a sample, without its label.
inline std::size_t row_bytes_of(const Dataset& set) {
  return static_cast<std::size_t>(set.shape.features()) *
         (set.has_images() ? sizeof(std::uint8_t) : sizeof(float));
}

/// The part that a run is evaluated on.
enum class EvaluatedPart { kTest, kValidation };

/// The halves into which a set's files are divided. The last one may be missing.
enum class SetHalf : std::uint8_t { kTrain, kTest, kValidation };
inline const char* name_of(SetHalf half) {
  return half == SetHalf::kTrain ? "train" : half == SetHalf::kTest ? "test" : "validation";
}

/// The member of a struct that has one for each half: `train`, `test` or `validation`.
template <typename Halves>
auto& select_half(Halves& halves, SetHalf half) {
  return half == SetHalf::kTrain ? halves.train : half == SetHalf::kTest ? halves.test : halves.validation;
}

/// Halves of which samples were left out, as their files have them.
struct WholeHalves {
  SetFingerprints fingerprints;
  std::int64_t train = 0, test = 0;  ///< samples
};

struct TrainTestData {
  Dataset train, test;
  Dataset
      validation;  ///< held out of the training half, which lacks them, or from separate files; may be empty
  bool has_validation_half = false;       ///< there are separate files, used or not
  std::optional<WholeHalves> files;       ///< nothing: they hold what is here, and no more
  std::int64_t left_out = 0;              ///< training samples that DatasetOptions::leave_out names
  std::vector<std::string> class_names;   ///< one for each class, in label order
  PictureFit fit = PictureFit::kSqueeze;  ///< with which convert made its images
  Normalisation normalisation;  ///< for files' samples: given by the job, the set's entry, or measured
  std::string directory;        ///< directory of its files; empty: made in memory
  std::string origin;           ///< origin for the start-up line: a directory, or "made in memory"
  std::string columns;  ///< how a table's rows are read (data/sets/table_columns.hpp); empty: as numbers
  std::vector<std::string> remarks{};  ///< to be said at the start, a sentence each: "left out: ..."

  Dataset& half(SetHalf which) { return select_half(*this, which); }
  const Dataset& part(EvaluatedPart which) const { return which == EvaluatedPart::kTest ? test : validation; }
  /// True if `validation` has separate files.
  bool is_validated_by_files() const { return validation.size() > 0 && validation.places.empty(); }
  /// The half that has a part of this set in its files.
  SetHalf half_of(const Dataset& part) const {
    if (&part == &test) return SetHalf::kTest;
    return &part == &validation && is_validated_by_files() ? SetHalf::kValidation : SetHalf::kTrain;
  }
  /// Samples in the files.
  std::int64_t train_in_file() const {
    return files ? files->train : train.size() + std::ssize(validation.places);
  }
  std::int64_t test_in_file() const { return files ? files->test : test.size(); }
};

/// A wrong member of DatasetOptions (data/sets/set_loading.hpp), named as a job's section names it. what() says
/// "mean: 2 numbers ...".
class DatasetOptionError : public OptionError {
 public:
  using OptionError::OptionError;
};

}  // namespace lockstep
