// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Making the files of the data tests.
#include "tests/data/idx_fixture.hpp"

#include "data/batch_loader.hpp"
#include "tests/support/prelude.hpp"

#include <zlib.h>

namespace lockstep::test {

Bytes idx_header(std::initializer_list<std::uint32_t> dims) {
  Bytes bytes = {0, 0, 8, static_cast<std::uint8_t>(dims.size())};
  for (const std::uint32_t dim : dims)
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<std::uint8_t>(dim >> shift));
  return bytes;
}

Bytes idx_file(std::initializer_list<std::uint32_t> dims, unsigned step, unsigned modulus) {
  Bytes bytes = idx_header(dims);
  unsigned count = 1;
  for (const std::uint32_t dim : dims) count *= dim;
  for (unsigned i = 0; i < count; ++i) bytes.push_back(static_cast<std::uint8_t>(i * step % modulus));
  return bytes;
}

Bytes gzip(const Bytes& plain) {
  z_stream stream{};
  if (deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("zlib");
  Bytes packed(deflateBound(&stream, plain.size()) + 64);
  stream.next_in = const_cast<Bytef*>(plain.data());  // zlib does not write there
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = packed.data();
  stream.avail_out = static_cast<uInt>(packed.size());
  const int result = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) throw std::runtime_error("deflate");
  return packed;
}

Bytes operator+(Bytes left, const Bytes& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

std::string little_endian_text(std::uint64_t number, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i, number >>= 8) text.push_back(static_cast<char>(number));
  return text;
}

void write_file(const std::filesystem::path& path, const Bytes& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path.string());
}

std::string text_in(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

Bytes image_of(const Dataset& set, std::int32_t sample) {
  const ImageRows rows(set, {&sample, 1});
  return {rows[0].begin(), rows[0].end()};
}

void write_image_set(const std::filesystem::path& directory, std::uint32_t train, std::uint32_t test) {
  write_file(directory / "train-images-idx3-ubyte", idx_file({train, 4, 3}));
  write_file(directory / "train-labels-idx1-ubyte", idx_file({train}, 3, 10));
  write_file(directory / "t10k-images-idx3-ubyte", idx_file({test, 4, 3}, 7));
  write_file(directory / "t10k-labels-idx1-ubyte", idx_file({test}, 1, 10));
}

void write_colour_set(const std::filesystem::path& directory, std::uint32_t train, std::uint32_t test) {
  write_file(directory / "train-images-idx4-ubyte", idx_file({train, 2, 3, 3}));
  write_file(directory / "train-labels-idx1-ubyte", idx_file({train}, 1, 3));
  write_file(directory / "t10k-images-idx4-ubyte", idx_file({test, 2, 3, 3}, 7));
  write_file(directory / "t10k-labels-idx1-ubyte", idx_file({test}, 1, 3));
}

}  // namespace lockstep::test
