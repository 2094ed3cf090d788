// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sets of pictures, in folders and in WebDataset's archives: the samples that convert makes of them, and no others.
#include "common/digest.hpp"
#include "common/env.hpp"
#include "common/error.hpp"
#include "data/batch_loader.hpp"
#include "data/dataset.hpp"
#include "data/normalisation.hpp"
#include "data/pictures/conversion.hpp"
#include "data/pictures/picture_store.hpp"
#include "data/set_fingerprints.hpp"
#include "data/sets/leave_out.hpp"
#include "data/sets/set_formats.hpp"
#include "data/sets/set_loading.hpp"
#include "data/sets/tar_samples.hpp"
#include "tests/data/idx_fixture.hpp"
#include "tests/data/picture_fixture.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::picture_sets_test {
namespace {

namespace fs = std::filesystem;
using test::Bytes;
using test::bytes_of;
using test::image_of;
using test::text_in;

/// A picture of some size, other pixels for each seed.
Bytes picture(unsigned seed, bool as_jpeg) {
  std::mt19937 generator(seed);
  Picture made{.name = "", .width = 5 + static_cast<int>(seed % 4), .height = 6, .channels = 3};
  made.pixels.resize(made.plane_size() * 3);
  for (std::uint8_t& pixel : made.pixels) pixel = static_cast<std::uint8_t>(generator());
  return as_jpeg ? testing::encode_jpeg(made) : write_png(made);
}

// Archives.

std::string octal(std::uint64_t number, int digits) {
  return fmt::format("{:0{}o}", number, digits);
}

struct TarFields {
  char type = '0';
  std::string size{};    ///< as it stands in the header; empty: the body's
  std::string prefix{};  ///< field of the header that goes before its name
};

std::string tar_entry(const std::string& name, const std::string& body, const TarFields& fields = {}) {
  std::string header(512, '\0');
  const auto put = [&](std::size_t at, const std::string& text) { header.replace(at, text.size(), text); };
  put(0, name.substr(0, 100));
  put(100, "0000644");
  put(124, fields.size.empty() ? octal(body.size(), 11) : fields.size);
  put(148, "        ");
  header[156] = fields.type;
  put(257, std::string("ustar\0"
                       "00",
                       8));
  put(345, fields.prefix);
  unsigned sum = 0;
  for (const unsigned char byte : header) sum += byte;
  put(148, octal(sum, 6) + std::string("\0 ", 2));
  return header + body + std::string((512 - body.size() % 512) % 512, '\0');
}

const std::string kTarEnd(1024, '\0');

std::string pax(const std::string& key, const std::string& value) {
  const std::string rest = " " + key + "=" + value + "\n";
  std::string record = std::to_string(rest.size() + 2) + rest;
  if (record.size() != rest.size() + 2) record = std::to_string(rest.size() + 3) + rest;
  return tar_entry("pax", record, {.type = 'x'});
}

/// Without its end.
std::string tar_sample(const std::string& key, int label) {
  return tar_entry(key + ".cls", std::to_string(label)) + tar_entry(key + ".png", "p");
}

std::vector<TarSample> samples_in(const std::string& tar, const std::string& label = kLabelInCls) {
  const auto read = [&](std::uint64_t offset, std::span<std::uint8_t> to) {
    const std::size_t count = std::min<std::size_t>(to.size(), tar.size() - std::min(tar.size(), offset));
    std::copy_n(tar.begin() + static_cast<std::ptrdiff_t>(offset), count, to.begin());
    return count;
  };
  return find_tar_samples(TarReader(read, tar.size(), "a.tar"), label);
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
        archives.back() += tar_entry(key + ".JPG", text_in(pictures[i].path)) +
                           tar_entry(key + ".cls", fmt::format("{}\n", pictures[i].label)) +
                           tar_entry(key + ".json", "{}");
      }
      for (std::size_t i = 0; i < archives.size(); ++i)
        write_text(fmt::format("tars/{}-{}.tar", half, i), archives[i] + kTarEnd);
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
      for (std::int32_t i = 0; i < one->size(); ++i) EXPECT_EQ(image_of(*one, i), image_of(*other, i)) << i;
    }
  }

  static constexpr PictureForm kForm{.size = {4, 3}, .fit = PictureFit::kCrop, .colour = PictureColour::kRgb};
};

