// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The records of all ranks as one story.
#include "comm/agreement.hpp"
#include "comm/flight_record.hpp"
#include "common/env.hpp"
#include "common/error.hpp"
#include "common/output.hpp"
#include "common/printable.hpp"
#include "trainer/checkpoint/directory.hpp"
#include "trainer/run/run_directory.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

namespace {

/// 241 KiB is what a record takes; a larger file is not read.
constexpr std::uint64_t kMostBytes = 1 << 20;

std::string time_text(std::int64_t ns) {
  const std::time_t seconds = ns / 1'000'000'000;
  if (ns < 0 || seconds > 32'503'680'000) return "(no time)";
  std::tm broken{};
  gmtime_r(&seconds, &broken);
  return fmt::format("{:%H:%M:%S}.{:06}", broken, ns / 1000 % 1'000'000);
}

std::string text_file(Env& env, const std::string& path) {
  if (env.entry(path).kind != EntryKind::kFile || env.size(path) > kMostBytes) return "";
  const auto bytes = env.read(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<FlightRecord> read_all(Env& env, const std::string& directory) {
  std::vector<FlightRecord> records;
  const auto memory = flight_memory(std::filesystem::canonical(directory));
  auto names = env.list(directory);
  if (env.entry(memory).kind == EntryKind::kDirectory)
    std::ranges::copy(env.list(memory), std::back_inserter(names));
  const std::set<std::string> each(names.begin(), names.end());
  for (const std::string& name : each) {
    if (!is_flight_record(name)) continue;
    const bool here = env.exists(memory + "/" + name);
    const std::string path = (here ? memory : directory) + "/" + name;
    if (env.size(path) > kMostBytes) throw DataError(path + ": is too large for a flight record");
    records.push_back(read_flight_record(env.read(path), path));
  }
  if (records.empty()) throw MissingDataError(directory + ": holds no flight records");
  std::ranges::sort(records, {}, &FlightRecord::rank);
  return records;
}

bool ended_well(const FlightRecord& record) {
  return !record.events.empty() && record.events.back().entry.event == FlightEvent::kEnd;
}

/// Who was seen to end by which rank, where none lived long enough to say so.
std::string without_verdict(const std::vector<FlightRecord>& records) {
  if (std::ranges::all_of(records, ended_well)) return "no verdict: all ranks ended in good order\n";
  std::string text = "no verdict: no rank lived long enough to say one, or all still run\n";
  for (const FlightRecord& record : records) {
    std::vector<std::string_view> lost;
    for (const auto& event : record.events) {
      if (event.entry.event == FlightEvent::kRankLost) lost.push_back(text_in(event.entry.place));
    }
    if (!lost.empty())
      text += printable_line(fmt::format("  rank {} saw that {} died", record.rank, fmt::join(lost, ", "))) +
              "\n";
  }
  return text;
}

std::string line_of(const FlightRecord& record) {
  std::string last = "nothing was noted";
  if (!record.events.empty()) {
    const FlightEntry& entry = record.events.back().entry;
    last = entry.step > 0 ? fmt::format("step {}: {}", entry.step, describe(entry)) : describe(entry);
  }
  return printable_line(fmt::format("rank {:<4} {}, pid {}{}  alive until {}  {}", record.rank, record.host,
                                    record.pid, record.device.empty() ? "" : ", " + record.device,
                                    time_text(record.alive_time), last)) +
         "\n";
}

std::string timeline(const std::vector<FlightRecord>& records, int count) {
  struct RankEvent {
    int rank;
    FlightRecord::Event event;
  };
  std::vector<RankEvent> events;
  for (const FlightRecord& record : records) {
    for (const auto& event : record.events) events.push_back({record.rank, event});
  }
  std::ranges::stable_sort(events, {}, [](const RankEvent& one) { return one.event.time; });
  const auto shown = std::min(events.size(), static_cast<std::size_t>(count));
  std::string text = fmt::format("the last {} of {} events, UTC by rank 0's clock:\n", shown, events.size());
  for (const RankEvent& one : std::span(events).last(shown)) {
    const FlightEntry& entry = one.event.entry;
    text += printable_line(fmt::format("{}  rank {:<4} {}{}", time_text(one.event.time), one.rank,
                                       entry.step > 0 ? fmt::format("step {}: ", entry.step) : "",
                                       describe(entry))) +
            "\n";
  }
  return text;
}

}  // namespace

std::string flight_report(const std::string& run_directory, int start, int events) {
  Env& env = Env::posix();
  const auto starts = flights_of(run_directory);
  if (start == 0) start = starts.back();
  if (std::ranges::find(starts, start) == starts.end())
    throw MissingDataError(fmt::format("{}: holds no flight record of start {}, only of {} to {}",
                                       run_directory, start, starts.front(), starts.back()));
  const auto directory = fmt::format("{}/flight/{:04}", run_directory, start);
  const auto records = read_all(env, directory);
  std::string text = fmt::format("start {} of {} (kept: {} to {}), {} of {} ranks\n", start, run_directory,
                                 starts.front(), starts.back(), records.size(), records.front().world_size);
  const std::string verdict = text_file(env, directory + "/" + kVerdictFile);
  text += verdict.empty() ? without_verdict(records) : printable(verdict);
  for (const FlightRecord& record : records) text += line_of(record);
  return text + timeline(records, events);
}

// A new START for all ranks; those of earlier starts go, but for a few.

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
  return std::filesystem::canonical(directory_of(run_directory, next));
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

}  // namespace

namespace {

/// Of earlier starts that were killed; and what still lies where this one is about to write is of no run any more.
void clear_memory_of_this_machine(const std::string& directory) {
  const std::filesystem::path flights = std::filesystem::path(directory).parent_path();
  try {
    for (const int start : numbers_in(Env::posix(), flights))
      if (const auto earlier = fmt::format("{}/{:04}", flights.string(), start); earlier != directory)
        hand_over_flight_records(earlier);
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): they stay where they are
  }
  forget_flight_records(directory);
  forget_lost_flight_records();
}

}  // namespace

void open_flight_record(Communicator& comm, const std::string& run_directory) {
  if (comm.size() == 1) return;
  const auto directory = gather_text(comm, comm.rank() == 0 ? make_directory(run_directory) : "").front();
  if (directory.empty()) return;
  const auto hosts = gather_hosts(comm);
  const auto first = std::ranges::find(hosts, comm.host()) - hosts.begin();
  if (first == comm.rank()) clear_memory_of_this_machine(directory);
  comm.barrier();
  RankActivity& activity = comm.activity();
  try {
    activity.record_with(
        std::make_unique<FlightRecorder>(directory, FlightRecorder::Who{.rank = comm.rank(),
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
