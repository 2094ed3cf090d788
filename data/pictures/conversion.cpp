// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Writing images in their order as a set.
#include "data/pictures/conversion.hpp"

#include "common/buffers.hpp"
#include "common/error.hpp"
#include "common/text_layout.hpp"
#include "data/idx.hpp"
#include "data/pictures/image_queue.hpp"
#include "data/sets/catalogue.hpp"
#include "data/sets/names.hpp"
#include "data/sets/set_formats.hpp"
#include "data/sets/shards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// `to` would be found among the classes the next time.
void require_apart(const ConversionOptions& options) {
  const fs::path from = fs::weakly_canonical(options.from), to = fs::weakly_canonical(options.to);
  const auto [end_of_from, at] = std::mismatch(from.begin(), from.end(), to.begin(), to.end());
  if (end_of_from != from.end()) return;
  throw UsageError(
      fmt::format("{}: lies in {}, where it would be taken for a class; choose a directory elsewhere",
                  options.to, options.from));
}

// The files of a set.

void write_text(Env& env, const std::string& path, const std::string& text) {
  write_synced(env, path, std::as_bytes(std::span(text)));
}

/// One half, in the making.
class IdxHalf {
 public:
  IdxHalf(Env& env, SetDirectory& directory, const char* half, std::size_t count, const ImageShape& shape)
      : env_(env), names_path_(directory.add(sample_names_file(half))) {
    const auto samples = static_cast<std::int64_t>(count);
    std::vector<std::int64_t> dims = {samples, shape.height, shape.width};
    if (shape.channels > 1) dims.push_back(shape.channels);
    labels_.emplace(env, directory.add(fmt::format("{}-labels-idx1-ubyte", half)), std::vector{samples});
    images_.emplace(env, directory.add(fmt::format("{}-images-idx{}-ubyte", half, dims.size())), dims);
  }

  void add(const MadeImage& image, std::uint32_t label, const fs::path& name) {
    const auto byte = static_cast<std::uint8_t>(label);
    images_->write(image.pixels);
    labels_->write({&byte, 1});
    names_ += sample_name_line(name);
  }

  void finish() {
    images_->finish();
    labels_->finish();
    write_text(env_, names_path_, names_);
  }

 private:
  Env& env_;
  std::string names_path_, names_;
  std::optional<IdxWriter> labels_, images_;
};

/// Before anything is written.
void require_room_in_idx(std::size_t samples, const ImageShape& shape) {
  const std::uint64_t bytes = checked_product(samples, shape.channels, shape.height, shape.width);
  if (bytes <= kMaxIdxBytes) return;
  throw DataError(
      fmt::format("{} of {} x {} pixels with {} are more than the {} bytes of an IDX "
                  "file; say --size to make them smaller, or --shards",
                  counted(samples, "image"), shape.width, shape.height, counted(shape.channels, "channel"),
                  kMaxIdxBytes));
}

/// Where the images go.
class SetOutput {
 public:
  virtual ~SetOutput() = default;
  virtual void add(SetHalf half, const MadeImage& image, std::uint32_t label, const fs::path& name) = 0;
  /// Puts the set in its place; without it nothing stays.
  virtual void publish() = 0;
};

class IdxOutput final : public SetOutput {
 public:
  IdxOutput(Env& env, const ConversionOptions& options, const Conversion& of)
      : directory_(env, options.to, options.replace) {
    const std::size_t train = of.pictures.train.size(), test = of.pictures.test.size(),
                      validation = of.pictures.validation.size();
    require_room_in_idx(std::max({train, test, validation}), of.shape);
    std::string names;
    for (const std::string& name : of.pictures.class_names) names += name + "\n";
    // Files get their names in this order: without its images there is no set.
    if (options.fit != PictureFit::kSqueeze)
      write_text(env, directory_.add(kConversionFile), conversion_text(options.fit));
    write_text(env, directory_.add(own_set().names_file), names);
    if (validation > 0) validation_.emplace(env, directory_, "validation", validation, of.shape);
    test_.emplace(env, directory_, "t10k", test, of.shape);
    train_.emplace(env, directory_, "train", train, of.shape);
  }

  void add(SetHalf half, const MadeImage& image, std::uint32_t label, const fs::path& name) override {
    (half == SetHalf::kTrain  ? train_
     : half == SetHalf::kTest ? test_
                              : validation_)
        ->add(image, label, name);
  }

  void publish() override {
    if (validation_) validation_->finish();
    test_->finish();
    train_->finish();
    directory_.publish();
  }

 private:
  SetDirectory directory_;
  std::optional<IdxHalf> train_, test_, validation_;
};

class ShardOutput final : public SetOutput {
 public:
  ShardOutput(Env& env, const ConversionOptions& options, const Conversion& of)
      : writer_(env, options.to, of.shape, of.pictures.class_names,
                {.replace = options.replace, .fit = options.fit}) {}

