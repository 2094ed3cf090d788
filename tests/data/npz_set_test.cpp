// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Keras' and MedMNIST's archives: their halves, shapes, labels and classes.
#include "data/tables/npz_set.hpp"

#include "common/env.hpp"
#include "common/error.hpp"
#include "data/dataset.hpp"
#include "data/sets/set_loading.hpp"
#include "tests/data/idx_fixture.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"

#include <zlib.h>

namespace lockstep {
namespace {

struct NamedArray {
  std::string name, descr, shape;
  std::string elements;  ///< little-endian
};

/// As numpy.savez writes them.
test::Bytes npz(const std::vector<NamedArray>& arrays) {
  const auto number = [](std::uint64_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i, value >>= 8U) text.push_back(static_cast<char>(value));
    return text;
  };
  std::string file, directory;
  for (const NamedArray& array : arrays) {
    const std::string head =
        fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}\n", array.descr, array.shape);
    const std::string body = "\x93NUMPY\x01" + number(0, 1) + number(head.size(), 2) + head + array.elements;
    const std::string name = array.name + ".npy";
    const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(body.data()), body.size());
    const std::string facts = number(0, 8) + number(crc, 4) + number(body.size(), 4) +
                              number(body.size(), 4) + number(name.size(), 2) + number(0, 2);
    directory += "PK\1\2" + number(0, 4) + facts + number(0, 10) + number(file.size(), 4) + name;
    file += "PK\3\4" + number(0, 2) + facts + name + body;
  }
  const std::string end =
      "PK\5\6" + number(0, 8) + number(directory.size(), 4) + number(file.size(), 4) + number(0, 2);
  return test::bytes_of(file + directory + end);
}

std::string counting(int count, int first = 0) {
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes.push_back(static_cast<char>(first + i));
  return bytes;
}

template <typename Number>
std::string elements(std::initializer_list<Number> numbers) {
  return {reinterpret_cast<const char*>(numbers.begin()), numbers.size() * sizeof(Number)};
}

class NpzSetTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (directory_.path() / name).string(); }
  NpzSetConversion convert(const std::vector<NamedArray>& arrays) const {
    test::write_file(path("set.npz"), npz(arrays));
    EXPECT_TRUE(is_npz_set(path("set.npz")));
    return convert_npz_set(Env::posix(), path("set.npz"), path("set"), true);
  }
  TrainTestData load(const char* set) const {
    return load_dataset({.set = set,
                         .root = path("set"),
                         .mean = {0},
                         .std = {1},
                         .validation = {.is_files = has_validation_half_},
                         .in_memory = true});
  }

  test::TemporaryDirectory directory_;
  bool has_validation_half_ = false;
};

