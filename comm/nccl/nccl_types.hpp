// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What the collectives over NCCL share.
#pragma once

#include "comm/nccl/nccl_error.hpp"

#include <fmt/format.h>
#include <nccl.h>

#include <cstdint>
#include <string>

namespace lockstep {

/// As NCCL_VERSION makes it, of the library that is loaded, not of the header.
inline int loaded_nccl_code() {
  int code = 0;
  LOCKSTEP_NCCL(ncclGetVersion(&code));
  return code;
}

/// "NCCL 2.28.9"
inline std::string loaded_nccl_version() {
  const int code = loaded_nccl_code();
  return fmt::format("NCCL {}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

inline ncclDataType_t nccl_datatype(const std::int64_t* /*type*/) {
  return ncclInt64;
}
inline ncclDataType_t nccl_datatype(const float* /*type*/) {
  return ncclFloat32;
}

}  // namespace lockstep
