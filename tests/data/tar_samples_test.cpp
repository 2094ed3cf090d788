// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Archives of tar: the samples and labels in them, and what no archive may have.
#include "data/sets/tar_samples.hpp"

#include "common/digest.hpp"
#include "common/error.hpp"
#include "data/dataset.hpp"
#include "tests/data/tar_fixture.hpp"
#include "tests/support/messages.hpp"

namespace lockstep::tar_samples_test {
namespace {

using test::kTarEnd;
using test::octal;
using test::tar_entry;
using test::tar_sample;

std::string pax(const std::string& key, const std::string& value) {
  const std::string rest = " " + key + "=" + value + "\n";
  std::string record = std::to_string(rest.size() + 2) + rest;
  if (record.size() != rest.size() + 2) record = std::to_string(rest.size() + 3) + rest;
  return tar_entry("pax", record, {.type = 'x'});
}

std::vector<TarSample> samples_in(const std::string& tar, const std::string& label = kLabelInCls) {
  const auto read = [&](std::uint64_t offset, std::span<std::uint8_t> to) {
    const std::size_t count = std::min<std::size_t>(to.size(), tar.size() - std::min(tar.size(), offset));
    std::copy_n(tar.begin() + static_cast<std::ptrdiff_t>(offset), count, to.begin());
    return count;
  };
  return find_tar_samples(TarReader(read, tar.size(), "a.tar"), label);
}

TEST(TarSamplesTest, NamesOfAllKindsAreRead) {
  const std::string deep(150, 'd'), name = deep + "/1.x.png";
  const std::string tar =
      tar_entry("dir", "", {.type = '5'}) + tar_entry("README", "hello") +
      tar_entry("1.png", "abc", {.prefix = "pre.fix"}) + tar_entry("1.cls", "7", {.prefix = "pre.fix"}) +
      pax("path", deep + "/2.png") + pax("mtime", "1.5") + tar_entry("short", "de") +
      tar_entry("L", deep + "/2.cls" + std::string(1, '\0'), {.type = 'L'}) + tar_entry("short", " 8\n") +
      tar_entry("3.cls", "9") + pax("size", "4") + tar_entry("3.jpeg", "fghi", {.size = octal(9, 11)}) +
      tar_entry("4.webp", "j", {.size = std::string("\x80\0\0\0\0\0\0\0\0\0\0\x01", 12)}) +
      tar_entry("4.cls", "10") + tar_entry("5.png", "klm", {.size = "         3 "}) +
      tar_entry("5.cls", "11", {.type = '7'}) +
      tar_entry("pax", "11 mtime=1\n14 path=6.png\n", {.type = 'x'}) +
      tar_entry("short", "n", {.type = '\0'}) + tar_entry("6.cls", "12") + pax("path", "d/") +
      tar_entry("d", "", {.type = '5'}) + tar_entry("7.png", "o") + tar_entry("all", "", {.type = 'g'}) +
      tar_entry("7.cls", "13") + tar_entry("8.png", "q", {.prefix = "14712345670", .magic = "ustar  "}) +
      tar_entry("8.cls", "14") + kTarEnd;
  const std::vector<TarSample> samples = samples_in(tar);
  ASSERT_EQ(samples.size(), 8U);
  const std::vector<std::string> names = {"pre.fix/1.png", deep + "/2.png", "3.jpeg", "4.webp",
                                          "5.png",         "6.png",         "7.png",  "8.png"},
                                 bodies = {"abc", "de", "fghi", "j", "klm", "n", "o", "q"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(samples[i].picture.name, names[i]);
    EXPECT_EQ(tar.substr(samples[i].picture.offset, samples[i].picture.bytes), bodies[i]);
    EXPECT_EQ(samples[i].label, std::to_string(7 + i));
  }
}

TEST(TarSamplesTest, BadArchivesAreRefused) {
  const auto fails = [](const std::string& tar, const char* part) {
    SCOPED_TRACE(part);
    expect_error<DataError>([&] { samples_in(tar); }, {"a.tar: offset", part});
  };
  const std::string good = tar_sample("1", 0) + tar_sample("2", 1) + kTarEnd;
  EXPECT_EQ(samples_in(good).size(), 2U);
  for (const std::size_t bytes : {0U, 511U, 600U, 2048U, 2560U, 4096U})
    fails(good.substr(0, bytes), "is cut off");
  fails(good.substr(0, 511), "offset 0: the archive is cut off at byte 511");
  fails(good.substr(0, 600), "offset 512: 1 bytes should follow, and the archive is cut off at byte 600");
  std::string damaged = good;
  damaged[1030] ^= 1;
  fails(damaged, "offset 1024: a header is damaged");
  fails(std::string(2048, 'x'), "or this is not a tar archive");
  fails(tar_sample("1", 0) + tar_sample("2", 1) + tar_sample("1", 0) + kTarEnd,
        "offset 0: sample 1 is there twice");
  fails(tar_entry("1.png", "a") + tar_entry("1.png", "b") + kTarEnd,
        "offset 1536: 1.png: its sample has a second picture");
  fails(tar_entry("1.cls", "1") + tar_entry("1.cls", "1") + kTarEnd,
        "offset 1536: 1.cls: its sample has a second .cls");
  fails(tar_entry("1.png", "a") + kTarEnd, "offset 512: 1.png: its sample has no .cls with the label");
  fails(tar_entry("1.cls", "1") + tar_entry("2.png", "a") + kTarEnd,
        "offset 0: sample 1 has a .cls and no picture");
  for (const char* label : {"", "1.5", "-1", "1000000", "99999999999999999999", "1 x", " ", "a\nb", "\x80"})
    fails(tar_entry("1.cls", label) + kTarEnd, "offset 512: 1.cls: holds no label");
  fails(tar_entry("1.png", "", {.type = '2'}) + kTarEnd, "offset 0: 1.png is a symbolic link");
  fails(tar_entry("1.png", "", {.type = '1'}) + kTarEnd, "1.png is a hard link");
  fails(tar_entry("1.png", "", {.type = 'S'}) + kTarEnd, "1.png is a sparse file; the archive must hold");
  for (const char type : {'3', '4', '6'})
    fails(tar_entry("1.png", "", {.type = type}) + kTarEnd, "1.png is a device or FIFO");
  fails(tar_entry("1.png", "", {.type = '?'}) + kTarEnd, "an entry of the unknown kind 63");
  fails(tar_entry("1.png", "", {.size = "77777777777"}) + kTarEnd,
        "offset 512: 8589934591 bytes should follow, and the archive is cut off at byte 1536");
  fails(tar_entry("1.png", "", {.size = std::string("\x80\0\0\0\x3f", 5) + std::string(7, '\xff')}) + kTarEnd,
        "4611686018427387903 bytes should follow");
  fails(tar_entry("1.png", "", {.size = std::string(12, '\xff')}) + kTarEnd, "size is not a number of bytes");
  fails(tar_entry("1.png", "", {.size = "\x80" + std::string(11, '\x7f')}) + kTarEnd,
        "size is not a number of bytes");
  fails(tar_entry("1.png", "", {.size = "00000000018"}) + kTarEnd, "size is not a number of bytes");
  fails(pax("size", "-4") + tar_entry("1.png", "") + kTarEnd, "pax header's size");
  fails(pax("size", "x") + tar_entry("1.png", "") + kTarEnd, "pax header's size");
  for (const char* record : {"99 path=a\n", "5path=a\n", "2 a\n", "9 path=ab", "x path=a\n"})
    fails(tar_entry("x", record, {.type = 'x'}) + kTarEnd, "a pax header is damaged");
  fails(tar_entry("", "x") + kTarEnd, "a file's name is empty, or has more than one line");
  fails(tar_entry("L", std::string((1 << 20) + 1, 'n'), {.type = 'L'}) + kTarEnd,
        "offset 512: a header of 1048577 bytes; at most 1048576 are read");
  fails(pax("path", std::string("a\0b", 3)) + tar_entry("1.png", "") + kTarEnd, "has more than one line");
}

TEST(TarSamplesTest, AfterItsEndAnArchiveHasZerosOfARecordAlone) {
  const std::string one = tar_sample("1", 0), two = tar_sample("2", 1);
  const auto zeros = [](std::size_t bytes) { return std::string(bytes, '\0'); };
  for (const std::size_t bytes : {512U, 1024U, 1500U, 10'240U, 1U << 20})
    EXPECT_EQ(samples_in(one + zeros(bytes)).size(), 1U) << bytes;
  const auto fails = [&](const std::string& tar, const char* part) {
    expect_error<DataError>([&] { samples_in(tar); }, {part});
  };
  fails(one + kTarEnd + two + kTarEnd,
        "a.tar: offset 3072: more follows the archive's end at byte 2048; archives are joined");
  fails(one + zeros(512) + two + kTarEnd, "offset 2560: more follows");
  fails(one + zeros(10'239) + "x", "offset 12287: more follows");
  fails(one + zeros((1U << 20) + 1), "offset 2048: more than 1 MiB of zeros follows");
}

/// A part of a label may be another label.
TEST(TarSamplesTest, ALabelThatIsTooLongToBeReadIsRefused) {
  const auto samples_of = [](const std::string& ending, const std::string& text, const std::string& label) {
    return samples_in(tar_entry("1.png", "p") + tar_entry("1." + ending, text) + kTarEnd, label);
  };
  const std::string cls = std::string(65535, ' ') + "1";
  EXPECT_EQ(samples_of("cls", cls, kLabelInCls)[0].label, "1");
  expect_error<DataError>([&] { samples_of("cls", cls + "2", kLabelInCls); }, {"1.cls: holds no label"});
  std::string json = R"({"a": 1})";
  json.resize(1048576, ' ');
  EXPECT_EQ(samples_of("json", json, "a")[0].label, "1");
  expect_error<DataError>([&] { samples_of("json", json + "x", "a"); },
                          {"1.json: has no label under the key 'a'"});
}

TEST(TarSamplesTest, ADotInWhatIsMeantAsANameIsNamed) {
  const auto sample = [](const std::string& key) {
    return tar_entry(key + ".jpg", "a") + tar_entry(key + ".cls", "1");
  };
  expect_error<DataError>(
      [&] { samples_in(sample("0") + sample("d.x/img.0001") + sample("d.x/img.0002") + kTarEnd); },
      {"d.x/img.0001.jpg: a sample's name ends at the first dot, so this is sample d.x/img with "
       "the ending .0001.jpg; call it d.x/img-0001.jpg"});
  const std::string parts = tar_entry("1.mask.png", "m") + tar_entry("1.mask.cls", "0");
  EXPECT_EQ(samples_in(sample("1") + parts + kTarEnd).size(), 1U) << "other files of a sample may have dots";
  EXPECT_EQ(samples_in(sample("d/._1") + sample("d/1") + kTarEnd).size(), 1U) << "macOS writes such";
  const auto mask = [](const std::string& key, const char* ending) {
    return tar_entry(key + ".mask." + ending, "0");
  };
  EXPECT_EQ(samples_in(mask("1", "png") + mask("2", "cls") + mask("3", "png") + sample("4") + kTarEnd).size(),
            1U)
      << "no two of them are of one sample";
}

TEST(TarLabelsTest, AreReadFromBothKindsOfFiles) {
  EXPECT_EQ(label_of_cls(" 7\n"), "7");
  EXPECT_EQ(label_of_cls("3,1 2"), "[3,1,2]");
  EXPECT_EQ(label_of_cls("007"), "7");
  EXPECT_EQ(label_of_cls("00 01"), "[0,1]");
  EXPECT_EQ(label_of_cls("00x"), "\"00x\"");
  EXPECT_EQ(label_of_cls("Tabby cat, 2\r\n"), "\"Tabby cat, 2\"");
  for (const char* text : {R"({"a": 5})", R"({"a": "x y"})", R"({"a": []})", R"({"a": ["b", "c"]})"})
    EXPECT_TRUE(label_of_json(text, "a").has_value()) << text;
  EXPECT_EQ(label_of_json(R"({"a": "x y"})", "a"), "\"x y\"");
  for (const char* text :
       {"", "7", "{}", R"({"a": 1.5})", R"({"a": -1})", R"({"a": 1000000})", R"({"a": ""})",
        R"({"a": [[1]]})", R"({"a": {"a": 1}})", R"({"a": "\n"})", R"({"a": true})"})
    EXPECT_EQ(label_of_json(text, "a"), std::nullopt) << text;
  const std::string tar = tar_entry("1.png", "p") + tar_entry("1.json", R"({"a": "cat", "b": [2]})") +
                          tar_entry("2.json", R"({"a": "dog", "b": []})") + tar_entry("2.png", "q") + kTarEnd;
  const auto names = samples_in(tar, "a"), lists = samples_in(tar, "b");
  ASSERT_EQ(names.size(), 2U);
  EXPECT_EQ(names[1].label, "\"dog\"");
  EXPECT_EQ(lists[0].label, "[2]");
  expect_error<DataError>([&] { samples_in(tar, "c"); }, {"1.json: has no label under the key 'c'"});
}

TEST(TarLabelsTest, BecomeClasses) {
  const std::vector<std::vector<std::string>> names = {{"\"b\"", "\"a\""}, {"\"c\""}},
                                              lists = {{"[2,0,2]", "1"}, {"[]", "[2,0]"}};
  TarLabels found = classes_of_words(names, {}, "set");
  EXPECT_EQ(found.class_names, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(found.halves[0].labels, (std::vector<std::int32_t>{1, 0}));
  EXPECT_EQ(found.halves[0].sha256, "");
  EXPECT_TRUE(found.are_names);
  found = classes_of_words(names, {"c", "b", "x", "a"}, "set");
  EXPECT_EQ(found.halves[0].labels, (std::vector<std::int32_t>{1, 3}));
  EXPECT_EQ(found.halves[1].labels, (std::vector<std::int32_t>{0}));
  found = classes_of_words(lists, {}, "set");
  ASSERT_TRUE(found.sets.has_value());
  TrainTestData data;
  found.sets->give_to(data);
  EXPECT_EQ(data.train.label_sets, (std::vector<std::uint8_t>{1, 0, 1, 0, 1, 0, 0, 0, 0}));
  EXPECT_EQ(found.halves[1].labels, (std::vector<std::int32_t>{2, 0}));
  const auto digest = [](const std::vector<std::uint32_t>& numbers) {
    return hex(sha256(std::as_bytes(std::span(numbers))));
  };
  EXPECT_EQ(found.halves[0].sha256, digest({2, 0, 2, 1, 1}));
  EXPECT_EQ(found.halves[1].sha256, digest({0, 2, 0, 2}));
  EXPECT_FALSE(found.are_names);
  const std::vector<std::vector<std::string>> one = {{"1"}}, last = {{"[65535]"}};
  EXPECT_EQ(classes_of_words(one, {"a", "b"}, "set").class_names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(classes_of_words(last, {}, "set").class_names.size(), 65'536U);
  const auto fails = [&](const std::vector<std::vector<std::string>>& words,
                         const std::vector<std::string>& known, const char* part) {
    expect_error<DataError>([&] { classes_of_words(words, known, "set"); }, {"set: ", part});
  };
  fails({{"1", "\"a\""}}, {}, "labels are names (\"a\") and numbers (1)");
  const auto name_of = [](std::size_t half, std::size_t i) { return fmt::format("half {}'s {}", half, i); };
  const std::vector<std::vector<std::string>> mixed = {{"\"a\"", "\"b\""}, {"\"a\"", "1"}};
  expect_error<DataError>([&] { classes_of_words(mixed, {}, "set", name_of); },
                          {"names (\"a\" of half 0's 0) and numbers (1 of half 1's 1)"});
  fails(names, {"a", "b"}, "a sample has the label 'c', which is not in its list");
  fails({{"7"}}, {"a", "b"}, "names 2 classes, and the labels go up to 7");
  fails({{"[65536]"}}, {}, "65,537 classes, and there may be 1 to 65,536");
  fails({{"[]"}}, {}, "0 classes");
}

}  // namespace
}  // namespace lockstep::tar_samples_test
