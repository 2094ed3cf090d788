// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Pixels of a JPEG are known for a file of each kind; a library with others is refused. EXIF data turn it.
#include "common/digest.hpp"
#include "common/env.hpp"
#include "common/error.hpp"
#include "data/pictures/picture.hpp"
#include "tests/data/picture_fixture.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/set_variable.hpp"
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
      EXPECT_FALSE(message_of<DeviceError>([&] {
                     require_known_pixels(std::span(&wrong, 1));
                   }).starts_with("the JPEG library"));
    }
  }
  std::vector<KnownJpeg> last(known_jpegs().begin(), known_jpegs().end());
  last.back().pixels = last.front().pixels;
  expect_error<DeviceError>([&] { require_known_pixels(last); },
                            {"known JPEG " + std::string(last.back().name) + " other pixels"});
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

TEST(JpegTest, ACutFileSaysWhy) {
  Bytes cut = testing::encode_jpeg(testing::sheet(64, 64, 77));
  cut.resize(cut.size() - 6);
  for (const Bytes& file : {Bytes{0xff, 0xd8, 0xff, 0xd9}, cut}) {
    const std::string said = message_of<DataError>([&] { read_jpeg("cut.jpg", file, PictureColour::kGrey); });
    EXPECT_TRUE(said.starts_with("cut.jpg: damaged JPEG: ")) << said;
    EXPECT_FALSE(said.ends_with(": ")) << said;
  }
}

TEST(JpegTest, ScansHaveALimit) {
  const Bytes whole = testing::encode_jpeg(testing::sheet(8, 8, 77), {.in_scans = true});
  const std::string text(whole.begin(), whole.end());
  const std::size_t last = text.rfind("\xff\xda");
  const auto with_scans = [&](int scans) {
    std::string file = text.substr(0, last);
    for (int i = 2; i < scans; ++i) file += text.substr(last, text.size() - 2 - last);
    file += "\xff\xd9";
    return Bytes(file.begin(), file.end());
  };
  EXPECT_NO_THROW(read_jpeg("all.jpg", with_scans(200), PictureColour::kRgb));
  EXPECT_EQ(message_of<DataError>([&] { read_jpeg("all.jpg", with_scans(201), PictureColour::kRgb); }),
            "all.jpg: damaged JPEG: more than 200 scans");
}

/// Grey needs the first component alone.
TEST(JpegTest, ComponentsWhoseSizesAreNoMultiplesAreRefused) {
  Bytes file = golden("420.jpg");
  const std::size_t frame = std::string(file.begin(), file.end()).find("\xff\xc0");
  for (const auto& [first, second] : {std::pair{0x32, 0x21}, {0x23, 0x12}, {0x21, 0x31}}) {
    file.at(frame + 11) = static_cast<std::uint8_t>(first);
    file.at(frame + 14) = static_cast<std::uint8_t>(second);
    for (const PictureColour colour : kBoth) {
      std::string said;
      try {
        read_jpeg("odd.jpg", file, colour);
      } catch (const DataError& error) {
        said = error.what();
      }
      const bool refused =
          said ==
          "odd.jpg: JPEG with 3 components whose colours or resolutions are not known; save it "
          "as a usual one";
      EXPECT_EQ(refused, colour == PictureColour::kRgb || second == 0x31) << said;
    }
  }
}

TEST(JpegTest, ColoursThatAreLeftOutAreKnown) {
  const auto was_coloured = [](bool in_scans) {
    const Bytes file = testing::encode_jpeg(testing::sheet(8, 8, 77), {.in_scans = in_scans});
    return read_jpeg("any.jpg", file, PictureColour::kGrey).was_coloured;
  };
  EXPECT_TRUE(was_coloured(true));
  EXPECT_FALSE(was_coloured(false));
}

/// The first scan of a progressive file has the means of blocks, all black or all white here.
TEST(JpegTest, BlocksOfWhichThereAreMeansAloneAreNotSmoothed) {
  const Picture picture = testing::drawn(24, 24, {{8, 0, 24, 24}});
  const Bytes whole = testing::encode_jpeg(picture, {.quality = 100, .progressive = true});
  std::string first(whole.begin(), whole.end());
  first.resize(first.find("\xff\xda", first.find("\xff\xda") + 2));
  first += "\xff\xd9";
  const Bytes file(first.begin(), first.end());
  EXPECT_EQ(read_jpeg("means.jpg", file, PictureColour::kGrey).pixels, picture.pixels);
}

/// JPEGMEM is libjpeg's, in thousands of bytes.
TEST(JpegTest, ItsMemoryDoesNotDependOnTheEnvironment) {
  const Bytes file = testing::encode_jpeg(testing::sheet(200, 200, 77), {.progressive = true});
  const test::SetVariable little("JPEGMEM", "1");
  EXPECT_NO_THROW(read_jpeg("all.jpg", file, PictureColour::kGrey));
}

