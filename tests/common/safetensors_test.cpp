// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The safetensors writer and reader: round trips, Python's files, and files that lie.
#include "common/safetensors.hpp"

#include "common/error.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/test_settings.hpp"

namespace lockstep {
namespace {

std::span<const std::byte> bytes_of(const std::vector<float>& values) {
  return std::as_bytes(std::span(values));
}

/// A file made of this header text and `data_bytes` bytes of data.
std::vector<std::byte> file_of(const std::string& header, std::size_t data_bytes) {
  std::vector<std::byte> file;
  for (int i = 0; i < 8; ++i) file.push_back(static_cast<std::byte>(header.size() >> (8 * i)));
  for (const char c : header) file.push_back(static_cast<std::byte>(c));
  file.resize(file.size() + data_bytes, std::byte{7});
  return file;
}

std::string refusal(std::vector<std::byte> file) {
  return message_of<DataError>([&] { SafetensorsFile::parse(std::move(file), "f.safetensors"); });
}

std::string refusal(const std::string& header, std::size_t data_bytes) {
  return refusal(file_of(header, data_bytes));
}

void expect_refused(const std::string& header, std::size_t data_bytes, const std::string& reason) {
  const std::string why = refusal(header, data_bytes);
  EXPECT_TRUE(why.starts_with("f.safetensors: ")) << why;
  EXPECT_TRUE(contains(why, {reason})) << header << "\nwas: " << why << "\nexpected: " << reason;
}

TEST(SafetensorsTest, RoundTripKeepsTensorsOrderAndMetadata) {
  const std::vector<float> w = {1, -2, 3, 0.5F, 0, 6}, b = {7};
  const TensorView tensors[] = {{"z.weight", "F32", {2, 3}, bytes_of(w)}, {"a.bias", "F32", {}, bytes_of(b)}};
  const std::vector<std::byte> bytes = write_safetensors(tensors, {{"step", "12"}});
  EXPECT_TRUE(contains(std::string(as_text(bytes)), {R"("__metadata__":{"step":"12"})"}));
  const auto file = SafetensorsFile::parse(bytes, "f");
  ASSERT_EQ(file.tensors().size(), 2U);
  EXPECT_EQ(file.tensors()[0].name, "z.weight");
  const TensorView& weight = file.require("z.weight", "F32", {2, 3});
  EXPECT_EQ(std::memcmp(weight.bytes.data(), w.data(), sizeof(float) * w.size()), 0);
  EXPECT_EQ(file.require("a.bias", "F32", {}).bytes.size(), sizeof(float));
}

TEST(SafetensorsTest, DataStartsAtAMultipleOfEightBytes) {
  const std::vector<float> w = {1};
  std::set<std::size_t> sizes;
  for (std::size_t length = 1; length < 20; ++length) {
    const TensorView tensor[] = {{std::string(length, 'n'), "F32", {1}, bytes_of(w)}};
    const std::size_t size = write_safetensors(tensor).size();
    EXPECT_EQ(size % 8, sizeof(float));
    sizes.insert(size);
  }
  EXPECT_EQ(*std::next(sizes.begin()) - *sizes.begin(), 8U) << "at the next one";
}

TEST(SafetensorsTest, EmptyFileHasNoTensors) {
  EXPECT_TRUE(SafetensorsFile::parse(write_safetensors({}), "f").tensors().empty());
}

TEST(SafetensorsTest, FileWrittenByPythonLoads) {
  const auto file = test::read_safetensors(test::source_path("tests/golden/python.safetensors"));
  const TensorView& weight = file.require("conv1.weight", "F32", {10, 1, 5, 5});
  for (std::size_t i = 0; i < 250; ++i) {
    float value = 0;
    std::memcpy(&value, weight.bytes.data() + i * sizeof value, sizeof value);
    ASSERT_EQ(value, static_cast<float>(i) / 8 - 3) << "element " << i;
  }
  std::int64_t counts[3] = {};
  std::memcpy(counts, file.require("counts", "I64", {3}).bytes.data(), sizeof counts);
  EXPECT_EQ(counts[2], std::int64_t{1} << 62);
  EXPECT_EQ(file.require("pixels", "U8", {7}).bytes[6], std::byte{6});
  EXPECT_EQ(file.require("scalar", "F64", {}).bytes.size(), 8U);
  EXPECT_TRUE(file.require("empty", "F32", {0, 3}).bytes.empty());
}

TEST(SafetensorsTest, RequireNamesTensorAndBothShapes) {
  const std::vector<float> w = {1, 2};
  const TensorView tensor[] = {{"fc.weight", "F32", {2}, bytes_of(w)}};
  const auto file = SafetensorsFile::parse(write_safetensors(tensor), "m.safetensors");
  EXPECT_EQ(message_of<DataError>([&] {
              file.require("fc.weight", "F32", {1, 2});
            }),
            "m.safetensors: tensor 'fc.weight' is F32 [2], but the model needs F32 [1, 2]");
  EXPECT_THROW(file.require("fc.bias", "F32", {2}), DataError);
  EXPECT_EQ(file.find("fc.bias"), nullptr);
}

TEST(SafetensorsTest, HeaderLengthBeyondTheFileIsRefused) {
  EXPECT_EQ(refusal(std::vector<std::byte>(7)),
            "f.safetensors: is 7 bytes long, too short for a safetensors file");
  EXPECT_TRUE(contains(refusal(std::vector<std::byte>(8)), {"does not start with '{'"}));
  std::vector<std::byte> file = file_of("{}", 0);
  file[7] = std::byte{0xFF};
  EXPECT_EQ(refusal(file),
            "f.safetensors: says its header takes 18374686479671623682 bytes, but the file has 2: damaged, "
            "truncated, "
            "or not a safetensors file");
}

TEST(SafetensorsTest, HeadersOfMoreThan100MillionBytesAreRefused) {
  const auto refusal_of = [](std::uint64_t header_bytes) {
    std::vector<std::byte> file(8 + 100'000'001);
    std::memcpy(file.data(), &header_bytes, sizeof header_bytes);
    return refusal(std::move(file));
  };
  EXPECT_TRUE(contains(refusal_of(100'000'000), {"does not start with '{'"}));
  EXPECT_TRUE(contains(refusal_of(100'000'001), {"says its header takes 100000001 bytes"}));
}

TEST(SafetensorsTest, WhatDoesNotFitTogetherIsABugOfTheWriter) {
  const std::vector<float> w = {1, 2};
  const auto expect_bug = [](const std::vector<TensorView>& tensors) {
    EXPECT_THROW(write_safetensors(tensors), InternalError);
  };
  expect_bug({{"a", "F32", {3}, bytes_of(w)}});
  expect_bug({{"a", "F33", {2}, bytes_of(w)}});
  expect_bug({{"a", "F32", {2}, bytes_of(w)}, {"a", "F32", {2}, bytes_of(w)}});
  expect_bug({{"__metadata__", "F32", {2}, bytes_of(w)}});
}

TEST(SafetensorsTest, DtypesHaveTheirBytes) {
  const auto bytes = [](const char* dtype) { return safetensors_tensor_bytes(dtype, {3, 5}).value_or(0); };
  for (const char* dtype : {"BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0"})
    EXPECT_EQ(bytes(dtype), 15U) << dtype;
  for (const char* dtype : {"I16", "U16", "F16", "BF16"}) EXPECT_EQ(bytes(dtype), 30U) << dtype;
  for (const char* dtype : {"I32", "U32", "F32"}) EXPECT_EQ(bytes(dtype), 60U) << dtype;
  for (const char* dtype : {"F64", "I64", "U64", "C64"}) EXPECT_EQ(bytes(dtype), 120U) << dtype;
  EXPECT_EQ(bytes("f32"), 0U);
  EXPECT_EQ(safetensors_tensor_bytes("F32", {}), 4U);
}

TEST(SafetensorsTest, HeaderThatIsNotAnObjectIsRefused) {
  expect_refused("[]", 0, "does not start with '{'");
  expect_refused(" {}", 0, "does not start with '{'");
  expect_refused("{", 0, "not JSON");
  expect_refused("{}x", 0, "not JSON");
  expect_refused("{\"\xff\":1}", 0, "not JSON");
}

TEST(SafetensorsTest, StructureOfAnotherKindIsRefused) {
  expect_refused(R"({"a":1})", 0, "a number");
  expect_refused(R"({"a":[1]})", 0, "an array");
  expect_refused(R"({"a":null})", 0, "null");
  expect_refused(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"more":1}})", 1, "an unknown field");
  expect_refused(R"({"a":{"dtype":"U8","shape":[1]}})", 1, "without dtype, shape or data_offsets");
  expect_refused(R"({"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1,
                 "is there twice");
  expect_refused(R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", 1, "a negative number");
  expect_refused(R"({"a":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}})", 1, "not a 64-bit integer");
  expect_refused(R"({"a":{"dtype":"U8","shape":[[1]],"data_offsets":[0,1]}})", 1, "an array");
  expect_refused(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0]}})", 1, "not two numbers");
  expect_refused(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}})", 1, "a number");
  expect_refused(R"({"a":true})", 0, "holds a boolean at tensor 'a', which has no place");
  expect_refused(R"({"a":{"dtype":1}})", 0, "holds a number at tensor 'a'");
  expect_refused(R"({"a":{"shape":"U8"}})", 0, "holds a string at tensor 'a'");
  expect_refused(R"({"a":{"shape":{}}})", 0, "holds an object at tensor 'a'");
  const std::string whole = R"({"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]},)";
  expect_refused(whole + R"("b":1})", 1, "holds a number at tensor 'b'");
  expect_refused(whole + R"("__metadata__":{"c":1}})", 1, "holds a number at tensor 'c'");
  expect_refused(R"({"__metadata__":{"a":1}})", 0, "holds a number at tensor 'a'");
  expect_refused(R"({"__metadata__":{"a":"x","a":"y"}})", 0, "a second value");
  expect_refused(R"({"__metadata__":{},"__metadata__":{}})", 0, "a second __metadata__");
}

