// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Inputs of `lockstep predict`: pictures, prepared like the training images, and samples of a set.
#pragma once

#include "data/dataset.hpp"
#include "data/pictures/picture.hpp"
#include "data/pictures/preparation.hpp"
#include "data/sets/names.hpp"
#include "trainer/run/saved_model.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

/// Options that describe the pictures.
struct PreparationOptions {
  std::string invert = "auto";         ///< yes, no or auto
  std::optional<PictureFit> fit = {};  ///< nothing: as the training images were made
  bool raw = false;                    ///< scaled, and nothing else
};

/// How pictures become what the network was trained on.
class Preparation {
 public:
  /// @throws UsageError  a fit is given, and ink is cut out
  Preparation(const SavedModel& model, const PreparationOptions& options);

  /// @throws DataError  a picture with other channels than the training images
  PreparedPicture operator()(const Picture& picture) const;

 private:
  PreparedPicture from_data_set(const Picture& picture) const;
  PreparedPicture only_scaled(const Picture& picture) const;
  PreparedPicture scaled(const Picture& picture, Polarity polarity) const;

  ImageShape shape_;
  PictureFrame frame_;
  PictureFit fit_;
  bool raw_, trained_on_light_;
  Polarity polarity_;
};

/// A sample of a set: "test[12]" of the run's own, "DIR/validation[3]" of another, "DIR[12]" of its test half.
struct SampleName {
  std::string directory;  ///< empty: where the run had its data
  SetHalf half = SetHalf::kTest;
  std::int64_t index = 0;  ///< in the files of the half
};

/// Nothing: the text is no such name, or there is a file of it.
std::optional<SampleName> parse_sample_name(const std::string& text);

/// As its files have it: a picture, or the numbers of a row.
struct SetSample {
  Picture picture{};
  std::vector<float> row{};
};

/// Reads samples of sets of the kind that a run was trained on, each set once.
class SetSamples {
 public:
  /// @param model  must outlive this
  explicit SetSamples(const SavedModel& model) : model_(model) {}

  /// @param text  names the sample in messages and answers
  /// @throws DataError, MissingDataError, IoError  as load_dataset; there are fewer samples; UsageError  no such half
  SetSample read(const SampleName& name, const std::string& text);

 private:
  struct Half {
    std::shared_ptr<TrainTestData> data;
    SampleNames originals = {};
  };
  const Half& load(const SampleName& name);

  const SavedModel& model_;
  std::map<std::pair<std::string, SetHalf>, Half> loaded_;
};

}  // namespace lockstep
