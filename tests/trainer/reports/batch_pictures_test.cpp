// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The sheet of a first batch, pixel by pixel, and how many pictures fit on it.
#include "trainer/reports/batch_pictures.hpp"

#include "common/error.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/reports/run_folder.hpp"

namespace lockstep {
namespace {

/// Takes the samples of a set in their order; its bytes are 0, 1, 2, ...
BatchPictures first_batch(const std::vector<std::uint32_t>& sizes, int batch) {
  const testing::RunFolders folders;
  std::string bytes;
  for (std::uint32_t left = std::accumulate(sizes.begin(), sizes.end(), 1U, std::multiplies()); left > 0;
       --left)
    bytes += static_cast<char>(bytes.size());
  for (const std::string half : {"train", "t10k"}) {
    folders.write_idx(fmt::format("{}-images-idx{}-ubyte", half, sizes.size()), sizes, bytes);
    std::string labels(sizes[0], '\0');
    labels.back() = '\1';
    folders.write_idx(half + "-labels-idx1-ubyte", {sizes[0]}, labels);
  }
  return picture_first_batch(parse_job(
      fmt::format("{{model: linear, data: {{set: idx, root: {}, shuffle: false, global_batch: {}}}}}",
                  folders.root(), batch),
      "job.yaml"));
}

/// Three of 2 x 2 pixels with three channels, of which two are in the first batch.
TEST(BatchPicturesTest, ColouredPicturesAreBesideEachOtherWithGreyBetween) {
  const BatchPictures pictures = first_batch({3, 2, 2, 3}, 2);
  std::vector<std::uint8_t> expected;
  for (const int channel : {0, 1, 2})
    for (const int top : {0, 6})
      for (const int pixel : {top, top + 3, -1, -1, 12 + top, 15 + top})
        expected.push_back(static_cast<std::uint8_t>(pixel < 0 ? 128 : pixel + channel));
  EXPECT_EQ(pictures.sheet.pixels, expected);
  EXPECT_EQ(pictures.sheet.channels, 3);
  EXPECT_EQ(pictures.columns, 2U);
  EXPECT_EQ(pictures.batch, 2U);
  EXPECT_TRUE(pictures.labels.empty()) << "none is mixed";
}

/// Each takes 2^20 of 2^24 pixels.
TEST(BatchPicturesTest, SixteenOfAMillionPixelsAreShown) {
  const BatchPictures pictures = first_batch({17, 1022, 1022}, 17);
  EXPECT_EQ(pictures.batch, 17U);
  EXPECT_EQ(pictures.shown, 16U);
  EXPECT_EQ(pictures.sheet.width, 4094);
  EXPECT_EQ(pictures.sheet.height, 4094);
}

/// With the grey around it, it takes 4 x 4,194,305 pixels, 4 more than 2^24.
TEST(BatchPicturesTest, APictureLargerThanASheetIsShownAlone) {
  const BatchPictures pictures = first_batch({1, 2, 4194303}, 1);
  ASSERT_EQ(pictures.shown, 1U);
  EXPECT_EQ(pictures.columns, 1U);
  EXPECT_EQ(pictures.sheet.width, 4194303);
  EXPECT_EQ(pictures.sheet.height, 2);
  EXPECT_EQ(pictures.sheet.pixels.back(), 253) << "pixel 8,388,605";
}

TEST(BatchPicturesTest, PicturesOfTwoChannelsCannotBeShown) {
  EXPECT_EQ(message_of<ConfigError>([] {
              first_batch({2, 2, 2, 2}, 1);
            }),
            "data.set: the images of idx train have 2 channels; a picture shows 1 or 3");
}

}  // namespace
}  // namespace lockstep
