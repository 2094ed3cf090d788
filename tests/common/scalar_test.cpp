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
  EXPECT_EQ(parse_byte_count("18014398509481983KiB"), 18446744073709550592U);
  for (const char* text :
       {"", "KiB", "64kb", "64KB", "64 ", "1.5MiB", "-1KiB", "64  KiB", "18014398509481984KiB"}) {
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
  EXPECT_EQ(format_yaml_text("/aAzZ09_.-"), "/aAzZ09_.-");
  for (const std::string text : {"9a", "_a", ".a", "-a", "a:", "a b", "YES", "n", "~", "null", "\xc3\xa9"})
    EXPECT_EQ(format_yaml_text(text), '"' + text + '"');
  EXPECT_EQ(format_yaml_text("a\"\\"), R"("a\"\\")");
}

TEST(ScalarTest, ANumberThatFp32DoesNotHaveIsExplained) {
  EXPECT_EQ(fp32_hint("1e-46"), ", which is 0 as fp32, whose smallest number is 1.4e-45");
  EXPECT_EQ(fp32_hint("0.999999999"), ", which is 1 as fp32, whose largest number below 1 is 0.99999994");
  for (const char* text : {"0", "1", "1.000000001", "0.5", "2", "1e-45", "x"})
    EXPECT_EQ(fp32_hint(text), "") << text;
}

// Guesses at misspelt words, and words of strangers in messages.

/// Up to a third of the letters may be wrong; or one is a part of the other.
TEST(DidYouMeanTest, TheNearestNameIsSuggested) {
  constexpr std::array<std::string_view, 5> kNames = {"epochs", "seed", "optimizer", "global_batch", "lr"};
  const std::map<std::string, std::vector<std::string>> meant = {
      {"epochs", {"epoch"}},
      {"optimizer", {"optimiser", "opitmizre", "optimxxxr"}},
      {"lr", {"lrr"}},
      {"global_batch", {"Global-Batch", "batch", "glob"}},
      {"seed", {"SEED", "my_seed_value"}}};
  for (const auto& [name, words] : meant)
    for (const std::string& word : words)
      EXPECT_EQ(did_you_mean(word, kNames), " (did you mean '" + name + "'?)") << word;
  for (const std::string& word : {std::string("lxx"), std::string("optixxxxr"), std::string("opitmziexx"),
                                  std::string("glo"), std::string("my_lr_value"), std::string("colour"),
                                  std::string(), std::string("x"), std::string(1'000'000, 'e')})
    EXPECT_EQ(did_you_mean(word, kNames), "") << word.substr(0, 12);
  EXPECT_EQ(did_you_mean("epochs", {}), "");
  EXPECT_EQ(did_you_mean("epochs" + std::string(58, '_'), kNames), " (did you mean 'epochs'?)");
  EXPECT_EQ(did_you_mean("epochs" + std::string(59, '_'), kNames), "") << "no key has 65 letters";
  EXPECT_EQ(did_you_mean("my_run_value", std::array<std::string_view, 1>{"run"}), "") << "in many words";
}

TEST(QuotedTest, ControlCharactersAreEscaped) {
  EXPECT_EQ(quoted_text("a\nb\x1b[0m"), "'a\\x0ab\\x1b[0m'");
  EXPECT_EQ(quoted_text("\xc2\x9b"), "'\\x9b'");
  EXPECT_EQ(quoted_text("\xc3\xa9"), "'\xc3\xa9'");
  // NOLINTNEXTLINE(misc-misleading-bidirectional): that is what is tested
  EXPECT_EQ(quoted_text("\xff\xe2\x80\xae"), "'\\xff\\u202e'");
}

