// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/support/leak_check.hpp"

#if defined(__SANITIZE_ADDRESS__)
#define LOCKSTEP_HAS_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LOCKSTEP_HAS_ASAN
#endif
#endif

#ifdef LOCKSTEP_HAS_ASAN

#include <sanitizer/lsan_interface.h>

// NOLINTBEGIN: names and linkage are the sanitizer's
extern "C" const char* __asan_default_options() {
  return "leak_check_at_exit=0";
}
extern "C" const char* __lsan_default_options() {
  return "print_suppressions=0";
}
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libmpi\nleak:libopen-\nleak:mca_\nleak:pmix\nleak:libhwloc\nleak:libevent\n";
}
// NOLINTEND

namespace lockstep::testing {

LeaksAllowed::LeaksAllowed() {
  __lsan_disable();
}
LeaksAllowed::~LeaksAllowed() {
  __lsan_enable();
}
bool leaks_found() {
  return __lsan_do_recoverable_leak_check() != 0;
}

}  // namespace lockstep::testing

#else

namespace lockstep::testing {

LeaksAllowed::LeaksAllowed() = default;
LeaksAllowed::~LeaksAllowed() = default;  // NOLINT(modernize-use-equals-default)
bool leaks_found() {
  return false;
}

}  // namespace lockstep::testing

#endif
