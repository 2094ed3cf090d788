// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// WEBP, BMP and PGM, and what may be wrong with them.
#include "common/error.hpp"
#include "data/pictures/picture.hpp"
#include "tests/data/idx_fixture.hpp"
#include "tests/data/picture_fixture.hpp"
#include "tests/support/prelude.hpp"

#include <webp/encode.h>

namespace lockstep {
namespace {

using test::Bytes;
using test::operator+;  // NOLINT(misc-unused-using-decls): clang-tidy does not see operators

Picture read(const Bytes& file, PictureColour colour = PictureColour::kRgb) {
  return parse_pictures(file, "picture", {}, colour)[0];
}

void expect_refused(const Bytes& file, std::string_view part) {
  expect_error<DataError>([&] { read(file); }, {part});
}

Bytes webp(int width, int height, const Bytes& rgba) {
  std::uint8_t* encoded = nullptr;
  const std::size_t size = WebPEncodeLosslessRGBA(rgba.data(), width, height, 4 * width, &encoded);
  Bytes file(encoded, encoded + size);
  WebPFree(encoded);
  return file;
}

Bytes little(std::uint32_t value, int bytes) {
  return test::bytes_of(test::little_endian_text(value, bytes));
}

/// In the extended format, with EXIF data behind the picture. @param flags  of the head: 8 says that they are there
Bytes with_exif(const Bytes& webp, std::uint8_t flags, std::uint32_t orientation) {
  const Bytes exif = test::bytes_of(std::string("MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0", 19)) +
                     little(orientation, 1) + Bytes(6, 0);
  const Bytes chunks = test::bytes_of("WEBPVP8X") + little(10, 4) + little(flags, 4) + little(1, 3) +
                       little(0, 3) + Bytes(webp.begin() + 12, webp.end()) + test::bytes_of("EXIF") +
                       little(static_cast<std::uint32_t>(exif.size()), 4) + exif;
  return test::bytes_of("RIFF") + little(static_cast<std::uint32_t>(chunks.size()), 4) + chunks;
}

TEST(PictureFormatsTest, AWebpIsTurnedAsItsExifDataSay) {
  constexpr std::uint8_t kAlpha = 0x10, kExif = 8;
  const Bytes plain = webp(2, 1, {1, 1, 1, 255, 9, 9, 9, 255});
  const Picture seen = read(with_exif(plain, kAlpha | kExif, 6), PictureColour::kGrey);
  EXPECT_EQ(seen.shape(), (ImageShape{1, 2, 1}));
  EXPECT_EQ(seen.notes, std::vector<std::string>{"turned upright"});
  EXPECT_EQ(read(with_exif(plain, kAlpha | kExif, 2), PictureColour::kGrey).pixels, (Bytes{9, 1}));
  EXPECT_EQ(read(with_exif(plain, kAlpha, 2), PictureColour::kGrey).pixels, (Bytes{1, 9}))
      << "it says that it has none";
  EXPECT_EQ(stored_orientation(with_exif(plain, kExif, 2)), 2);
  EXPECT_EQ(stored_orientation(with_exif(plain, 0xff ^ kExif, 2)), 1);
  EXPECT_EQ(stored_orientation(plain), 1);
  EXPECT_EQ(stored_orientation(test::bytes_of("BM")), 1);
  const Bytes whole = with_exif(plain, kExif, 2);
  EXPECT_EQ(
      stored_orientation(Bytes(whole.begin(), whole.begin() + 12) + Bytes(whole.begin() + 30, whole.end())),
      1)
      << "only the extended format has some";
  Bytes too_long = whole;
  too_long[whole.size() - 27] = 1;  // the last byte of its last chunk's length
  EXPECT_EQ(stored_orientation(too_long), 1);
  Bytes head = whole;
  head.resize(30);  // the chunk VP8X alone
  EXPECT_EQ(stored_orientation(head), 1) << "it says that there are some";
  testing::expect_errors_of_damage(with_exif(plain, kAlpha | kExif, 6), PictureColour::kRgb);
  expect_refused(with_exif(plain, 2, 1), "picture: WEBP that moves; save one of its pictures by itself");
}

TEST(PictureFormatsTest, WebpKeepsItsPixelsAndTransparentIsLaidOnWhite) {
  const Bytes file = webp(2, 2, {10, 20, 30, 255, 0, 0, 0, 0, 1, 2, 3, 255, 4, 5, 6, 255});
  const Picture picture = read(file);
  EXPECT_EQ(picture.pixels, (Bytes{10, 255, 1, 4, 20, 255, 2, 5, 30, 255, 3, 6}));
  EXPECT_EQ(picture.notes, std::vector<std::string>{"transparent: laid on white"});
  EXPECT_EQ(read(file, PictureColour::kGrey).pixels,
            (Bytes{static_cast<std::uint8_t>(grey_of(10, 20, 30)), 255, 1, 4}));
  testing::expect_errors_of_damage(file, PictureColour::kRgb);
}

/// A BMP with a header of 40 bytes. @param behind  palette or bit fields
Bytes bmp(std::uint32_t width, std::uint32_t height, std::uint32_t bits, std::uint32_t packing,
          const Bytes& behind, const Bytes& pixels, std::uint32_t colours = 0) {
  return Bytes{'B', 'M'} + little(0, 8) + little(static_cast<std::uint32_t>(54 + behind.size()), 4) +
         little(40, 4) + little(width, 4) + little(height, 4) + little(1, 2) + little(bits, 2) +
         little(packing, 4) + little(0, 12) + little(colours, 4) + little(0, 4) + behind + pixels;
}

const Bytes kPalette = {30, 20, 10, 0, 60, 50, 40, 0, 90, 80, 70, 0};  // blue, green, red

TEST(PictureFormatsTest, BmpThatIsNotPackedKeepsItsPixels) {
  const Bytes upright = {1, 2, 3, 4, 5, 6, 0, 0, 7, 8, 9, 10, 11, 12, 0, 0};
  EXPECT_EQ(read(bmp(2, 2, 24, 0, {}, upright)).pixels, (Bytes{9, 12, 3, 6, 8, 11, 2, 5, 7, 10, 1, 4}));
  EXPECT_EQ(read(bmp(2, static_cast<std::uint32_t>(-2), 24, 0, {}, upright)).pixels,
            (Bytes{3, 6, 9, 12, 2, 5, 8, 11, 1, 4, 7, 10}))
      << "a negative height: from the top";
  EXPECT_EQ(read(bmp(2, 1, 8, 0, kPalette, {2, 0, 0, 0}, 3)).pixels, (Bytes{70, 10, 80, 20, 90, 30}));
  EXPECT_EQ(read(bmp(1, 1, 32, 0, {}, {3, 2, 1, 0})).pixels, (Bytes{1, 2, 3}))
      << "its fourth byte says nothing";
  EXPECT_EQ(read(bmp(2, 1, 8, 0, kPalette, {2, 0, 0, 0}, 3), PictureColour::kGrey).pixels[0],
            grey_of(70, 80, 90));
  testing::expect_errors_of_damage(bmp(2, 1, 8, 0, kPalette, {2, 0, 0, 0}, 3), PictureColour::kRgb);
}

TEST(PictureFormatsTest, BmpMayHaveOtherHeaders) {
  const Bytes begin = Bytes{'B', 'M'} + little(0, 8);
  const Bytes os2 = begin + little(35, 4) + little(12, 4) + little(2, 2) + little(1, 2) + little(1, 2) +
                    little(8, 2) + Bytes{30, 20, 10, 60, 50, 40, 90, 80, 70} + Bytes{2, 0};
  EXPECT_EQ(read(os2).pixels, (Bytes{70, 10, 80, 20, 90, 30}));
  for (const auto& [width, height] : {std::pair{257, 1}, {1, 257}}) {
    const Bytes long_side =
        begin + little(26, 4) + little(12, 4) + little(static_cast<std::uint32_t>(width), 2) +
        little(static_cast<std::uint32_t>(height), 2) + little(1, 2) + little(24, 2) + Bytes(4 * 257);
    EXPECT_EQ(read(long_side).shape(), (ImageShape{3, height, width}));
  }
  for (const std::uint32_t header : {16U, 19U}) {
    const Bytes shortest = begin + little(14 + header, 4) + little(header, 4) + little(1, 4) + little(1, 4) +
                           little(1, 2) + little(24, 2) + Bytes(header - 16, 1) + Bytes{3, 2, 1, 0};
    EXPECT_EQ(read(shortest).pixels, (Bytes{1, 2, 3})) << header;
  }
  const Bytes packed = begin + little(34, 4) + little(20, 4) + little(1, 4) + little(1, 4) + little(1, 2) +
                       little(24, 2) + little(1, 4);
  expect_refused(packed, "BMP with 24 bits a pixel, packed in way 1");
  Bytes file = bmp(1, 1, 24, 0, {}, {3, 2, 1, 0});
  file[14] = 0, file[15] = 1;
  EXPECT_EQ(read(file).pixels, (Bytes{1, 2, 3}));
  file[14] = 1;
  expect_refused(file, "picture: damaged BMP: its header claims 257 bytes");
  file[14] = 15, file[15] = 0;
  expect_refused(Bytes(file.begin(), file.begin() + 18), "its header claims 15 bytes");
  expect_refused(file, "picture: damaged BMP: its header claims 15 bytes");
  file[17] = 1;
  expect_refused(file, "picture: damaged BMP: its header claims 16777231 bytes");
}

TEST(PictureFormatsTest, APaletteOfABmpMayBeShort) {
  for (const std::uint32_t colours : {0U, 300U, 0x01000003U})
    EXPECT_EQ(read(bmp(1, 1, 8, 0, kPalette, {255, 0, 0, 0}, colours)).pixels, Bytes(3))
        << "a colour that it lacks";
  expect_refused(bmp(1, 1, 8, 0, kPalette, {201, 0, 0, 0}, 200), "a pixel has colour 201 of 200");
  Bytes file = bmp(2, 1, 8, 0, kPalette, {3, 0, 0, 0}, 3);
  expect_refused(file, "picture: damaged BMP: a pixel has colour 3 of 3");
  file.erase(file.begin() + 50, file.begin() + 54);
  file[10] = 62, file[14] = 36;
  expect_refused(file, "a pixel has colour 3 of 3");
  file = bmp(1, 1, 8, 0, Bytes(12), {3, 0, 0, 0}, 3);
  file.erase(file.begin() + 49, file.begin() + 54);
  file[10] = 61, file[14] = 35;
  EXPECT_EQ(read(file).pixels, Bytes(3)) << "a header that ends before the number of colours";
  Bytes shortest = bmp(1, 1, 8, 0, {}, {}, 3U << 24U);
  shortest.resize(50);
  shortest[10] = 49, shortest[14] = 36;  // its pixel is the last byte of the number of colours
  EXPECT_EQ(read(shortest).pixels, Bytes(3));
}

TEST(PictureFormatsTest, DamagedBmpSaysWhatIsWrong) {
  expect_refused(bmp(2, 2, 24, 0, {}, {1, 2, 3}), "picture: damaged BMP: it ends at byte 57");
  Bytes far = bmp(1, 1, 24, 0, {}, {3, 2, 1, 0});
  far[13] = 1;
  expect_refused(far, "it ends at byte 58");
  expect_refused(bmp(2, 1, 8, 0, kPalette, {7, 0, 0, 0}, 3), "a pixel has colour 7 of 3");
  for (const auto& [bits, packing] :
       {std::pair{24U, 5U}, {8U, 1U}, {4U, 0U}, {16U, 0U}, {32U, 3U}, {24U, 1U << 24U}})
    expect_refused(bmp(1, 1, bits, packing, {}, {}), "not packed are read: save it as PNG");
  expect_refused(bmp(1, 1, 280, 0, {}, {}), "picture: BMP with 280 bits a pixel, packed in way 0; only");
  expect_refused(bmp(1U << 31U, 1, 24, 0, {}, {}), "picture: -2147483648 x 1 pixels; pictures from 1 x 1");
}

/// Some formats say a colour many times in a few bytes; what no camera makes costs no memory.
TEST(PictureFormatsTest, AFewBytesDoNotBecomeAHugePicture) {
  expect_refused(bmp(8000, 7000, 8, 0, kPalette, {0, 1}, 3), "cannot hold 8000 x 7000 pixels");
  const Bytes one_colour = webp(5000, 3500, Bytes(std::size_t{4} * 5000 * 3500, 255));
  ASSERT_LT(one_colour.size(), 4000U);
  expect_refused(one_colour, "cannot hold 5000 x 3500 pixels");
}

Bytes pgm(std::string_view text) {
  return test::bytes_of(std::string(text));
}

TEST(PictureFormatsTest, PgmWithCommentsAndAnotherMaximumIsScaled) {
  using namespace std::string_view_literals;
  const auto grey = [](std::string_view text) { return read(pgm(text), PictureColour::kGrey).pixels; };
  EXPECT_EQ(grey("P5 # made by hand\n3 1\n# largest\n15\n\x0f\x03\x0e"), (Bytes{255, 51, 238}));
  EXPECT_EQ(grey("P5#c\n1 1 255\n\x07"), Bytes{7});
  EXPECT_EQ(grey("P5 3 1 65535\n\xff\xff\x80\0\0\xff"sv), (Bytes{255, 128, 1}));
  EXPECT_EQ(read(pgm("P5 1 1 255\n\x07")).pixels, (Bytes{7, 7, 7}));
  EXPECT_EQ(grey("P5 1 1 2\n\x01"), Bytes{128});
  EXPECT_EQ(grey("P5 1 1 100\n\xff"), Bytes{255});
  const Picture wide = read(pgm("P5 1 1 256\n\x01\0"sv));
  EXPECT_EQ(wide.pixels, Bytes(3, 255));
  EXPECT_TRUE(wide.had_16_bits && !read(pgm("P5 1 1 255\n\x07")).had_16_bits);
}

TEST(PictureFormatsTest, DamagedPgmSaysWhatIsWrong) {
  expect_refused(pgm("P5"), "expected the width");
  expect_refused(pgm("P5 0 2 255\n"), "picture: PGM header, offset 3: expected the width, a positive number");
  expect_refused(pgm("P5 2 x 255\n"), "expected the height");
  expect_refused(pgm("P5 2 2 255\nabc"), "picture: truncated PGM: 4 bytes of pixels promised, 3 there");
  expect_refused(pgm("P5 2 2 65535\n1234567"), "8 bytes of pixels promised, 7 there");
  expect_refused(pgm("P5 2 2 65536\n12345678"), "picture: PGM whose largest value is 65536, above 65535");
  expect_refused(pgm("P5 99999999999 2 255\n"), "expected the width");
  expect_refused(pgm("P5 2000000000 3 255\n"), "picture: 2000000000 x 3 pixels; pictures from");
}

TEST(PictureFormatsTest, WhatIsNoPictureIsSaidSo) {
  expect_refused(test::bytes_of(std::string("RIFF\x04\0\0\0WEBPVP8 ", 16)),
                 "picture: damaged WEBP: its header cannot be read");
  expect_refused({}, "picture: is empty: neither PNG, JPEG, WEBP, BMP");
  expect_refused(test::bytes_of("GIF89a"), "picture: GIF, which is not read: save it as PNG");
  expect_refused({0, 0, 9, 1}, "neither PNG, JPEG, WEBP, BMP");
  expect_refused(test::bytes_of(std::string("RIFF\x04\0\0\0WAVE", 12)), "neither PNG, JPEG, WEBP, BMP");
  expect_refused(test::bytes_of("<html>"), "neither PNG, JPEG, WEBP, BMP");
}

}  // namespace
}  // namespace lockstep