TEST(JpegTest, AJpegIsTurnedAsTheCameraWasHeld) {
  // Dark in the top left corner as seen; each orientation stores it elsewhere.
  struct Stored {
    int orientation, x, y;
  };
  for (const Stored stored :
       {Stored{1, 0, 0}, {2, 1, 0}, {3, 1, 1}, {4, 0, 1}, {5, 0, 0}, {6, 0, 1}, {7, 1, 1}, {8, 1, 0}}) {
    const bool lies = stored.orientation >= 5;
    Picture picture = testing::sheet(lies ? 64 : 48, lies ? 48 : 64, 255);
    for (int y = 0; y < 16; ++y) {
      for (int x = 0; x < 16; ++x)
        picture.pixels[static_cast<std::size_t>((stored.y != 0 ? picture.height - 16 : 0) + y) *
                           static_cast<std::size_t>(picture.width) +
                       static_cast<std::size_t>((stored.x != 0 ? picture.width - 16 : 0) + x)] = 0;
    }
    const Picture seen =
        parse_pictures(testing::encode_jpeg(picture, {.orientation = stored.orientation}), "picture")[0];
    EXPECT_EQ(seen.width, 48) << stored.orientation;
    EXPECT_EQ(seen.height, 64) << stored.orientation;
    EXPECT_LT(seen.pixels[5 * 48 + 5], 30) << stored.orientation;
    EXPECT_EQ(seen.notes.size(), stored.orientation == 1 ? 0U : 1U);
  }
}

constexpr std::ptrdiff_t kAfterHead = 20;  ///< the end of the JFIF head

Bytes with_marker(const Bytes& file, const Bytes& marker) {
  Bytes result = file;
  result.insert(result.begin() + kAfterHead, marker.begin(), marker.end());
  return result;
}

TEST(JpegTest, WarningsThatChangeNoPixelAreNoDamage) {
  const Bytes file = testing::encode_jpeg(testing::sheet(8, 8, 77), {.in_scans = true});
  const auto read = [](const Bytes& other) {
    return read_jpeg("other.jpg", other, PictureColour::kRgb).pixels;
  };
  const Bytes pixels = read(file);
  Bytes later_version = file;
  later_version.at(11) = 3;
  EXPECT_EQ(read(later_version), pixels);
  EXPECT_EQ(read(with_marker(file, {0})), pixels) << "a byte that belongs to nothing";
  Bytes of_adobe = {0xff, 0xd8, 0xff, 0xee, 0, 14, 'A', 'd', 'o', 'b', 'e', 0, 100, 0, 0, 0, 0, 3};
  of_adobe.insert(of_adobe.end(), file.begin() + kAfterHead, file.end());
  EXPECT_EQ(read(of_adobe), pixels) << "colours that Adobe has no number for";
}

TEST(JpegTest, FourInksAreLightOnlyWhereAdobesMarkerStands) {
  Bytes file = testing::encode_jpeg(testing::sheet(8, 8, 255), {.four_inks = true});
  const auto first_pixel = [&] { return read_jpeg("inks.jpg", file, PictureColour::kGrey).pixels.at(0); };
  EXPECT_GT(first_pixel(), 245);
  ASSERT_EQ(file.at(3), 0xee);
  file.erase(file.begin() + 2, file.begin() + 18);
  EXPECT_LT(first_pixel(), 10);
}

TEST(JpegTest, ItIsTurnedWhateverStandsBeforeItsExifData) {
  const Bytes file = testing::encode_jpeg(testing::sheet(8, 16, 77), {.orientation = 6});
  const Bytes other = {0xff, 0xe1, 0, 6, 'h', 't', 't', 'p'};
  EXPECT_EQ(read_jpeg("turned.jpg", with_marker(file, other), PictureColour::kGrey).shape(),
            (ImageShape{1, 8, 16}));
}

TEST(JpegTest, ExifDataMayFillTheirMarker) {
  Bytes marker = {0xff, 0xe1, 0xff, 0xff, 'E', 'x', 'i', 'f', 0, 0, 'M', 'M', 0, '*', 0, 0, 0xff, 0xeb};
  marker.resize(4 + 65533 - 12);
  const Bytes directory = {0, 1, 0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, 6};  // as far as the orientation
  marker.insert(marker.end(), directory.begin(), directory.end());
  const Bytes file = with_marker(testing::encode_jpeg(testing::sheet(8, 16, 77)), marker);
  EXPECT_EQ(read_jpeg("turned.jpg", file, PictureColour::kGrey).shape(), (ImageShape{1, 8, 16}));
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
