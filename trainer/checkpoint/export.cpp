// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Weights for other programs.
#include "common/error.hpp"
#include "trainer/checkpoint/inspect.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace lockstep {

// Writing .npz by hand. Sources: NumPy's "A simple file format for NumPy arrays", PKWARE's APPNOTE.TXT 4.3.

namespace {

constexpr std::size_t kNpyAlignment = 64;
constexpr std::size_t kMaxZipEntries = 0xFFFF;
constexpr std::size_t kLocalHeadBytes = 30, kCentralHeadBytes = 46, kEndBytes = 22;
constexpr std::size_t kDosDate1980 = 0x21;  // no time in it, so that the same tensors give the same bytes

using Bytes = std::vector<std::byte>;

void put(Bytes* out, std::string_view text) {
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  out->insert(out->end(), bytes, bytes + text.size());
}

/// Little-endian.
template <typename Integer>
void put_numbers(Bytes* out, std::initializer_list<std::size_t> numbers) {
  for (const std::size_t number : numbers)
    for (std::size_t i = 0; i < sizeof(Integer); ++i)
      out->push_back(static_cast<std::byte>(number >> (8 * i)));
}
constexpr auto put_16 = put_numbers<std::uint16_t>;
constexpr auto put_32 = put_numbers<std::uint32_t>;

Bytes npy_header(const TensorView& tensor) {
  std::string shape;
  for (const std::size_t dimension : tensor.shape) shape += fmt::format("{}, ", dimension);
  std::string text = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}), }}", shape);
  constexpr std::size_t kPrefixBytes = 10;
  const std::size_t unpadded = kPrefixBytes + text.size() + 1;
  text.append((kNpyAlignment - unpadded % kNpyAlignment) % kNpyAlignment, ' ');
  text += '\n';
  Bytes header;
  put(&header, std::string_view("\x93NUMPY\x01\x00", 8));
  put_16(&header, {text.size()});
  put(&header, text);
  return header;
}

struct ZipEntry {
  std::string name;
  std::size_t crc32 = 0, bytes = 0, offset = 0;
};

/// Fields that a local header and the central directory share.
void put_common_fields(Bytes* out, const ZipEntry& entry) {
  // Version needed: 2.0; names are UTF-8; stored; midnight.
  put_16(out, {20, 0x0800, 0, 0, kDosDate1980});
  put_32(out, {entry.crc32, /*compressed*/ entry.bytes, /*uncompressed*/ entry.bytes});
  put_16(out, {entry.name.size(), /*extra field*/ 0});
}

void put_central_entry(Bytes* out, const ZipEntry& entry) {
  put(out, "PK\x01\x02");
  put_16(out, {/*version made by*/ 20});
  put_common_fields(out, entry);
  put_16(out, {/*comment*/ 0, /*first disk*/ 0, /*internal attributes*/ 0});
  put_32(out, {/*external attributes*/ 0, entry.offset});
  put(out, entry.name);
}

void put_end(Bytes* out, std::size_t entries, std::size_t directory_offset) {
  const std::size_t directory_bytes = out->size() - directory_offset;
  put(out, "PK\x05\x06");
  put_16(out, {/*disk*/ 0, /*first disk*/ 0, entries, entries});
  put_32(out, {directory_bytes, directory_offset});
  put_16(out, {/*comment*/ 0});
}

std::string file_name_of(const TensorView& tensor) {
  return tensor.name + ".npy";
}

ZipEntry put_tensor(Bytes* out, const TensorView& tensor) {
  Bytes npy = npy_header(tensor);
  npy.insert(npy.end(), tensor.bytes.begin(), tensor.bytes.end());
  ZipEntry entry{file_name_of(tensor), ::crc32_z(0, reinterpret_cast<const Bytef*>(npy.data()), npy.size()),
                 npy.size(), out->size()};
  put(out, "PK\x03\x04");
  put_common_fields(out, entry);
  put(out, entry.name);
  out->insert(out->end(), npy.begin(), npy.end());
  return entry;
}

void check_limits(std::span<const TensorView> tensors, std::uint64_t most_bytes) {
  std::uint64_t bytes = kEndBytes;
  for (const TensorView& tensor : tensors) {
    bytes += kLocalHeadBytes + kCentralHeadBytes + 2 * file_name_of(tensor).size();
    bytes += npy_header(tensor).size() + tensor.bytes.size();
    if (tensor.name.size() > 0xFF00) throw UsageError("a tensor's name is too long for an .npz file");
  }
  if (bytes > most_bytes || tensors.size() > kMaxZipEntries)
    throw UsageError("too large for an .npz file (4 GiB, 65535 tensors); read the safetensors file instead");
}

}  // namespace

std::vector<std::byte> export_npz(const CheckpointState& state, std::uint64_t most_bytes) {
  const std::vector<TensorView> tensors = state.tensors();
  check_limits(tensors, most_bytes);
  Bytes out;
  std::vector<ZipEntry> entries;
  for (const TensorView& tensor : tensors) entries.push_back(put_tensor(&out, tensor));
  const std::size_t directory_offset = out.size();
  for (const ZipEntry& entry : entries) put_central_entry(&out, entry);
  put_end(&out, entries.size(), directory_offset);
  return out;
}

}  // namespace lockstep
