// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Recognises the formats of pictures, and changes any picture: inverted, laid on paper, grey.
#include "data/pictures/picture.hpp"

#include "common/error.hpp"
#include "common/text_layout.hpp"
#include "data/byte_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace lockstep {

void invert(Picture& picture) {
  for (auto& pixel : picture.pixels) pixel = static_cast<std::uint8_t>(255 - pixel);
}

bool has_light_border(std::span<const std::uint8_t> pixels, const ImageShape& shape) {
  const auto [channels, height, width] = shape;
  std::int64_t sum = 0, count = 0;
  for (std::int64_t row = 0; row < std::int64_t{channels} * height; ++row) {
    const bool whole_row = row % height == 0 || row % height + 1 == height;
    for (int x = 0; x < width; x += whole_row || width == 1 ? 1 : width - 1) {
      sum += pixels[static_cast<std::size_t>(row * width + x)];
      ++count;
    }
  }
  return count > 0 && sum > 127 * count;
}

// Recognises the formats of pictures, and reads those of IDX files.

namespace {

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
  if (array.dims.size() < 3)
    throw DataError(
        fmt::format("{}: holds {}, not images; expected count x height x width, and channels where "
                    "there are several",
                    name, to_string(array.dims)));
  check_picture_size(name, array.dims[2], array.dims[1]);
  if (only && *only >= array.dims[0])
    throw DataError(
        fmt::format("{}: there is no image {}; it holds 0 to {}", name, *only, array.dims[0] - 1));
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
  const auto index =
      parse_whole<std::int64_t>(std::string_view(text).substr(open + 1, text.size() - open - 2));
  if (!index || *index < 0) return {text, std::nullopt};
  return {text.substr(0, open), index};
}

using PictureReader = Picture (*)(const std::string&, std::span<const std::uint8_t>, PictureColour);

/// How files begin.
constexpr std::pair<std::string_view, PictureReader> kReaders[] = {{"\x89PNG\r\n\x1a\n", read_png},
                                                                   {"\xff\xd8\xff", read_jpeg},
                                                                   {"P5", read_pgm},
                                                                   {"P6", read_pgm},
                                                                   {"BM", read_bmp}};

}  // namespace

void check_picture_size(const std::string& name, std::int64_t width, std::int64_t height) {
  if (width < 1 || height < 1 || width > kMaxPictureSide || height > kMaxPictureSide ||
      width * height > kMaxPicturePixels)
    throw DataError(
        fmt::format("{}: {} x {} pixels; pictures from 1 x 1 to {} pixels a side and {} in all are read",
                    name, width, height, kMaxPictureSide, kMaxPicturePixels));
}

void check_packed_size(const std::string& name, std::int64_t width, std::int64_t height,
                       std::size_t file_bytes) {
  constexpr std::int64_t kAlways = std::int64_t{1} << 20, kOfEachByte = 4096;
  check_picture_size(name, width, height);
  if (width * height > kAlways + kOfEachByte * static_cast<std::int64_t>(file_bytes))
    throw DataError(fmt::format("{}: {} {} cannot hold {} x {} pixels of a picture; it is damaged, or empty",
                                name, file_bytes, plural(file_bytes, "byte"), width, height));
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
  separate_channels(std::span(picture.pixels), picture.plane_size(), picture.channels);
  return picture;
}

Pictures read_pictures(const std::string& path, PictureColour colour) {
  const auto [file_name, index] = split_index(path);
  return parse_pictures(read_file(file_name, kMaxPictureFileBytes, "; at most {} are read"), file_name, index,
                        colour);
}

Pictures parse_pictures(std::span<const std::uint8_t> file, const std::string& name,
                        std::optional<std::int64_t> only, PictureColour colour) {
  const std::string_view text = as_text(file);
  if (text.starts_with(std::string_view("\0\0\x08", 3)) || text.starts_with(as_text(kGzipMagic)))
    return read_idx_pictures(name, file, only);
  if (only)
    throw DataError(fmt::format("{}: '[{}]' picks an image of an IDX file, and this is none", name, *only));
  return Pictures(parse_picture(file, name, colour));
}

