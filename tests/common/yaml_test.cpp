// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Strict YAML: texts that it accepts, and positions of those that it refuses.
#include "common/yaml.hpp"

#include "common/error.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/temporary_directory.hpp"

#include <unistd.h>

namespace lockstep::strict_yaml_test {

namespace {

std::string error_of(const std::string& yaml) {
  return message_of<ConfigError>([&] { load_strict_yaml(yaml, "job.yaml"); });
}

YAML::Node node_of(const std::string& yaml) {
  return load_strict_yaml(yaml, "job.yaml");
}

TEST(StrictYamlTest, PlainDocumentsAreRead) {
  EXPECT_EQ(node_of("a: 1\nb: {c: [x, 'y']}\n")["b"]["c"][1].Scalar(), "y");
  EXPECT_EQ(node_of("a: {x: 1}\nb: {x: 2}\nx: 3\n")["b"]["x"].Scalar(), "2") << "a key of several maps";
  EXPECT_TRUE(node_of("").IsNull());
  EXPECT_TRUE(node_of("# only a comment\n").IsNull());
  EXPECT_EQ(node_of("\xEF\xBB\xBF"
                    "a: 1\r\nb: 2\r\n")["b"]
                .Scalar(),
            "2");
  EXPECT_EQ(node_of("---\na: 1\n...\n")["a"].Scalar(), "1");
  EXPECT_EQ(node_of("a:\t1\n")["a"].Scalar(), "1") << "behind a key a tab does no harm";
}

TEST(StrictYamlTest, TagTellsPlainFromQuoted) {
  const YAML::Node node = node_of("{plain: 1, single: '1', double: \"1\"}");
  EXPECT_EQ(node["plain"].Tag(), "?");
  EXPECT_EQ(node["single"].Tag(), "!");
  EXPECT_EQ(node["double"].Tag(), "!");
}

TEST(StrictYamlTest, WhatIsRefusedIsNamedWithItsPlace) {
  const std::string invalid = ": not valid YAML: ",
                    tab = ": a tab in the indentation; YAML takes spaces only",
                    anchor = ": anchors (&name) are not accepted; remove '&x'",
                    tag = ": tags (!name) are not accepted; write the plain value",
                    second = ": a second document starts here; keep one document in a file",
                    rest = ": this does not fit the text before it; check quotes, brackets and indentation",
                    twice = " is given twice (first on line 1); remove one",
                    no_text = ": a key must be text, not a list or a map";
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"a: 1\nb: [1, 2\n", "3:1" + invalid + "end of sequence flow not found"},
      {"a: b: c\n", "1:5" + invalid + "illegal map value"},
      {"a: *x\n", "1:4" + invalid + "the referenced anchor is not defined"},
      {"a:\n  b: 1\n \tc: 2\n", "3:2" + tab},
      {"a: 1\nb: &x 2\n", "2:4" + anchor},
      {"a: &x\n", "1:4" + anchor},
      {"&x a: 1\n", "1:1" + anchor},
      {"a: !!int 3\n", "1:4" + tag},
      {"a: !own {b: 1}\n", "1:4" + tag},
      {"a: ! 3\n", "1:4" + tag},
      {"\xEF\xBB\xBF"
       "a: ! 3\n",
       "1:4" + tag},
      {"a: ! [3]\n", "1:4" + tag},
      {"!x a: 3\n", "1:1" + tag},
      {"a: 1\n---\nb: 2\n", "2:1" + second},
      {"a: 1\n---\n", "2:1" + second},
      {"---\n---\n", "2:1" + second},
      {"[a, b] c\n", "1:8" + rest},
      {"a: 1\n...\nb: 2\n", "3:1" + rest},
      {"a: 1\nb: 2\na: 3\n", "3:1: key 'a'" + twice},
      {"a: {b: 1,\n 'b': 2}\n", "2:2: key 'b'" + twice},
      {"\"a\\nb\": 1\n\"a\\nb\": 2\n", "2:1: key 'a\\x0ab'" + twice},
      {"? [a, b]\n: 1\n", "1:3" + no_text},
      {"{{a: 1}: 2}\n", "1:2" + no_text},
      {"~: 1\n", "1:1: a key is missing or null; write 'key: value'"}};
  for (const auto& [yaml, said] : rows) EXPECT_EQ(error_of(yaml), "job.yaml:" + said);
  for (const char* yaml : {"a:\n\tb: 1\n", "a:\n\tb: 1\n\tc: 2\n", "a:\n  b: 1\n\tc: 2\n"})
    EXPECT_TRUE(error_of(yaml).ends_with(tab)) << error_of(yaml);
}

TEST(StrictYamlTest, AliasBombIsRefusedAtItsFirstAnchor) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 20; ++i) bomb += fmt::format("a{0}: &a{0} [*a{1}, *a{1}, *a{1}]\n", i, i - 1);
  EXPECT_EQ(error_of(bomb), "job.yaml:1:5: anchors (&name) are not accepted; remove '&a0'");
}

// Hostile sizes, depths and bytes: refused with a position, on a small stack, before they cost anything.

std::string repeated(const std::string& piece, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += piece;
  return text;
}

