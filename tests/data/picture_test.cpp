// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "data/pictures/picture.hpp"

#include "common/error.hpp"
#include "data/byte_source.hpp"
#include "tests/data/idx_fixture.hpp"
#include "tests/data/picture_fixture.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"

#include <png.h>
#include <zlib.h>

namespace lockstep {
namespace {

using test::bytes_of;
using test::operator+;  // NOLINT(misc-unused-using-decls): clang-tidy does not see operators
using testing::Bytes;
using testing::encode_jpeg;
using testing::encode_png;
using testing::sheet;

std::string error_of(const Bytes& file, std::optional<std::int64_t> only = {}) {
  try {
    parse_pictures(file, "picture", only);
  } catch (const DataError& error) {
    return error.what();
  }
  return "no error";
}

TEST(PictureTest, GreyPngKeepsItsPixels) {
  const Bytes pixels = {0, 50, 100, 150, 200, 255};
  const auto pictures = parse_pictures(encode_png(3, 2, PNG_FORMAT_GRAY, pixels), "picture");
  ASSERT_EQ(pictures.size(), 1U);
  EXPECT_EQ(pictures[0].width, 3);
  EXPECT_EQ(pictures[0].height, 2);
  EXPECT_EQ(pictures[0].pixels, pixels);
  EXPECT_FALSE(pictures[0].was_coloured);
  EXPECT_THROW(write_png({.name = "", .width = 1, .height = 1, .channels = 2, .pixels = {1, 2}}),
               InternalError);
}

TEST(PictureTest, ColourPngTurnsGreyAndTransparentIsLaidOnWhite) {
  const Bytes pixels = {255, 255, 255, 255, 0, 0, 0, 255, 0, 0, 0, 0, 0, 0, 0, 128};
  const auto pictures = parse_pictures(encode_png(4, 1, PNG_FORMAT_RGBA, pixels), "picture");
  EXPECT_EQ(pictures[0].pixels, (Bytes{255, 0, 255, 127}));
  EXPECT_EQ(pictures[0].notes, std::vector<std::string>{"transparent: laid on white"});
  EXPECT_TRUE(pictures[0].was_coloured);
}

/// 299, 587 and 114 thousandths of the stored values, as in other formats.
TEST(PictureTest, ColoursOfAPngBecomeTheGreyOfOtherFormats) {
  const Bytes colours = {255, 0, 0, 0, 255, 0, 0, 0, 255, 70, 70, 70};
  const Bytes grey = {76, 149, 29, 70};
  const auto red_paper = encode_png(1, 1, PNG_FORMAT_RGBA, {255, 0, 0, 128});
  EXPECT_EQ(parse_pictures(encode_png(4, 1, PNG_FORMAT_RGB, colours), "picture")[0].pixels, grey);
  EXPECT_EQ(parse_pictures(bytes_of("P6 4 1 255\n" + std::string(as_text(colours))), "picture")[0].pixels,
            grey);
  EXPECT_EQ(parse_pictures(red_paper, "picture")[0].pixels, Bytes{165}) << "255, 127 and 127 on white";
}

TEST(PictureTest, APngEndsWithItsLastChunk) {
  Bytes file = write_png({.name = "", .width = 3, .height = 2, .pixels = {0, 50, 100, 150, 200, 255}});
  EXPECT_TRUE(as_text(file).ends_with("IEND\xae\x42\x60\x82"));
  file.resize(file.size() - 20);
  EXPECT_TRUE(error_of(file).starts_with("picture: damaged PNG: "));
  EXPECT_TRUE(error_of(encode_png(16385, 1, PNG_FORMAT_GRAY, Bytes(16385)))
                  .starts_with("picture: 16385 x 1 pixels; pictures from"));
}

Picture ramp() {
  Picture picture = sheet(16, 16, 0);
  for (std::size_t i = 0; i < picture.pixels.size(); ++i) picture.pixels[i] = static_cast<std::uint8_t>(i);
  return picture;
}

TEST(PictureTest, SixteenBitAndInterlacedPngKeepTheirPixels) {
  EXPECT_EQ(parse_pictures(testing::encode_png_16(ramp()), "picture")[0].pixels, ramp().pixels);
  EXPECT_EQ(parse_pictures(testing::encode_png_interlaced(ramp()), "picture")[0].pixels, ramp().pixels);
  EXPECT_TRUE(
      contains(error_of(testing::encode_png_16(ramp(), true)),
               {"picture: interlaced PNG with 16 bits a channel, whose pixels libpng mixes up; save it"}));
}

TEST(PictureTest, APaletteMayBeTransparent) {
  const auto pictures = parse_pictures(testing::encode_png_palette(ramp()), "picture");
  EXPECT_LT(pictures[0].pixels.front(), 60);
  EXPECT_EQ(pictures[0].pixels.back(), 255);
}

/// The largest difference between two pictures of one size.
int largest_difference(const Picture& a, const Picture& b) {
  int largest = a.width == b.width && a.height == b.height ? 0 : 1000;
  for (std::size_t i = 0; largest < 1000 && i < a.pixels.size(); ++i)
    largest = std::max(largest, std::abs(a.pixels[i] - b.pixels[i]));
  return largest;
}

TEST(PictureTest, JpegOfEveryKindKeepsItsPixelsNearly) {
  for (const testing::JpegOptions& options : std::initializer_list<testing::JpegOptions>{
           {.quality = 95}, {.quality = 95, .progressive = true}, {.quality = 95, .four_inks = true}}) {
    const auto pictures = parse_pictures(encode_jpeg(ramp(), options), "picture");
    EXPECT_LT(largest_difference(pictures[0], ramp()), 12) << options.progressive << options.four_inks;
  }
}

/// A chunk of a PNG, with its check sum.
Bytes chunk(const std::string& type, const Bytes& data) {
  Bytes result;
  const auto add = [&](std::uint32_t number) {
    for (int shift = 24; shift >= 0; shift -= 8) result.push_back(static_cast<std::uint8_t>(number >> shift));
  };
  add(static_cast<std::uint32_t>(data.size()));
  result = result + bytes_of(type) + data;
  add(static_cast<std::uint32_t>(crc32(0, result.data() + 4, static_cast<uInt>(result.size() - 4))));
  return result;
}

/// Before the pixels, or at the end.
Bytes with_chunk(const Bytes& png, const Bytes& chunk, bool at_end = false) {
  const auto at = png.begin() + (at_end ? static_cast<std::ptrdiff_t>(png.size()) - 12 : 33);
  return Bytes(png.begin(), at) + chunk + Bytes(at, png.end());
}

/// EXIF data as PNG and WEBP have them.
Bytes exif_chunk(int orientation) {
  return bytes_of(std::string("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0", 18)) +
         Bytes{static_cast<std::uint8_t>(orientation), 0, 0, 0, 0, 0, 0, 0};
}

/// 255 of 65,535 are nearer to 1 of 255 than to 0.
TEST(PictureTest, SixteenBitsAreRoundedToEight) {
  const Bytes head = testing::encode_png_16(sheet(1, 1, 0));
  const Bytes row = {0, 0x00, 0xff};  // its filter, and the pixel
  uLongf size = compressBound(row.size());
  Bytes packed(size);
  ASSERT_EQ(compress(packed.data(), &size, row.data(), row.size()), Z_OK);
  packed.resize(size);
  const Bytes file = Bytes(head.begin(), head.begin() + 33) + chunk("IDAT", packed) + chunk("IEND", {});
  EXPECT_EQ(parse_pictures(file, "picture")[0].pixels, Bytes{1});
}

TEST(PictureTest, APngHasTheValuesThatItStores) {
  Bytes colours(4 * 256);
  for (std::size_t i = 0; i < colours.size(); ++i)
    colours[i] = static_cast<std::uint8_t>(i % 4 == 3 ? 255 : i * 7);
  const Bytes files[] = {encode_png(16, 16, PNG_FORMAT_GRAY, ramp().pixels), testing::encode_png_16(ramp()),
                         testing::encode_png_interlaced(ramp()), testing::encode_png_palette(ramp()),
                         encode_png(16, 16, PNG_FORMAT_RGBA, colours)};
  for (const Bytes& file : files)
    for (const PictureColour colour : {PictureColour::kGrey, PictureColour::kRgb}) {
      const Bytes stored = parse_picture(file, "picture", colour).pixels;
      for (const std::uint32_t gamma : {100000U, 45455U, 22727U, 1U, 0U}) {
        const Bytes data = {static_cast<std::uint8_t>(gamma >> 24), static_cast<std::uint8_t>(gamma >> 16),
                            static_cast<std::uint8_t>(gamma >> 8), static_cast<std::uint8_t>(gamma)};
        const Bytes with = with_chunk(file, chunk("gAMA", data));
        EXPECT_EQ(parse_picture(with, "picture", colour).pixels, stored) << gamma;
      }
    }
  EXPECT_TRUE(without_gamma(files[0]).empty());
  EXPECT_EQ(without_gamma(with_chunk(with_chunk(files[0], chunk("gAMA", {1})), chunk("cICP", {}))), files[0]);
}

TEST(PictureTest, APngIsTurnedAsItsExifDataSay) {
  const Picture lying = {.name = "", .width = 3, .height = 1, .pixels = {1, 2, 3}};
  const Bytes file = encode_png(lying);
  const auto read = [&](const Bytes& data, bool at_end = false) {
    return parse_picture(with_chunk(file, chunk("eXIf", data), at_end), "picture", PictureColour::kGrey);
  };
  for (const bool at_end : {false, true}) {
    const Picture seen = read(exif_chunk(6), at_end);
    EXPECT_EQ(seen.shape(), (ImageShape{1, 3, 1}));
    EXPECT_EQ(seen.notes, std::vector<std::string>{"turned upright"});
    EXPECT_EQ(read(exif_chunk(3), at_end).pixels, (Bytes{3, 2, 1}));
  }
  EXPECT_EQ(read(bytes_of(std::string("Exif\0\0", 6)) + exif_chunk(2)).pixels, (Bytes{3, 2, 1}));
  const Bytes second_entry = {'I',       'I', '*', 0, 8, 0, 0, 0, 2, 0, /**/ 0, 1, 3, 0, 1, 0,
                              0,         0,   5,   0, 0, 0,
                              /**/ 0x12, 1,   3,   0, 1, 0, 0, 0, 3, 0, 0,      0, 0, 0, 0, 0};
  EXPECT_EQ(read(second_entry).pixels, (Bytes{3, 2, 1}));
  Bytes shortest = exif_chunk(3);
  shortest.resize(20);
  EXPECT_EQ(read(shortest).pixels, (Bytes{3, 2, 1}));
  const auto with = [](Bytes block, std::size_t at) {
    block[at] = 1;
    return block;
  };
  const Bytes other_magic =
      bytes_of(std::string("MM\0+\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x03", 20)) + Bytes(6);
  for (const Bytes& nothing : {exif_chunk(0), exif_chunk(1), exif_chunk(9), Bytes{}, bytes_of("II*"),
                               Bytes(26, 1), with(second_entry, 8), with(exif_chunk(3), 3), other_magic}) {
    const Picture seen = read(nothing);
    EXPECT_TRUE(seen.pixels == lying.pixels && seen.notes.empty());
  }
  Bytes last = with_chunk(file, chunk("eXIf", exif_chunk(3)), true);
  last.resize(last.size() - 12);
  EXPECT_EQ(stored_orientation(last), 3) << "the file ends with it";
  Bytes damaged = chunk("eXIf", exif_chunk(3));
  damaged.back() ^= 1;
  EXPECT_EQ(parse_picture(with_chunk(file, damaged), "picture", PictureColour::kGrey).pixels, lying.pixels);
}

TEST(PictureTest, EveryTruncationAndByteFlipOfAJpegIsAnErrorOrAPicture) {
  for (const bool progressive : {false, true}) {
    const Bytes file = encode_jpeg(ramp(), {.progressive = progressive, .orientation = 6});
    for (std::size_t size = 3; size + 2 < file.size(); ++size)
      EXPECT_NE(error_of({file.begin(), file.begin() + static_cast<long>(size)}), "no error")
          << size << " of " << file.size();
    testing::expect_errors_of_damage(file, PictureColour::kGrey);
  }
}

TEST(PictureTest, AJpegThatClaimsMorePixelsThanItsBytesCanHoldIsRefused) {
  Bytes file = encode_jpeg(ramp());
  const std::string text(file.begin(), file.end());
  const std::size_t frame = text.find("\xff\xc0");  // length, bits, height, width
  const auto error_of_claim = [&](std::size_t width, std::size_t height) {
    for (const auto& [at, number] : {std::pair{frame + 5, height}, {frame + 7, width}}) {
      file.at(at) = static_cast<std::uint8_t>(number / 256);
      file.at(at + 1) = static_cast<std::uint8_t>(number % 256);
    }
    return error_of(file);
  };
  EXPECT_TRUE(
      contains(error_of_claim(7967, 7967), {"picture: damaged JPEG: ", "cannot hold 7967 x 7967 pixels"}));
  EXPECT_TRUE(contains(error_of_claim(1024, file.size() + 1), {"cannot hold 1024 x "}));
  EXPECT_FALSE(contains(error_of_claim(1024, file.size()), {"cannot hold"})) << "1024 for each byte";
  EXPECT_TRUE(contains(error_of_claim(16385, 1), {"16385 x 1 pixels; pictures from"}));
}

TEST(PictureTest, EveryTruncationAndBitFlipOfAPngIsAnErrorOrAPicture) {
  const Bytes plain = encode_png(5, 4, PNG_FORMAT_GRAY, Bytes(20, 77));
  testing::expect_errors_of_damage(
      with_chunk(with_chunk(plain, chunk("gAMA", Bytes(4))), chunk("eXIf", exif_chunk(5)), true),
      PictureColour::kGrey);
}

TEST(PictureTest, AHugeSizeIsRefusedBeforeMemoryIsAskedFor) {
  EXPECT_TRUE(contains(error_of(bytes_of("P5 2000000000 2000000000 255\n")), {"pixels"}));
  Bytes png = encode_png(1, 1, PNG_FORMAT_GRAY, {0});
  std::fill_n(png.begin() + 16, 8, std::uint8_t{0x7f});  // IHDR: width and height; its CRC is wrong now, too
  EXPECT_NE(error_of(png), "no error");
}

TEST(PictureTest, SizesThatAreReadHaveLimits) {
  EXPECT_NO_THROW(check_picture_size("p", 16384, 4096));
  EXPECT_NO_THROW(check_picture_size("p", 1, 16384));
  for (const auto& [width, height] : {std::pair{0, 1}, {1, 0}, {16385, 1}, {1, 16385}, {16384, 4097}})
    EXPECT_EQ(message_of<DataError>(
                  [&, width = width, height = height] { check_picture_size("p", width, height); }),
              "p: " + std::to_string(width) + " x " + std::to_string(height) +
                  " pixels; pictures from 1 x 1 to 16384 pixels a side and 67108864 in all are read");
  EXPECT_NO_THROW(check_packed_size("p", 1028, 1024, 1));
  EXPECT_EQ(message_of<DataError>([] { check_packed_size("p", 1029, 1024, 1); }),
            "p: 1 byte cannot hold 1029 x 1024 pixels of a picture; it is damaged, or empty");
}

TEST(PictureTest, APathMayNameAnImageOfAnIdxFile) {
  const test::TemporaryDirectory directory;
  const auto path = [&](const char* name) { return (directory.path() / name).string(); };
  test::write_file(path("set"), test::idx_file({2, 1, 2}));
  EXPECT_EQ(read_pictures(path("set[1]"))[0].name, path("set[1]"));
  EXPECT_EQ(read_pictures(path("set[0]"))[0].name, path("set[0]"));
  test::write_file(path("x[0]"), bytes_of("P5 1 1 255\n\x07"));
  EXPECT_EQ(read_pictures(path("x[0]"))[0].pixels, Bytes{7}) << "a file of that very name";
  for (const char* name : {"y[a]", "y[-1]", "y[0", "set[12"})
    expect_error<MissingDataError>([&] { read_pictures(path(name)); },
                                   {std::string(name) + ": no such file"});
}

TEST(PictureTest, AnIdxFileHoldsManyPicturesOfWhichOneCanBePicked) {
  Bytes file = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 10, 20, 30, 40};
  const auto all = parse_pictures(file, "set");
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[1].name, "set[1]");
  EXPECT_EQ(all[1].pixels, (Bytes{30, 40}));
  EXPECT_EQ(parse_pictures(file, "set", 1)[0].pixels, (Bytes{30, 40}));
  EXPECT_EQ(parse_pictures(file, "set", 1).size(), 1U);
  EXPECT_TRUE(
      error_of(test::idx_file({2, 1, 16385})).starts_with("picture: 16385 x 1 pixels; pictures from"));
  EXPECT_EQ(error_of(file, 2), "picture: there is no image 2; it holds 0 to 1");
  EXPECT_EQ(error_of(test::idx_file({2, 2})),
            "picture: holds 2 x 2, not images; expected count x height x width, and channels where there are "
            "several");
  EXPECT_TRUE(contains(error_of(bytes_of("P5 1 1 255\nx"), 0), {"IDX"})) << "no other file has an index";
  EXPECT_EQ(parse_pictures(test::idx_file({2, 1, 2, 3}), "set")[1].pixels, (Bytes{6, 9, 7, 10, 8, 11}))
      << "red, green and blue of a pixel stand side by side in the file";
}