TEST(SafetensorsTest, TypesAndSizesThatDoNotAgreeAreRefused) {
  expect_refused(R"({"a":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}})", 4, "unknown dtype 'F33'");
  expect_refused(R"({"a":{"dtype":"0123456789abcdefgh","shape":[1],"data_offsets":[0,4]}})", 4,
                 "unknown dtype '0123456789abcdef'");
  expect_refused(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4, "do not hold the 8 bytes");
  expect_refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4, "do not hold the 4 bytes");
  expect_refused(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0,
                 "too large");
  expect_refused(R"({"a":{"dtype":"U8","shape":[18446744073709551616],"data_offsets":[0,0]}})", 0,
                 "not a 64-bit");
}

TEST(SafetensorsTest, ThirtyTwoDimensionsAreReadAndOneMoreIsNot) {
  const auto header = [](int dimensions) {
    std::string ones = "1";
    for (int i = 1; i < dimensions; ++i) ones += ",1";
    return R"({"a":{"dtype":"U8","shape":[)" + ones + R"(],"data_offsets":[0,1]}})";
  };
  EXPECT_EQ(SafetensorsFile::parse(file_of(header(32), 1), "f").tensors()[0].shape.size(), 32U);
  expect_refused(header(33), 1, "more dimensions than any tensor has");
}

