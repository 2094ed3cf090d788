// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The catalogue of data sets: that its entries are whole, and what is said about entries that are not.
#include "data/sets/catalogue.hpp"

#include "common/error.hpp"
#include "data/dataset.hpp"
#include "data/sets/names.hpp"
#include "data/sets/set_files.hpp"
#include "data/sets/set_formats.hpp"
#include "data/sets/set_loading.hpp"
#include "tests/data/idx_fixture.hpp"
#include "tests/support/set_variable.hpp"

#include <gtest/gtest.h>

namespace lockstep {

namespace {

TEST(CatalogueTest, EveryEntryIsWhole) {
  EXPECT_GE(catalogue().size(), 6U);
  for (const SetEntry& set : catalogue()) {
    SCOPED_TRACE(set.name);
    EXPECT_NO_THROW(format_of(set));
    EXPECT_EQ(set.mean.size(), set.std.size());
    for (const double std : set.std) EXPECT_GT(std, 0);
    for (const std::string& name : set.class_names) EXPECT_EQ(trouble_with_class_name(name), nullptr) << name;
    if (!set.is_known_by_name()) {
      EXPECT_TRUE(format_of(set).outline != nullptr || format_of(set).has_pictures);
      continue;
    }
    EXPECT_GE(set.class_names.size(), 2U);
    EXPECT_TRUE(set.mean.size() == 1 || set.mean.size() == static_cast<std::size_t>(set.shape.channels));
    EXPECT_EQ(set.files.empty(), format_of(set).is_made());
  }
}

TEST(CatalogueTest, SetsMadeInMemoryAreAsItSays) {
  EXPECT_EQ(made_sets(), (std::vector<std::string_view>{"random", "synthetic"}));
  EXPECT_EQ(resolve_data_root("synthetic", "auto"), "");
  for (const std::string_view name : made_sets()) {
    const SetEntry& set = find_set(std::string(name));
    const TrainTestData data = load_dataset({.set = set.name});
    EXPECT_EQ(data.train.shape, set.shape) << name;
    EXPECT_EQ(data.train.classes, static_cast<int>(set.class_names.size())) << name;
    EXPECT_EQ(data.class_names, set.class_names) << name;
    EXPECT_EQ(data.train.size(), set.train_samples) << name;
    EXPECT_EQ(data.test.size(), set.test_samples) << name;
    EXPECT_EQ(data.train.features.size() > 0, set.is_fp32) << name;
    EXPECT_EQ(data.train.images.size() > 0, !set.is_fp32) << name;
    EXPECT_EQ(data.test.name + ", " + data.origin, set.name + " test, made in memory");
  }
}

TEST(CatalogueTest, AnEntryIsReadWhole) {
  const auto sets = parse_catalogue(
      "# comment\n"
      "set a idx 3x20x10 50 5\nmean a 0.5 0.25 1\nstd a 0.2\npictures a photo\n"
      "classes a big cat, dog\nclasses a eel,fox\nnames a n.txt\npickles a p\nfolder a here\nplace a "
      "there\nmirror a "
      "x://y\nfile a f 12 "
      "md5:0\n"
      "\nset b idx");
  ASSERT_EQ(sets.size(), 2U);
  EXPECT_EQ(sets[0].shape, (ImageShape{3, 20, 10}));
  EXPECT_EQ(sets[0].train_samples, 50);
  EXPECT_EQ(sets[0].test_samples, 5);
  EXPECT_EQ(parse_catalogue("set a idx 1x1x1 1 1")[0].test_samples, 1);
  EXPECT_EQ(sets[0].mean, (std::vector<double>{0.5, 0.25, 1}));
  EXPECT_EQ(sets[0].class_names, (std::vector<std::string>{"big cat", "dog", "eel", "fox"}));
  EXPECT_EQ(sets[0].names_file, "n.txt");
  EXPECT_EQ(sets[0].pickles, "p");
  EXPECT_EQ(sets[0].folders, (std::vector<std::string>{"here", "there"}));
  EXPECT_EQ(sets[0].files, std::vector<std::string>{"f"});
  EXPECT_TRUE(sets[0].frame.is_photo);
  EXPECT_TRUE(sets[0].is_known_by_name());
  EXPECT_FALSE(sets[1].is_known_by_name());
}

TEST(CatalogueTest, PicturesAreFramedByTheirKind) {
  const auto frame = [](const char* set) {
    const PictureFrame& its = find_set(set).frame;
    return std::tuple(its.share, its.centre_by_mass, its.one_figure, its.is_photo);
  };
  EXPECT_EQ(frame("mnist"), std::tuple(20.0 / 28, true, true, false));
  EXPECT_EQ(frame("kmnist"), std::tuple(1.0, false, false, false));
  EXPECT_EQ(frame("cifar10"), std::tuple(1.0, false, false, true));
}

TEST(CatalogueTest, OutlinesOfKnownSetsAreAsPublished) {
  const auto outline = [](const char* set) {
    const SetOutline its = outline_of({.set = set});
    return std::tuple(its.shape.height, its.classes, its.train_samples, its.test_samples, its.is_fp32,
                      its.on_disk);
  };
  EXPECT_EQ(outline("cifar100"), std::tuple(32, 100, 50000, 10000, false, false));
  EXPECT_EQ(outline("random"), std::tuple(1, 2, 1000, 200, true, false));
  EXPECT_EQ(outline("synthetic"), std::tuple(28, 10, 6000, 1000, false, false));
  EXPECT_TRUE(has_pictures("pictures") && has_pictures("webdataset") && !has_pictures("shards"));
  for (const char* set : {"pictures", "webdataset"}) {
    EXPECT_FALSE(loads_into_memory({.set = set})) << set;
    EXPECT_TRUE(loads_into_memory({.set = set, .in_memory = true})) << set;
  }
  expect_error<ConfigError>([] { resolve_data_root("mnits", "auto"); },
                            {"unknown data set 'mnits'", "mnist, fashion-mnist"});
  SetEntry other;
  other.name = "a";
  other.format = "b";
  expect_error<ConfigError>([&] { format_of(other); },
                            {"catalogue of data sets: 'a' has the unknown format 'b'"});
}

TEST(CatalogueTest, AWrongLineIsNamed) {
  const auto fails = [](const char* text, const char* part) {
    expect_error<ConfigError>([&] { parse_catalogue(text); }, {part});
  };
  fails("set a idx\nset a idx\n", "line 2: set 'a' is there already");
  fails("\nmean a 1\n", "line 2: no line 'set a ...' before it");
  for (const std::string shape : {"1x2", "1y2x3", "1x2y3", "0x2x3", "1x0x3", "1x2x0", "1x2x3x", "x"})
    fails(("set a idx " + shape + " 1 1\n").c_str(),
          ("line 1: '" + shape + "' is not CHANNELSxHEIGHTxWIDTH").c_str());
  fails("set a idx 1x2x3 0 1\n", "'0' is not a number of training samples");
  fails("set a idx 1x2x3 7\n", "number of test samples is missing");
  fails("set a idx\nmean a 0.1 x\n", "line 2: 'x' is not a number");
  fails("set a idx\npictures a big\n", "'big' is none of");
  fails("set a idx\ncolour a red\n", "unknown kind of line 'colour'");
  fails("set\n", "the set is missing");
}

TEST(ClassNamesTest, ANameALine) {
  EXPECT_EQ(parse_class_names("\xef\xbb\xbf"
                              "cat \r\n big dog\nü\n\n\n",
                              "f"),
            (std::vector<std::string>{"cat", "big dog", "ü"}));
}

TEST(ClassNamesTest, WhatIsNoNameIsNamedWithItsLine) {
  const auto fails = [](const std::string& text, std::initializer_list<std::string_view> parts) {
    expect_error<DataError>([&] { parse_class_names(text, "names.txt"); }, parts);
  };
  fails("", {"names.txt: no class names"});
  fails("a\n\nb\n", {"names.txt: line 2: the name is empty"});
  fails("a\nb\na\n", {"line 3: 'a' is the name of class 0 already"});
  fails("a\n\x1b[2J\n", {"line 2: the name is not printable"});
  fails("a\nb\xff\n", {"line 2: the name is not printable"});
  fails(std::string(201, 'x'), {"line 1: the name is longer than 200 bytes"});
  std::string many;
  for (int i = 0; i < 256; ++i) many += std::to_string(i) + "\n";
  EXPECT_EQ(parse_class_names(many, "f").size(), 256U);
  fails(many + "256\n", {"names.txt: line 257: more than 256 classes; write one class name a line"});
  EXPECT_EQ(parse_class_names(std::string(200, 'x'), "f").size(), 1U);
}

// Order of the folders in which data sets are looked for.

namespace fs = std::filesystem;
using test::SetVariable;
using test::write_image_set;

/// A machine whose LOCKSTEP_DATA, cache and home lie in a directory of the test.
class SetFilesTest : public test::DirectoryTest {
 protected:
  /// Each with the folder of torchvision's behind it.
  static std::vector<fs::path> with_folders(const std::vector<fs::path>& places, const char* folder) {
    std::vector<fs::path> all;
    for (const fs::path& place : places) all.insert(all.end(), {place, place / folder});
    return all;
  }

