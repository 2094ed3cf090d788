// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Messages to AddressSanitizer, in builds that have it; nothing in others.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define LOCKSTEP_HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LOCKSTEP_HAS_ASAN 1
#endif
#endif
#ifndef LOCKSTEP_HAS_ASAN
#define LOCKSTEP_HAS_ASAN 0
#endif

#if LOCKSTEP_HAS_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace lockstep::emulation {

#if LOCKSTEP_HAS_ASAN
inline void poison(const volatile void* memory, std::size_t bytes) {
  __asan_poison_memory_region(memory, bytes);
}
inline void unpoison(const volatile void* memory, std::size_t bytes) {
  __asan_unpoison_memory_region(memory, bytes);
}
inline void start_switch(void** fake_stack, const void* bottom, std::size_t bytes) {
  __sanitizer_start_switch_fiber(fake_stack, bottom, bytes);
}
inline void finish_switch(void* fake_stack, const void*& old_bottom, std::size_t& old_bytes) {
  __sanitizer_finish_switch_fiber(fake_stack, &old_bottom, &old_bytes);
}
#else
inline void poison(const volatile void* /*memory*/, std::size_t /*bytes*/) {}
inline void unpoison(const volatile void* /*memory*/, std::size_t /*bytes*/) {}
inline void start_switch(void** /*fake_stack*/, const void* /*bottom*/, std::size_t /*bytes*/) {}
inline void finish_switch(void* /*fake_stack*/, const void*& /*old_bottom*/, std::size_t& /*old_bytes*/) {}
#endif

}  // namespace lockstep::emulation
