// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The library that lonely_plugin is linked with.
extern "C" int missing_library();

int missing_library() {
  return 1;
}
