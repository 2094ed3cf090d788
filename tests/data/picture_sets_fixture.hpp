// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Folders of pictures, and archives of the same ones.
#pragma once

#include "data/dataset.hpp"
#include "data/pictures/conversion.hpp"
#include "data/sets/set_loading.hpp"
#include "tests/data/idx_fixture.hpp"
#include "tests/data/picture_fixture.hpp"
#include "tests/data/tar_fixture.hpp"

namespace lockstep::picture_sets_test {

/// A picture of some size, other pixels for each seed.
inline test::Bytes picture(unsigned seed, bool as_jpeg) {
  std::mt19937 generator(seed);
  Picture made{.name = "", .width = 5 + static_cast<int>(seed % 4), .height = 6, .channels = 3};
  made.pixels.resize(made.plane_size() * 3);
  for (std::uint8_t& pixel : made.pixels) pixel = static_cast<std::uint8_t>(generator());
  return as_jpeg ? testing::encode_jpeg(made) : write_png(made);
}

class PictureSetsTest : public test::DirectoryTest {
 protected:
  PictureSetsTest() {
    for (const char* half : {"train", "val"})
      for (int label = 0; label < 3; ++label)
        for (int i = 0; i < 4; ++i)
          write(fmt::format("photos/{}/class {}/{}.jpg", half, label, i),
                picture(static_cast<unsigned>(16 * label + 4 * (half[0] == 'v') + i), i % 2 == 0));
  }
  /// Writes the same pictures in the same order, the halves in archives of five samples.
  void write_tars() const {
    for (const std::string half : {"train", "val"}) {
      std::vector<std::string> archives;
      const SortedPictures found = find_sorted_pictures(path("photos"), {});
      const auto& pictures = half == "train" ? found.train : found.test;
      for (std::size_t i = 0; i < pictures.size(); ++i) {
        if (i % 5 == 0) archives.emplace_back();
        const std::string key = fmt::format("dir.d/{:05}", i);
        archives.back() += test::tar_entry(key + ".JPG", test::text_in(pictures[i].path)) +
                           test::tar_entry(key + ".cls", fmt::format("{}\n", pictures[i].label)) +
                           test::tar_entry(key + ".json", "{}");
      }
      for (std::size_t i = 0; i < archives.size(); ++i)
        write_text(fmt::format("tars/{}-{}.tar", half, i), archives[i] + test::kTarEnd);
    }
  }
  TrainTestData load(const std::string& set, const PictureForm& form = kForm) const {
    return load_dataset({.set = set,
                         .root = path(set == "pictures" ? "photos" : "tars"),
                         .pictures = form,
                         .cache = path("cache")});
  }
  /// Decodes no picture at the start.
  DatasetOptions unmeasured(const PictureForm& form = kForm) const {
    return {.set = "pictures", .root = path("photos"), .mean = {0.5}, .std = {0.5}, .pictures = form};
  }
  static void expect_equal(const TrainTestData& a, const TrainTestData& b) {
    EXPECT_EQ(a.normalisation, b.normalisation);
    for (const auto& [one, other] : {std::pair{&a.train, &b.train}, {&a.test, &b.test}}) {
      EXPECT_EQ(one->labels, other->labels);
      ASSERT_EQ(one->shape, other->shape);
      for (std::int32_t i = 0; i < one->size(); ++i)
        EXPECT_EQ(test::image_of(*one, i), test::image_of(*other, i)) << i;
    }
  }

  static constexpr PictureForm kForm{.size = {4, 3}, .fit = PictureFit::kCrop, .colour = PictureColour::kRgb};
};

}  // namespace lockstep::picture_sets_test
