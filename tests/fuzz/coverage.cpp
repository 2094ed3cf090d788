// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Tells libFuzzer which branches an input takes in code of g++, which calls one function at each of them. libFuzzer refuses that
/// function, but takes the counters of this section.

#include <cstddef>
#include <cstdint>

namespace {

constexpr std::size_t kCounters = 1 << 14;

__attribute__((section("__libfuzzer_extra_counters"))) std::uint8_t counters[kCounters];

}  // namespace

extern "C" void __wrap___sanitizer_cov_trace_pc() {
  const auto branch = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  ++counters[(branch ^ (branch >> 14)) % kCounters];
}
