// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// JPEG by libjpeg. Its errors leave by longjmp, so nothing with a destructor lives in a frame that is jumped
/// over.
#include "common/error.hpp"
#include "data/byte_source.hpp"
#include "data/pictures/picture.hpp"

#include <csetjmp>
#include <fmt/format.h>
#include <jpeglib.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>

namespace lockstep {

// How a camera was held: the orientation that a JPEG's EXIF block records.

/// 1 to 8 as EXIF numbers them; 1, upright, for anything that is no EXIF block or has no such entry.
/// @param marker  the contents of an APP1 marker, from "Exif\0\0" on
int exif_orientation(std::span<const std::uint8_t> marker);

/// The picture as it was seen: mirrored and turned as orientation 2 to 8 asks for.
Picture upright(const Picture& picture, int orientation);

}  // namespace lockstep

// after jpeglib.h
#include <jerror.h>

namespace lockstep {
namespace {

constexpr unsigned kExifMarker = JPEG_APP0 + 1, kMaxMarkerBytes = 65533;
constexpr int kMaxScans = 200;  // a progressive file of a few hundred bytes could ask for thousands of passes
/// No encoder gets more pixels into a byte: Huffman codes spend at least a bit on each block of 64. What
/// claims more is cut short, or wants us to ask for memory.
constexpr std::int64_t kMaxPixelsPerByte = 1024;

/// libjpeg's structures and where its errors jump to.
struct Decoder {
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf failed{};
  char message[JMSG_LENGTH_MAX] = "";
  bool damaged = false;

  Decoder();
  ~Decoder() { jpeg_destroy_decompress(&jpeg); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
};

Decoder& decoder_of(j_common_ptr jpeg) {
  return *static_cast<Decoder*>(jpeg->client_data);
}

[[noreturn]] void leave(j_common_ptr jpeg) {
  Decoder& decoder = decoder_of(jpeg);
  jpeg->err->format_message(jpeg, decoder.message);
  std::longjmp(decoder.failed, 1);  // NOLINT(cert-err52-cpp): the way out that libjpeg offers
}

/// Level -1 is a warning: libjpeg goes on with made-up pixels, which would be classified as if they were
/// there.
void note_warning(j_common_ptr jpeg, int level) {
  const int code = jpeg->err->msg_code;
  const bool harmless = code == JWRN_EXTRANEOUS_DATA || code == JWRN_JFIF_MAJOR || code == JWRN_ADOBE_XFORM;
  if (level >= 0 || harmless || decoder_of(jpeg).damaged) return;
  decoder_of(jpeg).damaged = true;
  jpeg->err->format_message(jpeg, decoder_of(jpeg).message);
}

void limit_scans(j_common_ptr jpeg) {
  auto* decompress = reinterpret_cast<j_decompress_ptr>(jpeg);
  if (decompress->input_scan_number <= kMaxScans) return;
  std::snprintf(decoder_of(jpeg).message, JMSG_LENGTH_MAX, "more than %d scans", kMaxScans);
  std::longjmp(decoder_of(jpeg).failed, 1);  // NOLINT(cert-err52-cpp)
}

Decoder::Decoder() {
  jpeg.err = jpeg_std_error(&errors);
  errors.error_exit = leave;
  errors.emit_message = note_warning;
  errors.output_message = [](j_common_ptr) {};
  progress.progress_monitor = limit_scans;
}

/// Reads the header; false if libjpeg gave up.
bool begin(Decoder& decoder, std::span<const std::uint8_t> file, PictureColour colour) {
  if (setjmp(decoder.failed) != 0) return false;  // NOLINT(cert-err52-cpp)
  jpeg_create_decompress(&decoder.jpeg);
  decoder.jpeg.client_data = &decoder;  // creating clears it
  decoder.jpeg.progress = &decoder.progress;
  jpeg_mem_src(&decoder.jpeg, file.data(), file.size());
  jpeg_save_markers(&decoder.jpeg, static_cast<int>(kExifMarker), kMaxMarkerBytes);
  jpeg_read_header(&decoder.jpeg, TRUE);
  const bool four_inks = decoder.jpeg.num_components == 4;
  const J_COLOR_SPACE wanted = colour == PictureColour::kRgb ? JCS_RGB : JCS_GRAYSCALE;
  decoder.jpeg.out_color_space = four_inks ? JCS_CMYK : wanted;
  return true;
}

/// Reads the pixels, as many bytes as begin() promised; false if libjpeg gave up.
bool decode(Decoder& decoder, std::uint8_t* pixels, std::size_t row_bytes) {
  if (setjmp(decoder.failed) != 0) return false;  // NOLINT(cert-err52-cpp)
  jpeg_start_decompress(&decoder.jpeg);
  while (decoder.jpeg.output_scanline < decoder.jpeg.output_height) {
    JSAMPROW row = pixels + decoder.jpeg.output_scanline * row_bytes;
    jpeg_read_scanlines(&decoder.jpeg, &row, 1);
  }
  jpeg_finish_decompress(&decoder.jpeg);
  return true;
}

int orientation_of(const Decoder& decoder) {
  for (auto* marker = decoder.jpeg.marker_list; marker != nullptr; marker = marker->next) {
    const int orientation = exif_orientation({marker->data, marker->data_length});
    if (marker->marker == kExifMarker && orientation != 1) return orientation;
  }
  return 1;
}

/// Four inks a pixel to grey, or to red, green and blue. Adobe's programs store how much light is left rather
/// than how much ink there is.
std::vector<std::uint8_t> light_of_inks(const std::vector<std::uint8_t>& inks, bool stores_light,
                                        PictureColour colour) {
  std::vector<std::uint8_t> result;
  for (std::size_t i = 0; i < inks.size(); i += 4) {
    const auto light = [&](std::size_t ink) { return stores_light ? inks[i + ink] : 255 - inks[i + ink]; };
    const int white = 299 * light(0) + 587 * light(1) + 114 * light(2);
    if (colour == PictureColour::kGrey)
      result.push_back(static_cast<std::uint8_t>(white * light(3) / (1000 * 255)));
    for (std::size_t c = 0; c < 3 && colour == PictureColour::kRgb; ++c)
      result.push_back(static_cast<std::uint8_t>(light(c) * light(3) / 255));
  }
  return result;
}

}  // namespace

Picture read_jpeg(const std::string& name, std::span<const std::uint8_t> file, PictureColour colour) {
  Decoder decoder;
  const auto fail = [&] { throw DataError(fmt::format("{}: damaged JPEG: {}", name, decoder.message)); };
  if (!begin(decoder, file, colour)) fail();
  const int orientation = orientation_of(decoder);  // decoding forgets the markers
  const std::int64_t width = decoder.jpeg.image_width, height = decoder.jpeg.image_height;
  check_picture_size(name, width, height);
  if (width * height > static_cast<std::int64_t>(file.size()) * kMaxPixelsPerByte) {
    throw DataError(fmt::format("{}: damaged JPEG: {} bytes cannot hold {} x {} pixels", name, file.size(),
                                width, height));
  }
  const std::size_t row_bytes =
      static_cast<std::size_t>(width) *
      (decoder.jpeg.out_color_space == JCS_CMYK ? 4 : static_cast<std::size_t>(channels_of(colour)));
  std::vector<std::uint8_t> pixels(row_bytes * static_cast<std::size_t>(height));
  if (!decode(decoder, pixels.data(), row_bytes) || decoder.damaged) fail();
  if (decoder.jpeg.out_color_space == JCS_CMYK)
    pixels = light_of_inks(pixels, decoder.jpeg.saw_Adobe_marker != 0, colour);
  Picture picture{.name = name,
                  .width = static_cast<int>(width),
                  .height = static_cast<int>(height),
                  .channels = channels_of(colour),
                  .pixels = std::move(pixels)};
  separate_channels(picture.pixels, picture.plane_size(), picture.channels);
  if (orientation == 1) return picture;
  picture = upright(picture, orientation);
  picture.notes.emplace_back("turned upright");
  return picture;
}

}  // namespace lockstep

namespace lockstep {

// A TIFF directory, read as far as the one entry that matters.

namespace {

/// Numbers of a TIFF block in its byte order; reading past the end gives 0.
class Tiff {
 public:
  explicit Tiff(std::span<const std::uint8_t> bytes)
      : bytes_(bytes), big_endian_(bytes.size() > 1 && bytes[0] == 'M') {}