TEST_F(NpzSetTest, ImagesOfKerasGetTheirChannelsFirst) {
  const NpzSetConversion done = convert({{"x_train", "|u1", "3, 1, 2, 3", counting(18)},
                                         {"y_train", "<i2", "3, 1", elements<std::int16_t>({10, 2, 10})},
                                         {"x_test", "|u1", "1, 1, 2, 3", counting(6, 100)},
                                         {"y_test", "<i2", "1, 1", elements<std::int16_t>({2})}});
  EXPECT_FALSE(done.is_fp32);
  EXPECT_NE(done.order.find("[channel], which becomes"), done.order.npos);
  const TrainTestData data = load("shards");
  EXPECT_EQ(data.train.shape, (ImageShape{3, 1, 2}));
  EXPECT_EQ(data.class_names, (std::vector<std::string>{"2", "10"}));
  EXPECT_EQ(data.train.labels, (std::vector<std::int32_t>{1, 0, 1}));
  EXPECT_EQ(data.test.labels, (std::vector<std::int32_t>{0}));
  const auto pixels = data.train.images.span().first(6);
  EXPECT_TRUE(std::ranges::equal(pixels, std::vector<std::uint8_t>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(data.test.images[5], 105);
  EXPECT_EQ(done.samples.train, (std::vector<std::int64_t>{1, 2}));
}

TEST_F(NpzSetTest, MedMnistHasThreeHalvesAndPerhapsSeveralLabels) {
  const NpzSetConversion done =
      convert({{"train_images", "|u1", "2, 2, 2", counting(8)},
               {"train_labels", "|u1", "2, 3", elements<std::uint8_t>({1, 0, 1, 0, 0, 0})},
               {"val_images", "|u1", "1, 2, 2", counting(4, 20)},
               {"val_labels", "|u1", "1, 3", elements<std::uint8_t>({0, 1, 0})},
               {"test_images", "|u1", "1, 2, 2", counting(4, 40)},
               {"test_labels", "|u1", "1, 3", elements<std::uint8_t>({1, 1, 1})}});
  EXPECT_TRUE(done.has_label_sets);
  EXPECT_EQ(done.sizes.train, 2);
  EXPECT_EQ(done.samples.test, (std::vector<std::int64_t>{1, 1, 1}));
  has_validation_half_ = true;
  const TrainTestData data = load("shards");
  EXPECT_EQ(data.train.classes, 3);
  EXPECT_TRUE(std::ranges::equal(data.train.label_set_of(0), std::vector<std::uint8_t>{1, 0, 1}));
  EXPECT_TRUE(std::ranges::equal(data.train.label_set_of(1), std::vector<std::uint8_t>{0, 0, 0}));
  EXPECT_EQ(data.validation.images[0], 20);
  EXPECT_EQ(data.test.images[0], 40);
}

TEST_F(NpzSetTest, NumbersBecomeATableAndOneHotRowsOneLabel) {
  const NpzSetConversion done = convert({{"x_train", "<f8", "2, 2", elements({0.5, 1.5, 2.5, 3.5})},
                                         {"y_train", "<f4", "2, 2", elements({0.0F, 1.0F, 1.0F, 0.0F})},
                                         {"x_test", "<f8", "1, 2", elements({4.5, 5.5})},
                                         {"y_test", "<f4", "1, 2", elements({0.0F, 1.0F})}});
  EXPECT_TRUE(done.is_fp32);
  EXPECT_FALSE(done.has_label_sets);
  EXPECT_EQ(done.order, "");
  const TrainTestData data = load("table");
  EXPECT_EQ(data.train.labels, (std::vector<std::int32_t>{1, 0}));
  EXPECT_TRUE(std::ranges::equal(data.train.features.span(), std::vector<float>{0.5, 1.5, 2.5, 3.5}));
}

TEST_F(NpzSetTest, WhatFitsNoSetIsRefused) {
  const NamedArray x{"x_train", "|u1", "2, 2, 2", counting(8)}, y{"y_train", "|u1", "2", counting(2)},
      x_test{"x_test", "|u1", "2, 2, 2", counting(8)}, y_test{"y_test", "|u1", "2", counting(2)};
  const auto fails = [&](const std::vector<NamedArray>& arrays, const char* part) {
    expect_error<DataError>([&] { convert(arrays); }, {part});
  };
  EXPECT_NO_THROW(convert({x, y, x_test, y_test}));
  fails({x, y}, "has x_train, and no x_test, y_test");
  fails({x, y, x_test, y_test, {"x_val", "|u1", "1, 2, 2", counting(4)}}, "has x_train, and no y_val");
  fails({x, y, x_test, {"y_test", "|u1", "1", counting(1)}}, "set.npz:y_test: 1 row for 2 samples");
  fails({x, y, x_test, {"y_test", "|u1", "2, 2", counting(4)}}, "set.npz:y_test: 2 columns of labels");
  fails({x, {"y_train", "|u1", "2, 2", counting(4)}, x_test, y_test}, "row 1 has 2, and labels of 2 columns");
  fails({x, {"y_train", "<f4", "2", elements({0.5F, 1.0F})}, x_test, y_test}, "label 0 is neither");
  fails({x, {"y_train", "|u1", "2", elements<std::uint8_t>({1, 1})}, x_test, {"y_test", "|u1", "2", "\1\1"}},
        "all labels are '1'");
  fails({x, y, {"x_test", "|u1", "2, 2, 1", counting(4)}, y_test},
        "of another shape, order or type than those in x_train");
  fails({x, y, {"x_test", "|i1", "2, 2, 2", counting(8)}, y_test}, "of another shape, order or type");
  fails({{"x_train", "|u1", "2, 5, 5, 3", counting(150)},
         y,
         {"x_test", "|u1", "2, 3, 5, 5", counting(150)},
         y_test},
        "of another shape, order or type");
  fails({{"x_train", "|u1", "1, 5, 5, 5", counting(125)}, y, x_test, y_test}, "samples of 5 x 5 x 5");
  fails({{"x_train", "|S4", "2, 1", counting(8)}, y, x_test, y_test}, "holds text, and no samples");
  test::write_file(path("table.npz"), npz({x, {"x", "|u1", "2", counting(2)}}));
  EXPECT_FALSE(is_npz_set(path("table.npz")));
  EXPECT_FALSE(is_npz_set(path("set.npy")));
}

}  // namespace
}  // namespace lockstep
