// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Writing images in their order as a set.
#include "data/pictures/conversion.hpp"

#include "common/machine.hpp"
#include "common/text_layout.hpp"
#include "data/sets/shards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <exception>
#include <future>
#include <optional>
#include <span>
#include <utility>

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

// Pictures made images, on whichever thread has time, and handed over in their order.

/// The image made of one picture.
struct MadeImage {
  std::vector<std::uint8_t> pixels{};  ///< as the files of the set hold them
  ImageShape shape{};
  bool reshaped = false, made_grey = false, had_16_bits = false;
  std::string damage{};  ///< why there is none
};

/// @throws DataError, MissingDataError, IoError
MadeImage make_image(const fs::path& path, const ConversionOptions& options) {
  Picture picture = read_pictures(path.string(), options.colour)[0];
  if (picture.from_idx)
    throw DataError(
        fmt::format("{}: is an IDX file, whatever its name says; convert pictures only", path.string()));
  MadeImage made{.made_grey = picture.was_coloured && picture.channels == 1,
                 .had_16_bits = picture.had_16_bits};
  if (options.size) {
    made.reshaped = std::int64_t{picture.width} * options.size->height !=
                    std::int64_t{picture.height} * options.size->width;
    picture = fit_picture(picture, *options.size, options.fit);
  }
  made.shape = picture.shape();
  made.pixels = std::move(picture.pixels);
  return made;
}

/// A fault of a picture concerns it alone.
MadeImage try_to_make_image(const fs::path& path, const ConversionOptions& options) {
  const auto damaged = [](const std::exception& error) { return MadeImage{.damage = error.what()}; };
  try {
    return make_image(path, options);
  } catch (const DataError& error) {
    return damaged(error);
  } catch (const MissingDataError& error) {
    return damaged(error);
  } catch (const IoError& error) {
    return damaged(error);
  }
}

/// Reads ahead of the image that is wanted.
class ImageQueue {
 public:
  /// Pictures and options must outlive it.
  ImageQueue(std::span<const LabelledPicture* const> pictures, const ConversionOptions& options)
      : left_(pictures), options_(options) {}

  /// The images in their order, one at each call; as many as there are pictures.
  /// @throws DeviceError  the system gives no more threads
  MadeImage next() {
    while (!left_.empty() && std::ssize(ahead_) < options_.threads) {
      const auto some = left_.first(std::min(kAtOnce, left_.size()));
      left_ = left_.subspan(some.size());
      ahead_.push_back(start_async([this, some] {
        std::deque<MadeImage> images;
        for (const LabelledPicture* picture : some)
          images.push_back(try_to_make_image(picture->path, options_));
        return images;
      }));
    }
    if (made_.empty()) {
      made_ = ahead_.front().get();
      ahead_.pop_front();
    }
    MadeImage image = std::move(made_.front());
    made_.pop_front();
    return image;
  }

 private:
  static constexpr std::size_t kAtOnce = 4;  // worth a thread

  std::span<const LabelledPicture* const> left_;  ///< not begun
  const ConversionOptions& options_;
  std::deque<MadeImage> made_;                            ///< not handed over
  std::deque<std::future<std::deque<MadeImage>>> ahead_;  ///< the last member: its threads use the others
};

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
    std::optional<ShardWriter> output;
    ImageQueue images(pictures_, options_);
    for (std::size_t i = 0; i < pictures_.size(); ++i) {
      const MadeImage image = images.next();
      const fs::path& path = pictures_[i]->path;
      if (!image.damage.empty()) {
        damaged_.push_back({path, image.damage});
      } else {
        if (!output) {
          first_ = path;
          result_.shape = image.shape;
          output.emplace(env, options_.to, image.shape, result_.pictures.class_names,
                         ShardWriter::Options{.replace = options_.replace, .fit = options_.fit});
        }
        look_at(image, path);
        if (damaged_.empty())
          output->add(half_of(i), image.pixels, pictures_[i]->label, path.lexically_relative(options_.from));
      }
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

  /// Counts what was done to it.
  void look_at(const MadeImage& image, const fs::path& path) {
    if (image.shape != result_.shape)
      throw DataError(
          fmt::format("{}: {} x {} pixels, but {} has {} x {}; say --size WIDTHxHEIGHT to scale all to "
                      "one size",
                      path.string(), image.shape.width, image.shape.height, first_.string(),
                      result_.shape.width, result_.shape.height));
    result_.reshaped += image.reshaped ? 1 : 0;
    result_.made_grey += image.made_grey ? 1 : 0;
    result_.had_16_bits += image.had_16_bits ? 1 : 0;
  }

  const ConversionOptions& options_;
  Conversion& result_;
  std::vector<const LabelledPicture*> pictures_;
  fs::path first_;  ///< that can be read: all others have its shape
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
  std::set<fs::path> skipped;
  for (std::vector<DamagedPicture> all_damaged;;) {
    Conversion result{.pictures = find_sorted_pictures(options.from, options.split, skipped),
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
