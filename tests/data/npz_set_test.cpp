// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Keras' and MedMNIST's archives: their halves, shapes, labels and classes.
#include "data/tables/npz_set.hpp"

#include "common/env.hpp"
#include "common/error.hpp"
#include "data/dataset.hpp"
#include "data/sets/set_loading.hpp"
#include "data/tables/table.hpp"
#include "tests/data/idx_fixture.hpp"
#include "tests/data/npz_fixture.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::npz_test {
namespace {

using namespace std::string_literals;

class NpzSetTest : public test::DirectoryTest {
 protected:
  NpzSetConversion convert(const std::vector<NamedArray>& arrays) const {
    write("set.npz", npz(arrays));
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
  test::expect_words(test::text_in(path("set/shards.index")),
                     {R"("block_bytes":262144,)", R"("shard_bytes":1073741824,)"});
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
  EXPECT_EQ(done.samples.validation, (std::vector<std::int64_t>{0, 1, 0}));
  EXPECT_EQ((std::array{done.sizes.test, done.sizes.validation}), (std::array<std::int64_t, 2>{1, 1}));
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

TEST_F(NpzSetTest, ChannelsMayComeFirstAndOtherTypesAreNoImages) {
  const auto with = [&](const std::string& type, const std::string& dims, int bytes) {
    return convert({{"x_train", type, "1, " + dims, counting(bytes)},
                    {"y_train", "|S2", "1", "b\0"s},
                    {"x_test", type, "1, " + dims, counting(bytes)},
                    {"y_test", "|S2", "1", "10"}});
  };
  const NpzSetConversion first = with("|u1", "4, 5, 5", 100), last = with("|u1", "5, 5, 4", 100);
  const std::string of = path("set.npz").string() + ":x_train is taken as [sample]";
  EXPECT_EQ(first.order, of + "[channel][row][column]");
  EXPECT_EQ(first.samples.shape, (ImageShape{4, 5, 5}));
  EXPECT_EQ(last.samples.shape, (ImageShape{4, 5, 5}));
  EXPECT_EQ(last.order, of + "[row][column][channel], which becomes [channel][row][column]");
  EXPECT_EQ(first.samples.class_names, (std::vector<std::string>{"10", "b"}));
  const NpzSetConversion grey = with("|u1", "2, 3", 6);
  EXPECT_EQ(grey.samples.shape, (ImageShape{1, 2, 3}));
  EXPECT_EQ(grey.order, "");
  EXPECT_TRUE(with("<u2", "2, 2", 8).is_fp32 && with("|i1", "2, 2", 4).is_fp32);
  EXPECT_TRUE(with("|u1", "4", 4).is_fp32 && !with("|u1", "2, 2", 4).is_fp32);
}

/// A table's are ordered so, too.
TEST_F(NpzSetTest, NamesAreOrderedByNumberIfAllAreNumbersAndElseByTheirBytes) {
  const auto classes_of = [&](const std::string& names) {
    return convert({{"x_train", "<f4", "4", elements({1.0F, 2.0F, 3.0F, 4.0F})},
                    {"y_train", "|S2", "4", names},
                    {"x_test", "<f4", "1", elements({5.0F})},
                    {"y_test", "|S2", "1", "10"}})
        .samples.class_names;
  };
  EXPECT_EQ(classes_of("9\0"s + "09" + "b\0"s + "10"), (std::vector<std::string>{"09", "10", "9", "b"}));
  EXPECT_EQ(classes_of("10"s + "9\0"s + "11" + "2\0"s), (std::vector<std::string>{"2", "9", "10", "11"}));
  EXPECT_EQ(classes_of("0\0"s + "-0" + "2\0"s + "10"), (std::vector<std::string>{"-0", "0", "2", "10"}));
}

/// Archives with tables: the arrays of one are found by their usual names, or asked for.
TEST_F(NpzSetTest, TablesInArchivesAreRead) {
  const auto table_of = [&](const std::vector<NamedArray>& arrays, const std::string& label,
                            bool has_labels = true) {
    write("T.NPZ", npz(arrays));
    return open_table({.from = path("T.NPZ"), .label = label, .has_labels = has_labels});
  };
  const NamedArray x{"features", "<f4", "2, 2", elements({1.0F, 2.0F, 3.0F, 4.0F})},
      y{"labels", "<f4", "2", elements({7.0F, 0.5F})}, text{"x", "|S1", "2", "ab"},
      one{"y", "|u1", "1", "\1"}, wide{"y", "|u1", "2, 2", counting(4)};
  const auto table = table_of({x, y}, "");
  TableRow row;
  ASSERT_TRUE(table->next(row));
  EXPECT_EQ(row.features, (std::vector<float>{1, 2}));
  EXPECT_EQ(row.label + " of " + row.place, "7 of row 0");
  ASSERT_TRUE(table->next(row));
  EXPECT_EQ(row.trouble, "its label is neither a whole number nor a name");
  EXPECT_FALSE(table->next(row));
  EXPECT_EQ(table_of({x}, "", false)->shape(), (ImageShape{2, 1, 1}));
  const auto fails = [&](const std::vector<NamedArray>& arrays, const std::string& label, const char* part) {
    expect_error<DataError>([&] { table_of(arrays, label); }, {part});
  };
  fails({x, y}, "q",
        "T.NPZ: has no array q, but features, labels; numpy.savez(FILE, x=features, y=labels) names them so");
  fails({x}, "", "T.NPZ: has no array y or labels or label, but features;");
  fails({text, y}, "", "T.NPZ:x: holds text, and no numbers");
  fails({x, one}, "", "T.NPZ:y: 1 label for 2 rows");
  fails({x, wide}, "", "T.NPZ:y: labels have one dimension");
}

TEST_F(NpzSetTest, WhatFitsNoSetIsRefused) {
  const NamedArray x{"x_train", "|u1", "2, 2, 2", counting(8)}, y{"y_train", "|u1", "2", counting(2)},
      x_test{"x_test", "|u1", "2, 2, 2", counting(8)}, y_test{"y_test", "|u1", "2", counting(2)};
  const auto fails = [&](const std::vector<NamedArray>& arrays, const char* part) {
    expect_error<DataError>([&] { convert(arrays); }, {part});
  };
  EXPECT_NO_THROW(convert({x, y, x_test, y_test}));
  fails({x, y}, "has x_train, and no x_test, y_test; save them too with numpy.savez, or");
  fails({x, y, x_test, y_test, {"x_val", "|u1", "1, 2, 2", counting(4)}},
        "has x_train, and no y_val; save it too with numpy.savez");
  fails({x, y, x_test, {"y_test", "|u1", "1", counting(1)}}, "set.npz:y_test: 1 row for 2 samples");
  fails({x, y, x_test, {"y_test", "|u1", "2, 2", counting(4)}},
        "set.npz:y_test: 2 columns of labels, and y_train has 1");
  fails({x, {"y_train", "|u1", "2, 2", elements<std::uint8_t>({0, 1, 3, 0})}, x_test, y_test},
        "row 1 has 3, and labels of 2 columns");
  fails({x, {"y_train", "|S1", "2, 2", "abcd"}, x_test, {"y_test", "|S1", "2, 2", "abcd"}},
        "set.npz:y_train: holds text, and no numbers");
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
  fails({{"x_train", "|u1", "1, 5, 6, 7", counting(210)}, y, x_test, y_test}, "samples of 5 x 6 x 7, and");
  fails({{"x_train", "|S4", "2, 1", counting(8)}, y, x_test, y_test}, "holds text, and no samples");
  const NamedArray numbers{"x_train", "<f4", "2, 2", elements({1.0F, 2.0F, HUGE_VALF, 4.0F})},
      others{"x_test", "<f4", "2, 2", elements({1.0F, 2.0F, 3.0F, 4.0F})};
  fails({numbers, y, others, y_test}, "value 0 of sample 1 is inf, no number that fp32 has");
  write("table.npz", npz({x, {"x", "|u1", "2", counting(2)}}));
  EXPECT_FALSE(is_npz_set(path("table.npz")));
  EXPECT_FALSE(is_npz_set(path("set.npy")));
}

}  // namespace
}  // namespace lockstep::npz_test