Picture parse_picture(std::span<const std::uint8_t> file, const std::string& name, PictureColour colour) {
  const std::string_view form = as_text(file).substr(0, 12);
  for (const auto& [magic, read] : kReaders)
    if (form.starts_with(magic)) return read(name, file, colour);
  if (form.starts_with("RIFF") && form.ends_with("WEBP")) return read_webp(name, file, colour);
  if (form.starts_with("GIF8")) throw DataError(name + ": GIF, which is not read: save it as PNG");
  throw DataError(fmt::format("{}: {}neither PNG, JPEG, WEBP, BMP, binary PGM (P5) or PPM (P6) nor IDX", name,
                              file.empty() ? "is empty: " : ""));
}

// Transparent pictures laid on paper, and colours made grey.

namespace {

using Pixels = std::vector<std::uint8_t>;

struct WithAlpha {
  Pixels bytes;          ///< [pixel][channels + 1], alpha last
  std::size_t channels;  ///< 1 or 3

  std::size_t pixels() const { return bytes.size() / (channels + 1); }
  int alpha(std::size_t pixel) const { return bytes[pixel * (channels + 1) + channels]; }
  int value(std::size_t pixel, std::size_t channel) const { return bytes[pixel * (channels + 1) + channel]; }
};

/// [channels][pixel]
Pixels laid_on(const WithAlpha& picture, int paper) {
  Pixels opaque;
  opaque.reserve(picture.channels * picture.pixels());
  for (std::size_t c = 0; c < picture.channels; ++c)
    for (std::size_t i = 0; i < picture.pixels(); ++i) {
      const int value = picture.value(i, c), alpha = picture.alpha(i);
      opaque.push_back(static_cast<std::uint8_t>((value * alpha + paper * (255 - alpha) + 127) / 255));
    }
  return opaque;
}

int contrast(const Pixels& pixels) {
  const auto [low, high] = std::minmax_element(pixels.begin(), pixels.end());
  return *high - *low;
}

bool is_opaque(const WithAlpha& picture) {
  for (std::size_t i = 0; i < picture.pixels(); ++i)
    if (picture.alpha(i) != 255) return false;
  return true;
}

}  // namespace

/// Dark strokes on nothing are what drawing programs save; light ones on nothing would vanish on white.
void lay_on_paper(Picture& picture, Pixels with_alpha) {
  constexpr int kInvisible = 16, kWhitePixel = 255, kBlackPixel = 0;
  const WithAlpha source{std::move(with_alpha), static_cast<std::size_t>(picture.channels)};
  picture.pixels = laid_on(source, kWhitePixel);
  if (is_opaque(source)) return;
  picture.notes.emplace_back("transparent: laid on white");
  if (contrast(picture.pixels) >= kInvisible) return;
  Pixels on_black = laid_on(source, kBlackPixel);
  if (contrast(on_black) < kInvisible) return;
  picture.pixels = std::move(on_black);
  picture.notes.back() = "transparent and light: laid on black";
}

void recolour(Picture& picture, PictureColour colour) {
  const std::size_t size = picture.plane_size();
  const int wanted = channels_of(colour);
  if (picture.channels == wanted) return;
  if (colour == PictureColour::kRgb) {
    picture.pixels.resize(3 * size);
    for (const std::size_t plane : {size, 2 * size})
      std::copy_n(picture.pixels.data(), size, picture.pixels.data() + plane);
  } else {
    for (std::size_t i = 0; i < size; ++i) {
      const int red = picture.pixels[i], green = picture.pixels[size + i],
                blue = picture.pixels[2 * size + i];
      picture.was_coloured = picture.was_coloured || red != green || green != blue;
      picture.pixels[i] = static_cast<std::uint8_t>(grey_of(red, green, blue));
    }
    picture.pixels.resize(size);
  }
  picture.channels = wanted;
}

}  // namespace lockstep
