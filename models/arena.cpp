// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// ParameterLayout: what is trained, then what is kept.
#include "models/arena.hpp"

namespace lockstep {

std::vector<Parameter> ParameterLayout::tensors() const {
  std::vector<Parameter> all = parameters;
  all.insert(all.end(), kept.begin(), kept.end());
  return all;
}

}  // namespace lockstep
