// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// ranks.jsonl, the work of each rank: the start that took a step, damaged lines, and one wrong rank.
#include "trainer/checkpoint/rank_file.hpp"

#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"

namespace lockstep {
namespace {

RankStretch stretch_of(std::int64_t from, std::size_t ranks) {
  RankStretch stretch{.from = from, .strategy = "data", .split = "even", .ranks = {}};
  for (std::size_t i = 0; i < ranks; ++i)
    stretch.ranks.push_back({.host = "node" + std::to_string(i),
                             .device = "cpu",
                             .uuid = i == 0 ? "GPU-1" : "",
                             .first_grain = static_cast<std::int64_t>(i),
                             .grains = 1});
  return stretch;
}

class RankFileTest : public ::testing::Test {
 protected:
  void write_ranks(const RankStretch& stretch, std::int64_t last) {
    RankFile file(Env::posix(), run_, stretch);
    for (std::int64_t step = stretch.from; step <= last; ++step)
      file.write(std::vector{RankSums{step, static_cast<std::uint64_t>(step) << 60, UINT64_MAX}});
    file.sync();
  }
  std::optional<RecordedRanks> find(std::int64_t step) const { return find_ranks(file_, step); }

  TemporaryDirectory directory_;
  std::string run_ = directory_.path(), file_ = directory_.path(kRankFile);
};

TEST_F(RankFileTest, EachStepHasTheRanksOfTheLastStartThatTookIt) {
  EXPECT_FALSE(find(1));
  EXPECT_FALSE(report_ranks(file_));
  EXPECT_TRUE(first_steps_of_starts(file_).empty());
  write_ranks(stretch_of(1, 4), 9);
  AppendFile(file_).append(std::string(R"({"step":10,"co)"));  // a crash
  write_ranks(stretch_of(6, 3), 8);
  write_ranks(stretch_of(8, 2), 8);  // twice interrupted
  write_ranks(stretch_of(8, 1), 7);
  EXPECT_EQ(find(5)->stretch, stretch_of(1, 4));
  EXPECT_EQ(find(5)->sums, (RankSums{5, std::uint64_t{5} << 60, UINT64_MAX}));
  test::expect_words(text_of(file_), {"\n{\"step\":5,\"copies\":\"5000000000000000\",\"sums\":"
                                      "\"ffffffffffffffff\",\"seal\":\"d03b441f\"}\n"});
  EXPECT_EQ(find(7)->stretch, stretch_of(6, 3));
  EXPECT_EQ(find(8)->stretch, stretch_of(8, 1));
  EXPECT_FALSE(find(8)->sums);
  EXPECT_EQ(first_steps_of_starts(file_), (std::vector<std::int64_t>{1, 6, 8}));
  EXPECT_EQ(report_ranks(file_)->text,
            file_ +
                ": 10 lines, all good\n  step 1 on: 4 ranks on 4 hosts (node0, node1, node2, node3), data\n"
                "  step 6 on: 3 ranks on 3 hosts (node0, node1, node2), data\n"
                "  step 8 on: 1 rank on 1 host (node0), data\n");
  cut_rank_file(Env::posix(), run_, 6);
  EXPECT_EQ(report_ranks(file_)->text.find("step 6"), std::string::npos);
  EXPECT_EQ(find(5)->sums->step, 5) << "what stays is as it was";
}

TEST_F(RankFileTest, DamagedLineIsOfNoUseAndTheOthersAre) {
  write_ranks(stretch_of(1, 2), 3);
  const std::string good = text_of(file_);
  std::string bad = good;
  bad[bad.find("\"step\":2") + 20] ^= 1;
  replace_file(Env::posix(), file_, std::as_bytes(std::span(bad)));
  EXPECT_FALSE(find(2)->sums);
  EXPECT_TRUE(find(3)->sums);
  EXPECT_FALSE(report_ranks(file_)->good);
  test::expect_words(report_ranks(file_)->text, {": 3 lines good, 1 damaged: a proof cannot name the rank "});
  std::string host = good;
  host[host.find("node1")] = 'm';
  replace_file(Env::posix(), file_, std::as_bytes(std::span(host)));
  EXPECT_FALSE(find(3)) << "a host that was never there";
}

/// The ranks of the start before it would be named for steps that they did not take.
TEST_F(RankFileTest, ADamagedStartLeavesTheRanksOfItsStepsUnknown) {
  write_ranks(stretch_of(1, 4), 5);
  write_ranks(stretch_of(6, 3), 7);
  write_ranks(stretch_of(8, 2), 9);
  const std::string good = text_of(file_);
  const std::size_t start = good.find(R"({"version":1,"from":6,)");
  ASSERT_NE(start, good.npos);
  for (const std::size_t byte : {start, good.find("node1", start)}) {  // no JSON any more; another host
    std::string bad = good;
    bad[byte] = 'm';
    replace_file(Env::posix(), file_, bad);
    EXPECT_EQ(find(5)->stretch, stretch_of(1, 4)) << byte;
    for (const std::int64_t step : {6, 7}) EXPECT_FALSE(find(step)) << byte;
    EXPECT_EQ(find(8)->stretch, stretch_of(8, 2)) << byte;
  }
}

TEST_F(RankFileTest, AHostWithALineFeedInItsNameMakesNoLine) {
  RankStretch stretch = stretch_of(1, 2);
  stretch.ranks[1].host = "b\nrun: good";
  write_ranks(stretch, 1);
  EXPECT_EQ(report_ranks(file_)->text,
            file_ + ": 2 lines, all good\n  step 1 on: 2 ranks on 2 hosts (b\\x0arun: good, node0), data\n");
}

TEST(RankTest, OneWrongRankIsFoundFromTwoSums) {
  for (const std::uint64_t difference : {1ULL, 3ULL << 40, ~0ULL, 0x123456789abcdef0ULL}) {
    for (int rank = 0; rank < 1024; rank += 31)
      EXPECT_EQ(find_wrong_rank(difference, rank_weight(rank) * difference, 1024), rank) << difference;
  }
  EXPECT_FALSE(find_wrong_rank(0, 0, 8));
  EXPECT_FALSE(find_wrong_rank(5 + 9, 5 * 1 + 9 * 3, 8)) << "two ranks";
  EXPECT_FALSE(find_wrong_rank(1ULL << 62, 1ULL << 62, 8)) << "rank 0 or 4";
}

}  // namespace
}  // namespace lockstep
