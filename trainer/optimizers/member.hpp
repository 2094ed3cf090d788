// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What a catalogue says of a member besides what it does: the keys of the job file that it has.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// A key of the member's section.
struct MemberKey {
  std::string_view name;        ///< "lr", of "train.optimizer.lr"
  std::string_view fallback{};  ///< its value where it is not given, as in a job file; "": the section's
  bool required = false;
};

/// Something that does not fit together, for a message that points to the key.
struct KeyComplaint {
  std::string key;  ///< "train.optimizer.nesterov"
  std::string message;
};

}  // namespace lockstep
