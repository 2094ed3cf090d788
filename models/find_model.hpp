// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Where the network files that ship with Lockstep are.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

/// Whether a job's `model` is a path rather than the name of a model that ships with Lockstep.
inline bool is_model_path(std::string_view source) {
  return source.find('/') != source.npos || source.ends_with(".yaml") || source.ends_with(".yml");
}

/// The file of a model. A source with a '/' or ending in .yaml or .yml is a path and returned as it is; a
/// name is looked for in $LOCKSTEP_MODELS, in the source tree that this program was built from, and in
/// ../share/lockstep/models beside the program.
/// @throws ConfigError  no model has this name; says which there are and where they were looked for
std::string find_model(const std::string& source);

}  // namespace lockstep