/// 48 KB once held 49,500,000 of them, each one work for a network.
TEST(PictureTest, CompressedIdxFileThatPromisesMorePicturesThanItsBytesCanHoldIsRefusedUnread) {
  const Bytes bomb = test::gzip(test::idx_file({1'000'000, 1, 1}, 0));
  ASSERT_LT(bomb.size(), 5'000U);
  EXPECT_TRUE(
      contains(error_of(bomb), {"1000000 images in ", " bytes, less than 16 bytes for each: no file of"}));
  const Bytes cut(bomb.begin(), bomb.end() - 4);  // inflating it would find that its end is missing
  EXPECT_TRUE(contains(error_of(cut), {"1000000 images in "}));
  EXPECT_EQ(parse_pictures(bomb, "set", 999'999)[0].pixels.size(), 1U) << "one of them may be picked";
  EXPECT_EQ(parse_pictures(test::gzip(test::idx_file({900, 28, 28})), "set").size(), 900U);
  EXPECT_EQ(parse_pictures(test::idx_file({1067, 1, 1}), "set").size(), 1067U) << "1000, and 1083 bytes / 16";
  EXPECT_TRUE(contains(error_of(test::idx_file({1068, 1, 1})), {"1068 images in 1084 bytes"}));
}

}  // namespace
}  // namespace lockstep
