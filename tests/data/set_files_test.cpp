// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Where data sets are looked for, and in which order.
#include "data/set_files.hpp"

#include "common/error.hpp"
#include "data/dataset.hpp"
#include "data/idx_set.hpp"
#include "tests/data/idx_fixture.hpp"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using test::expect_error;
using test::ScopedVariable;
using test::write_image_set;

/// A machine whose LOCKSTEP_DATA, cache and home lie in a directory of the test.
class SetFilesTest : public testing::Test {
 protected:
  fs::path place(const char* name) const { return directory_.path() / name; }

  test::TemporaryDirectory directory_;
  ScopedVariable data_{"LOCKSTEP_DATA", (directory_.path() / "data").c_str()};
  ScopedVariable cache_{"XDG_CACHE_HOME", (directory_.path() / "cache").c_str()};
  ScopedVariable home_{"HOME", (directory_.path() / "home").c_str()};
};

TEST_F(SetFilesTest, AutoLooksInFourPlacesInOrder) {
  const std::vector<fs::path> expected = {place("data/kmnist"), place("data"), place("cache/lockstep/kmnist"),
                                          "/usr/share/datasets/kmnist"};
  EXPECT_EQ(candidate_places(find_set("kmnist"), "auto"), expected);
}

TEST_F(SetFilesTest, WithoutXdgTheCacheIsInTheHome) {
  const ScopedVariable no_cache("XDG_CACHE_HOME", nullptr), no_data("LOCKSTEP_DATA", nullptr);
  const std::vector<fs::path> expected = {place("home/.cache/lockstep/mnist"), "/usr/share/datasets/mnist"};
  EXPECT_EQ(candidate_places(find_set("mnist"), "auto"), expected);
}

TEST_F(SetFilesTest, ARelativeXdgCacheIsIgnored) {
  const ScopedVariable relative("XDG_CACHE_HOME", "here"), no_data("LOCKSTEP_DATA", "");
  EXPECT_EQ(candidate_places(find_set("mnist"), "auto").front(), place("home/.cache/lockstep/mnist"));
}

TEST_F(SetFilesTest, WithoutAHomeOnlyTheSystemIsLeft) {
  const ScopedVariable none("XDG_CACHE_HOME", nullptr), homeless("HOME", nullptr),
      no_data("LOCKSTEP_DATA", nullptr);
  EXPECT_EQ(candidate_places(find_set("mnist"), "auto"),
            (std::vector<fs::path>{"/usr/share/datasets/mnist"}));
}

TEST_F(SetFilesTest, AGivenRootHoldsTheSetOrItsFiles) {
  EXPECT_EQ(candidate_places(find_set("mnist"), "/d"), (std::vector<fs::path>{"/d/mnist", "/d"}));
  write_image_set(place("own"));
  EXPECT_EQ(resolve_data_root("mnist", place("own").string()), place("own").string());
  write_image_set(place("own/mnist"));
  EXPECT_EQ(resolve_data_root("mnist", place("own").string()), place("own/mnist").string());
}

TEST_F(SetFilesTest, EachPlaceGivesWayToABetterOne) {
  for (const char* better : {"cache/lockstep/mnist", "data", "data/mnist"}) {
    write_image_set(place(better));
    EXPECT_EQ(resolve_data_root("mnist", "auto"), place(better).string());
  }
}

TEST_F(SetFilesTest, APlaceThatLacksAFileIsPassedOver) {
  write_image_set(place("data/mnist"));
  write_image_set(place("cache/lockstep/mnist"));
  fs::remove(place("data/mnist/t10k-labels-idx1-ubyte"));
  EXPECT_EQ(resolve_data_root("mnist", "auto"), place("cache/lockstep/mnist").string());
}

TEST_F(SetFilesTest, APlainFileIsPreferredToAPackedOne) {
  write_image_set(place("own"));
  test::write_file(place("own/train-images-idx3-ubyte.gz"), {});
  fs::rename(place("own/t10k-images-idx3-ubyte"), place("own/t10k-images-idx3-ubyte.gz"));
  const SetEntry& mnist = find_set("mnist");
  const SetFiles files = find_set_files(mnist, idx_set_files(mnist), {place("own")});
  EXPECT_EQ(files.files.at(0), place("own/train-images-idx3-ubyte"));
  EXPECT_EQ(files.files.at(2), place("own/t10k-images-idx3-ubyte.gz"));
}

TEST_F(SetFilesTest, NothingFoundNamesEveryPlaceAndTheCommand) {
  write_image_set(place("half"));
  fs::remove(place("half/train-labels-idx1-ubyte"));
  fs::create_directories(place("empty"));
  const fs::path a_file = place("half/train-images-idx3-ubyte");
  expect_error<MissingDataError>(
      [&] {
        const SetEntry& kmnist = find_set("kmnist");
        find_set_files(kmnist, idx_set_files(kmnist), {place("half"), place("empty"), "/not/here", a_file});
      },
      {(place("half").string() + " (lacks train-labels-idx1-ubyte)").c_str(),
       (place("empty").string() + " (none of its files)").c_str(), "/not/here (no such directory)",
       (a_file.string() + " (not a directory)").c_str(), "launch/get-data kmnist"});
}

TEST_F(SetFilesTest, SetsMadeInMemoryNeedNoRoot) {
  EXPECT_EQ(resolve_data_root("synthetic", "auto"), "");
}

TEST_F(SetFilesTest, ThePlaceThatARunRemembersComesFirstIfItStillHoldsTheSet) {
  write_image_set(place("own"));
  write_image_set(place("remembered"));
  const std::string own = place("own").string(), remembered = place("remembered").string();
  EXPECT_EQ(resolve_data_root("mnist", own, remembered), remembered);
  fs::remove(place("remembered/t10k-labels-idx1-ubyte"));
  EXPECT_EQ(resolve_data_root("mnist", own, remembered), own);
}

TEST_F(SetFilesTest, AnUnknownSetIsAnErrorThatListsTheKnownOnes) {
  expect_error<ConfigError>([] { resolve_data_root("mnits", "auto"); },
                            {"unknown data set 'mnits'", "mnist, fashion-mnist"});
}

}  // namespace
}  // namespace lockstep
