// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The JSON text of a safetensors header as data, with the structure checked and nothing else.
#pragma once

#include "common/safetensors/safetensors_header.hpp"

#include <string>
#include <string_view>

namespace lockstep {

/// Reads event by event and stops at the first thing that has no place in a header, so that no hostile text
/// is ever built up in memory. @throws DataError
SafetensorsHeader read_safetensors_json(std::string_view json, const std::string& file);

}  // namespace lockstep