  std::uint32_t u16(std::size_t at) const {
    if (at + 2 > bytes_.size()) return 0;
    return big_endian_ ? bytes_[at] << 8U | bytes_[at + 1] : bytes_[at + 1] << 8U | bytes_[at];
  }
  std::uint32_t u32(std::size_t at) const {
    const std::uint32_t first = u16(at), second = u16(at + 2);
    return big_endian_ ? first << 16U | second : second << 16U | first;
  }

 private:
  std::span<const std::uint8_t> bytes_;
  bool big_endian_;
};

}  // namespace

int exif_orientation(std::span<const std::uint8_t> marker) {
  constexpr std::size_t kPrefix = 6, kEntryBytes = 12;
  constexpr std::uint32_t kOrientationTag = 0x0112;
  if (marker.size() < kPrefix || std::memcmp(marker.data(), "Exif\0\0", kPrefix) != 0) return 1;
  const Tiff tiff(marker.subspan(kPrefix));
  const std::size_t directory = tiff.u32(4);
  const std::uint32_t entries = tiff.u16(directory);
  for (std::uint32_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + i * kEntryBytes;
    if (tiff.u16(entry) != kOrientationTag) continue;
    const std::uint32_t value = tiff.u16(entry + 8);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

Picture upright(const Picture& picture, int orientation) {
  if (orientation < 2 || orientation > 8) return picture;
  const bool swaps = orientation >= 5;
  // Where the picture's first row and first column are seen: 2 right, 3 bottom right, 4 bottom, and so on.
  const bool from_right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool from_bottom = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  Picture seen = picture;
  if (swaps) std::swap(seen.width, seen.height);
  std::size_t at = 0;
  for (std::size_t plane = 0; plane < picture.pixels.size(); plane += picture.plane_size()) {
    for (int y = 0; y < seen.height; ++y) {
      for (int x = 0; x < seen.width; ++x) {
        int row = swaps ? x : y, column = swaps ? y : x;
        if (from_bottom) row = picture.height - 1 - row;
        if (from_right) column = picture.width - 1 - column;
        seen.pixels[at++] =
            picture.pixels[plane + static_cast<std::size_t>(row) * static_cast<std::size_t>(picture.width) +
                           static_cast<std::size_t>(column)];
      }
    }
  }
  return seen;
}

}  // namespace lockstep
