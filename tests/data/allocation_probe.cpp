// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The replacement of the aligned operator new[].
#include "tests/data/allocation_probe.hpp"

#include "tests/support/prelude.hpp"

namespace {
std::atomic<std::size_t> largest{0};
}

void* operator new[](std::size_t size, std::align_val_t alignment) {
  std::size_t before = largest;
  while (size > before && !largest.compare_exchange_weak(before, size)) {
  }
  const auto unit = static_cast<std::size_t>(alignment);
  void* memory = std::aligned_alloc(unit, (size + unit - 1) / unit * unit);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void operator delete[](void* memory, std::align_val_t) noexcept {
  std::free(memory);
}

namespace lockstep::test {

void reset_allocation_probe() {
  largest = 0;
}
std::size_t largest_aligned_allocation() {
  return largest;
}

}  // namespace lockstep::test
