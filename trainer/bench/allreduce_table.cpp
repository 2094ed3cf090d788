// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Rows in fixed columns, and the sums that the last lines are made of.
#include "trainer/bench/allreduce_table.hpp"

#include <fmt/format.h>

namespace lockstep::bench {
namespace {

/// Four digits or so, however large: "7.31", "731.0", "73100".
std::string short_number(double value) {
  return fmt::format("{:.{}f}", value, value < 100 ? 2 : value < 10000 ? 1 : 0);
}

/// GB/s; a dash where nothing travelled or the clock saw no time pass.
std::string bandwidth(double bytes_per_second) {
  return bytes_per_second > 0 ? short_number(bytes_per_second * 1e-9) : "-";
}

}  // namespace

std::vector<std::string> AllreduceTable::head() {
  return {fmt::format("#{:>24} {:^26} {:^26}", "", "out-of-place", "in-place"),
          fmt::format("#{:>8} {:>9} {:>5} {:>7} {:>6} {:>6} {:>4} {:>7} {:>6} {:>6} {:>4}", "size", "count",
                      "type", "time", "algbw", "busbw", "#err", "time", "algbw", "busbw", "#err"),
          fmt::format("#{:>8} {:>9} {:>5} {:>7} {:>6} {:>6} {:>4} {:>7} {:>6} {:>6} {:>4}", "(B)", "(elem.)",
                      "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "")};
}

double AllreduceTable::bus_bandwidth(const AllreduceRow& row, const AllreduceResult& result) const {
  if (result.seconds <= 0) return 0;
  return static_cast<double>(row.bytes) / result.seconds * 2 * (ranks_ - 1) / ranks_;
}

std::string AllreduceTable::half(const AllreduceRow& row, const AllreduceResult& result) {
  const bool travels = ranks_ > 1 && result.seconds > 0;
  const double algorithm = travels ? static_cast<double>(row.bytes) / result.seconds : 0;
  bus_bandwidths_ += bus_bandwidth(row, result);
  wrong_ += result.wrong;
  ++results_;
  return fmt::format("{:>7} {:>6} {:>6} {:>4}", short_number(result.seconds * 1e6), bandwidth(algorithm),
                     bandwidth(bus_bandwidth(row, result)), result.wrong);
}

std::string AllreduceTable::row(const AllreduceRow& row) {
  const std::string out_of_place = half(row, row.out_of_place), in_place = half(row, row.in_place);
  return fmt::format("{:>9} {:>9} {:>5} {} {}", row.bytes, row.count, row.type, out_of_place, in_place);
}

std::vector<std::string> AllreduceTable::foot() const {
  std::vector<std::string> lines = {
      fmt::format("# Out of bounds values : {} {}", wrong_, wrong_ == 0 ? "OK" : "FAILED")};
  if (ranks_ == 1) {
    lines.emplace_back("# Avg bus bandwidth    : none, with one rank nothing travels");
  } else if (results_ > 0) {
    lines.push_back(fmt::format("# Avg bus bandwidth    : {:.4g} GB/s", bus_bandwidths_ / results_ * 1e-9));
  }
  return lines;
}

}  // namespace lockstep::bench
