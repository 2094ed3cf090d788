// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "common/text_layout.hpp"

#include "common/output.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep {
namespace {

TEST(TextLayoutTest, DurationsReadLikeAClockAndSecondsAreNotRoundedToNothing) {
  EXPECT_EQ(format_duration(0.4), "0:00");
  EXPECT_EQ(format_duration(65), "1:05");
  EXPECT_EQ(format_duration(7384), "2:03:04");
  EXPECT_EQ(format_duration(3599.4), "59:59");
  EXPECT_EQ(format_duration(3599.6), "1:00:00");
  EXPECT_EQ(format_seconds(0.0144), "0.014 s");
  EXPECT_EQ(format_seconds(0.0999), "0.10 s");
  EXPECT_EQ(format_seconds(0.15), "0.15 s");
  EXPECT_EQ(format_seconds(0.4812), "0.48 s");
  EXPECT_EQ(format_seconds(0.996), "1.0 s");
  EXPECT_EQ(format_seconds(7384), "7384.0 s");
  EXPECT_EQ(format_time(59.9), "59.9 s");
  EXPECT_EQ(format_time(60), "1:00");
}

TEST(TextLayoutTest, LargeLossesHaveAnExponentAndLargeCountsAreGroupedByThousands) {
  EXPECT_EQ(format_loss(0.03125), "0.0312");
  EXPECT_EQ(format_loss(999999), "999999.0000");
  EXPECT_EQ(format_loss(1e6), "1.0000e+06");
  EXPECT_EQ(format_loss(-1.5e6), "-1.5000e+06");
  EXPECT_EQ(with_thousands(0), "0");
  EXPECT_EQ(with_thousands(999), "999");
  EXPECT_EQ(with_thousands(60000), "60,000");
  EXPECT_EQ(with_thousands(-1234567), "-1,234,567");
  EXPECT_EQ(with_thousands(-123), "-123");
}

TEST(TextLayoutTest, AShareIsWholeOrNothingInPercentOnlyWhereItIs) {
  for (const auto& [share, text] : {std::pair(0.0, "0.00"),
                                    {1e-9, "0.01"},
                                    {0.00004, "0.01"},
                                    {0.0002, "0.02"},
                                    {0.5, "50.00"},
                                    {0.99994, "99.99"},
                                    {0.99996, "99.99"},
                                    {1 - 0x1p-53, "99.99"},
                                    {1, "100.00"},
                                    {1.5, "150.00"},
                                    {-0.25, "-25.00"},
                                    {std::nan(""), "nan"}})
    EXPECT_EQ(percent_text(share), text);
}

TEST(TextLayoutTest, ACountOfOneIsSingular) {
  EXPECT_EQ(counted(1, "rank"), "1 rank");
  EXPECT_EQ(counted(0, "rank"), "0 ranks");
  EXPECT_EQ(counted(std::size_t{60000}, "image"), "60,000 images");
  EXPECT_EQ(counted(1, "class"), "1 class");
  EXPECT_EQ(counted(2, "class"), "2 classes");
  EXPECT_EQ(counted(3, "micro-batch"), "3 micro-batches");
  EXPECT_EQ(counted(2, "epoch"), "2 epochs");
  EXPECT_EQ(plural(2, "core"), "cores");
}

TEST(TextLayoutTest, WidthCountsColumnsNotBytes) {
  EXPECT_EQ(display_width(""), 0);
  EXPECT_EQ(display_width("loss 0.1"), 8);
  EXPECT_EQ(display_width("━╌é"), 3);
  EXPECT_EQ(display_width("お数字"), 6);     // two columns each
  EXPECT_EQ(display_width("e\xCC\x81"), 1);  // a combining accent takes none
  // The first and the last one of each range, then their neighbours.
  EXPECT_EQ(display_width("\u0300\u036F\u200B\u200F\u20D0\u20FF\uFE00\uFE0F"), 0);
  EXPECT_EQ(
      display_width("\u1100\u115F\u2E80\uA4CF\uAC00\uD7A3\uF900\uFAFF\uFE30\uFE6F\uFF00\uFF60\uFFE0\uFFE6"
                    "\U0001F300\U0001FAFF\U00020000\U0003FFFD"),
      36);
  EXPECT_EQ(
      display_width("\u02FF\u0370\u200A\u2010\u20CF\u2100\uFDFF\uFE10\u10FF\u1160\u2E7F\uA4D0\uABFF\uD7A4"
                    "\uF8FF\uFB00\uFE2F\uFE70\uFEFF\uFF61\uFFDF\uFFE7\U0001F2FF\U0001FB00\U0001FFFF"
                    "\U0003FFFE"),
      26);
  EXPECT_EQ(display_width("\xE2\x94"), 2);  // cut in the middle: bytes
  EXPECT_EQ(display_width("\xFF\x80z"), 3);
}

TEST(TextLayoutTest, ABarIsAsWideAsAskedInAnyAlphabet) {
  for (int width = 0; width <= 60; ++width) {
    for (const double fraction : {-1.0, 0.0, 0.3, 1.0, 7.0, std::nan("")}) {
      EXPECT_EQ(display_width(bar(fraction, width, true)), width);
      EXPECT_EQ(bar(fraction, width, false).size(), static_cast<std::size_t>(width));
    }
  }
  EXPECT_EQ(bar(0.5, 4, false), "##..");
  EXPECT_EQ(bar(0.5, 4, true), "━━╌╌");
  EXPECT_EQ(bar(std::nan(""), 4, false), "....");
  EXPECT_EQ(bar(7, 4, false), "####");
}

std::string without_spaces(std::string text) {
  std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
  return text;
}

const std::vector<std::string> kLongLines = {
    // NOLINTNEXTLINE(bugprone-suspicious-missing-comma): two lines of two rows each
    "Lockstep 0.1.0: net, 21,840 parameters, on mnist (60,000 train, 10,000 test; "
    "/home/a/.cache/lockstep/mnist)",
    "done: 4,690 steps in 0:24, accuracy 99.02 % of 10,000 test samples, run directory "
    "/scratch/users/somebody-with-a-long-name/experiments/2026/digits/runs/mnist-17",
    "weights sha256 d03775efbeac4dd01d4187af887d4202960c8cd2349a66c0fd2b6fad034c0601",
    "parallel.grain                       64          samples that are summed in one piece (a number)",
    "  --set TEXT                  Data set; default: the one that it was trained on, wherever it lies now",
    "数字の認識を学習するネットワーク 数字の認識を学習するネットワーク 数字の認識を学習するネットワーク"};

TEST(TextLayoutTest, FoldedLinesFitAndLoseNothing) {
  for (const auto& line : kLongLines) {
    for (int columns = 39; columns <= 199; ++columns) {
      const std::string folded = fold(line, columns);
      EXPECT_LE(widest_line(folded), columns) << folded;
      EXPECT_EQ(without_spaces(folded), without_spaces(line));
      EXPECT_TRUE(folded == line || display_width(line) > columns) << folded;
    }
    EXPECT_EQ(fold(line, kAnyWidth), line);
  }
}

TEST(TextLayoutTest, ALongPathGetsALineOfItsOwnAndBreaksBehindASlash) {
  EXPECT_EQ(fold("run directory /scratch/users/me/runs/mnist", 30),
            "run directory\n  /scratch/users/me/runs/mnist");
  EXPECT_EQ(fold("run directory /scratch/users/me/runs/mnist", 22),
            "run directory\n  /scratch/users/me/\n  runs/mnist");
  EXPECT_EQ(fold("/abcdefghij", 8), "/abcde\n  fghij") << "not behind its first character";
  EXPECT_EQ(fold("abcdefghi", 8), "abcde\n  fghi") << "in pieces of one length";
  EXPECT_EQ(fold("abcdefghijklmnopqrstuvwxy", 10), "abcdefghi\n  jklmnopq\n  rstuvwxy");
  EXPECT_EQ(fold("    abcdefg hijkl", 14), "    abcdefg\n      hijkl");
}

TEST(TextLayoutTest, TextInAColumnStaysInItsColumn) {
  EXPECT_EQ(fold("--set NAME      the set of pictures that it is evaluated on", 50),
            "--set NAME      the set of pictures that it is\n                evaluated on");
  EXPECT_EQ(fold("--set NAME      the set of pictures that it is evaluated on", 44),
            "--set NAME      the set of pictures that it\n                is evaluated on");
  EXPECT_EQ(fold("--set NAME      the set of pictures that it is evaluated on", 43),
            "--set NAME      the set of pictures that it\n  is evaluated on")
      << "no room for a column";
}

TEST(TextLayoutTest, ColumnsAreAsWideAsTheirWidestTextAndTheMiddleGivesWay) {
  EXPECT_EQ(align_columns({{"a"}, {"bcd", "e"}}, {}, 2), "  a\n  bcd  e\n");
  EXPECT_EQ(align_columns({{"お", "1"}, {"abc", "20"}}, {1}), "お    1\nabc  20\n");
  EXPECT_EQ(widest_line("a\nbcd\nef"), 3);
  EXPECT_EQ(without_spaces_behind("a b  "), "a b");
  EXPECT_EQ(without_spaces_behind("  "), "");
  EXPECT_EQ(clip_middle("abcdef", 6), "abcdef");
  EXPECT_EQ(clip_middle("abcdef", 5), "a...f");
  EXPECT_EQ(clip_middle("abcdef", 4), "...f");
  EXPECT_EQ(clip_middle("abcdef", 1), "...");
  EXPECT_EQ(clip_middle("お数字お数字", 9), "お...数字");
}

TEST(TextLayoutTest, AFilledParagraphIsIndentedAlikeAndKeepsNumbersWithWhatTheyCount) {
  EXPECT_EQ(fill("one two  three\nfour", 11, 2), "  one two\n  three\n  four");
  EXPECT_EQ(fill("no class has 90 %, and", 16), "no class has\n90 %, and");
  EXPECT_EQ(fill("averylongword a", 5, 1), " averylongword\n a");
  EXPECT_EQ(fill("one two", 9, 2), "  one two");
  EXPECT_EQ(fill("one two", 8, 2), "  one\n  two");
  EXPECT_EQ(fill("all of it", kAnyWidth, 4), "    all of it");
  EXPECT_EQ(fill("", 10), "");
}

TEST(TextLayoutTest, FoldingEndsForAnyTextAndWidth) {
  for (const std::string text : {"", " ", "   ", "a", "  a  ", "\xFF\xFE", "a\n\n b", "字字字"}) {
    for (int columns = 1; columns < 12; ++columns) {
      EXPECT_EQ(without_spaces(fold_lines(text, columns)), without_spaces(text));
    }
  }
  EXPECT_EQ(fold_lines("a b\n\nc d\n", 2), "a\n b\n\nc\n d\n");
}

TEST(TextLayoutTest, WhatMattersLeastIsLeftOutFirst) {
  const std::vector<LineField> fields = {{"epoch 1", 9}, {"slow", 1}, {"loss 2", 5}, {"(ms)", 3, 1}};
  EXPECT_EQ(join(fields), "epoch 1  slow  loss 2 (ms)");
  EXPECT_EQ(fit(fields, 26), "epoch 1  slow  loss 2 (ms)");
  EXPECT_EQ(fit(fields, 25), "epoch 1  loss 2 (ms)");
  EXPECT_EQ(fit(fields, 19), "epoch 1  loss 2");
  EXPECT_EQ(fit(fields, 14), "epoch 1");
  EXPECT_EQ(fit(fields, 3), "epo");
}

TEST(ListOfTest, NeighboursAreARange) {
  EXPECT_EQ(list_of("rank", {3}), "rank 3");
  EXPECT_EQ(list_of("rank", {0, 1, 2, 5, 7, 8}), "ranks 0-2, 5, 7-8");
}

}  // namespace
}  // namespace lockstep
