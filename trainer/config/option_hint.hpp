// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What --epochs 3, as other programs have it, means here.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lockstep {

/// For the first of `arguments` that is an option, that the command does not know (it is among `unknown`), and
/// that would be a key of a job file: what to write instead, "train.epochs=3". The value is what follows, or
/// what stands behind '='; VALUE if there is none.
std::optional<std::string> override_for_option(const std::vector<std::string>& arguments,
                                               const std::vector<std::string>& unknown);

}  // namespace lockstep
