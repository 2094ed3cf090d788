// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Reading pictures one after another, and writing them as a set.
#include "data/pictures/conversion.hpp"

#include "common/buffers.hpp"
#include "common/error.hpp"
#include "common/text_layout.hpp"
#include "data/byte_source.hpp"
#include "data/idx.hpp"
#include "data/sets/catalogue.hpp"
#include "data/sets/sample_names.hpp"
#include "data/sets/set_files.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <span>
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

Picture read_picture(const fs::path& path, const ConversionOptions& options) {
  const Pictures pictures = read_pictures(path.string(), options.colour);
  Picture picture = pictures[0];
  if (picture.from_idx)
    throw DataError(
        fmt::format("{}: is an IDX file, whatever its name says; convert pictures only", path.string()));
  return options.size ? resize(picture, options.size->width, options.size->height) : picture;
}

void write_text(Env& env, const std::string& path, const std::string& text) {
  write_synced(env, path, std::as_bytes(std::span(text)));
}

/// Turns pictures into the images of one half of the set.
class HalfWriter {
 public:
  HalfWriter(const ConversionOptions& options, const fs::path& first, const ImageShape& shape)
      : options_(options), first_(first), shape_(shape), image_(static_cast<std::size_t>(shape.features())) {}

  void write(Env& env, const std::vector<LabelledPicture>& pictures, const std::string& images_path,
             const std::string& labels_path, const std::string& names_path) {
    const auto count = static_cast<std::int64_t>(pictures.size());
    std::vector<std::int64_t> dims = {count, shape_.height, shape_.width};
    if (shape_.channels > 1) dims.push_back(shape_.channels);
    IdxWriter images(env, images_path, dims), labels(env, labels_path, dims_of_labels(count));
    std::string names;
    for (const LabelledPicture& labelled : pictures) {
      names += sample_name_line(labelled.path.lexically_relative(options_.from));
      images.write(image_of(labelled.path));
      labels.write({&labelled.label, 1});
    }
    images.finish();
    labels.finish();
    write_text(env, names_path, names);
  }

 private:
  static std::vector<std::int64_t> dims_of_labels(std::int64_t count) { return {count}; }

  std::span<const std::uint8_t> image_of(const fs::path& path) {
    const Picture picture = read_picture(path, options_);
    if (picture.shape() != shape_) {
      throw DataError(fmt::format(
          "{}: {} x {} pixels, but {} has {} x {}; say --size WIDTHxHEIGHT to scale all to "
          "one size",
          path.string(), picture.width, picture.height, first_.string(), shape_.width, shape_.height));
    }
    interleave_channels(picture.pixels, picture.plane_size(), picture.channels, image_);
    return image_;
  }

  const ConversionOptions& options_;
  const fs::path& first_;
  ImageShape shape_;
  std::vector<std::uint8_t> image_;
};

/// Before anything is written.
void require_room_in_idx(const std::vector<LabelledPicture>& half, const ImageShape& shape) {
  const std::uint64_t bytes = checked_product(half.size(), shape.channels, shape.height, shape.width);
  if (bytes <= kMaxIdxBytes) return;
  throw DataError(
      fmt::format("{} of {} x {} pixels with {} are more than the {} bytes of an IDX "
                  "file; say --size to make them smaller",
                  counted(half.size(), "image"), shape.width, shape.height,
                  counted(shape.channels, "channel"), kMaxIdxBytes));
}

}  // namespace

Conversion convert_pictures(Env& env, const ConversionOptions& options) {
  require_apart(options);
  Conversion result{.pictures = find_sorted_pictures(options.from, options.test), .shape = {0, 0, 0}};
  const SortedPictures& pictures = result.pictures;
  const fs::path& first = pictures.train.front().path;
  result.shape = options.size
                     ? ImageShape{channels_of(options.colour), options.size->height, options.size->width}
                     : read_picture(first, options).shape();
  for (const auto* half : {&pictures.train, &pictures.test}) require_room_in_idx(*half, result.shape);
  SetDirectory directory(env, options.to, options.replace);
  HalfWriter writer(options, first, result.shape);
  const char* dims = result.shape.channels > 1 ? "idx4" : "idx3";
  const auto images = [&](const char* half) {
    return directory.add(fmt::format("{}-images-{}-ubyte", half, dims));
  };
  const auto labels = [&](const char* half) {
    return directory.add(fmt::format("{}-labels-idx1-ubyte", half));
  };
  const auto originals = [&](const char* half) { return directory.add(sample_names_file(half)); };
  writer.write(env, pictures.train, images("train"), labels("train"), originals("train"));
  writer.write(env, pictures.test, images("t10k"), labels("t10k"), originals("t10k"));
  std::string names;
  for (const std::string& name : pictures.class_names) names += name + "\n";
  write_text(env, directory.add(own_set().names_file), names);
  directory.publish();
  return result;
}

}  // namespace lockstep
