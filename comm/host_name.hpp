// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The name of this machine, as it stands in messages.
#pragma once

#include <string>

namespace lockstep {

/// What gethostname() says; "unknown-host" if it says nothing.
std::string host_name();

}  // namespace lockstep
