// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What a program built without Protocol Buffers says where a job wants a trace.
#include "common/error.hpp"
#include "trainer/run/step_trace.hpp"

namespace lockstep {

std::string why_no_traces() {
  return "this program was built without Protocol Buffers, which traces need; install protobuf-compiler and "
         "libprotobuf-dev and build it again, or do without a trace";
}

std::string trace_packets(const Timeline& /*timeline*/, int /*rank*/, const std::string& /*host*/,
                          const ClockLine& /*clock*/) {
  throw UsageError(why_no_traces());
}

}  // namespace lockstep
