// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Flight records: any file either is one, or is refused with a word.
#include "comm/flight_record.hpp"
#include "common/error.hpp"

#include <cstddef>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto record = lockstep::read_flight_record(std::as_bytes(std::span(data, size)), "f");
    for (const auto& event : record.events) static_cast<void>(lockstep::describe(event.entry));
  } catch (const lockstep::DataError&) {  // what users see
  }
  return 0;
}
