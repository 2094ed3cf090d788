// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Numbers and truth values are read whole and exact or not at all.
#include "common/yaml/scalar.hpp"

#include "common/yaml/strict_yaml.hpp"

#include <gtest/gtest.h>

#include <limits>

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

}  // namespace
}  // namespace lockstep
