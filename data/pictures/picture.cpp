// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Scaling by areas, inverting, and whether the background is light.
#include "data/pictures/picture.hpp"

#include "common/error.hpp"
#include "data/byte_source.hpp"
#include "data/idx.hpp"
#include "data/sets/sample_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>

namespace lockstep {

namespace {

/// How much of source pixels `first`, `first + 1`, ... one target pixel takes.
struct Coverage {
  int first = 0;
  std::vector<double> weights;  ///< add up to 1
};

/// The share of each source pixel in the area of a target pixel.
Coverage coverage(int target, int target_size, int source_size) {
  const double scale = static_cast<double>(source_size) / target_size;
  const double begin = target * scale, end = (target + 1) * scale;
  Coverage result{.first = static_cast<int>(begin), .weights = {}};
  for (int s = result.first; s < source_size && s < end; ++s) {
    const double overlap = std::min<double>(end, s + 1) - std::max<double>(begin, s);
    result.weights.push_back(overlap / scale);
  }
  return result;
}

/// The two source pixels whose centres a target pixel's centre lies between.
Coverage between(int target, int target_size, int source_size) {
  const double centre = (target + 0.5) * source_size / target_size - 0.5;
  const double inside = std::clamp(centre, 0.0, static_cast<double>(source_size - 1));
  const int first = std::min(static_cast<int>(inside), std::max(0, source_size - 2));
  if (source_size == 1) return {.first = 0, .weights = {1}};
  return {.first = first, .weights = {1 - (inside - first), inside - first}};
}

std::vector<Coverage> coverages(int target_size, int source_size, bool smoothly) {
  std::vector<Coverage> all;
  for (int t = 0; t < target_size; ++t) {
    all.push_back(smoothly && target_size > source_size ? between(t, target_size, source_size)
                                                        : coverage(t, target_size, source_size));
  }
  return all;
}

/// @param plane  one channel of a picture, `width` pixels a row
double weighted(std::span<const std::uint8_t> plane, int width, const Coverage& rows,
                const Coverage& columns) {
  double sum = 0;
  for (std::size_t r = 0; r < rows.weights.size(); ++r) {
    const auto row = (static_cast<std::size_t>(rows.first) + r) * static_cast<std::size_t>(width);
    double row_sum = 0;
    for (std::size_t c = 0; c < columns.weights.size(); ++c)
      row_sum += columns.weights[c] * plane[row + static_cast<std::size_t>(columns.first) + c];
    sum += rows.weights[r] * row_sum;
  }
  return sum;
}

Picture scaled(const Picture& picture, int width, int height, bool smoothly) {
  Picture result = picture;
  if (width == picture.width && height == picture.height) return result;
  result.width = width;
  result.height = height;
  result.pixels.clear();
  const auto all_rows = coverages(height, picture.height, smoothly),
             all_columns = coverages(width, picture.width, smoothly);
  for (std::size_t at = 0; at < picture.pixels.size(); at += picture.plane_size()) {
    const auto plane = std::span(picture.pixels).subspan(at, picture.plane_size());
    for (const Coverage& rows : all_rows) {
      for (const Coverage& columns : all_columns) {
        const double value = weighted(plane, picture.width, rows, columns);
        result.pixels.push_back(static_cast<std::uint8_t>(std::clamp(value + 0.5, 0.0, 255.0)));
      }
    }
  }
  return result;
}

}  // namespace

Picture resize(const Picture& picture, int width, int height) {
  return scaled(picture, width, height, false);
}

Picture resize_smoothly(const Picture& picture, int width, int height) {
  return scaled(picture, width, height, true);
}

void invert(Picture& picture) {
  for (auto& pixel : picture.pixels) pixel = static_cast<std::uint8_t>(255 - pixel);
}

bool has_light_background(const Picture& picture) {
  return has_light_border(picture.pixels, picture.shape());
}

bool has_light_border(std::span<const std::uint8_t> pixels, const ImageShape& shape) {
  const auto [channels, height, width] = shape;
  std::int64_t sum = 0, count = 0;
  const auto add = [&](std::int64_t row, int x) {
    sum += pixels[static_cast<std::size_t>(row * shape.width + x)];
    ++count;
  };
  for (std::int64_t row = 0; row < std::int64_t{channels} * height; ++row) {
    const bool whole_row = row % height == 0 || row % height + 1 == height;
    for (int x = 0; x < width; x += whole_row || width == 1 ? 1 : width - 1) add(row, x);
  }
  return count > 0 && sum > 127 * count;
}

// Tells the formats of pictures apart, and reads those of IDX files.

namespace {

constexpr std::uintmax_t kMaxFileBytes = std::uintmax_t{256} << 20;

/// Each picture is work for the network. Compressed data promise millions of them in a few bytes, and real ones take
/// more: an image of MNIST 160 bytes.
void check_picture_count(const std::string& name, std::int64_t count, std::size_t file_bytes) {
  constexpr std::size_t kAlways = 1000, kLeastBytesOfEach = 16;
  if (static_cast<std::uint64_t>(count) <= kAlways + file_bytes / kLeastBytesOfEach) return;
  throw DataError(
      fmt::format("{}: {} images in {} bytes, less than {} bytes for each: no file of pictures; name one of "
                  "them as {}[0]",
                  name, count, file_bytes, kLeastBytesOfEach, name));
}

Pictures read_idx_pictures(const std::string& name, std::span<const std::uint8_t> file,
                           std::optional<std::int64_t> only) {
  if (!only) check_picture_count(name, parse_idx_dims(file, name).front(), file.size());
  IdxArray array = parse_idx(file, name);
  if (array.dims.size() < 3) {
    throw DataError(
        fmt::format("{}: holds {}, not images; expected count x height x width, and channels where "
                    "there are several",
                    name, to_string(array.dims)));
  }
  check_picture_size(name, array.dims[2], array.dims[1]);
  if (only && *only >= array.dims[0]) {
    throw DataError(
        fmt::format("{}: there is no image {}; it holds 0 to {}", name, *only, array.dims[0] - 1));
  }
  const auto all = static_cast<std::size_t>(array.dims[0]);
  return {std::move(array), name, static_cast<std::size_t>(only.value_or(0)), only ? 1 : all};
}

struct PictureName {
  std::string path;
  std::optional<std::int64_t> index;
};

/// "file[12]" → file, 12; unless a file of that very name exists.
PictureName split_index(const std::string& text) {
  const auto open = text.rfind('[');
  if (open == std::string::npos || text.back() != ']' || std::filesystem::exists(text))
    return {text, std::nullopt};
  std::int64_t index = 0;
  const char* end = text.data() + text.size() - 1;
  const auto [stop, error] = std::from_chars(text.data() + open + 1, end, index);
  if (error != std::errc() || stop != end || index < 0) return {text, std::nullopt};
  return {text.substr(0, open), index};
}

std::vector<std::uint8_t> read_file(const std::string& path) {
  FileSource file(path);
  const std::uint64_t size = file.remaining_at_most();
  if (size > kMaxFileBytes)
    throw DataError(fmt::format("{}: {} bytes; at most {} are read", path, size, kMaxFileBytes));
  std::vector<std::uint8_t> bytes(size);
  bytes.resize(file.read(bytes));
  return bytes;
}

bool starts_with(std::span<const std::uint8_t> file, std::string_view magic) {
  return file.size() >= magic.size() && std::memcmp(file.data(), magic.data(), magic.size()) == 0;
}

}  // namespace

void check_picture_size(const std::string& name, std::int64_t width, std::int64_t height) {
  if (width < 1 || height < 1 || width > kMaxPictureSide || height > kMaxPictureSide ||
      width * height > kMaxPicturePixels) {
    throw DataError(
        fmt::format("{}: {} x {} pixels; pictures from 1 x 1 to {} pixels a side and {} in all are read",
                    name, width, height, kMaxPictureSide, kMaxPicturePixels));
  }
}

Picture Pictures::operator[](std::size_t index) const {
  if (single_) return *single_;
  const std::int64_t channels = images_.dims.size() == 4 ? images_.dims[3] : 1;
  Picture picture{.name = fmt::format("{}[{}]", name_, first_ + index),
                  .width = static_cast<int>(images_.dims[2]),
                  .height = static_cast<int>(images_.dims[1]),
                  .channels = static_cast<int>(channels),
                  .from_idx = true};
  const std::size_t size = picture.plane_size() * static_cast<std::size_t>(channels);
  const auto* begin = images_.bytes.data() + (first_ + index) * size;
  picture.pixels.assign(begin, begin + size);
  separate_channels(picture.pixels, picture.plane_size(), picture.channels);
  if (!originals_.empty()) picture.original = originals_[first_ + index];
  return picture;
}

std::string Pictures::look_up_originals() {
  if (single_) return "";
  SampleNames found = read_sample_names(Env::posix(), sample_names_beside(name_), images_.dims[0]);
  originals_ = std::move(found.names);
  return found.warning;
}

Pictures read_pictures(const std::string& path, PictureColour colour) {
  const auto [file_name, index] = split_index(path);
  return parse_pictures(read_file(file_name), file_name, index, colour);
}

Pictures parse_pictures(std::span<const std::uint8_t> file, const std::string& name,
                        std::optional<std::int64_t> only, PictureColour colour) {
  const bool idx = starts_with(file, std::string_view("\0\0\x08", 3)) || starts_with(file, "\x1f\x8b");
  if (idx) return read_idx_pictures(name, file, only);
  if (only) {
    throw DataError(fmt::format("{}: '[{}]' picks an image of an IDX file, and this is none", name, *only));
  }
  if (starts_with(file, "\x89PNG\r\n\x1a\n")) return Pictures(read_png(name, file, colour));
  if (starts_with(file, "\xff\xd8\xff")) return Pictures(read_jpeg(name, file, colour));
  if (starts_with(file, "P5") || starts_with(file, "P6")) return Pictures(read_pgm(name, file, colour));
  throw DataError(fmt::format("{}: neither PNG, JPEG, binary PGM (P5) or PPM (P6) nor IDX", name));
}

}  // namespace lockstep