TEST_F(PictureSetsTest, FoldersAndArchivesHaveTheSamplesThatConvertWrites) {
  write_tars();
  for (const PictureFit fit : {PictureFit::kCrop, PictureFit::kPad, PictureFit::kSqueeze})
    for (const PictureColour colour : {PictureColour::kGrey, PictureColour::kRgb}) {
      const PictureForm form{.size = {4, 3}, .fit = fit, .colour = colour};
      convert_pictures(Env::posix(), {.from = path("photos").string(),
                                      .to = path("set").string(),
                                      .size = form.size,
                                      .fit = fit,
                                      .colour = colour,
                                      .split = {},
                                      .replace = true});
      const TrainTestData converted =
          load_dataset({.set = "shards", .root = path("set").string(), .in_memory = true});
      const TrainTestData folders = load("pictures", form), tars = load("webdataset", form);
      EXPECT_EQ(folders.class_names, converted.class_names);
      EXPECT_EQ(tars.class_names, (std::vector<std::string>{"0", "1", "2"}));
      expect_equal(folders, converted);
      expect_equal(tars, converted);
    }
}

TEST_F(PictureSetsTest, WhatBecameOfAPictureIsSaid) {
  const Dataset train = load_dataset(unmeasured()).train;
  const std::string first = text_in(path("photos/train/class 0/0.jpg"));
  write_text("photos/train/class 0/0.jpg", first.substr(0, first.size() - 9));
  write("photos/train/class 0/2.jpg", Bytes(text_in(path("photos/train/class 0/2.jpg")).size(), 'x'));
  fs::remove(path("photos/train/class 2/3.jpg"));
  const auto fails = [&](std::int32_t sample, std::initializer_list<std::string_view> parts) {
    expect_error<DataError>([&] { image_of(train, sample); }, parts);
  };
  fails(0, {"class 0/0.jpg: ", "bytes, and", "(sample 0 of pictures train)"});
  fails(2, {"class 0/2.jpg: neither PNG", "(sample 2 of pictures train)"});
  fails(11, {"class 2/3.jpg: is not there any more", "(sample 11 of pictures train)"});
  EXPECT_NO_THROW(image_of(train, 1));
  EXPECT_NE(fingerprint_of(load_dataset(unmeasured()).train), fingerprint_of(train));
}

TEST_F(PictureSetsTest, ItsOutlineAndFingerprintAreThoseOfTheFiles) {
  const DatasetOptions options{.set = "pictures", .root = path("photos").string(), .pictures = kForm};
  const SetOutline outline = outline_of(options);
  EXPECT_EQ(outline.shape, (ImageShape{3, 3, 4}));
  EXPECT_EQ(outline.classes, 3);
  EXPECT_EQ(outline.train_samples, 12);
  EXPECT_EQ(outline.test_samples, 12);
  EXPECT_EQ(outline.validation_samples, 0);
  EXPECT_TRUE(outline.on_disk);
  EXPECT_EQ(outline.remarks.size(), 1U);
  std::string text = "12 pictures, 3 x 3 x 4, fit 1\n";
  for (const char* name :
       {"0/0", "0/1", "0/2", "0/3", "1/0", "1/1", "1/2", "1/3", "2/0", "2/1", "2/2", "2/3"}) {
    const std::string file = std::string("train/class ") + name + ".jpg";
    const std::uint64_t bytes = fs::file_size(path("photos/" + file));
    text += file + std::string(1, '\0') + std::string(reinterpret_cast<const char*>(&bytes), 8);
  }
  EXPECT_EQ(fingerprint_of(load("pictures").train).samples, hex(sha256(std::as_bytes(std::span(text)))));
}

