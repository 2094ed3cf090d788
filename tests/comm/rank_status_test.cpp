// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Texts of a fixed size, and waits.
#include "comm/rank_status.hpp"

#include "tests/support/prelude.hpp"

namespace lockstep {

namespace {

template <std::size_t Size>
std::string as_put(const std::string& text) {
  std::array<char, Size> field{};
  field.fill('x');
  put_text(text, field);
  EXPECT_EQ(field.back(), '\0');
  return std::string(text_in(field));
}

TEST(FixedTextTest, IsWholeOrEndsWithAWordAndDots) {
  EXPECT_EQ(as_put<16>("a barrier"), "a barrier");
  EXPECT_EQ(as_put<16>("fifteen letters"), "fifteen letters");
  EXPECT_EQ(as_put<16>("fifteen letters and more"), "fifteen...");
  EXPECT_EQ(as_put<16>("sixteenletters+and+more"), "sixteenlette...");
  EXPECT_EQ(as_put<16>("elfe Buchst\u00e4\u00e4ben"), "elfe Buchst...") << "no half character";
  EXPECT_EQ(as_put<16>(""), "");
}

TEST(RankActivityTest, WhatIsWaitedForIsWhole) {
  RankActivity activity;
  // The longest that there are.
  for (const std::string what : {"its group: the gradients' all-reduce through host memory",
                                 "the copy of gradients from this rank's GPU",
                                 "its group: the weights of stage 12 (layers 100-199) on rank 1023"}) {
    activity.begin_wait(what, Waiting::kForSome);
    EXPECT_EQ(activity.status().place_text(), what);
    activity.end_wait();
  }
}

TEST(RankActivityTest, WaitsForAllAreCountedWhateverTheyAreCalled) {
  RankActivity activity;
  activity.begin_wait("any words", Waiting::kForAll);
  EXPECT_EQ(activity.status().collective, 1U);
  activity.end_wait();
  activity.begin_wait("a barrier", Waiting::kForSome);
  EXPECT_EQ(activity.status().collective, 1U);
}

}  // namespace

}  // namespace lockstep
