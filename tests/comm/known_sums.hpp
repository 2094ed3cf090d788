// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sums over ranks that are known without adding: all terms of a rank are multiples of those of rank 0.
#pragma once

#include "tests/support/prelude.hpp"

namespace lockstep::testing {

/// Terms of a rank, `rank` + 1 times those of rank 0. They wrap around, as sums must.
inline std::vector<std::int64_t> terms(int rank, std::size_t count) {
  std::vector<std::int64_t> data(count);
  for (std::size_t i = 0; i < count; ++i)
    data[i] =
        static_cast<std::int64_t>((i * 0x9E3779B97F4A7C15U + 977) * static_cast<std::uint64_t>(rank + 1));
  return data;
}

/// Expects the sums of terms() over all ranks: n (n + 1) / 2 times those of rank 0.
inline void expect_sums(const std::vector<std::int64_t>& actual, int ranks, const char* what) {
  const auto expected = terms(ranks * (ranks + 1) / 2 - 1, actual.size());
  const auto wrong = std::ranges::mismatch(actual, expected);
  if (wrong.in1 != actual.end())
    ADD_FAILURE() << what << ", " << actual.size() << " elements: element " << wrong.in1 - actual.begin()
                  << " is " << *wrong.in1 << ", expected " << *wrong.in2;
}

}  // namespace lockstep::testing
