// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The version of this library, and the namespace of its names.
#pragma once

#define LOCKSTEP_VERSION_MAJOR 0
#define LOCKSTEP_VERSION_MINOR 1
#define LOCKSTEP_VERSION_PATCH 0

// Public names are lockstep::NAME; the linker knows them as lockstep::v0::NAME. So an object file that was compiled
// against the headers of another major version is not linked by mistake. (Lockstep's own sources have classes with some of
// these names, and say lockstep::v0:: where they mean these.)
#ifdef LOCKSTEP_OWN_SOURCE
#define LOCKSTEP_BEGIN_NAMESPACE \
  namespace lockstep {           \
  namespace v0 {
#else
#define LOCKSTEP_BEGIN_NAMESPACE \
  namespace lockstep {           \
  inline namespace v0 {
#endif
#define LOCKSTEP_END_NAMESPACE \
  }                            \
  }

LOCKSTEP_BEGIN_NAMESPACE

/// "0.1.0", of the library that is linked.
const char* version();

LOCKSTEP_END_NAMESPACE
