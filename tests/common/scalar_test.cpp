// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Numbers and truth values are read whole and exact or not at all.
#include "common/yaml.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep {

namespace {

TEST(ScalarTest, IntegersAreExactUpToTheirLimits) {
  EXPECT_EQ(parse_int64("0"), 0);
  EXPECT_EQ(parse_int64("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(parse_int64("9223372036854775808"), std::nullopt);
  EXPECT_EQ(parse_uint64("18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(parse_uint64("18446744073709551616"), std::nullopt);
  EXPECT_EQ(parse_uint64("-1"), std::nullopt);
}

TEST(ScalarTest, WhatOnlyLooksLikeAnIntegerIsRefused) {
  for (const char* text :
       {"", "-", "+1", "1 ", " 1", "1e3", "1.0", "0x10", "010", "-01", "1_000", "1,000", "abc", "--1"}) {
    EXPECT_EQ(parse_int64(text), std::nullopt) << text;
  }
}

TEST(ScalarTest, RealNumbersAreFinite) {
  EXPECT_EQ(parse_double("1e-3"), 1e-3);
  EXPECT_EQ(parse_double("-0.5"), -0.5);
  for (const char* text : {"", "inf", "-inf", "nan", ".inf", "1e999", "0x1p3", "1.0f", "1,5", "one"}) {
    EXPECT_EQ(parse_double(text), std::nullopt) << text;
  }
}

TEST(ScalarTest, TruthHasThreeNames) {
  for (const char* text : {"true", "yes", "on"}) EXPECT_EQ(parse_bool(text), true) << text;
  for (const char* text : {"false", "no", "off"}) EXPECT_EQ(parse_bool(text), false) << text;
  for (const char* text : {"", "1", "0", "y", "True!", "maybe"})
    EXPECT_EQ(parse_bool(text), std::nullopt) << text;
}

TEST(ScalarTest, ByteCountsKnowBinaryUnits) {
  EXPECT_EQ(parse_byte_count("65536"), 65536U);
  EXPECT_EQ(parse_byte_count("64KiB"), 65536U);
  EXPECT_EQ(parse_byte_count("64 KiB"), 65536U);
  EXPECT_EQ(parse_byte_count("25MiB"), 26214400U);
  EXPECT_EQ(parse_byte_count("1GiB"), 1073741824U);
  for (const char* text :
       {"", "KiB", "64kb", "64KB", "1.5MiB", "-1KiB", "64  KiB", "18446744073709551615KiB"}) {
    EXPECT_EQ(parse_byte_count(text), std::nullopt) << text;
  }
}

TEST(ScalarTest, DoublesComeBackUnchanged) {
  for (const double value : {0.1, 1.0 / 3, 1e-308, 5e-324, 1e300, -0.0, 123456789.0, 1e22}) {
    EXPECT_EQ(parse_double(format_double(value)), value);
  }
}

TEST(ScalarTest, TextComesBackUnchangedFromYaml) {
  for (const char* text :
       {"",   "net", "null", "Null", "~",   "off", "a: b",        "a #b",  "#",
        "\"", "\\",  "'",    "[x]",  "{",   "-",   "- a",         "*a",    "&a",
        "!a", "%",   "@",    "`",    " a ", "1e3", "caf\xc3\xa9", "a\\nb", "/data/x-y_z.bin"}) {
    const YAML::Node node = load_strict_yaml("k: " + format_yaml_text(text), "text");
    EXPECT_TRUE(node["k"].IsScalar()) << text;
    EXPECT_EQ(node["k"].Scalar(), text);
  }
}

TEST(ScalarTest, WordsThatOtherReadersTakeForBooleansAreQuoted) {
  EXPECT_EQ(format_yaml_text("off"), "\"off\"");
  EXPECT_EQ(format_yaml_text("world"), "world");
}

// Guesses at misspelt words, and words of strangers in messages.

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

TEST(PrintableTest, SpreadsheetComputesNoText) {
  for (const char* text : {"", "a=1", "1+1", "-1", "-2.5e3", "'=1"}) EXPECT_EQ(without_formula(text), text);
  for (const std::string text : {"=1+1", "+1", "-1+cmd", "@sum", "-", "-a.png"})
    EXPECT_EQ(without_formula(text), "'" + text);
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
