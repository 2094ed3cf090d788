// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What strict YAML accepts, and what it refuses with which position.
#include "common/yaml/strict_yaml.hpp"

#include "tests/common/yaml/config_error_of.hpp"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::strict_yaml_test {
namespace {

std::string error_of(const std::string& yaml) {
  return config_error_of([&] { load_strict_yaml(yaml, "job.yaml"); });
}

TEST(StrictYamlTest, PlainDocumentIsRead) {
  const YAML::Node node = load_strict_yaml("a: 1\nb: {c: [x, 'y']}\n", "job.yaml");
  EXPECT_EQ(node["a"].Scalar(), "1");
  EXPECT_EQ(node["b"]["c"][1].Scalar(), "y");
}

TEST(StrictYamlTest, TagTellsPlainFromQuoted) {
  const YAML::Node node = load_strict_yaml("{plain: 1, single: '1', double: \"1\"}", "job.yaml");
  EXPECT_EQ(node["plain"].Tag(), "?");
  EXPECT_EQ(node["single"].Tag(), "!");
  EXPECT_EQ(node["double"].Tag(), "!");
}

TEST(StrictYamlTest, EmptyTextIsNull) {
  EXPECT_TRUE(load_strict_yaml("", "job.yaml").IsNull());
  EXPECT_TRUE(load_strict_yaml("# only a comment\n", "job.yaml").IsNull());
}

TEST(StrictYamlTest, ByteOrderMarkAndCrlfAreAccepted) {
  const YAML::Node node = load_strict_yaml(
      "\xEF\xBB\xBF"
      "a: 1\r\nb: 2\r\n",
      "job.yaml");
  EXPECT_EQ(node["a"].Scalar(), "1");
  EXPECT_EQ(node["b"].Scalar(), "2");
}

TEST(StrictYamlTest, OneDocumentMarkerIsAccepted) {
  EXPECT_EQ(load_strict_yaml("---\na: 1\n...\n", "job.yaml")["a"].Scalar(), "1");
}

TEST(StrictYamlTest, SyntaxErrorNamesLineAndColumn) {
  EXPECT_EQ(error_of("a: 1\nb: [1, 2\n"), "job.yaml:3:1: not valid YAML: end of sequence flow not found");
  EXPECT_EQ(error_of("a: b: c\n"), "job.yaml:1:5: not valid YAML: illegal map value");
}

TEST(StrictYamlTest, TabInTheIndentationIsNamed) {
  for (const char* yaml : {"a:\n\tb: 1\n", "a:\n\tb: 1\n\tc: 2\n", "a:\n  b: 1\n\tc: 2\n"}) {
    const std::string error = error_of(yaml);
    EXPECT_TRUE(error.ends_with("a tab in the indentation; YAML takes spaces only")) << error;
  }
  EXPECT_EQ(error_of("a:\n  b: 1\n \tc: 2\n"),
            "job.yaml:3:2: a tab in the indentation; YAML takes spaces only");
  EXPECT_EQ(load_strict_yaml("a:\t1\n", "job.yaml")["a"].Scalar(), "1") << "behind a key it does no harm";
}

TEST(StrictYamlTest, AnchorIsRefused) {
  EXPECT_EQ(error_of("a: 1\nb: &x 2\n"), "job.yaml:2:4: anchors (&name) are not accepted; remove '&x'");
  EXPECT_EQ(error_of("a: &x\n"), "job.yaml:1:4: anchors (&name) are not accepted; remove '&x'");
  EXPECT_EQ(error_of("&x a: 1\n"), "job.yaml:1:1: anchors (&name) are not accepted; remove '&x'");
}

TEST(StrictYamlTest, AliasIsRefused) {
  EXPECT_EQ(error_of("a: *x\n"), "job.yaml:1:4: not valid YAML: the referenced anchor is not defined");
}

TEST(StrictYamlTest, AliasBombIsRefusedAtItsFirstAnchor) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 20; ++i) {
    const std::string alias = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + alias + ", " + alias + ", " +
            alias + "]\n";
  }
  EXPECT_EQ(error_of(bomb), "job.yaml:1:5: anchors (&name) are not accepted; remove '&a0'");
}

TEST(StrictYamlTest, TagIsRefused) {
  const std::string cause = "tags (!name) are not accepted; write the plain value";
  EXPECT_EQ(error_of("a: !!int 3\n"), "job.yaml:1:4: " + cause);
  EXPECT_EQ(error_of("a: !own {b: 1}\n"), "job.yaml:1:4: " + cause);
  EXPECT_EQ(error_of("a: ! 3\n"), "job.yaml:1:4: " + cause);
  EXPECT_EQ(error_of("\xEF\xBB\xBF"
                     "a: ! 3\n"),
            "job.yaml:1:4: " + cause);
  EXPECT_EQ(error_of("a: ! [3]\n"), "job.yaml:1:4: " + cause);
  EXPECT_EQ(error_of("!x a: 3\n"), "job.yaml:1:1: " + cause);
}

TEST(StrictYamlTest, SecondDocumentIsRefused) {
  const std::string cause = "a second document starts here; keep one document in a file";
  EXPECT_EQ(error_of("a: 1\n---\nb: 2\n"), "job.yaml:2:1: " + cause);
  EXPECT_EQ(error_of("a: 1\n---\n"), "job.yaml:2:1: " + cause);
  EXPECT_EQ(error_of("---\n---\n"), "job.yaml:2:1: " + cause);
}

TEST(StrictYamlTest, TextAfterTheDocumentIsRefused) {
  const std::string cause =
      "this does not belong to what stands before it; check quotes, brackets and indentation";
  EXPECT_EQ(error_of("[a, b] c\n"), "job.yaml:1:8: " + cause);
  EXPECT_EQ(error_of("a: 1\n...\nb: 2\n"), "job.yaml:3:1: " + cause);
}

TEST(StrictYamlTest, DuplicateKeyIsRefusedAtAnyDepth) {
  EXPECT_EQ(error_of("a: 1\nb: 2\na: 3\n"),
            "job.yaml:3:1: key 'a' is given twice (first on line 1); remove one");
  EXPECT_EQ(error_of("a: {b: 1,\n 'b': 2}\n"),
            "job.yaml:2:2: key 'b' is given twice (first on line 1); remove one");
}

TEST(StrictYamlTest, SameKeyInTwoMapsIsFine) {
  EXPECT_EQ(load_strict_yaml("a: {x: 1}\nb: {x: 2}\nx: 3\n", "job.yaml")["b"]["x"].Scalar(), "2");
}

TEST(StrictYamlTest, KeyThatIsNotTextIsRefused) {
  EXPECT_EQ(error_of("? [a, b]\n: 1\n"), "job.yaml:1:3: a key must be text, not a list or a map");
  EXPECT_EQ(error_of("{{a: 1}: 2}\n"), "job.yaml:1:2: a key must be text, not a list or a map");
  EXPECT_EQ(error_of("~: 1\n"), "job.yaml:1:1: a key is missing or null; write 'key: value'");
}

TEST(StrictYamlTest, MessageQuotesKeysOnOneLine) {
  EXPECT_EQ(error_of("\"a\\nb\": 1\n\"a\\nb\": 2\n"),
            "job.yaml:2:1: key 'a\\x0ab' is given twice (first on line 1); remove one");
}

}  // namespace
}  // namespace lockstep::strict_yaml_test
