// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Trails: any file either is one, or is refused with a word. Once as it comes, and once with the head's seal put
/// right, so that what lies behind it is reached. And ranks.jsonl, whose lines are sealed one by one.
#include "common/digest.hpp"
#include "common/error.hpp"
#include "trainer/checkpoint/rank_file.hpp"
#include "trainer/checkpoint/trail.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace {

void read(std::vector<std::byte> bytes) {
  try {
    const lockstep::Trail trail(std::move(bytes), "t");
    for (std::int64_t i = 0; i < trail.records(); ++i) static_cast<void>(trail.find(trail.step(i)));
  } catch (const lockstep::DataError&) {  // shown to users
  } catch (const lockstep::ConfigError&) {
  }
}

/// Each line without its closing brace, which the seal brings.
std::string sealed_lines(std::string_view text) {
  std::string lines;
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
    end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    const std::string seal = lockstep::hex(lockstep::sha256(std::as_bytes(std::span(line))));
    lines.append(line).append(",\"seal\":\"").append(seal.substr(0, 8)).append("\"}\n");
  }
  return lines;
}

/// In memory.
void read_ranks(const std::string& text) {
  static const int file = memfd_create("ranks", 0);
  if (ftruncate(file, 0) != 0 || pwrite(file, text.data(), text.size(), 0) < 0) return;
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  static_cast<void>(lockstep::find_ranks(path, 2));
  static_cast<void>(lockstep::report_ranks(path));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  read({input.begin(), input.end()});
  const std::string text(reinterpret_cast<const char*>(data), size);
  read_ranks(text);
  read_ranks(sealed_lines(text));
  constexpr std::size_t kSeal = sizeof(lockstep::Sha256Digest), kLengthAt = 12;
  std::uint32_t head = 0;
  if (size < kLengthAt + sizeof head) return 0;
  std::memcpy(&head, data + kLengthAt, sizeof head);
  if (head < kSeal + kLengthAt + sizeof head || head > size) return 0;
  std::vector<std::byte> sealed(input.begin(), input.end());
  const auto seal = lockstep::sha256(std::span(sealed).first(head - kSeal));
  std::ranges::copy(seal, sealed.begin() + static_cast<std::ptrdiff_t>(head - kSeal));
  read(std::move(sealed));
  return 0;
}
