// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Texts of all ranks on all ranks: names of hosts and GPUs, reasons.
#pragma once

#include "comm/communicator.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// Every rank contributes a text of any length and receives all, by rank. Collective.
std::vector<std::string> gather_text(Communicator& comm, std::string_view mine);

}  // namespace lockstep
