// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A rank fails on purpose in each way that there is: it is named, with the kind; and where the check that finds it is
/// left out, nothing is said but that.
#include "trainer/burn/burn.hpp"

#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "tests/support/test_settings.hpp"
#include "trainer/burn/products.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::burn {
namespace {

/// A fault, the check that finds it, and what it says of the rank.
struct FaultCase {
  const char* kind;
  std::vector<std::string>
      checks;  ///< that must run for it to be found; the last one is the one that finds it
  Grade grade;
  const char* finding;
  const char* device = "cpu";
};

const std::vector<FaultCase> kCases{{"lane", {"products"}, Grade::kWrong, "product"},
                                    {"rare-lane", {"products"}, Grade::kWrong, "product"},
                                    {"lane", {"products"}, Grade::kWrong, "product", "emulated"},
                                    {"rare-lane", {"products"}, Grade::kWrong, "product", "emulated"},
                                    {"memory-bit", {"memory"}, Grade::kWrong, "memory"},
                                    {"stuck-bit", {"memory"}, Grade::kWrong, "memory"},
                                    {"copy", {"copies"}, Grade::kWrong, "copy", "emulated"},
                                    {"job", {"jobs"}, Grade::kWrong, "job"},
                                    {"message", {"links"}, Grade::kWrong, "message"},
                                    {"sum", {"links"}, Grade::kWrong, "sum"},
                                    {"slow-rank", {"products", "speed"}, Grade::kSlow, "rank"},
                                    {"clock", {"products", "speed"}, Grade::kSlow, "clock"},
                                    {"slow-link", {"links", "speed"}, Grade::kSlow, "link"}};

/// Under sanitizers trainings, products on the emulator and speeds take minutes, and nothing of their own of a burn's; and
/// one fault of each check runs all of its code.
std::vector<FaultCase> cases_worth_trying() {
  std::vector<FaultCase> cases;
  for (const FaultCase& fault : kCases) {
    const bool is_quick =
        fault.device == std::string_view("cpu") && fault.checks.size() == 1 && fault.checks[0] != "jobs";
    const bool is_first = cases.empty() || cases.back().checks != fault.checks;
    if (test::effort(true, is_quick && is_first)) cases.push_back(fault);
  }
  return cases;
}

/// Three ranks, one round, these checks alone.
BurnReport burn_with(const FaultCase& fault, int rank, const std::vector<std::string>& wanted) {
  BurnOptions options;
  options.seconds = 0;
  options.memory.bytes = 1;
  options.threads = 1;
  options.device = fault.device;
  options.shows_progress = false;
  options.fault = {fault.kind, rank};
  for (const CheckInfo& check : checks())
    if (std::ranges::find(wanted, check.name) == wanted.end()) options.without.emplace_back(check.name);
  BurnReport report;
  run_thread_ranks(3, [&](Communicator& comm) {
    BurnReport mine = run_burn(comm, options);
    if (comm.rank() == 0) report = std::move(mine);
  });
  return report;
}

std::string name_of(const FaultCase& fault) {
  return std::string(fault.kind) + " on " + fault.device;
}

TEST(BurnFaults, AreFoundOnTheirRankWithTheirKind) {
  int rank = 0;
  for (const FaultCase& fault : cases_worth_trying()) {
    SCOPED_TRACE(name_of(fault));
    rank = (rank + 1) % 3;
    const BurnReport report = burn_with(fault, rank, fault.checks);
    ASSERT_EQ(report.ranks.size(), 3U);
    for (const RankResult& result : report.ranks) {
      const auto named = std::ranges::count_if(result.findings, [&](const BurnFinding& finding) {
        return finding.grade == fault.grade && finding.kind == fault.finding;
      });
      EXPECT_EQ(named, result.rank == rank ? 1 : 0) << "rank " << result.rank;
      EXPECT_EQ(grade_of(result) == Grade::kWrong, result.rank == rank && fault.grade == Grade::kWrong);
    }
    EXPECT_EQ(exit_code_of(report), fault.grade == Grade::kWrong ? 1 : kSlowExitCode);
  }
}

TEST(BurnFaults, PassWhereTheirCheckIsLeftOutWhichIsSaid) {
  for (const FaultCase& fault : cases_worth_trying()) {
    SCOPED_TRACE(name_of(fault));
    std::vector<std::string> others = fault.checks;
    const std::string check = others.back();
    others.back() = "memory";
    if (check == "memory") others.back() = "links";
    const BurnReport report = burn_with(fault, 1, others);
    EXPECT_EQ(exit_code_of(report), 0);
    EXPECT_EQ(to_json(report)["ranks"][1]["checks"][check]["verdict"], "NOT TESTED");
    EXPECT_NE(to_text(report, 1000).find(check + "  "), std::string::npos);
  }
}

TEST(BurnFaults, EveryKindHasACase) {
  for (const std::string_view kind : fault_kinds())
    EXPECT_TRUE(std::ranges::any_of(kCases, [&](const FaultCase& fault) { return kind == fault.kind; }))
        << kind;
}

TEST(BurnFaults, AreRefusedUnlessAllowedAndNamed) {
  ::unsetenv("LOCKSTEP_ALLOW_INJECT");
  EXPECT_THROW(parse_fault("lane@0"), UsageError);
  ::setenv("LOCKSTEP_ALLOW_INJECT", "1", 1);
  EXPECT_EQ(parse_fault("stuck-bit@12").rank, 12);
  for (const char* wrong :
       {"", "lane", "lane@", "lane@x", "lane@-1", "lane@1x", "fire@0", "lane@99999999999"})
    EXPECT_THROW(parse_fault(wrong), UsageError) << wrong;
}

// Products whose answer is known.

std::vector<std::int64_t> forward(const ProductCase& product, const ProductOperands& in) {
  const Conv2dShape& s = product.shape;
  std::vector<std::int64_t> y;
  for (int k = 0; k < s.out_channels; ++k)
    for (int p = 0; p < s.out_height(); ++p)
      for (int q = 0; q < s.out_width(); ++q)
        for (int n = 0; n < s.batch; ++n) {
          auto sum = static_cast<std::int64_t>(in.b[static_cast<std::size_t>(k)]);
          for (int c = 0; c < s.in_channels; ++c)
            for (int r = 0; r < s.kernel_height; ++r)
              for (int t = 0; t < s.kernel_width; ++t)
                sum += static_cast<std::int64_t>(
                    in.w[static_cast<std::size_t>(
                        ((k * s.in_channels + c) * s.kernel_height + r) * s.kernel_width + t)] *
                    in.x[static_cast<std::size_t>(((c * s.in_height + p + r) * s.in_width + q + t) * s.batch +
                                                  n)]);
          y.push_back(sum);
        }
  return y;
}

TEST(ProductProof, TakesTheProductAndNamesTheWrongNumber) {
  const ProductCase product{"small", {16, 2, 5, 4, 3, 3, 2}, false};
  const ProductOperands operands = make_operands(product, 5);
  const ProductProof proof(product, Pass::kForward, operands, 6);
  std::vector<std::int64_t> y = forward(product, operands);
  ASSERT_EQ(y.size(), proof.rows() * proof.columns());
  EXPECT_FALSE(proof.find_wrong(y));
  for (const std::size_t at : {std::size_t{0}, y.size() / 2 + 3, y.size() - 1}) {
    y[at] += 1;
    const auto wrong = proof.find_wrong(y);
    ASSERT_TRUE(wrong);
    EXPECT_EQ(wrong->row, at / 16);
    EXPECT_EQ(wrong->column, at % 16);
    y[at] -= 1;
  }
  std::swap(y[0], y[1]);
  if (y[0] != y[1]) {
    EXPECT_TRUE(proof.find_wrong(y)) << "the sum is the same";
  }
}

TEST(ProductProof, TakesNoNumberThatIsNoSum) {
  EXPECT_EQ(integer_of(-12), -12);
  for (const float wrong : {0.5F, 1e9F, -1e30F, std::numeric_limits<float>::quiet_NaN()})
    EXPECT_EQ(integer_of(wrong), std::numeric_limits<std::int64_t>::max());
}

// What is typed.

TEST(BurnOptions, SizesAndTimesAreReadOrRefused) {
  EXPECT_EQ(parse_memory("25%").share, 0.25);
  EXPECT_EQ(parse_memory("512MiB").bytes, std::uint64_t{512} << 20);
  EXPECT_EQ(parse_memory("1.5GiB").bytes, std::uint64_t{1536} << 20);
  for (const char* wrong : {"", "%", "0%", "96%", "-5%", "nan%", "12", "GiB", "1e300GiB", "0MiB", "1MiB "})
    EXPECT_THROW(parse_memory(wrong), UsageError) << wrong;
  EXPECT_EQ(parse_time("90s"), 90);
  EXPECT_EQ(parse_time("10m"), 600);
  EXPECT_EQ(parse_time("2h"), 7200);
  for (const char* wrong : {"", "10", "s", "-1s", "inf", "infh", "nanm", "721h", "1d"})
    EXPECT_THROW(parse_time(wrong), UsageError) << wrong;
  EXPECT_LE(seconds_of_level(1), 60);
  EXPECT_THROW(seconds_of_level(4), UsageError);
}

}  // namespace
}  // namespace lockstep::burn