TEST(StrictYamlLimitsTest, OneMebibyteIsReadAndOneByteMoreIsNot) {
  const std::string key = "a: 1\n#";
  const std::string full = key + std::string(kMaxYamlBytes - key.size(), 'x');
  EXPECT_EQ(node_of(full)["a"].Scalar(), "1");
  EXPECT_EQ(error_of(full + "x"), "job.yaml:1:1: more than 1048576 bytes; is this the right file?");
}

TEST(StrictYamlLimitsTest, ThirtyTwoLevelsAreReadAndOneMoreIsNot) {
  EXPECT_TRUE(node_of(repeated("[", 32) + repeated("]", 32)).IsSequence());
  EXPECT_EQ(error_of(repeated("[", 33) + repeated("]", 33)), "job.yaml:1:33: more than 32 levels of nesting");
}

TEST(StrictYamlLimitsTest, DepthBombsOfEveryKindAreRefused) {
  const std::string cause = "more than 32 levels of nesting";
  EXPECT_EQ(error_of(repeated("- ", 500'000)), "job.yaml:1:65: " + cause);
  EXPECT_EQ(error_of(repeated("{a: ", 5000) + repeated("}", 5000)), "job.yaml:1:129: " + cause);
  EXPECT_EQ(error_of(repeated("[", 5000) + repeated("]", 5000)), "job.yaml:1:33: " + cause);
  EXPECT_EQ(error_of(repeated("[", 1'000'000)), "job.yaml:1:10001: more than 10000 brackets");
  EXPECT_EQ(error_of("a: 1\n" + repeated("[{", 500'000)), "job.yaml:2:10001: more than 10000 brackets");
  EXPECT_EQ(error_of(repeated("? ", 500'000)), "job.yaml:1:3: a key must be text, not a list or a map");
}

TEST(StrictYamlLimitsTest, BlockMapsCountAsLevels) {
  std::string deep;
  for (int i = 0; i < 40; ++i) deep += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  EXPECT_EQ(error_of(deep), "job.yaml:33:33: more than 32 levels of nesting");
}

TEST(StrictYamlLimitsTest, BytesThatAreNotTextAreRefusedWithTheirPlace) {
  const std::string fix = "; a YAML file is plain UTF-8 text";
  EXPECT_EQ(error_of(std::string("a: 1\nb: \0", 9)), "job.yaml:2:4: a NUL byte" + fix);
  for (const std::string bytes :
       {"\xff", "\xc0\xaf", "\xe0\x80\xaf",               // the last two overlong
        "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"})  // surrogate, above U+10FFFF, cut off
    EXPECT_EQ(error_of("a: " + bytes), "job.yaml:1:4: bytes that are not UTF-8" + fix);
  EXPECT_EQ(error_of("a: \x1b[31m\n"), "job.yaml:1:4: a control character" + fix);
  EXPECT_EQ(error_of("a: \xc2\x9b\n"), "job.yaml:1:4: a control character" + fix);
  EXPECT_EQ(error_of("a: 1\rb: 2\n"), "job.yaml:1:5: a carriage return without a line feed" + fix);
  EXPECT_EQ(error_of("a: \xef\xbf\xbf\n"), "job.yaml:1:4: a code point that is not a character" + fix);
  EXPECT_EQ(error_of("\xef\xbb\xbf\xef\xbb\xbf"), "job.yaml:1:1: a second byte order mark" + fix);
}

/// yaml-cpp takes byte 4 for the end of the file: what follows would be dropped without a word.
TEST(StrictYamlLimitsTest, EndOfTransmissionDoesNotHideTheRest) {
  EXPECT_EQ(error_of("a: 1\n\x04\nb: 2\n"),
            "job.yaml:2:1: a control character; a YAML file is plain UTF-8 text");
}

TEST(StrictYamlLimitsTest, LettersOfTheWorldAreText) {
  const std::string word = "d\xc3\xa9j\xc3\xa0 \xe6\x97\xa5 \xf0\x9f\x99\x82";
  EXPECT_EQ(node_of("a: " + word)["a"].Scalar(), word);
}

TEST(StrictYamlLimitsTest, EndlessFileIsReadOnlyUpToTheLimit) {
  EXPECT_EQ(read_yaml_file("/dev/zero").size(), kMaxYamlBytes + 1);
}

TEST(StrictYamlLimitsTest, MissingFileAndDirectoryAreToldApart) {
  const testing::TemporaryDirectory directory;
  const std::string none = directory.path("none.yaml");
  EXPECT_EQ(message_of<MissingDataError>([&] { read_yaml_file(none); }),
            none + ": no such file; check the path");
  EXPECT_EQ(message_of<IoError>([&] { read_yaml_file(directory.path()); }),
            directory.path() + ": cannot be read: Is a directory");
  std::ofstream(none) << "a: 1";
  EXPECT_EQ(read_yaml_file(none), "a: 1");
  EXPECT_EQ(message_of<IoError>([&] { read_yaml_file(none + "/a"); }),
            none + "/a: cannot be opened: Not a directory");
}

TEST(StrictYamlLimitsTest, APipeIsReadToItsEnd) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const std::string path = "/proc/self/fd/" + std::to_string(ends[0]);
  ASSERT_EQ(::write(ends[1], "a: 1", 4), 4);
  ::close(ends[1]);
  EXPECT_EQ(read_yaml_file(path), "a: 1");
  ::close(ends[0]);
}

}  // namespace

}  // namespace lockstep::strict_yaml_test
