// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Folders of pictures, of which tests make sets.
#pragma once

#include "common/env.hpp"
#include "data/dataset.hpp"
#include "data/pictures/conversion.hpp"
#include "data/sets/set_loading.hpp"
#include "tests/data/idx_fixture.hpp"
#include "tests/support/messages.hpp"

namespace lockstep::conversion_test {

inline test::Bytes ppm(int width, int height, int red, int green, int blue) {
  const std::string head = "P6 " + std::to_string(width) + " " + std::to_string(height) + " 255\n";
  test::Bytes bytes(head.begin(), head.end());
  for (int i = 0; i < width * height; ++i)
    for (const int value : {red, green, blue}) bytes.push_back(static_cast<std::uint8_t>(value));
  return bytes;
}

/// Ten pictures in each of two classes, all of different colours.
class ConversionTest : public test::DirectoryTest {
 protected:
  ConversionTest() {
    for (int i = 0; i < 10; ++i) {
      write("pictures/ants/" + std::to_string(i) + ".ppm", ppm(4, 3, i, 0, 100));
      write("pictures/bees/" + std::to_string(i) + ".ppm", ppm(4, 3, 50 + i, 0, 200));
    }
  }
  ConversionOptions options() const {
    return {.from = path("pictures").string(), .to = path("set").string(), .size = {}, .split = {}};
  }
  static Conversion convert(const ConversionOptions& options) {
    return convert_pictures(Env::posix(), options);
  }
  TrainTestData converted(const ConversionOptions& options) const {
    convert(options);
    return load(options.to);
  }
  static TrainTestData load(const std::string& root) {
    return load_dataset({.set = "shards", .root = root, .in_memory = true});
  }
  template <typename E>
  void expect_failure(const ConversionOptions& options, std::initializer_list<std::string_view> parts) const {
    expect_error<E>([&] { convert(options); }, parts);
    EXPECT_TRUE(!std::filesystem::exists(options.to) || std::filesystem::is_empty(options.to))
        << "something was left behind";
  }
  /// Folders that are not converted.
  template <typename E>
  void expect_refusal(const std::string& from, std::initializer_list<std::string_view> parts) const {
    expect_error<E>([&] { find_sorted_pictures(path(from), {}); }, parts);
  }
};

}  // namespace lockstep::conversion_test