  void add(SetHalf half, const MadeImage& image, std::uint32_t label, const fs::path& name) override {
    writer_.add(half, image.pixels, label, name);
  }

  void publish() override { writer_.publish(); }

 private:
  ShardWriter writer_;
};

std::unique_ptr<SetOutput> output_for(Env& env, const ConversionOptions& options,
                                      const Conversion& conversion) {
  if (options.shards) return std::make_unique<ShardOutput>(env, options, conversion);
  return std::make_unique<IdxOutput>(env, options, conversion);
}

// All pictures, one after the other.

class ConversionPass {
 public:
  ConversionPass(const ConversionOptions& options, Conversion& result) : options_(options), result_(result) {
    const SortedPictures& found = result.pictures;
    for (const auto* half : {&found.train, &found.test, &found.validation})
      for (const LabelledPicture& picture : *half) pictures_.push_back(&picture);
  }

  /// @returns pictures that cannot be read; if there are any, nothing is published
  std::vector<DamagedPicture> run(Env& env) {
    if (!choose_shape()) return std::move(damaged_);
    const std::unique_ptr<SetOutput> output = output_for(env, options_, result_);
    ImageQueue images(pictures_, options_);
    for (std::size_t i = 0; i < pictures_.size(); ++i) {
      const MadeImage image = images.next();
      if (look_at(image, pictures_[i]->path) && damaged_.empty())
        output->add(half_of(i), image, pictures_[i]->label,
                    pictures_[i]->path.lexically_relative(options_.from));
      if (options_.on_progress) options_.on_progress(i + 1, pictures_.size());
    }
    if (damaged_.empty()) output->publish();
    std::ranges::sort(damaged_, {}, &DamagedPicture::path);
    return std::move(damaged_);
  }

 private:
  SetHalf half_of(std::size_t picture) const {
    const std::size_t train = result_.pictures.train.size(), test = result_.pictures.test.size();
    return picture < train ? SetHalf::kTrain : picture < train + test ? SetHalf::kTest : SetHalf::kValidation;
  }

  /// As it was asked for, or that of the first picture that can be read; false: there is none.
  bool choose_shape() {
    if (options_.size) {
      result_.shape = {channels_of(options_.colour), options_.size->height, options_.size->width};
      return true;
    }
    std::vector<DamagedPicture> damaged;
    for (const LabelledPicture* picture : pictures_) {
      const MadeImage image = try_to_make_image(picture->path, options_);
      first_ = picture->path;
      result_.shape = image.shape;
      if (image.damage.empty()) return true;
      damaged.push_back({picture->path, image.damage});
    }
    damaged_ = std::move(damaged);
    return false;
  }

  /// Whether it can be in the set.
  bool look_at(const MadeImage& image, const fs::path& path) {
    if (!image.damage.empty()) {
      damaged_.push_back({path, image.damage});
      return false;
    }
    if (image.shape != result_.shape) {
      throw DataError(
          fmt::format("{}: {} x {} pixels, but {} has {} x {}; say --size WIDTHxHEIGHT to scale all to "
                      "one size",
                      path.string(), image.shape.width, image.shape.height, first_.string(),
                      result_.shape.width, result_.shape.height));
    }
    result_.reshaped += image.reshaped ? 1 : 0;
    result_.made_grey += image.made_grey ? 1 : 0;
    return true;
  }

  const ConversionOptions& options_;
  Conversion& result_;
  std::vector<const LabelledPicture*> pictures_;
  fs::path first_;
  std::vector<DamagedPicture> damaged_;
};

}  // namespace

DamagedPicturesError::DamagedPicturesError(std::vector<DamagedPicture> pictures)
    : DataError(
          pictures.size() == 1
              ? pictures.front().reason + "; mend or remove it, or leave it out with --skip-damaged"
              : fmt::format("{} cannot be read, the first of them {}; mend or remove them, or leave them "
                            "out with --skip-damaged",
                            counted(pictures.size(), "picture"), pictures.front().path.string())),
      pictures_(std::move(pictures)) {}

Conversion convert_pictures(Env& env, const ConversionOptions& options) {
  require_apart(options);
  const std::size_t most_classes = options.shards ? std::size_t{kMostShardClasses} : kMostClasses;
  std::set<fs::path> skipped;
  for (std::vector<DamagedPicture> all_damaged;;) {
    Conversion result{.pictures = find_sorted_pictures(options.from, options.split, most_classes, skipped),
                      .shape = {0, 0, 0}};
    const std::vector<DamagedPicture> damaged = ConversionPass(options, result).run(env);
    all_damaged.insert(all_damaged.end(), damaged.begin(), damaged.end());
    if (!damaged.empty() && !options.skip_damaged) throw DamagedPicturesError(std::move(all_damaged));
    if (damaged.empty()) {
      result.damaged = std::move(all_damaged);
      return result;
    }
    for (const DamagedPicture& picture : damaged) skipped.insert(picture.path);
  }
}

}  // namespace lockstep