TEST(SafetensorsTest, TensorsAreInTheOrderOfTheirData) {
  const auto file = SafetensorsFile::parse(
      file_of(
          R"({"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]},"c":{"dtype":"U8","shape":[0],"data_offsets":[1,1]},)"
          R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
          3),
      "f");
  std::string names;
  for (const TensorView& tensor : file.tensors()) names += tensor.name + std::to_string(tensor.bytes.size());
  EXPECT_EQ(names, "a1c0b2");
  EXPECT_EQ(file.find("b"), &file.tensors()[2]);
}

TEST(SafetensorsTest, OverlapHoleAndLeftoverAreRefused) {
  const std::string a = R"("a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]})";
  expect_refused("{" + a + R"(,"b":{"dtype":"U8","shape":[2],"data_offsets":[3,5]}})", 5, "overlap");
  expect_refused("{" + a + R"(,"b":{"dtype":"U8","shape":[2],"data_offsets":[5,7]}})", 7, "hole");
  expect_refused("{" + a + "}", 5, "bytes that belong to nothing");
  expect_refused("{" + a + "}", 3, "truncated");
  expect_refused("{" + a + R"(,"a":{"dtype":"U8","shape":[0],"data_offsets":[4,4]}})", 4, "twice");
}

TEST(SafetensorsTest, NamesInMessagesStayOnOneLine) {
  const std::string why = refusal(R"({"a\nb\u001b[0m":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}})", 4);
  EXPECT_EQ(why.find('\n'), std::string::npos);
  EXPECT_TRUE(contains(why, {"'a\\x0ab\\x1b[0m'"}));
}

}  // namespace
}  // namespace lockstep
