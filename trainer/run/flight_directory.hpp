// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Where the flight records of a run lie: RUN/flight/START/rank-N.flight, and the verdict, if there was one.
#pragma once

#include "comm/communicator.hpp"

#include <string>
#include <vector>

namespace lockstep {

inline constexpr int kFlightsKept = 3;  ///< the last starts of a run

/// Collective: from now on every rank writes down what it does. A rank that does not see the run directory,
/// or cannot write there, goes without; rank 0 says so of itself. One rank alone writes nothing.
/// @param run_directory  on rank 0
void open_flight_record(Communicator& comm, const std::string& run_directory);

/// The numbers of the starts that have records, in order. @throws MissingDataError if there are none
std::vector<int> flights_of(const std::string& run_directory);

/// What became of a start: its verdict, the ranks' last moments, and their last events in one order, by rank
/// 0's clock.
/// @param start  its number; 0: the last one     @param events  how many
/// @throws MissingDataError, DataError
std::string flight_report(const std::string& run_directory, int start, int events);

}  // namespace lockstep
