// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Advice is in words until a program says how its users spell what they can set.
#include "common/buffers.hpp"
#include "common/error.hpp"
#include "common/installed.hpp"
#include "common/machine.hpp"
#include "tests/common/sample_plugin.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep {
namespace {

class AdviceTest : public ::testing::Test {
 protected:
  ~AdviceTest() override { spell_advice_as({}); }
};

TEST_F(AdviceTest, IsInWordsUntilTheProgramSaysHowItIsSpelt) {
  EXPECT_EQ(advice("use a smaller {global_batch}, more ranks or {device}cpu"),
            "use a smaller global batch, more ranks or device cpu");
  spell_advice_as({.global_batch = "data.global_batch", .timeout = "parallel.timeout_seconds"});
  EXPECT_EQ(advice("lower {global_batch} or raise {timeout}"),
            "lower data.global_batch or raise parallel.timeout_seconds");
  EXPECT_TRUE(contains(explain(std::bad_alloc()).text, {"data.global_batch"}));
  spell_advice_as({"1", "2", "3", "4", "5", "6", "7", "8", "9", "a", "b", "c", "d"});
  EXPECT_EQ(advice("{global_batch}{per_rank_batch}{grain}{sample_counts}{device}{backend}{kernels}{timeout}"
                   "{run_directory}{learning_rate}{mean}{deviation}{initial_weights}"),
            "123456789abcd");
}

TEST(ExplanationTest, APathThatCannotBeExaminedIsAnErrorOfFiles) {
  const std::error_code cause = std::make_error_code(std::errc::io_error);
  const Explanation told = explain(std::filesystem::filesystem_error("status", "/disk/a", cause));
  EXPECT_EQ(told.code, ExitCode::kIo);
  EXPECT_TRUE(told.text.starts_with("/disk/a: cannot be examined: Input/output error")) << told.text;
}

TEST(ExplanationTest, WhatRanOutIsToldFromABug) {
  const auto expect_memory = [](const std::exception& error) {
    EXPECT_EQ(explain(error).code, ExitCode::kDeviceUnavailable);
    EXPECT_TRUE(explain(error).text.starts_with("not enough memory; start fewer ranks"));
  };
  expect_memory(std::bad_alloc());
  expect_memory(std::length_error("a"));
  const Explanation threads = explain(std::system_error(EAGAIN, std::generic_category()));
  EXPECT_EQ(threads.code, ExitCode::kDeviceUnavailable);
  EXPECT_TRUE(threads.text.starts_with("a thread cannot be started: this process has "));
  const Explanation other = explain(std::system_error(EINVAL, std::generic_category(), "f"));
  EXPECT_EQ(other.code, ExitCode::kInternal);
  EXPECT_EQ(other.text, "internal error: f: Invalid argument; please report this");
  EXPECT_EQ(explain(IoError("disk full")).code, ExitCode::kIo);
  EXPECT_EQ(explain(IoError("disk full")).text, "disk full");
  EXPECT_THROW(throw_missing_thread(std::system_error(EINVAL, std::generic_category())), std::system_error);
  EXPECT_THROW(throw_missing_thread(std::system_error(EAGAIN, std::generic_category())), DeviceError);
}

TEST(ExplanationTest, AConditionThatDoesNotHoldIsToldWithItsPlace) {
  const auto fails = [] { LOCKSTEP_CHECK(1 + 1 == 3); };
  const int line = __LINE__ - 1;
  EXPECT_EQ(
      message_of<InternalError>(fails),
      fmt::format("internal error at {}:{}: '1 + 1 == 3' does not hold; please report this", __FILE__, line));
  EXPECT_NO_THROW([] { LOCKSTEP_CHECK(1 + 1 == 2); }());
}

TEST_F(AdviceTest, APluginHasACopyOfItsOwnAndIsTold) {
  spell_advice_as({.backend = "--backend "});
  const Plugin plugin{"lockstep_sample_plugin", "a sample", "use something else"};
  const auto advise = plugin_function<decltype(sample_plugin_advise)>(plugin, "sample_plugin_advise");
  EXPECT_EQ(message_of<DeviceError>(advise), "use --backend mpi");
}

TEST(CheckedSizeTest, ProductsThatFitAreProducts) {
  EXPECT_EQ(checked_product(), 1U);
  EXPECT_EQ(checked_product(65536, 65537, std::uint64_t{3}), 12885098496U);
  EXPECT_EQ(checked_product(std::uint64_t{1} << 63, 1), std::uint64_t{1} << 63);
  EXPECT_EQ(checked_product(0, kTooLarge - 1, 5), 0U);
  EXPECT_EQ(checked_sum(1, std::uint64_t{2}, 3L), 6U);
}

TEST(CheckedSizeTest, WhatDoesNotFitIsBeyondEveryLimit) {
  constexpr int kMost = std::numeric_limits<int>::max();
  EXPECT_EQ(checked_product(kMost, kMost, kMost), kTooLarge);
  EXPECT_EQ(checked_product(std::uint64_t{1} << 32, std::uint64_t{1} << 32), kTooLarge);
  EXPECT_EQ(checked_product(-1, 1), kTooLarge);
  EXPECT_EQ(checked_product(-1, 0), kTooLarge);
  EXPECT_EQ(checked_sum(kTooLarge, 1), kTooLarge);
  EXPECT_EQ(checked_sum(5, -3), kTooLarge);
}

TEST(AlignedBufferTest, IsZeroAndAlignedOrAPartOfWhatOthersOwn) {
  AlignedBuffer<float> mine(3);
  EXPECT_EQ(mine.size(), 3U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(mine.data()) % 64, 0U);
  EXPECT_TRUE(std::ranges::all_of(mine.span(), [](float value) { return value == 0; }));
  EXPECT_EQ(AlignedBuffer<float>(0).data(), nullptr);
  const auto owner = std::make_shared<AlignedBuffer<float>>(2);
  {
    AlignedBuffer<float> part(owner->data(), 2, owner);
    part[1] = 5;
    EXPECT_EQ(owner.use_count(), 2);
  }
  EXPECT_EQ(owner.use_count(), 1);
  EXPECT_EQ((*owner)[1], 5) << "the memory stays its owner's";
}

}  // namespace
}  // namespace lockstep
