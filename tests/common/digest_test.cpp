// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Digests, and JSON as text.
#include "common/digest.hpp"

#include "common/json_text.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep {
namespace {

std::span<const std::byte> text_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST(Sha256Test, KnownDigests) {
  EXPECT_EQ(hex(sha256({})), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha256(text_bytes("abc"))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256Test, PiecesGiveTheDigestOfTheWhole) {
  Sha256 hash;
  hash.update(text_bytes("a"));
  hash.update({});
  hash.update(text_bytes("bc"));
  EXPECT_EQ(hash.so_far(), sha256(text_bytes("abc")));
  EXPECT_EQ(hash.finish(), sha256(text_bytes("abc")));
}

TEST(Sha256Test, DigitsComeBackAsBytesOrAsZeros) {
  const Sha256Digest digest = sha256(text_bytes("abc"));
  const std::string digits = hex(digest);
  EXPECT_EQ(digest_of_hex(digits), digest);
  for (const std::string& wrong :
       {digits + "0", digits.substr(1), "g" + digits.substr(1), "B" + digits.substr(1)})
    EXPECT_EQ(digest_of_hex(wrong), Sha256Digest{}) << wrong;
}

TEST(QuickDigestTest, IsThatOfItsDefinition) {
  const auto digest = [](std::size_t size) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7);
    return quick_digest(bytes);
  };
  EXPECT_EQ(digest(0), "36be529c85cfa370904501f19319df7fd60b959252aa3d85736ab18b293d2049");
  EXPECT_EQ(digest(63), "ccf7ec83fb79a4e680e55100e709b0759c903fe8cf3f6f7eac405399d3db8a47");
  EXPECT_EQ(digest(64), "a6aa8d6d5d864aae0b4c419a54d453d7df23433b669682b99db2356ef767c301");
  EXPECT_EQ(digest(200), "3ae1dcb268e23b96f81c0b000fa2ae904329da9db0e30ae1fe627545d2dfd08e");
}

TEST(JsonTextTest, HasTheLayoutAndCharactersThatAreAskedFor) {
  const auto ordered = nlohmann::ordered_json::parse(R"({"b":1,"a":"\u00e9"})");
  EXPECT_EQ(json_text(ordered), "{\"b\":1,\"a\":\"\xc3\xa9\"}");
  EXPECT_EQ(json_text(ordered, 2), "{\n  \"b\": 1,\n  \"a\": \"\xc3\xa9\"\n}");
  EXPECT_EQ(json_text_in_ascii(ordered), R"({"b":1,"a":"\u00e9"})");
  EXPECT_EQ(json_text(nlohmann::json("\xff")), "\"\xEF\xBF\xBD\"");
  EXPECT_EQ(json_text(parse_json("[1, 2]")), "[1,2]");
  EXPECT_EQ(json_text(parse_json_or_discard("[1, 2]"), 1), "[\n 1,\n 2\n]");
  EXPECT_TRUE(parse_json_or_discard("[1,").is_discarded());
  EXPECT_THROW(parse_json("[1,"), nlohmann::json::parse_error);
}

}  // namespace
}  // namespace lockstep
