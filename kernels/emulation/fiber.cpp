// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Stacks with a guard page, staggered in the cache, switched by Boost.Context.
#include "kernels/emulation/fiber.hpp"

#include <boost/context/protected_fixedsize_stack.hpp>

#include <memory>
#include <utility>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

namespace lockstep::emulation {
namespace {

/// Room for a few hundred values that a GPU would keep in registers, and for AddressSanitizer's red zones.
/// Address space: only the pages that are used become memory.
constexpr std::size_t kStackBytes = 256 * 1024;

/// Stacks that start at the same offset of a page would all compete for the same lines of the cache.
constexpr std::size_t stagger_bytes(std::size_t index) {
  return index * 832 % 16384;
}

/// Boost's stacks with a guard page, entered a little below their top.
class StaggeredStack {
 public:
  StaggeredStack(std::size_t index, const void*& bottom, std::size_t& bytes)
      : stagger_(stagger_bytes(index)), bottom_(&bottom), bytes_(&bytes) {}

  boost::context::stack_context allocate() {
    auto stack = stacks_.allocate();
    stack.sp = static_cast<char*>(stack.sp) - stagger_;
    stack.size -= stagger_;
    *bottom_ = static_cast<char*>(stack.sp) - stack.size;
    *bytes_ = stack.size;
    return stack;
  }
  void deallocate(boost::context::stack_context& stack) {
    stack.sp = static_cast<char*>(stack.sp) + stagger_;
    stack.size += stagger_;
    unpoison(static_cast<char*>(stack.sp) - stack.size, stack.size);
    stacks_.deallocate(stack);
  }

 private:
  boost::context::protected_fixedsize_stack stacks_{kStackBytes};
  std::size_t stagger_;
  const void** bottom_;
  std::size_t* bytes_;
};

/// A switch loads each fiber's floating-point status. If it differs from the one that was,
/// an x86 processor waits: a switch of 65 ns, not 5. So fibers have raised what arithmetic may raise before they begin.
void raise_all_flags() {
#ifdef __SSE__
  _mm_setcsr(_mm_getcsr() | _MM_EXCEPT_MASK);
#endif
}

}  // namespace

Fiber::Fiber(Body body, std::size_t index)
    : context_(std::allocator_arg, StaggeredStack(index, stack_bottom_, stack_bytes_),
               [this, body](boost::context::fiber&& previous) { return run(body, std::move(previous)); }) {}

boost::context::fiber Fiber::run(Body body, boost::context::fiber&& previous) {
  entered(std::move(previous));
  raise_all_flags();
  body(*this);
  resumed_by_->resumed_by_ = this;
  start_switch(nullptr, resumed_by_->stack_bottom_, resumed_by_->stack_bytes_);
  return std::move(resumed_by_->context_);
}

}  // namespace lockstep::emulation
