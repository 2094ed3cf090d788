// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A fiber: the stack of a kernel's thread, which can be left in the middle of the kernel and
/// resumed.
#pragma once

#include "kernels/emulation/sanitizer.hpp"

#include <boost/context/fiber.hpp>

#include <cstddef>
#include <utility>

namespace lockstep::emulation {

/// A stack and the place at which it was left. Default made: the stack of the calling OS thread, from
/// which others are entered. AddressSanitizer is told of every switch. Belongs to one OS thread.
class Fiber {
 public:
  using Body = void (*)(Fiber& self);

  Fiber() = default;
  /// Calls body(*this) on a new stack, which has a guard page at its end, when it is first switched to.
  /// @param index  number of the fiber among those of its pool: staggers the tops of the stacks in the caches
  Fiber(Body body, std::size_t index);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Leaves this fiber, which is the running one, and goes on with `to`. Returns when another fiber switches
  /// to this one. A fiber whose body returns goes on with the one that switched to it last.
  void switch_to(Fiber& to);

 private:
  boost::context::fiber run(Body body, boost::context::fiber&& previous);
  void entered(boost::context::fiber&& previous);

  Fiber* resumed_by_ = nullptr;
  const void* stack_bottom_ = nullptr;  // with its size, set while context_ is made
  std::size_t stack_bytes_ = 0;
  void* fake_stack_ = nullptr;
  boost::context::fiber context_;
};

// In the header so that it is inlined where a switch is made. A processor expects a return to lead back to the latest
// call, so each function that returns after a switch costs as much as the switch.
inline void Fiber::entered(boost::context::fiber&& previous) {
  resumed_by_->context_ = std::move(previous);
  finish_switch(fake_stack_, resumed_by_->stack_bottom_, resumed_by_->stack_bytes_);
}

inline void Fiber::switch_to(Fiber& to) {
  to.resumed_by_ = this;
  start_switch(&fake_stack_, to.stack_bottom_, to.stack_bytes_);
  entered(std::move(to.context_).resume());
}

}  // namespace lockstep::emulation
