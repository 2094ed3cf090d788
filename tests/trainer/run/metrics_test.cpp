// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// metrics.jsonl holds whole lines only, whatever the disk does.
#include "trainer/run/metrics.hpp"

#include "common/error.hpp"
#include "tests/support/small_disk.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace lockstep {
namespace {

class MetricsTest : public ::testing::Test {
 protected:
  MetricsTest() : path_(::testing::TempDir() + "metrics-XXXXXX") { close(mkstemp(path_.data())); }
  ~MetricsTest() override { unlink(path_.c_str()); }
  std::string text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string path_;
};

TEST_F(MetricsTest, AppendsOneLineForEachEvent) {
  MetricsWriter metrics(Env::posix(), path_);
  metrics.write({{"step", 1}});
  metrics.write({{"step", 2}});
  metrics.sync();
  EXPECT_EQ(text(), "{\"step\":1}\n{\"step\":2}\n");
}

TEST_F(MetricsTest, WhatAFullDiskCutShortIsTakenBackAndWrittenLater) {
  MetricsWriter metrics(Env::posix(), path_);
  metrics.write({{"step", 1}});
  {
    const SmallDisk disk(15);
    EXPECT_THROW(metrics.write({{"step", 2}}), IoError);
    EXPECT_THROW(metrics.write({{"step", 3}}), IoError);
    EXPECT_THROW(metrics.sync(), IoError) << "a checkpoint must not count on these lines";
    EXPECT_FALSE(metrics.is_complete());
    EXPECT_EQ(text(), "{\"step\":1}\n");
  }
  metrics.write({{"step", 4}});
  EXPECT_TRUE(metrics.is_complete());
  EXPECT_EQ(text(), "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n{\"step\":4}\n");
}

TEST_F(MetricsTest, OtherRanksWriteNothing) {
  MetricsWriter metrics;
  metrics.write({{"step", 1}});
  metrics.sync();
  EXPECT_TRUE(metrics.is_complete());
}

}  // namespace
}  // namespace lockstep