std::string utf8(char32_t code) {
  const auto byte = [](char32_t value) { return static_cast<char>(static_cast<unsigned char>(value)); };
  const auto rest = [&](int shift) {
    return byte(0x80U | ((static_cast<std::uint32_t>(code) >> shift) & 0x3FU));
  };
  if (code < 0x80) return {byte(code)};
  if (code < 0x800) return {byte(0xC0U | code >> 6U), rest(0)};
  if (code < 0x10000) return {byte(0xE0U | code >> 12U), rest(6), rest(0)};
  return {byte(0xF0U | code >> 18U), rest(12), rest(6), rest(0)};
}

TEST(PrintableTest, CharactersAreReadAtTheEdgesOfTheirLengths) {
  for (const char32_t code : {0x00, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF}) {
    const std::string text = "a" + utf8(code);
    EXPECT_EQ(decode_utf8(text, 1).value, code);
    EXPECT_EQ(decode_utf8(text, 1).bytes, text.size() - 1);
    EXPECT_EQ(decode_utf8(text + "b", 1).bytes, text.size() - 1);
  }
  for (const std::string bad :
       {"\x80", "\xc1\xbf", "\xc3", "\xc3(", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xed\xbf\xbf",
        "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf9\x80\x80\x80", "\xe2\x82"})
    EXPECT_EQ(decode_utf8(bad, 0).bytes, 0U) << quoted_text(bad);
}

TEST(PrintableTest, WhatDeceivesIsEscapedAndItsNeighboursAreNot) {
  for (const std::uint32_t code : {0x61CU, 0x180EU, 0x200BU, 0x200EU, 0x200FU, 0x2028U, 0x202EU, 0x2060U,
                                   0x206FU, 0xFEFFU, 0xFFF9U, 0xFFFBU, 0xE0000U, 0xE0FFFU})
    EXPECT_EQ(printable(utf8(code)), fmt::format("\\u{:04x}", code));
  for (const std::uint32_t code : {0x01U, 0x08U, 0x0BU, 0x1FU, 0x7FU, 0x80U, 0x9FU})
    EXPECT_EQ(printable(utf8(code)), fmt::format("\\x{:02x}", code));
  for (const std::uint32_t code :
       {0x20U,   0x7EU,   0xA0U,   0x61BU,  0x61DU,  0x180DU, 0x180FU, 0x200AU, 0x200CU,  0x200DU, 0x2010U,
        0x2027U, 0x202FU, 0x205FU, 0x2070U, 0xFEFEU, 0xFF00U, 0xFFF8U, 0xFFFCU, 0xDFFFFU, 0xE1000U})
    EXPECT_EQ(printable(utf8(code)), utf8(code)) << code;
}

TEST(PrintableTest, SpacesAroundATextGo) {
  EXPECT_EQ(trimmed(" \ta b\t\r"), "a b");
  EXPECT_EQ(trimmed("a"), "a");
  EXPECT_EQ(trimmed(" \t\r\n\f\v"), "");
  EXPECT_EQ(in_small_letters("@AZ[`az{\xc3\x84"), "@az[`az{\xc3\x84");
}

TEST(PrintableTest, SpreadsheetComputesNoText) {
  for (const char* text : {"", "a=1", "1+1", "-1", "+1", "-2.5e3", "+2.5e3", "'=1"})
    EXPECT_EQ(without_formula(text), text);
  for (const std::string text :
       {"=1+1", "=1", "@1", "+-1", "-+1", "+1+1", "-1+cmd", "@sum", "-", "+", "-a.png"})
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
  EXPECT_EQ(quoted_text(std::string(100, '\x80')), "'...'");
}

TEST(QuotedTest, AShellReadsAWordBack) {
  EXPECT_EQ(shell_word("run.dir=runs/a-1_2@x,y:z+%"), "run.dir=runs/a-1_2@x,y:z+%");
  EXPECT_EQ(shell_word("runs/a b'c"), "'runs/a b'\\''c'");
  EXPECT_EQ(shell_word("a''b"), "'a'\\'''\\''b'");
  EXPECT_EQ(shell_word(""), "''");
}

}  // namespace

}  // namespace lockstep
