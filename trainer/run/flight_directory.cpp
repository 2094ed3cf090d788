// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A new START for all ranks; those of earlier starts go, but for a few.
#include "trainer/run/flight_directory.hpp"

#include "comm/activity/flight_record.hpp"
#include "comm/activity/flight_recorder.hpp"
#include "common/console/output.hpp"
#include "common/error.hpp"
#include "common/files/env.hpp"
#include "trainer/checkpoint/directory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <memory>
#include <span>

namespace lockstep {
namespace {

std::string directory_of(const std::string& run_directory, int start) {
  return fmt::format("{}/flight/{:04}", run_directory, start);
}

/// Of the directories that starts of runs have made: "0001", "12345". Others have other names, or are none.
std::vector<int> numbers_in(Env& env, const std::string& flights) {
  constexpr int kMost = 999'999'999;
  std::vector<int> numbers;
  if (env.entry(flights).kind != EntryKind::kDirectory) return numbers;
  for (const std::string& name : env.list(flights)) {
    int number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    const bool written_so = error == std::errc() && name == fmt::format("{:04}", number);
    if (written_so && number > 0 && number < kMost &&
        env.entry(flights + "/" + name).kind == EntryKind::kDirectory)
      numbers.push_back(number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

/// One that holds anything else stays as it is.
void remove_records(Env& env, const std::string& directory) {
  const auto names = env.list(directory);
  if (std::ranges::all_of(names, is_flight_file)) env.remove_directory(directory, names);
}

/// Removes the records of all starts but the last, and makes a directory for this one: the first number behind them
/// that nothing has.
std::string make_next(Env& env, const std::string& run_directory) {
  const auto numbers = numbers_in(env, run_directory + "/flight");
  for (std::size_t i = 0; i + kFlightsKept - 1 < numbers.size(); ++i)
    remove_records(env, directory_of(run_directory, numbers[i]));
  int next = numbers.empty() ? 1 : numbers.back() + 1;
  while (env.entry(directory_of(run_directory, next)).kind != EntryKind::kNothing) ++next;
  env.make_directory(directory_of(run_directory, next));
  return std::filesystem::absolute(directory_of(run_directory, next));
}

/// A new directory for this start. "": there is none.
std::string make_directory(const std::string& run_directory) {
  Env& env = Env::posix();
  try {
    require_own(env, run_directory + "/flight", EntryKind::kDirectory);
    env.make_directory(run_directory + "/flight");
    return make_next(env, run_directory);
  } catch (const std::exception& error) {
    print_error(fmt::format("there will be no flight records: {}", error.what()));
    return "";
  }
}

std::string broadcast_text(Communicator& comm, std::string text) {
  std::uint64_t size = text.size();
  comm.broadcast(std::as_writable_bytes(std::span(&size, 1)), 0);
  text.resize(size);
  comm.broadcast(std::as_writable_bytes(std::span(text)), 0);
  return text;
}

}  // namespace

void open_flight_record(Communicator& comm, const std::string& run_directory) {
  if (comm.size() == 1) return;
  const auto directory = broadcast_text(comm, comm.rank() == 0 ? make_directory(run_directory) : "");
  if (directory.empty()) return;
  RankActivity& activity = comm.activity();
  try {
    activity.record_with(std::make_unique<FlightRecorder>(flight_file(directory, comm.rank()),
                                                          FlightRecorder::Who{.rank = comm.rank(),
                                                                              .world_size = comm.size(),
                                                                              .host = comm.host(),
                                                                              .device = activity.device()}),
                         directory);
  } catch (const IoError& error) {
    if (comm.rank() == 0)
      print_error(fmt::format("there will be no flight record of rank 0: {}", error.what()));
  }
}

std::vector<int> flights_of(const std::string& run_directory) {
  Env& env = Env::posix();
  auto numbers = numbers_in(env, run_directory + "/flight");
  if (!numbers.empty()) return numbers;
  if (!is_run(env, run_directory)) throw MissingDataError(why_no_run(env, run_directory));
  throw MissingDataError(
      fmt::format("{}: holds no flight records; runs of several ranks write them into their run directory",
                  run_directory));
}

}  // namespace lockstep
