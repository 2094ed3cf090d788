// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Advice is in words until a program says how its users spell what they can set.
#include "common/advice.hpp"

#include "common/error.hpp"
#include "common/plugin.hpp"
#include "tests/common/sample_plugin.hpp"

#include <gtest/gtest.h>

#include <new>
#include <string>

namespace lockstep {
namespace {

class AdviceTest : public ::testing::Test {
 protected:
  ~AdviceTest() override { spell_advice_as({}); }
};

TEST_F(AdviceTest, IsInWordsAtFirst) {
  EXPECT_EQ(advice("use a smaller {global_batch}, more ranks or {device}cpu"),
            "use a smaller global batch, more ranks or device cpu");
}

TEST_F(AdviceTest, IsSpeltAsTheProgramSays) {
  spell_advice_as({.global_batch = "data.global_batch", .timeout = "parallel.timeout_seconds"});
  EXPECT_EQ(advice("lower {global_batch} or raise {timeout}"),
            "lower data.global_batch or raise parallel.timeout_seconds");
  EXPECT_NE(explain(std::bad_alloc()).text.find("data.global_batch"), std::string::npos);
}

TEST_F(AdviceTest, EveryNameHasAPlace) {
  spell_advice_as({"1", "2", "3", "4", "5", "6", "7", "8", "9"});
  EXPECT_EQ(advice("{global_batch}{per_rank_batch}{grain}{sample_counts}{device}{backend}{kernels}{timeout}"
                   "{run_directory}"),
            "123456789");
}

TEST_F(AdviceTest, APluginHasACopyOfItsOwnAndIsTold) {
  spell_advice_as({.backend = "--backend "});
  const Plugin plugin{"lockstep_sample_plugin", "a sample", "use something else"};
  const auto advise = plugin_function<decltype(sample_plugin_advise)>(plugin, "sample_plugin_advise");
  try {
    advise();
    FAIL() << "nothing was thrown";
  } catch (const DeviceError& error) {
    EXPECT_STREQ(error.what(), "use --backend mpi");
  }
}

}  // namespace
}  // namespace lockstep