  SetVariable data_{"LOCKSTEP_DATA", path("data").c_str()};
  SetVariable cache_{"XDG_CACHE_HOME", path("cache").c_str()};
  SetVariable home_{"HOME", path("home").c_str()};
};

TEST_F(SetFilesTest, AutoLooksInFourPlacesInOrder) {
  const std::vector<fs::path> expected = {path("data/kmnist"), path("data"), path("cache/lockstep/kmnist"),
                                          "/usr/share/datasets/kmnist"};
  EXPECT_EQ(candidate_places(find_set("kmnist"), "auto"), with_folders(expected, "KMNIST/raw"));
}

/// A relative one is as none.
TEST_F(SetFilesTest, WithoutXdgTheCacheIsInTheHomeAndWithoutAHomeOnlyTheSystemIsLeft) {
  const std::vector<fs::path> expected = {path("home/.cache/lockstep/mnist"), "/usr/share/datasets/mnist"};
  const SetVariable no_data("LOCKSTEP_DATA", "");
  for (const char* cache : {static_cast<const char*>(nullptr), "here"}) {
    const SetVariable none("XDG_CACHE_HOME", cache);
    EXPECT_EQ(candidate_places(find_set("mnist"), "auto"), with_folders(expected, "MNIST/raw"));
  }
  const SetVariable none("XDG_CACHE_HOME", nullptr), homeless("HOME", nullptr),
      nothing("LOCKSTEP_DATA", nullptr);
  EXPECT_EQ(user_cache(), "");
  EXPECT_EQ(candidate_places(find_set("mnist"), "auto"),
            with_folders({"/usr/share/datasets/mnist"}, "MNIST/raw"));
}

/// A circle of links stands for a disk that fails: root may look at everything.
TEST_F(SetFilesTest, APlaceThatCannotBeExaminedIsNoMissingSet) {
  fs::create_symlink("circle", path("circle"));
  expect_error<IoError>([&] { resolve_data_root("pictures", path("circle").string()); },
                        {"circle (cannot be examined: Too many levels of symbolic links)", "check the disk"});
  const SetVariable data("LOCKSTEP_DATA", path("circle").c_str());
  expect_error<IoError>([] { resolve_data_root("mnist", "auto"); }, {"set 'mnist' was not found", "cache"});
  write_image_set(path("cache/lockstep/mnist"));
  EXPECT_EQ(resolve_data_root("mnist", "auto"), path("cache/lockstep/mnist").string());
  fs::rename(path("cache/lockstep/mnist/train-labels-idx1-ubyte"), path("aside"));
  fs::create_symlink("train-labels-idx1-ubyte", path("cache/lockstep/mnist/train-labels-idx1-ubyte"));
  expect_error<IoError>([] { resolve_data_root("mnist", "auto"); },
                        {"mnist/train-labels-idx1-ubyte: cannot be examined: Too many levels"});
}

TEST_F(SetFilesTest, AGivenRootHoldsTheSetOrItsFiles) {
  EXPECT_EQ(candidate_places(find_set("mnist"), "/d"), with_folders({"/d/mnist", "/d"}, "MNIST/raw"));
  write_image_set(path("own"));
  EXPECT_EQ(resolve_data_root("mnist", path("own").string()), path("own").string());
  write_image_set(path("own/mnist"));
  EXPECT_EQ(resolve_data_root("mnist", path("own").string()), path("own/mnist").string());
}

TEST_F(SetFilesTest, EachPlaceGivesWayToABetterOneThatLacksNoFile) {
  for (const char* better : {"cache/lockstep/mnist", "data", "data/mnist"}) {
    write_image_set(path(better));
    EXPECT_EQ(resolve_data_root("mnist", "auto"), path(better).string());
  }
  fs::remove(path("data/mnist/t10k-labels-idx1-ubyte"));
  EXPECT_EQ(resolve_data_root("mnist", "auto"), path("data").string());
}

TEST_F(SetFilesTest, APlainFileIsPreferredToAPackedOne) {
  write_image_set(path("own"));
  write("own/train-images-idx3-ubyte.gz", {});
  fs::rename(path("own/t10k-images-idx3-ubyte"), path("own/t10k-images-idx3-ubyte.gz"));
  const SetEntry& mnist = find_set("mnist");
  const SetFiles files = find_set_files(mnist, idx_set_files(mnist), {path("own")});
  EXPECT_EQ(files.files.at(0), path("own/train-images-idx3-ubyte"));
  EXPECT_EQ(files.files.at(2), path("own/t10k-images-idx3-ubyte.gz"));
}

TEST_F(SetFilesTest, NothingFoundNamesEveryPlaceAndTheCommand) {
  write_image_set(path("half"));
  fs::remove(path("half/train-labels-idx1-ubyte"));
  fs::create_directories(path("empty"));
  const fs::path a_file = path("half/train-images-idx3-ubyte");
  expect_error<MissingDataError>(
      [&] {
        const SetEntry& kmnist = find_set("kmnist");
        find_set_files(kmnist, idx_set_files(kmnist), {path("half"), path("empty"), "/not/here", a_file});
      },
      {(path("half").string() + " (lacks train-labels-idx1-ubyte)").c_str(),
       (path("empty").string() + " (none of its files)").c_str(), "/not/here (no such directory)",
       (a_file.string() + " (not a directory)").c_str(), "launch/get-data kmnist"});
}

TEST_F(SetFilesTest, TorchvisionsFoldersAreFoundBelowItsRoot) {
  write_image_set(path("torch/FashionMNIST/raw"));
  const auto root = [&](const char* set) { return resolve_data_root(set, path("torch").string()); };
  EXPECT_EQ(root("fashion-mnist"), path("torch/FashionMNIST/raw").string());
  const auto message = message_of<MissingDataError>([&] { root("mnist"); });
  EXPECT_TRUE(contains(message, {"looked in", "/mnist (no such directory)"}));
  EXPECT_EQ(message.find("MNIST/raw"), message.npos) << "a folder of its place goes unnamed";
}

TEST_F(SetFilesTest, PicklesAreToldWithWaysToTheBinaryFiles) {
  write_text("my data/cifar-10-batches-py/batches.meta", "");
  write_text("data/cifar100/cifar-100-python/meta", "");
  const std::string pickles =
      " (holds the version for Python: pickles, which are not read; docs/data.md has lines that convert "
      "them)";
  expect_error<MissingDataError>([&] { resolve_data_root("cifar10", path("my data").string()); },
                                 {path("my data").string() + " (none of its files)",
                                  path("my data/cifar-10-batches-py").string() + pickles,
                                  "launch/get-data cifar10 --root '" + path("my data").string() + "'"});
  const auto message = message_of<MissingDataError>([&] { resolve_data_root("cifar100", "auto"); });
  EXPECT_TRUE(contains(message, {path("data/cifar100/cifar-100-python").string() + pickles}));
  EXPECT_TRUE(message.ends_with("launch/get-data cifar100")) << "that goes to the cache, where auto looks";
}

TEST_F(SetFilesTest, ThePlaceThatARunRemembersComesFirstIfItStillHoldsTheSet) {
  write_image_set(path("own"));
  write_image_set(path("remembered"));
  const std::string own = path("own").string(), remembered = path("remembered").string();
  EXPECT_EQ(resolve_data_root("mnist", own, remembered), remembered);
  fs::remove(path("remembered/t10k-labels-idx1-ubyte"));
  EXPECT_EQ(resolve_data_root("mnist", own, remembered), own);
}

TEST_F(SetFilesTest, AFileThatIsLargerThanAllNamesOfClassesIsRefused) {
  const auto read = [&](std::size_t bytes) {
    write_text("names", "a" + std::string(bytes - 1, '\n'));
    return read_class_names(path("names"), 1);
  };
  EXPECT_EQ(read(400), std::vector<std::string>{"a"});
  expect_error<DataError>([&] { read(401); },
                          {"names: 401 bytes are too many for a list of class names; at most 400"});
}

}  // namespace

}  // namespace lockstep
