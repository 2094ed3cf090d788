// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// IDX and gzip bytes, files and directories made for one test.
#pragma once

#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"

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

/// A directory that disappears with the object.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Makes the directories on the way.
void write_file(const std::filesystem::path& path, const Bytes& bytes);
/// The four files of a small image set: `train` and `test` images of 4 x 3, plain.
void write_image_set(const std::filesystem::path& directory, std::uint32_t train = 20,
                     std::uint32_t test = 5);

/// Sets an environment variable (or unsets it, with a null value) and puts the old value back at the end.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value);
  ~ScopedVariable();
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  std::string name_, old_;
  bool was_set_ = false;
};

}  // namespace lockstep::test
