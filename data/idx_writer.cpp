// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// IdxWriter: bytes are gathered into large writes.
#include "data/idx_writer.hpp"

#include "common/error.hpp"

namespace lockstep {

std::vector<std::byte> idx_file_head(std::uint8_t type, std::span<const std::int64_t> dims) {
  std::vector<std::byte> head = {std::byte{0}, std::byte{0}, std::byte{type},
                                 static_cast<std::byte>(dims.size())};
  for (const std::int64_t dim : dims) {
    for (int shift = 24; shift >= 0; shift -= 8) head.push_back(static_cast<std::byte>(dim >> shift));
  }
  return head;
}

IdxWriter::IdxWriter(Env& env, const std::string& path, std::span<const std::int64_t> dims)
    : file_(env.create(path)), buffer_(idx_file_head(kIdxUint8, dims)) {
  for (const std::int64_t dim : dims) missing_ *= static_cast<std::uint64_t>(dim);
}

void IdxWriter::write(std::span<const std::uint8_t> elements) {
  constexpr std::size_t kWorthWriting = std::size_t{1} << 20;
  LOCKSTEP_CHECK(elements.size() <= missing_);
  missing_ -= elements.size();
  const auto bytes = std::as_bytes(elements);
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  if (buffer_.size() >= kWorthWriting) flush();
}

void IdxWriter::finish() {
  LOCKSTEP_CHECK(missing_ == 0);
  flush();
  file_->sync();
  file_->close();
}

void IdxWriter::flush() {
  file_->write(buffer_);
  buffer_.clear();
}

}  // namespace lockstep
