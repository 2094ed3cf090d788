// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One spelling for the process, and the places in a text where it goes.
#include "common/advice.hpp"

#include <fmt/format.h>

namespace lockstep {
namespace {

Spelling& current() {
  static Spelling spelling;
  return spelling;
}

}  // namespace

void spell_advice_as(const Spelling& spelling) {
  current() = spelling;
}

const Spelling& spelling() {
  return current();
}

std::string advice(std::string_view text) {
  const Spelling& s = current();
  return fmt::format(fmt::runtime(text), fmt::arg("global_batch", s.global_batch),
                     fmt::arg("per_rank_batch", s.per_rank_batch), fmt::arg("grain", s.grain),
                     fmt::arg("sample_counts", s.sample_counts), fmt::arg("device", s.device),
                     fmt::arg("backend", s.backend), fmt::arg("kernels", s.kernels),
                     fmt::arg("timeout", s.timeout), fmt::arg("run_directory", s.run_directory));
}

}  // namespace lockstep
