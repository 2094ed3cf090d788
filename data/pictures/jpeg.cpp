// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// JPEG by libjpeg-turbo, which configuring looks for: other libraries give other pixels. Its errors leave by longjmp,
/// so nothing with a destructor lives in a frame that is jumped over.
#include "common/digest.hpp"
#include "common/error.hpp"
#include "data/pictures/picture.hpp"
#include "kernels/cpu/ops.hpp"

#include <csetjmp>
#include <dlfcn.h>
#include <fmt/format.h>
#include <jpeglib.h>

#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <vector>

// after jpeglib.h
#include <jerror.h>

namespace lockstep {
namespace {

constexpr unsigned kExifMarker = JPEG_APP0 + 1, kMaxMarkerBytes = 65533;
/// No encoder gets more pixels into a byte: Huffman codes spend at least a bit on each block of 64. A file that
/// claims more is cut short, or wants us to ask for memory.
constexpr std::int64_t kMaxPixelsPerByte = 1024;
/// Memory for libjpeg: two bytes for each coefficient of the largest picture, and four components.
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

/// For what libjpeg does not mind.
[[noreturn]] void refuse(Decoder& decoder, const char* why) {
  std::snprintf(decoder.message, JMSG_LENGTH_MAX, "%s", why);
  std::longjmp(decoder.failed, 1);  // NOLINT(cert-err52-cpp)
}

/// A progressive file of a few hundred bytes could ask for thousands of passes.
void limit_scans(j_common_ptr jpeg) {
  if (reinterpret_cast<j_decompress_ptr>(jpeg)->input_scan_number > 200)
    refuse(decoder_of(jpeg), "more than 200 scans");
}

Decoder::Decoder() {
  jpeg.err = jpeg_std_error(&errors);
  errors.error_exit = leave;
  errors.emit_message = note_warning;
  errors.output_message = [](j_common_ptr) {};
  progress.progress_monitor = limit_scans;
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

/// The colours a file is decoded to; nothing if the file's are not known.
std::optional<J_COLOR_SPACE> decoded_space(const jpeg_decompress_struct& jpeg, PictureColour colour) {
  switch (jpeg.jpeg_color_space) {
    case JCS_GRAYSCALE:
    case JCS_RGB:
    case JCS_YCbCr:
      return colour == PictureColour::kGrey ? JCS_GRAYSCALE : JCS_RGB;
    case JCS_CMYK:
    case JCS_YCCK:
      return JCS_CMYK;
    default:
      return std::nullopt;
  }
}

/// True if each of the first components has whole pixels for one of its pixels.
bool samples_evenly(const jpeg_decompress_struct& jpeg, int components) {
  for (int i = 0; i < components; ++i) {
    const jpeg_component_info& part = jpeg.comp_info[i];
    if (jpeg.max_h_samp_factor % part.h_samp_factor != 0 || jpeg.max_v_samp_factor % part.v_samp_factor != 0)
      return false;
  }
  return true;
}

/// @param pixels  [channels][height][width]
/// @param row     room for one of all channels
void decode_rows(Decoder& decoder, std::uint8_t* pixels, std::uint8_t* row) {
  jpeg_decompress_struct* const jpeg = &decoder.jpeg;
  jpeg_start_decompress(jpeg);
  for (int i = 0; i < jpeg->num_components; ++i) {
    const jpeg_component_info& part = jpeg->comp_info[i];
    if (part.component_needed != FALSE && part.quant_table == nullptr)
      refuse(decoder, "a component has no data");
  }
  const std::size_t width = jpeg->output_width, size = width * jpeg->output_height;
  const auto channels = static_cast<std::size_t>(jpeg->output_components);
  while (jpeg->output_scanline < jpeg->output_height) {
    std::uint8_t* const to = pixels + jpeg->output_scanline * width;
    JSAMPROW read = channels == 1 ? to : row;
    jpeg_read_scanlines(jpeg, &read, 1);
    if (channels == 3) cpu::separate_rgb(width, row, to, to + size, to + 2 * size);
    for (std::size_t c = 0; c < channels && channels == 4; ++c)
      for (std::size_t x = 0; x < width; ++x) to[c * size + x] = row[channels * x + c];
  }
  jpeg_finish_decompress(jpeg);
}

/// False if libjpeg gave up.
bool decode(Decoder& decoder, std::uint8_t* pixels, std::uint8_t* row) {
  if (setjmp(decoder.failed) != 0) return false;  // NOLINT(cert-err52-cpp)
  decode_rows(decoder, pixels, row);
  return true;
}

int orientation_of(const Decoder& decoder) {
  for (auto* marker = decoder.jpeg.marker_list; marker != nullptr; marker = marker->next) {
    const int orientation = exif_orientation({marker->data, marker->data_length});
    if (orientation != 1) return orientation;
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

Picture decoded(const std::string& name, std::span<const std::uint8_t> file, PictureColour colour) {
  Decoder decoder;
  const auto fail = [&] {
    if (decoder.errors.msg_code == JERR_BAD_PRECISION) refuse_bits(name, decoder);
    throw DataError(fmt::format("{}: damaged JPEG: {}", name, decoder.message));
  };
  if (!begin(decoder, file)) fail();
  jpeg_decompress_struct& jpeg = decoder.jpeg;
  const int orientation = orientation_of(decoder);  // decoding forgets the markers
  check_claims(name, decoder, file.size());
  const std::optional<J_COLOR_SPACE> space = decoded_space(jpeg, colour);
  const bool only_luma = jpeg.jpeg_color_space == JCS_YCbCr && space == JCS_GRAYSCALE;
  if (!space || !samples_evenly(jpeg, only_luma ? 1 : jpeg.num_components))
    throw DataError(
        fmt::format("{}: JPEG with {} components whose colours or resolutions are not known; save it as a "
                    "usual one",
                    name, jpeg.num_components));
  jpeg.out_color_space = *space;
  jpeg.dct_method = JDCT_ISLOW;
  jpeg.do_fancy_upsampling = TRUE;
  jpeg.do_block_smoothing = FALSE;
  Picture picture{.name = name,
                  .width = static_cast<int>(jpeg.image_width),
                  .height = static_cast<int>(jpeg.image_height),
                  .channels = channels_of(colour),
                  .was_coloured = jpeg.jpeg_color_space != JCS_GRAYSCALE};
  const std::size_t channels = space == JCS_CMYK ? 4 : static_cast<std::size_t>(picture.channels);
  picture.pixels.resize(channels * picture.plane_size());
  std::vector<std::uint8_t> row(channels * static_cast<std::size_t>(picture.width));
  if (!decode(decoder, picture.pixels.data(), row.data()) || decoder.damaged) fail();
  if (channels == 4) picture.pixels = light_of_inks(picture.pixels, jpeg.saw_Adobe_marker != 0, colour);
  turn_upright(picture, orientation);
  return picture;
}

/// Its file, as far as the system knows it.
std::string library_name() {
  Dl_info info{};
  const bool known = dladdr(reinterpret_cast<const void*>(&jpeg_read_header), &info) != 0;
  return known && info.dli_fname != nullptr ? info.dli_fname : "the JPEG library";
}

/// Nothing where it cannot be read at all.
std::string digest_of_pixels(const KnownJpeg& known) {
  const auto* const file = reinterpret_cast<const std::uint8_t*>(known.file.data());
  try {
    const Picture picture = decoded(std::string(known.name), {file, known.file.size()}, PictureColour::kRgb);
    return hex(sha256(std::as_bytes(std::span(picture.pixels))));
  } catch (const DataError&) {
    return "";
  }
}

}  // namespace

void require_known_pixels(std::span<const KnownJpeg> known) {
  for (const KnownJpeg& one : known) {
    if (digest_of_pixels(one) == one.pixels) continue;
    throw DeviceError(
        fmt::format("{} gives the known JPEG {} other pixels than libjpeg-turbo does, and so it would give "
                    "yours; load libjpeg-turbo 2.1 or newer",
                    library_name(), one.name));
  }
}

Picture read_jpeg(const std::string& name, std::span<const std::uint8_t> file, PictureColour colour) {
  static const bool known = (require_known_pixels(known_jpegs()), true);
  static_cast<void>(known);
  return decoded(name, file, colour);
}

}  // namespace lockstep
