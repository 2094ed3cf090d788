// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Pixels of a JPEG are known for a file of each kind; a library with others is refused.
#include "common/digest.hpp"
#include "common/env.hpp"
#include "common/error.hpp"
#include "data/pictures/picture.hpp"
#include "tests/data/picture_fixture.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/test_settings.hpp"

namespace lockstep {
namespace {

using testing::Bytes;

constexpr PictureColour kBoth[] = {PictureColour::kGrey, PictureColour::kRgb};

Bytes golden(const std::string& name) {
  std::string path = test::source_path("data/pictures/known/" + name);
  if (!Env::posix().exists(path)) path = test::source_path("tests/golden/jpeg/" + name);
  const auto bytes = Env::posix().read(path);
  const auto* const begin = reinterpret_cast<const std::uint8_t*>(bytes.data());
  return {begin, begin + bytes.size()};
}

/// A line of tests/golden/jpeg/pixels.txt: a file, and what its pixels come to in grey and in colour.
struct Known {
  std::string file, grey, colour;
};

std::vector<Known> known_pixels() {
  std::ifstream list(test::source_path("tests/golden/jpeg/pixels.txt"));
  std::vector<Known> known;
  for (std::string line; std::getline(list, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream words(line);
    words >> known.emplace_back().file >> known.back().grey >> known.back().colour;
  }
  return known;
}

TEST(JpegTest, EveryKindHasItsKnownPixels) {
  const auto known = known_pixels();
  ASSERT_GE(known.size(), 16U);
  for (const Known& one : known) {
    const Bytes file = golden(one.file);
    for (const PictureColour colour : kBoth) {
      const Picture picture = read_jpeg(one.file, file, colour);
      EXPECT_EQ(hex(sha256(std::as_bytes(std::span(picture.pixels)))),
                colour == PictureColour::kRgb ? one.colour : one.grey)
          << one.file;
    }
  }
}

TEST(JpegTest, ALibraryWithOtherPixelsIsRefusedByName) {
  EXPECT_EQ(known_jpegs().size(), 6U);
  EXPECT_NO_THROW(require_known_pixels(known_jpegs()));
  for (KnownJpeg other : known_jpegs()) {
    other.pixels = known_jpegs()[other.name == "420.jpg" ? 1 : 0].pixels;
    KnownJpeg cut = known_jpegs()[0];
    cut.file = other.file.substr(0, 100);
    for (const KnownJpeg& wrong : {other, cut}) {
      SCOPED_TRACE(wrong.name);
      expect_error<DeviceError>([&] { require_known_pixels(std::span(&wrong, 1)); },
                                {"jpeg", "gives the known JPEG ", "load libjpeg-turbo 2.1 or newer"});
    }
  }
}

TEST(JpegTest, AComponentWithoutDataIsDamageUnlessItIsNotNeeded) {
  const Bytes whole = testing::encode_jpeg(testing::sheet(8, 8, 77), {.in_scans = true});
  std::string cut(whole.begin(), whole.end());
  cut.resize(cut.rfind("\xff\xda"));  // the last of three scans
  cut += "\xff\xd9";
  const Bytes file(cut.begin(), cut.end());
  EXPECT_NO_THROW(read_jpeg("grey.jpg", file, PictureColour::kGrey));
  EXPECT_EQ(message_of<DataError>([&] { read_jpeg("cut.jpg", file, PictureColour::kRgb); }),
            "cut.jpg: damaged JPEG: a component has no data");
}

TEST(JpegTest, TwelveBitsAreRefusedByName) {
  Bytes file = golden("420.jpg");
  const std::string text(file.begin(), file.end());
  file[text.find("\xff\xc0") + 4] = 12;
  EXPECT_EQ(message_of<DataError>([&] { read_jpeg("fine.jpg", file, PictureColour::kRgb); }),
            "fine.jpg: JPEG with 12 bits a channel; only 8 are read, so save it with 8");
}

}  // namespace
}  // namespace lockstep
