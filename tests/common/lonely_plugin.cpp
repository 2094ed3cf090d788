// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A plugin whose library cannot be found when it is loaded.
extern "C" int missing_library();
extern "C" int lonely_plugin();

int lonely_plugin() {
  return missing_library();
}
