// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Pictures that a person wants classified or learnt. They are PNG, JPEG, WEBP, BMP, PGM, PPM, or the images of an
/// IDX file, with 8 bits for each channel.
#pragma once

#include "data/idx.hpp"
#include "data/picture_form.hpp"
#include "kernels/shapes.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

/// Rows from top to bottom, 0 is black.
struct Picture {
  std::string name;  ///< the path; with "[i]" after it for image i of an IDX file
  int width = 0, height = 0;
  int channels = 1;                    ///< 3: red, green, blue
  bool from_idx = false;               ///< one of a data set, not a photograph
  bool was_coloured = false;           ///< as it was stored: with one channel it has become grey
  bool had_16_bits = false;            ///< a channel, rounded to 8
  std::vector<std::uint8_t> pixels{};  ///< [channels][height][width]
  std::string original{};            ///< for a sample of a set: the picture it was made of; empty: not known
  std::vector<std::string> notes{};  ///< notes on reading it, in words: "transparent: laid on white"

  ImageShape shape() const { return {channels, height, width}; }
  std::size_t plane_size() const {
    return static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
  }
};

/// Largest side and number of pixels that are read; larger ones are refused before memory is asked for.
inline constexpr int kMaxPictureSide = 16384;
inline constexpr std::int64_t kMaxPicturePixels = std::int64_t{64} << 20;
inline constexpr std::uint64_t kMaxPictureFileBytes = std::uint64_t{256} << 20;

/// The pictures of a file, made one at a time: an IDX file may hold millions of small ones.
class Pictures {
 public:
  explicit Pictures(Picture picture) : single_(std::move(picture)) {}
  /// Images `first` to before `first + count` of an IDX file.
  Pictures(IdxArray images, std::string name, std::size_t first, std::size_t count)
      : images_(std::move(images)), name_(std::move(name)), first_(first), count_(count) {}

  std::size_t size() const { return count_; }
  Picture operator[](std::size_t index) const;

 private:
  std::optional<Picture> single_;
  IdxArray images_;
  std::string name_;
  std::size_t first_ = 0, count_ = 1;
};

/// Reads a file by its contents, not its name: the formats below. An IDX file of images gives all of them, or only the
/// one that "PATH[i]" names, with the channels that they have.
/// @throws MissingDataError, DataError naming the file and what is wrong with it, IoError
Pictures read_pictures(const std::string& path, PictureColour colour = PictureColour::kGrey);

/// Reads the bytes of a file; `name` is for messages, `only` picks one image of an IDX file.
Pictures parse_pictures(std::span<const std::uint8_t> file, const std::string& name,
                        std::optional<std::int64_t> only = {}, PictureColour colour = PictureColour::kGrey);

/// Reads the bytes of a file that is no IDX file.
Picture parse_picture(std::span<const std::uint8_t> file, const std::string& name, PictureColour colour);

// Other sizes: whole numbers alone, so the same pixels on every machine.

/// Scaled to width x height by averaging over areas: exact for the same size.
/// @param smoothly  sides that become longer are interpolated linearly, so that no steps show
Picture resize(const Picture& picture, int width, int height, bool smoothly = false);

/// The part of a picture from column `left` and row `top` on; black where the picture has no pixels.
Picture take_part(const Picture& picture, int left, int top, int width, int height);

/// Scales by areas to exactly that size. If proportions differ by less than a pixel, that pixel is not missed.
Picture fit_picture(const Picture& picture, PictureSize size, PictureFit fit);

/// 255 - pixel: for dark strokes on light paper, where the training images have light strokes on black.
void invert(Picture& picture);

/// True if the border of an image of this shape is mostly light, as on a scan.
/// All channels count alike.
bool has_light_border(std::span<const std::uint8_t> pixels, const ImageShape& shape);

// The picture formats that are read, a function each.

