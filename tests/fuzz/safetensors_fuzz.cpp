// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Arbitrary bytes as a safetensors file: refused with DataError, or read and written again to the same
/// tensors.
#include "common/safetensors.hpp"
#include "tests/fuzz/checks.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

/// Every byte of every tensor must be readable, and a copy of the file must hold the same.
void use(const lockstep::SafetensorsFile& file) {
  const auto copy = lockstep::SafetensorsFile::parse(lockstep::write_safetensors(file.tensors()), "copy");
  if (copy.tensors().size() != file.tensors().size()) std::abort();
  for (const lockstep::TensorView& tensor : file.tensors()) {
    const auto& twin = copy.require(tensor.name, tensor.dtype, tensor.shape);
    if (twin.bytes.size() != tensor.bytes.size()) std::abort();
    if (!tensor.bytes.empty() && std::memcmp(twin.bytes.data(), tensor.bytes.data(), twin.bytes.size()) != 0)
      std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  lockstep::fuzz::accepts([&] { use(lockstep::SafetensorsFile::parse({bytes, bytes + size}, "fuzz")); });
  return 0;
}

/// Half of the mutations happen behind a correct header length, or few would get any further.
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned int seed) {
  constexpr std::size_t kPrefix = 8;
  if (seed % 2 == 0 || max_size <= kPrefix || size < kPrefix) return LLVMFuzzerMutate(data, size, max_size);
  size = kPrefix + LLVMFuzzerMutate(data + kPrefix, size - kPrefix, max_size - kPrefix);
  std::uint64_t header = 0;
  for (std::size_t i = kPrefix, depth = 0; i < size && header == 0; ++i) {
    if (data[i] == '{') ++depth;
    if (data[i] == '}' && --depth == 0) header = i + 1 - kPrefix;
    if (depth > size) break;  // more '}' than '{'
  }
  for (std::size_t i = 0; i < kPrefix; ++i) data[i] = static_cast<std::uint8_t>(header >> (8 * i));
  return size;
}