TEST_F(PictureSetsTest, PicturesAreLeftOutByTheirNames) {
  const auto list = parse_leave_out("train/class 0/1.jpg\n2\n", "out.txt");
  DatasetOptions options = unmeasured();
  options.leave_out = std::make_shared<const LeaveOutList>(list);
  EXPECT_EQ(load_dataset(options).train.places, (std::vector<std::int32_t>{0, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
}

TEST(PictureListTest, AFileThatNoPictureHasIsRefused) {
  PictureList list;
  list.places = {"p"};
  list.add("a.png", 0, kMaxPictureFileBytes);
  EXPECT_EQ(list.path_of(0), "p/a.png");
  expect_error<DataError>([&] { list.add("b.png", 0, kMaxPictureFileBytes + 1); },
                          {"p/b.png: 268435457 bytes; at most 268435456 are read"});
}

TEST_F(PictureSetsTest, PicturesOfOneSizeNeedNoSize) {
  write_tars();
  EXPECT_EQ(outline_of({.set = "webdataset", .root = path("tars").string()}).shape, (ImageShape{1, 6, 5}));
  DatasetOptions options = unmeasured({});
  options.cache = path("cache");
  const TrainTestData data = load_dataset(options);
  EXPECT_EQ(data.train.shape, (ImageShape{1, 6, 5}));
  EXPECT_FALSE(fs::exists(path("cache"))) << "nothing was to be measured";
  expect_error<DataError>(
      [&] { image_of(data.train, 1); },
      {"class 0/1.jpg: 6 x 6 pixels, and the first picture has 5 x 6 (sample 1 of pictures train); scale"});
}

TEST_F(PictureSetsTest, MeasuredSumsAreKeptInTheCacheOfTheUser) {
  const Normalisation measured = load("pictures").normalisation;
  const fs::path folder = path("cache/sums");
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() != ".lock") files.push_back(entry.path());
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all) << "others could hold its lock";
  const std::string kept = text_in(files[0]);
  EXPECT_TRUE(kept.starts_with(R"({"lockstep_sums":2,"of":")")) << kept;
  const auto link = path("link");  // a file that is written again is another one
  fs::create_hard_link(files[0], link);
  EXPECT_EQ(load("pictures").normalisation, measured);
  EXPECT_TRUE(fs::equivalent(files[0], link)) << "measured again";
  for (const std::string& other :
       {kept.substr(0, 40), kept + " ", std::string(5000, 'x'), std::string("1\n")}) {
    test::write_file(files[0], bytes_of(other));
    EXPECT_EQ(load("pictures").normalisation, measured) << other;
    EXPECT_EQ(text_in(files[0]), kept);
  }
  for (const auto& entry : fs::recursive_directory_iterator(path("photos")))
    EXPECT_TRUE(entry.is_directory() || entry.path().extension() == ".jpg") << entry.path();
  const fs::path damaged = path("photos/train/class 0/2.jpg");
  const auto time = fs::last_write_time(damaged);
  test::write_file(damaged, Bytes(text_in(damaged).size(), 'x'));
  fs::last_write_time(damaged, time);
  expect_error<DataError>([&] { load("pictures"); },
                          {"class 0/2.jpg", "; mend or remove it; a run that has"});
}

TEST_F(PictureSetsTest, WhatASetLeavesUnsaidIsForTheStart) {
  write("photos/train/class 0/list.txt", {1});
  write("photos/.DS_Store", {1});
  const TrainTestData data = load("pictures");
  ASSERT_EQ(data.remarks.size(), 2U);
  EXPECT_EQ(data.remarks[0], "val/ is the test half, since there is no test/");
  EXPECT_TRUE(contains(data.remarks[1], {"left out: 1 .txt file, 1 hidden file; the first is "}));
}

TEST_F(PictureSetsTest, PicturesOf16BitsAreCountedWhereAllAreRead) {
  for (const char* name : {"0", "3"})
    test::write_file(path("photos/train/class 1") / name += ".png",
                     testing::encode_png_16(testing::sheet(5, 6, 77)));
  ::testing::internal::CaptureStderr();
  load("pictures");
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(
      contains(said, {"pictures train: 2 pictures of 16 bits a channel, of which the upper 8 are kept"}))
      << said;
}

TEST_F(PictureSetsTest, WithoutACacheSumsAreMeasuredEachTime) {
  const Normalisation measured = load("pictures").normalisation;
  DatasetOptions options{.set = "pictures", .root = path("photos"), .pictures = kForm};
  for (const char* cache : {"", "/dev/null/none", "/proc/none"}) {
    options.cache = cache;
    EXPECT_EQ(load_dataset(options).normalisation, measured) << cache;
  }
}

/// A process waits for another that measures while that says so, and then measures, too.
TEST_F(PictureSetsTest, AProcessThatMeasuresAndGetsNoFurtherIsNotWaitedForWithoutEnd) {
  const TrainTestData data = load("pictures");
  const std::string file = path("kept/sums").string();
  fs::create_directory(path("kept"));
  const auto measure = [&](double patience) {
    return measured_sums(*data.train.store, data.train.shape, file, "key", patience).values;
  };
  auto claim = Env::posix().claim(file + ".lock");
  claim->write("process 42 on node7 has measured 3 of 9 pictures\n");
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(measure(0.1), data.train.store->sums().values);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(contains(said, {"process 42 on node7 has measured 3 of 9 pictures", "measuring here, too"}));
  fs::remove(file);
  std::thread other([&] {
    for (int pictures = 4; pictures < 9; ++pictures) {
      std::this_thread::sleep_for(std::chrono::milliseconds(40));
      claim->write(fmt::format("process 42 on node7 has measured {} of 9 pictures\n", pictures));
    }
    claim.reset();
  });
  EXPECT_EQ(measure(60), data.train.store->sums().values);
  other.join();
  EXPECT_TRUE(contains(text_in(file + ".lock"), {"of 12 pictures"}));
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
      tar_entry("7.cls", "13") + kTarEnd;
  const std::vector<TarSample> samples = samples_in(tar);
  ASSERT_EQ(samples.size(), 7U);
  const std::vector<std::string> names = {"pre.fix/1.png", deep + "/2.png", "3.jpeg", "4.webp",
                                          "5.png",         "6.png",         "7.png"},
                                 bodies = {"abc", "de", "fghi", "j", "klm", "n", "o"};
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
  std::string damaged = good;
  damaged[1030] ^= 1;
  fails(damaged, "a header is damaged");
  fails(std::string(2048, 'x'), "or this is not a tar archive");
  fails(tar_sample("1", 0) + tar_sample("2", 1) + tar_sample("1", 0) + kTarEnd, "sample 1 is there twice");
  fails(tar_entry("1.png", "a") + tar_entry("1.png", "b") + kTarEnd, "a second picture");
  fails(tar_entry("1.cls", "1") + tar_entry("1.cls", "1") + kTarEnd, "a second .cls");
  fails(tar_entry("1.png", "a") + kTarEnd, "1.png: its sample has no .cls");
  fails(tar_entry("1.cls", "1") + tar_entry("2.png", "a") + kTarEnd, "sample 1 has a .cls and no picture");
  for (const char* label : {"", "1.5", "-1", "1000000", "99999999999999999999", "1 x", " ", "a\nb", "\x80"})
    fails(tar_entry("1.cls", label) + kTarEnd, "holds no label");
  fails(tar_entry("1.png", "", {.type = '2'}) + kTarEnd, "1.png is a symbolic link");
  fails(tar_entry("1.png", "", {.type = '1'}) + kTarEnd, "1.png is a hard link");
  fails(tar_entry("1.png", "", {.type = 'S'}) + kTarEnd, "1.png is a sparse file; the archive must hold");
  for (const char type : {'3', '4', '6'})
    fails(tar_entry("1.png", "", {.type = type}) + kTarEnd, "1.png is a device or FIFO");
  fails(tar_entry("1.png", "", {.type = '?'}) + kTarEnd, "an entry of the unknown kind 63");
  fails(tar_entry("1.png", "", {.size = "77777777777"}) + kTarEnd, "8589934591 bytes should follow");
  fails(tar_entry("1.png", "", {.size = std::string("\x80\0\0\0\x3f", 5) + std::string(7, '\xff')}) + kTarEnd,
        "4611686018427387903 bytes should follow");
  fails(tar_entry("1.png", "", {.size = std::string(12, '\xff')}) + kTarEnd, "size is not a number of bytes");
  fails(tar_entry("1.png", "", {.size = "\x80" + std::string(11, '\x7f')}) + kTarEnd,
        "size is not a number of bytes");
  fails(pax("size", "-4") + tar_entry("1.png", "") + kTarEnd, "pax header's size");
  fails(pax("size", "x") + tar_entry("1.png", "") + kTarEnd, "pax header's size");
  for (const char* record : {"99 path=a\n", "5path=a\n", "2 a\n", "9 path=ab", "x path=a\n"})
    fails(tar_entry("x", record, {.type = 'x'}) + kTarEnd, "a pax header is damaged");
  fails(tar_entry("", "x") + kTarEnd, "a file's name is empty, or has more than one line");
  fails(tar_entry("L", std::string((1 << 20) + 1, 'n'), {.type = 'L'}) + kTarEnd,
        "a header of 1048577 bytes");
  fails(pax("path", std::string("a\0b", 3)) + tar_entry("1.png", "") + kTarEnd, "has more than one line");
}

/// A part of a label may be another label.
TEST(TarSamplesTest, ALabelThatIsTooLongToBeReadIsRefused) {
  const auto samples_of = [](const std::string& ending, const std::string& text, const std::string& label) {
    return samples_in(tar_entry("1.png", "p") + tar_entry("1." + ending, text) + kTarEnd, label);
  };
  const std::string cls = std::string(kMostBytesOfCls - 1, ' ') + "1";
  EXPECT_EQ(samples_of("cls", cls, kLabelInCls)[0].label, "1");
  expect_error<DataError>([&] { samples_of("cls", cls + "2", kLabelInCls); }, {"1.cls: holds no label"});
  std::string json = R"({"a": 1})";
  json.resize(kMostBytesOfJson, ' ');
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

TEST_F(PictureSetsTest, LabelsThatChangedUnderOneSizeAndTimeAreSeen) {
  write_tars();
  const Dataset before = load("webdataset").train;
  const fs::path archive = path("tars/train-1.tar");
  const auto time = fs::last_write_time(archive);
  std::string bytes = text_in(archive);
  const auto at = bytes.find("1\n" + std::string(510, '\0'));
  ASSERT_NE(at, bytes.npos);
  bytes[at] = '2';
  test::write_file(archive, bytes_of(bytes));
  fs::last_write_time(archive, time);
  const Dataset after = load("webdataset").train;
  EXPECT_NE(after.labels, before.labels);
  EXPECT_NE(fingerprint_of(after), fingerprint_of(before));
  for (const auto& entry : fs::directory_iterator(path("tars")))
    EXPECT_EQ(entry.path().extension(), ".tar") << "nothing is written beside them";
}

TEST_F(PictureSetsTest, AnArchiveThatBecomesShorterIsNamed) {
  write_tars();
  load("webdataset");  // measures, and what it decodes stays with it
  const Dataset train = load("webdataset").train;
  fs::resize_file(path("tars/train-1.tar"), 600);
  expect_error<DataError>([&] { image_of(train, 7); },
                          {"tars/train-1.tar: ends at byte", "(sample 7 of webdataset train)"});
}

TEST_F(PictureSetsTest, AValidationHalfThatIsForTestingIsSaid) {
  write_tars();
  for (const auto& [set, root, part] :
       {std::tuple{"pictures", "photos", "val/ is the test half, since there is no test/; add test/"},
        {"webdataset", "tars", "val*.tar is the test half, since there is no test*.tar; add test*.tar"}})
    expect_error<DatasetOptionError>(
        [&, set = set, root = root] {
          load_dataset(
              {.set = set, .root = path(root).string(), .validation = {.is_files = true}, .pictures = kForm});
        },
        {"validation: files: ", part});
}

TEST_F(PictureSetsTest, ArchivesOfNoHalfAreLeftOutIfOthersHaveOne) {
  write_tars();
  write_text("tars/other.tar", kTarEnd);
  EXPECT_EQ(
      load("webdataset").remarks,
      (std::vector<std::string>{
          path("tars").string() + ": val archives are the test half, since no archive is named after test",
          "left out 1 archive not named after a half (train, test or val); the first is " +
              path("tars/other.tar").string()}));
}

TEST_F(PictureSetsTest, ArchivesThatAreMissingAreSaid) {
  const auto fails = [&](const char* root, const char* part) {
    expect_error<Error>([&] { load_dataset({.set = "webdataset", .root = path(root).string()}); }, {part});
  };
  fails("photos", "holds no archives (*.tar)");
  write("packed/train-0.tar.gz", {});
  fails("packed", "packed/train-0.tar.gz: is compressed");
  write_text("tests/test-0.tar", tar_sample("1", 0) + kTarEnd);
  fails("tests", "holds no archives to train on");
  write_text("empty/a.tar", tar_entry("README", "hello") + kTarEnd);
  fails("empty", "empty/a.tar: no samples, pictures with a .cls each, and the first entry is README");
  for (const char* name : {"none/train-0.tar", "none/train-1.tar"}) write_text(name, kTarEnd);
  fails("none",
        "none/train-0.tar and those after it: no samples, pictures with a .cls each, and it has no entries");
  write_text("both/my-train-test.tar", kTarEnd);
  fails("both", "my-train-test.tar: is called after two halves");
  expect_error<MissingDataError>([&] { load_dataset({.set = "pictures", .root = path("nowhere").string()}); },
                                 {"data set 'pictures' is not on this machine"});
}

TEST_F(PictureSetsTest, HalvesAreThoseOfNamesAndFolders) {
  for (const char* name : {"Train_1.TAR", "my-training-0.tar", "TEST.tar", "x/y.tar", "val/train.tar",
                           "imagenet_validation-0.tar", "trainers.tar", "shop.tar", "train/a.tar",
                           "train/val/b.tar", "notes.txt", "train-2.tar.gz", "test.tgz", "._train-1.tar",
                           "train-00000-of-00001.tar", "cifar10_test.tar"})
    write(std::string("names/") + name, {});
  const TarFiles files = find_tar_files(path("names"));
  const auto names = [&](const std::vector<fs::path>& found) {
    std::vector<std::string> list;
    for (const fs::path& file : found) list.push_back(file.lexically_relative(path("names")).string());
    return list;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(files.train), (Names{"Train_1.TAR", "my-training-0.tar", "train/a.tar",
                                       "train-00000-of-00001.tar", "trainers.tar"}));
  EXPECT_EQ(names(files.test), (Names{"TEST.tar", "cifar10_test.tar"}));
  EXPECT_EQ(names(files.validation), (Names{"imagenet_validation-0.tar", "val/train.tar"}));
  EXPECT_EQ(names(files.others), (Names{"shop.tar"}));
  EXPECT_EQ(names(files.compressed), (Names{"test.tgz", "train-2.tar.gz"}));
}

/// Names for labels, too.
TEST_F(PictureSetsTest, OfArchivesWithoutHalvesAFifthOfEachClassIsForTesting) {
  std::vector<std::string> archives(2);
  for (int i = 0; i < 20; ++i)
    archives[static_cast<std::size_t>(i / 12)] +=
        tar_entry(fmt::format("{}.png", i),
                  text_in(path(fmt::format("photos/train/class 0/{}.jpg", i % 4)))) +
        tar_entry(fmt::format("{}.cls", i), i % 2 == 0 ? "dog\n" : "Cat\n");
  for (std::size_t i = 0; i < 2; ++i) write_text(fmt::format("tars/shard{}.tar", i), archives[i] + kTarEnd);
  for (const char* name : {"tars/a.tgz", "tars/b.tar.gz"}) write(name, {1});
  const TrainTestData data = load("webdataset"), folders = load("pictures");
  EXPECT_EQ(data.class_names, (std::vector<std::string>{"Cat", "dog"}));
  EXPECT_EQ(
      data.remarks,
      (std::vector<std::string>{
          path("tars").string() +
              ": no archive is named after a test half, such as test-0.tar: a fifth of each "
              "class becomes the test half",
          "left out 2 archives that are compressed: unpack them; the first is " + path("tars/a.tgz").string(),
          "labels in .cls are names, and classes are in their order: Cat, dog"}));
  EXPECT_EQ(std::ranges::count(data.train.labels, 0), 8);
  EXPECT_EQ(std::ranges::count(data.test.labels, 0), 2);
  EXPECT_EQ(data.test.size(), 4);
  std::vector<std::string> names;
  for (const Dataset* half : {&data.train, &data.test})
    for (std::int32_t i = 0; i < half->size(); ++i) {
      names.emplace_back(half->store->name_of(i));
      const int number = std::stoi(names.back());
      EXPECT_EQ(half->labels[static_cast<std::size_t>(i)], number % 2 == 0 ? 1 : 0);
      EXPECT_EQ(image_of(*half, i), image_of(folders.train, number % 4));
    }
  std::ranges::sort(names);
  EXPECT_EQ(std::unique(names.begin(), names.end()) - names.begin(), 20);
}

TEST_F(PictureSetsTest, OfArchivesWithListsOfLabelsAFifthOfAllIsForTesting) {
  std::string archive;
  for (int i = 0; i < 10; ++i)
    archive += tar_entry(fmt::format("{}.png", i), text_in(path("photos/train/class 0/0.jpg"))) +
               tar_entry(fmt::format("{}.cls", i), i % 2 == 0 ? "2" : "0 1");
  write_text("tars/all.tar", archive + kTarEnd);
  const TrainTestData data = load("webdataset");
  EXPECT_EQ(data.class_names, (std::vector<std::string>{"0", "1", "2"}));
  EXPECT_EQ(data.train.label_sets, (std::vector<std::uint8_t>{0, 0, 1, /**/ 1, 1, 0}));
  EXPECT_EQ(data.train.labels, (std::vector<std::int32_t>{0, 1, 0, 0, 1, 0, 1, 1}));
  EXPECT_EQ(data.test.labels, (std::vector<std::int32_t>{1, 0})) << "samples 3 and 8, see SplitTest";
  EXPECT_EQ(data.test.store->name_of(1), "8.png");
  EXPECT_NE(fingerprint_of(data.train).labels, fingerprint_of(data.test).labels);
}

}  // namespace
}  // namespace lockstep::picture_sets_test