/// @throws DataError  a picture that is empty or larger than kMaxPictureSide and kMaxPicturePixels allow
void check_picture_size(const std::string& name, std::int64_t width, std::int64_t height);
/// Checks the size, also for a format that says one colour many times in a few bytes.
/// @throws DataError  too, if more than a million pixels and 4,096 for each byte of the file are claimed
void check_packed_size(const std::string& name, std::int64_t width, std::int64_t height,
                       std::size_t file_bytes);

/// All of them turn a whole file into grey, 0 is black, or into red, green and blue. `name` is for messages.
/// @throws DataError  naming the file and what is wrong with it
///
/// Reads every kind of PNG: grey, colour, palette, with alpha, 16 bits or interlaced. (Of the last two,
/// libpng's simple interface writes pixels anywhere: CVE-2025-65018, and later ones.) The values are those
/// stored, for any screen it was made for (gAMA), turned upright as its EXIF data say. Transparent parts
/// are laid on white; on black if nothing could be seen on white.
Picture read_png(const std::string& name, std::span<const std::uint8_t> file, PictureColour colour);
/// Baseline and progressive JPEG with 8 bits, grey, colour and CMYK, turned upright as its EXIF data say. The pixels
/// are libjpeg-turbo's, of exact integers ("islow", fancy upsampling, no smoothing): the same on every machine.
/// @throws DeviceError  the library that is loaded gives known JPEGs other pixels; asked once
Picture read_jpeg(const std::string& name, std::span<const std::uint8_t> file, PictureColour colour);
/// Binary PGM (P5) or PPM (P6) with 8 or 16 bits.
Picture read_pgm(const std::string& name, std::span<const std::uint8_t> file, PictureColour colour);

/// Lossy or lossless, not moving; transparency and EXIF data as those of a PNG.
Picture read_webp(const std::string& name, std::span<const std::uint8_t> file, PictureColour colour);
/// With 8, 24 or 32 bits a pixel, not packed.
Picture read_bmp(const std::string& name, std::span<const std::uint8_t> file, PictureColour colour);

/// A tiny JPEG, and the SHA-256 of its pixels in colour.
struct KnownJpeg {
  std::string_view name, file, pixels;
};
/// One for each way of coding and of sampling colours (data/pictures/known).
std::span<const KnownJpeg> known_jpegs();
/// @throws DeviceError  naming the library, if it gives one of these other pixels
void require_known_pixels(std::span<const KnownJpeg> known);

// Helpers that the readers share.

/// Gives a picture its pixels. Transparent parts are laid on white; on black if nothing could be seen on white.
/// @param with_alpha  [height][width][channels + 1], 255 is opaque
void lay_on_paper(Picture& picture, std::vector<std::uint8_t> with_alpha);
/// Makes a grey picture coloured or a coloured one grey, if need be.
void recolour(Picture& picture, PictureColour colour);

/// The orientation that EXIF data record, 1 to 8 as EXIF numbers them. It is 1, upright, for anything that has no
/// such entry.
/// @param marker  the contents of a JPEG's APP1 marker, from "Exif\0\0" on
int exif_orientation(std::span<const std::uint8_t> marker);
/// @param file  PNG (its chunk eXIf) or WEBP (its chunk EXIF)
int stored_orientation(std::span<const std::uint8_t> file);
/// Mirrors and turns a picture as orientation 2 to 8 asks for, and notes it. Orientation 1 changes nothing.
void turn_upright(Picture& picture, int orientation);

/// A PNG without the chunks that say how light its values are on a screen (gAMA, cICP). libpng would change the
/// values by them. Empty: it has none.
std::vector<std::uint8_t> without_gamma(std::span<const std::uint8_t> png);

/// Encodes the pixels as a PNG file: grey, or colour where there are three channels.
std::vector<std::uint8_t> write_png(const Picture& picture);

/// How light a colour is, as television has it. Each from 0 to 255.
inline int grey_of(int red, int green, int blue) {
  return (299 * red + 587 * green + 114 * blue) / 1000;
}

}  // namespace lockstep
