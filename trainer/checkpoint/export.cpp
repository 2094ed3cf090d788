// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Weights for other programs.
#include "common/error.hpp"
#include "trainer/checkpoint/inspect.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <cstdint>
#include <string_view>
#include <utility>

namespace lockstep {

// Writing .npz by hand. Sources: NumPy's "A simple file format for NumPy arrays", PKWARE's APPNOTE.TXT 4.3.

namespace {

constexpr std::size_t kNpyAlignment = 64;
constexpr std::uint64_t kMaxZipBytes = 0xFFFFFFFFU;
constexpr std::size_t kMaxZipEntries = 0xFFFF;
constexpr std::uint16_t kDosDate1980 = 0x21;  // no time in it, so that the same tensors give the same bytes

using Bytes = std::vector<std::byte>;

void put(Bytes* out, std::string_view text) {
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  out->insert(out->end(), bytes, bytes + text.size());
}

template <typename Integer>
void put_little_endian(Bytes* out, Integer value) {
  for (std::size_t i = 0; i < sizeof(Integer); ++i) out->push_back(static_cast<std::byte>(value >> (8 * i)));
}

std::string numpy_type(const TensorView& tensor) {
  constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
      {"F32", "<f4"}, {"F64", "<f8"}, {"F16", "<f2"}, {"I64", "<i8"}, {"I32", "<i4"}, {"I16", "<i2"},
      {"I8", "|i1"},  {"U64", "<u8"}, {"U32", "<u4"}, {"U16", "<u2"}, {"U8", "|u1"},  {"BOOL", "|b1"}};
  for (const auto& [ours, theirs] : kTypes)
    if (ours == tensor.dtype) return std::string(theirs);
  throw UsageError(fmt::format("tensor {}: NumPy has no dtype {}; read the safetensors file instead",
                               tensor.name, tensor.dtype));
}

Bytes npy_header(const TensorView& tensor) {
  std::string shape;
  for (const std::size_t dimension : tensor.shape) shape += fmt::format("{}, ", dimension);
  std::string text =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", numpy_type(tensor), shape);
  constexpr std::size_t kPrefixBytes = 10;
  const std::size_t unpadded = kPrefixBytes + text.size() + 1;
  text.append((kNpyAlignment - unpadded % kNpyAlignment) % kNpyAlignment, ' ');
  text += '\n';
  Bytes header;
  put(&header, std::string_view("\x93NUMPY\x01\x00", 8));
  put_little_endian(&header, static_cast<std::uint16_t>(text.size()));
  put(&header, text);
  return header;
}

/// Fields that a local header and the central directory share.
struct ZipEntry {
  std::string name;
  std::uint32_t crc32 = 0, bytes = 0, offset = 0;
};

void put_common_fields(Bytes* out, const ZipEntry& entry) {
  put_little_endian<std::uint16_t>(out, 20);      // version needed: 2.0
  put_little_endian<std::uint16_t>(out, 0x0800);  // names are UTF-8
  put_little_endian<std::uint16_t>(out, 0);       // stored
  put_little_endian<std::uint16_t>(out, 0);       // midnight
  put_little_endian(out, kDosDate1980);
  put_little_endian(out, entry.crc32);
  put_little_endian(out, entry.bytes);  // compressed
  put_little_endian(out, entry.bytes);  // uncompressed
  put_little_endian(out, static_cast<std::uint16_t>(entry.name.size()));
  put_little_endian<std::uint16_t>(out, 0);  // no extra field
}

void put_central_entry(Bytes* out, const ZipEntry& entry) {
  put(out, "PK\x01\x02");
  put_little_endian<std::uint16_t>(out, 20);  // version made by
  put_common_fields(out, entry);
  put_little_endian<std::uint16_t>(out, 0);  // no comment
  put_little_endian<std::uint16_t>(out, 0);  // first disk
  put_little_endian<std::uint16_t>(out, 0);  // internal attributes
  put_little_endian<std::uint32_t>(out, 0);  // external attributes
  put_little_endian(out, entry.offset);
  put(out, entry.name);
}

void put_end(Bytes* out, std::size_t entries, std::size_t directory_offset) {
  const std::size_t directory_bytes = out->size() - directory_offset;
  put(out, "PK\x05\x06");
  put_little_endian<std::uint32_t>(out, 0);  // one disk
  put_little_endian(out, static_cast<std::uint16_t>(entries));
  put_little_endian(out, static_cast<std::uint16_t>(entries));
  put_little_endian(out, static_cast<std::uint32_t>(directory_bytes));
  put_little_endian(out, static_cast<std::uint32_t>(directory_offset));
  put_little_endian<std::uint16_t>(out, 0);  // no comment
}

ZipEntry put_tensor(Bytes* out, const TensorView& tensor) {
  Bytes npy = npy_header(tensor);
  npy.insert(npy.end(), tensor.bytes.begin(), tensor.bytes.end());
  const auto crc = ::crc32_z(0, reinterpret_cast<const Bytef*>(npy.data()), npy.size());
  ZipEntry entry{tensor.name + ".npy", static_cast<std::uint32_t>(crc),
                 static_cast<std::uint32_t>(npy.size()), static_cast<std::uint32_t>(out->size())};
  put(out, "PK\x03\x04");
  put_common_fields(out, entry);
  put(out, entry.name);
  out->insert(out->end(), npy.begin(), npy.end());
  return entry;
}

void check_limits(std::span<const TensorView> tensors) {
  std::uint64_t bytes = 0;
  for (const TensorView& tensor : tensors) {
    bytes += tensor.bytes.size() + 2 * tensor.name.size() + 1024;
    if (tensor.name.size() > 0xFF00) throw UsageError("a tensor's name is too long for an .npz file");
  }
  if (bytes > kMaxZipBytes || tensors.size() > kMaxZipEntries)
    throw UsageError("too large for an .npz file (4 GiB, 65535 tensors); read the safetensors file instead");
}

}  // namespace

std::vector<std::byte> write_npz(std::span<const TensorView> tensors) {
  check_limits(tensors);
  Bytes out;
  std::vector<ZipEntry> entries;
  for (const TensorView& tensor : tensors) entries.push_back(put_tensor(&out, tensor));
  const std::size_t directory_offset = out.size();
  for (const ZipEntry& entry : entries) put_central_entry(&out, entry);
  put_end(&out, entries.size(), directory_offset);
  return out;
}

std::vector<std::byte> export_npz(const CheckpointState& state) {
  std::vector<TensorView> tensors = tensors_of(state.facts.tensors(), state.weights, "");
  for (const OptimizerBuffer& buffer : state.optimizer) {
    const auto more = tensors_of(state.facts.parameters, buffer);
    tensors.insert(tensors.end(), more.begin(), more.end());
  }
  return write_npz(tensors);
}

}  // namespace lockstep
