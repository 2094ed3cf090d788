// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Writing images in their order as a set.
#include "data/pictures/conversion.hpp"

#include "common/machine.hpp"
#include "common/text_layout.hpp"
#include "data/sets/shards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <future>
#include <mutex>
#include <optional>
#include <thread>
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

/// Reads ahead of the image that is wanted, two for each thread.
class ImageQueue {
 public:
  /// Pictures and options must outlive it.
  ImageQueue(const std::vector<const LabelledPicture*>& pictures, const ConversionOptions& options)
      : pictures_(pictures), options_(options) {}
  ~ImageQueue() { end_threads(threads_, mutex_, wanted_, ends_); }

  /// The images in their order, one at each call; as many as there are pictures.
  /// @throws DeviceError  the system gives no more threads
  MadeImage next() {
    const auto threads = static_cast<std::size_t>(options_.threads);
    while (threads_.size() < threads) threads_.push_back(start_thread([this] { work(); }));
    {
      const std::lock_guard lock(mutex_);
      for (; begun_ < pictures_.size() && images_.size() < 2 * threads; ++begun_) {
        const fs::path& path = pictures_[begun_]->path;
        tasks_.emplace_back([this, &path] { return try_to_make_image(path, options_); });
        images_.push_back(tasks_.back().get_future());
      }
    }
    wanted_.notify_all();
    auto image = std::move(images_.front());
    images_.pop_front();
    return image.get();
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wanted_.wait(lock, [this] { return ends_ || !tasks_.empty(); });
      if (ends_) return;
      auto make = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      make();
      lock.lock();
    }
  }

  const std::vector<const LabelledPicture*>& pictures_;
  const ConversionOptions& options_;
  std::mutex mutex_;
  std::condition_variable wanted_;
  std::deque<std::packaged_task<MadeImage()>> tasks_;  ///< not begun
  std::deque<std::future<MadeImage>> images_;          ///< not handed over
  std::size_t begun_ = 0;
  bool ends_ = false;
  std::vector<std::thread> threads_;
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
