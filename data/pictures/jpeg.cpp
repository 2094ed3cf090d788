// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// JPEG: libjpeg reads the coefficients, and jpeg_pixels.hpp says what pixels they are. Its errors leave by longjmp, so
/// nothing with a destructor lives in a frame that is jumped over.
#include "common/error.hpp"
#include "data/pictures/jpeg_pixels.hpp"
#include "data/pictures/picture.hpp"

#include <csetjmp>
#include <fmt/format.h>
#include <jpeglib.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

// after jpeglib.h
#include <jerror.h>

namespace lockstep {
namespace {

constexpr unsigned kExifMarker = JPEG_APP0 + 1, kMaxMarkerBytes = 65533;
constexpr int kMaxScans = 200;  // a progressive file of a few hundred bytes could ask for thousands of passes
/// No encoder gets more pixels into a byte: Huffman codes spend at least a bit on each block of 64. What
/// claims more is cut short, or wants us to ask for memory.
constexpr std::int64_t kMaxPixelsPerByte = 1024;
/// Of libjpeg: two bytes for each coefficient of the largest picture, and four components.
constexpr long kMaxLibraryBytes = (kMaxPicturePixels * 8) + (long{64} << 20);

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

/// For what libjpeg does not mind.
[[noreturn]] void refuse(Decoder& decoder, const char* why) {
  std::snprintf(decoder.message, JMSG_LENGTH_MAX, "%s", why);
  std::longjmp(decoder.failed, 1);  // NOLINT(cert-err52-cpp)
}

/// Reads the header; false if libjpeg gave up.
bool begin(Decoder& decoder, std::span<const std::uint8_t> file) {
  if (setjmp(decoder.failed) != 0) return false;  // NOLINT(cert-err52-cpp)
  jpeg_create_decompress(&decoder.jpeg);
  decoder.jpeg.client_data = &decoder;  // creating clears it
  decoder.jpeg.progress = &decoder.progress;
  decoder.jpeg.mem->max_memory_to_use = kMaxLibraryBytes;
  jpeg_mem_src(&decoder.jpeg, file.data(), file.size());
  jpeg_save_markers(&decoder.jpeg, static_cast<int>(kExifMarker), kMaxMarkerBytes);
  jpeg_read_header(&decoder.jpeg, TRUE);
  return true;
}

std::optional<JpegColours> colours_of(const Decoder& decoder) {
  switch (decoder.jpeg.jpeg_color_space) {
    case JCS_GRAYSCALE:
      return JpegColours::kGrey;
    case JCS_RGB:
      return JpegColours::kRgb;
    case JCS_YCbCr:
      return JpegColours::kYcc;
    case JCS_CMYK:
      return JpegColours::kCmyk;
    case JCS_YCCK:
      return JpegColours::kYcck;
    default:
      return std::nullopt;
  }
}

int divided_up(JDIMENSION size, int by) {
  return static_cast<int>((static_cast<std::int64_t>(size) + by - 1) / by);
}

/// The components that are needed, as large as their blocks; empty where they have no whole pixels.
std::vector<JpegPlane> planes_of(const jpeg_decompress_struct& jpeg, std::size_t count) {
  std::vector<JpegPlane> planes;
  for (std::size_t i = 0; i < count; ++i) {
    const jpeg_component_info& part = jpeg.comp_info[i];
    if (jpeg.max_h_samp_factor % part.h_samp_factor != 0 || jpeg.max_v_samp_factor % part.v_samp_factor != 0)
      return {};
    JpegPlane plane{.across = jpeg.max_h_samp_factor / part.h_samp_factor,
                    .down = jpeg.max_v_samp_factor / part.v_samp_factor,
                    .row_bytes = std::size_t{part.width_in_blocks} * DCTSIZE};
    plane.width = divided_up(jpeg.image_width, plane.across);
    plane.height = divided_up(jpeg.image_height, plane.down);
    plane.pixels.resize(plane.row_bytes * part.height_in_blocks * DCTSIZE);
    planes.push_back(std::move(plane));
  }
  return planes;
}

/// Reads all coefficients, and makes those of the planes pixels; false if libjpeg gave up.
bool decode(Decoder& decoder, std::span<JpegPlane> planes) {
  if (setjmp(decoder.failed) != 0) return false;  // NOLINT(cert-err52-cpp)
  jpeg_decompress_struct* const jpeg = &decoder.jpeg;
  jvirt_barray_ptr* const coefficients = jpeg_read_coefficients(jpeg);
  for (std::size_t i = 0; i < planes.size(); ++i) {
    const jpeg_component_info& part = jpeg->comp_info[i];
    if (part.quant_table == nullptr) refuse(decoder, "a component has no data");
    for (JDIMENSION row = 0; row < part.height_in_blocks; ++row) {
      JBLOCKARRAY blocks =
          jpeg->mem->access_virt_barray(reinterpret_cast<j_common_ptr>(jpeg), coefficients[i], row, 1, FALSE);
      inverse_dct(blocks[0], part.width_in_blocks, std::span<const UINT16, 64>(part.quant_table->quantval),
                  planes[i].pixels.data() + row * DCTSIZE * planes[i].row_bytes, planes[i].row_bytes);
    }
  }
  jpeg_finish_decompress(jpeg);
  return true;
}

int orientation_of(const Decoder& decoder) {
  for (auto* marker = decoder.jpeg.marker_list; marker != nullptr; marker = marker->next) {
    const int orientation = exif_orientation({marker->data, marker->data_length});
    if (marker->marker == kExifMarker && orientation != 1) return orientation;
  }
  return 1;
}

/// Four inks to grey, or to red, green and blue. Adobe's programs store how much light is left rather than how much ink
/// there is.
/// @param inks  [4][pixels]
std::vector<std::uint8_t> light_of_inks(const std::vector<std::uint8_t>& inks, bool stores_light,
                                        PictureColour colour) {
  const std::size_t size = inks.size() / 4;
  std::vector<std::uint8_t> result(size * static_cast<std::size_t>(channels_of(colour)));
  for (std::size_t i = 0; i < size; ++i) {
    const auto light = [&](std::size_t ink) {
      const int stored = inks[ink * size + i];
      return stores_light ? stored : 255 - stored;
    };
    const int white = 299 * light(0) + 587 * light(1) + 114 * light(2);
    if (colour == PictureColour::kGrey)
      result[i] = static_cast<std::uint8_t>(white * light(3) / (1000 * 255));
    for (std::size_t c = 0; c < 3 && colour == PictureColour::kRgb; ++c)
      result[c * size + i] = static_cast<std::uint8_t>(light(c) * light(3) / 255);
  }
  return result;
}

[[noreturn]] void refuse_bits(const std::string& name, const Decoder& decoder) {
  throw DataError(fmt::format("{}: JPEG with {} bits a channel; only 8 are read, so save it with 8", name,
                              decoder.jpeg.data_precision));
}

/// Before memory for pixels is asked for.
void check_claims(const std::string& name, const Decoder& decoder, std::size_t file_bytes) {
  const std::int64_t width = decoder.jpeg.image_width, height = decoder.jpeg.image_height;
  check_picture_size(name, width, height);
  if (width * height > static_cast<std::int64_t>(file_bytes) * kMaxPixelsPerByte)
    throw DataError(fmt::format("{}: damaged JPEG: {} bytes cannot hold {} x {} pixels", name, file_bytes,
                                width, height));
  if (decoder.jpeg.data_precision != 8) refuse_bits(name, decoder);
}

}  // namespace

Picture read_jpeg(const std::string& name, std::span<const std::uint8_t> file, PictureColour colour) {
  Decoder decoder;
  const auto fail = [&] {
    if (decoder.errors.msg_code == JERR_BAD_PRECISION) refuse_bits(name, decoder);
    throw DataError(fmt::format("{}: damaged JPEG: {}", name, decoder.message));
  };
  if (!begin(decoder, file)) fail();
  const int orientation = orientation_of(decoder);  // decoding forgets the markers
  check_claims(name, decoder, file.size());
  const std::optional<JpegColours> colours = colours_of(decoder);
  const bool only_luma = colours == JpegColours::kYcc && colour == PictureColour::kGrey;
  std::vector<JpegPlane> planes;
  if (colours)
    planes = planes_of(decoder.jpeg, only_luma ? 1 : static_cast<std::size_t>(decoder.jpeg.num_components));
  if (planes.empty())
    throw DataError(
        fmt::format("{}: JPEG with {} components whose colours or resolutions are not known; save it as a "
                    "usual one",
                    name, decoder.jpeg.num_components));
  if (!decode(decoder, planes) || decoder.damaged) fail();
  Picture picture{.name = name,
                  .width = static_cast<int>(decoder.jpeg.image_width),
                  .height = static_cast<int>(decoder.jpeg.image_height),
                  .channels = channels_of(colour),
                  .was_coloured = colours != JpegColours::kGrey};
  picture.pixels = jpeg_pixels(planes, *colours, picture.channels, picture.width, picture.height);
  if (planes.size() == 4)
    picture.pixels = light_of_inks(picture.pixels, decoder.jpeg.saw_Adobe_marker != 0, colour);
  if (orientation == 1) return picture;
  picture = upright(picture, orientation);
  picture.notes.emplace_back("turned upright");
  return picture;
}

}  // namespace lockstep
