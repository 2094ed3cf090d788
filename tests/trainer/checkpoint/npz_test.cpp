// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The .npz writer, read back with a few lines of zip of the test's own.
#include "trainer/checkpoint/npz.hpp"

#include "common/error.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>

namespace lockstep {
namespace {

template <typename Integer>
Integer read_at(const std::vector<std::byte>& bytes, std::size_t position) {
  Integer value{};
  std::memcpy(&value, bytes.data() + position, sizeof value);
  return value;
}

std::string text_at(const std::vector<std::byte>& bytes, std::size_t position, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes.data()) + position, size};
}

/// name → contents, through the central directory, with every checksum compared.
std::map<std::string, std::vector<std::byte>> unzip(const std::vector<std::byte>& zip) {
  std::map<std::string, std::vector<std::byte>> files;
  const std::size_t end = zip.size() - 22;
  EXPECT_EQ(text_at(zip, end, 4), "PK\x05\x06");
  std::size_t entry = read_at<std::uint32_t>(zip, end + 16);
  EXPECT_EQ(entry + read_at<std::uint32_t>(zip, end + 12), end);
  for (int i = read_at<std::uint16_t>(zip, end + 10); i > 0; --i) {
    EXPECT_EQ(text_at(zip, entry, 4), "PK\x01\x02");
    const auto size = read_at<std::uint32_t>(zip, entry + 24);
    const auto name_size = read_at<std::uint16_t>(zip, entry + 28);
    const std::size_t local = read_at<std::uint32_t>(zip, entry + 42);
    EXPECT_EQ(text_at(zip, local, 4), "PK\x03\x04");
    EXPECT_EQ(text_at(zip, local + 30, name_size), text_at(zip, entry + 46, name_size));
    const auto data = zip.begin() + static_cast<std::ptrdiff_t>(local + 30 + name_size);
    const std::vector<std::byte> contents(data, data + size);
    EXPECT_EQ(::crc32(0, reinterpret_cast<const Bytef*>(contents.data()), size),
              read_at<std::uint32_t>(zip, entry + 16));
    files[text_at(zip, entry + 46, name_size)] = contents;
    entry += 46U + name_size;
  }
  EXPECT_EQ(entry, end);
  return files;
}

TEST(NpzTest, CheckpointBecomesOneArrayATensor) {
  const CheckpointState state = make_state(100);
  const auto files = unzip(export_npz(state));
  ASSERT_EQ(files.size(), 6U);
  const auto& npy = files.at("fc.weight.npy");
  EXPECT_EQ(text_at(npy, 0, 8), std::string("\x93NUMPY\x01\x00", 8));
  const std::size_t data = 10U + read_at<std::uint16_t>(npy, 8);
  EXPECT_EQ(data % 64, 0U);
  EXPECT_EQ(npy.at(data - 1), std::byte{'\n'});
  EXPECT_TRUE(text_at(npy, 10, data - 10)
                  .starts_with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, ), }"));
  ASSERT_EQ(npy.size() - data, 24U);
  EXPECT_EQ(std::memcmp(npy.data() + data, state.weights.data(), 24), 0);
  EXPECT_NE(text_at(files.at("scale.npy"), 10, 100).find("'shape': ()"), std::string::npos);
  EXPECT_TRUE(files.contains("momentum.fc.bias.npy"));
}

TEST(NpzTest, SameStateGivesTheSameBytes) {
  EXPECT_EQ(export_npz(make_state(1)), export_npz(make_state(1)));
}

TEST(NpzTest, DtypeThatNumpyLacksIsRefused) {
  const std::vector<std::byte> bytes(2);
  const TensorView tensor[] = {{"x", "BF16", {1}, bytes}};
  EXPECT_THROW(write_npz(tensor), UsageError);
}

}  // namespace
}  // namespace lockstep
