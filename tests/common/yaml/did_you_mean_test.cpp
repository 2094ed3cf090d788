// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Guesses at misspelt words, and words of strangers in messages.
#include "common/yaml/strict_yaml.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"epochs", "seed", "optimizer", "global_batch", "lr"};

std::string guess(const std::string& word) {
  return did_you_mean(word, kNames);
}

TEST(DidYouMeanTest, NearestNameIsSuggested) {
  EXPECT_EQ(guess("epoch"), " (did you mean 'epochs'?)");
  EXPECT_EQ(guess("optimiser"), " (did you mean 'optimizer'?)");
  EXPECT_EQ(guess("opitmizre"), " (did you mean 'optimizer'?)");
  EXPECT_EQ(guess("lrr"), " (did you mean 'lr'?)");
}

TEST(DidYouMeanTest, CaseAndDashesDoNotCount) {
  EXPECT_EQ(guess("Global-Batch"), " (did you mean 'global_batch'?)");
  EXPECT_EQ(guess("SEED"), " (did you mean 'seed'?)");
}

TEST(DidYouMeanTest, PartOfANameIsEnough) {
  EXPECT_EQ(guess("batch"), " (did you mean 'global_batch'?)");
}

TEST(DidYouMeanTest, DistantWordsGetNoSuggestion) {
  EXPECT_EQ(guess("colour"), "");
  EXPECT_EQ(guess(""), "");
  EXPECT_EQ(guess("x"), "");
  EXPECT_EQ(guess(std::string(1'000'000, 'e')), "");
}

TEST(DidYouMeanTest, NoCandidatesGiveNoSuggestion) {
  EXPECT_EQ(did_you_mean("epochs", {}), "");
}

TEST(QuotedTest, ControlCharactersAreEscaped) {
  EXPECT_EQ(quoted_text("a\nb\x1b[0m"), "'a\\x0ab\\x1b[0m'");
  EXPECT_EQ(quoted_text("\xc2\x9b"), "'\\x9b'");
  EXPECT_EQ(quoted_text("\xc3\xa9"), "'\xc3\xa9'");
  // NOLINTNEXTLINE(misc-misleading-bidirectional): that is what is tested
  EXPECT_EQ(quoted_text("\xff\xe2\x80\xae"), "'\\xff\\u202e'");
}

TEST(PrintableTest, TerminalObeysNothingThatIsShown) {
  EXPECT_EQ(printable("a\nb\tc"), "a\nb\tc");
  EXPECT_EQ(printable_line("a\nb\tc"), "a\\x0ab\\x09c");
  EXPECT_EQ(printable("\x1b]0;title\x07\r\x7f\xc2\x9b"), "\\x1b]0;title\\x07\\x0d\\x7f\\x9b");
  // NOLINTNEXTLINE(misc-misleading-bidirectional)
  for (const char* mark : {"\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x80\x8f", "\xe2\x80\xa8", "\xef\xbb\xbf"})
    EXPECT_EQ(printable(mark).front(), '\\') << mark;
  EXPECT_EQ(printable("\xc3\xa9 \xe6\xbc\xa2 \xf0\x9f\x98\x80"), "\xc3\xa9 \xe6\xbc\xa2 \xf0\x9f\x98\x80");
  EXPECT_EQ(printable("\xc3(\xed\xa0\x80\xc0\x80"), "\\xc3(\\xed\\xa0\\x80\\xc0\\x80")
      << "bytes that are not UTF-8";
}

TEST(QuotedTest, LongTextIsClippedBetweenCharacters) {
  EXPECT_EQ(quoted_text(std::string(60, 'a')), "'" + std::string(60, 'a') + "'");
  EXPECT_EQ(quoted_text(std::string(1000, 'a')), "'" + std::string(60, 'a') + "...'");
  EXPECT_EQ(quoted_text(std::string(59, 'a') + "\xc3\xa9z"), "'" + std::string(59, 'a') + "...'");
}

}  // namespace
}  // namespace lockstep
