// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Inputs: pictures are scaled like the training images, or their ink is cut out; samples of a set stay.
#include "trainer/tools/prediction_input.hpp"

#include "common/error.hpp"
#include "common/output.hpp"
#include "common/text_layout.hpp"
#include "common/yaml.hpp"
#include "data/batch_loader.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

namespace lockstep {

Preparation::Preparation(const SavedModel& model, const PreparationOptions& options)
    : shape_(model.network.input_shape()),
      frame_(find_set(model.data.options.set).frame),
      fit_(options.fit.value_or(model.data.options.pictures.fit)),
      raw_(options.raw),
      trained_on_light_(model.data.light_background),
      polarity_(options.invert == "yes"  ? Polarity::kDarkInk
                : options.invert == "no" ? Polarity::kLightInk
                                         : Polarity::kFromPicture) {
  if (fit_ != PictureFit::kSqueeze && !frame_.is_photo && !raw_)
    throw UsageError(
        "--fit: ink is cut out and centred for this run, not scaled whole; add --raw, or leave --fit out");
}

PreparedPicture Preparation::operator()(const Picture& picture) const {
  if (picture.channels != shape_.channels)
    throw DataError(fmt::format(
        "{}: {} a pixel, but the network was trained on images with {}; give it pictures like those",
        picture.name, counted(picture.channels, "channel"), shape_.channels));
  if (picture.from_idx) return from_data_set(picture);
  // Ink and paper need not be told apart on photos, and the training images were only scaled, too.
  if (frame_.is_photo)
    return scaled(picture, polarity_ == Polarity::kFromPicture ? Polarity::kLightInk : polarity_);
  if (raw_) return only_scaled(picture);
  PreparedPicture prepared = prepare_picture(picture, shape_.width, shape_.height, frame_, polarity_);
  if (!trained_on_light_) return prepared;
  invert(prepared.picture);
  prepared.done.emplace_back("dark on light, like the training images");
  return prepared;
}

/// Data are what they are: only --invert yes changes them.
PreparedPicture Preparation::from_data_set(const Picture& picture) const {
  const bool inverts = polarity_ == Polarity::kDarkInk;
  PreparedPicture prepared =
      scale_picture(picture, shape_.width, shape_.height, inverts ? Polarity::kDarkInk : Polarity::kLightInk);
  if (!inverts) prepared.done.emplace_back("as in the file");
  return prepared;
}

PreparedPicture Preparation::only_scaled(const Picture& picture) const {
  const bool automatic = polarity_ == Polarity::kFromPicture;
  const bool inverts = automatic ? has_light_border(picture.pixels, picture.shape()) != trained_on_light_
                                 : polarity_ == Polarity::kDarkInk;
  PreparedPicture prepared = scaled(picture, inverts ? Polarity::kDarkInk : Polarity::kLightInk);
  if (automatic && !inverts)
    prepared.done.emplace_back("not inverted: its background is that of the training images");
  return prepared;
}

PreparedPicture Preparation::scaled(const Picture& picture, Polarity polarity) const {
  if (fit_ == PictureFit::kSqueeze) return scale_picture(picture, shape_.width, shape_.height, polarity);
  const Picture fitted = fit_picture(picture, {shape_.width, shape_.height}, fit_);
  PreparedPicture prepared = scale_picture(fitted, shape_.width, shape_.height, polarity);
  prepared.done.emplace_back(fit_ == PictureFit::kCrop ? "cropped" : "padded");
  return prepared;
}

// Samples of a set.

namespace {

namespace fs = std::filesystem;

/// "12]"
std::optional<std::int64_t> index_in(std::string_view text) {
  if (!text.ends_with(']')) return std::nullopt;
  const auto index = parse_int64(text.substr(0, text.size() - 1));
  return index && *index >= 0 ? index : std::nullopt;
}

DatasetOptions options_for(const DatasetOptions& of_run, const SampleName& name) {
  DatasetOptions wanted = of_run;
  wanted.validation = {.is_files = name.half == SetHalf::kValidation};
  wanted.leave_out = nullptr;  // a place is one in the file
  if (!is_made_in_memory(wanted.set)) wanted.train_samples = wanted.test_samples = 0;
  if (find_set(wanted.set).is_fp32) {  // rows as they are: the predictor normalises what it is given
    wanted.mean = {0};
    wanted.std = {1};
  }
  wanted.directory = resolve_data_root(wanted, name.directory);
  return wanted;
}

}  // namespace

std::optional<SampleName> parse_sample_name(const std::string& text) {
  const auto open = text.rfind('[');
  std::error_code ignored;
  if (open == text.npos || fs::exists(text, ignored)) return std::nullopt;
  const auto index = index_in(std::string_view(text).substr(open + 1));
  if (!index) return std::nullopt;
  const fs::path path = text.substr(0, open);
  for (const SetHalf half : {SetHalf::kTrain, SetHalf::kTest, SetHalf::kValidation})
    if (path.filename() == name_of(half)) return SampleName{path.parent_path().string(), half, *index};
  if (!fs::is_directory(path, ignored)) return std::nullopt;
  return SampleName{path.string(), SetHalf::kTest, *index};
}

const SetSamples::Half& SetSamples::load(const SampleName& name) {
  const std::pair key{name.directory, name.half};
  if (const auto found = loaded_.find(key); found != loaded_.end()) return found->second;
  Half half{.data = std::make_shared<TrainTestData>()};
  try {
    *half.data = load_dataset(options_for(model_.data.options, name));
  } catch (const DatasetOptionError& error) {
    if (error.option() != "validation") throw;
    throw UsageError(
        fmt::format("validation[{}]: the set has no validation half of its own; samples that a run held out "
                    "(data.validation) are in the training half: say train[N]",
                    name.index));
  }
  half.originals = read_sample_names(*half.data, name.half);
  if (!half.originals.warning.empty()) print_error("warning: " + half.originals.warning);
  return loaded_.emplace(key, std::move(half)).first->second;
}

SetSample SetSamples::read(const SampleName& name, const std::string& text) {
  const Half& loaded = load(name);
  const Dataset& half = loaded.data->half(name.half);
  if (name.index >= half.size())
    throw DataError(fmt::format("{}: there is no sample {} in {}; it holds 0 to {}", text, name.index,
                                loaded.data->origin, half.size() - 1));
  const auto index = static_cast<std::int32_t>(name.index);
  if (!half.has_images()) {
    const FeatureRows rows(half, std::span(&index, 1));
    return {.row = {rows[0].begin(), rows[0].end()}};
  }
  const ImageRows rows(half, {&index, 1});
  Picture picture{.name = text,
                  .width = half.shape.width,
                  .height = half.shape.height,
                  .channels = half.shape.channels,
                  .from_idx = true};
  picture.pixels.assign(rows[0].begin(), rows[0].end());
  picture.original = half.picture_name(index);
  if (!loaded.originals.names.empty())
    picture.original = loaded.originals.names[static_cast<std::size_t>(name.index)];
  return {.picture = std::move(picture)};
}

}  // namespace lockstep
