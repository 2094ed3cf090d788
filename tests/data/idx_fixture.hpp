// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// IDX and gzip bytes, files and directories made for one test.
#pragma once

#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/temporary_directory.hpp"

namespace lockstep {

struct Dataset;

}  // namespace lockstep

namespace lockstep::test {

using Bytes = std::vector<std::uint8_t>;

inline Bytes bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}
/// An IDX header of uint8 with these sizes, and nothing after it.
Bytes idx_header(std::initializer_list<std::uint32_t> dims);
/// A whole IDX file; element i is (i * step) % modulus.
Bytes idx_file(std::initializer_list<std::uint32_t> dims, unsigned step = 1, unsigned modulus = 256);
/// One gzip member.
Bytes gzip(const Bytes& plain);
Bytes operator+(Bytes left, const Bytes& right);

/// `number` in so many bytes, little-endian.
std::string little_endian_text(std::uint64_t number, int bytes);

/// A directory that disappears with the object.
class TemporaryDirectory {
 public:
  std::filesystem::path path() const { return directory_.path(); }

 private:
  testing::TemporaryDirectory directory_;
};

/// Makes the directories on the way.
void write_file(const std::filesystem::path& path, const Bytes& bytes);
std::string text_in(const std::filesystem::path& file);
/// The four files of a small image set: `train` and `test` images of 4 x 3, plain.
void write_image_set(const std::filesystem::path& directory, std::uint32_t train = 20,
                     std::uint32_t test = 5);
/// People's own: images of 2 x 3 x 3 in three classes.
void write_colour_set(const std::filesystem::path& directory, std::uint32_t train, std::uint32_t test);

/// The bytes of an image, wherever they are.
Bytes image_of(const Dataset& set, std::int32_t sample);

/// A test with a directory.
class DirectoryTest : public ::testing::Test {
 protected:
  std::filesystem::path path(const std::string& name) const { return directory_.path() / name; }
  void write(const std::string& name, const Bytes& bytes) const { write_file(path(name), bytes); }
  void write_text(const std::string& name, const std::string& text) const { write(name, bytes_of(text)); }

  TemporaryDirectory directory_;
};

}  // namespace lockstep::test
