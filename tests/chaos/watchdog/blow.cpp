// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/chaos/watchdog/trial.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::chaos {

namespace {

using Kind = Blow::Kind;
using std::chrono::milliseconds;

}  // namespace

std::set<int> Blow::victims() const {
  std::set<int> ranks;
  for (const int rank : {victim, second}) {
    if (rank >= 0) ranks.insert(rank);
  }
  return ranks;
}

std::string Blow::describe() const {
  const std::string when =
      fmt::format("{:.1f} ms after step {}", static_cast<double>(delay.count()) * 1e-3, step);
  switch (kind) {
    case Kind::kNone:
      return "left alone";
    case Kind::kKill:
      return fmt::format("rank {} killed {}", victim, when);
    case Kind::kKillTwo:
      return fmt::format("ranks {} and {} killed {}", victim, second, when);
    case Kind::kKillAnother:
      return fmt::format("rank {} killed {}, rank {} {} ms later", victim, when, second, pause.count());
    case Kind::kStopForGood:
      return fmt::format("rank {} stopped {}", victim, when);
    case Kind::kStopAndGoOn:
      return fmt::format("rank {} stopped {}, let go {} ms after it was named", victim, when, pause.count());
    case Kind::kStopShortly:
      return fmt::format("rank {} stopped {} for {} ms", victim, when, pause.count());
  }
  return "";
}

Placement watched_placement(Dice& dice, Kind kind) {
  Placement placement;
  const bool two = kind == Kind::kKillTwo || kind == Kind::kKillAnother;
  placement.ranks = static_cast<int>(dice.between(two ? 3 : 2, 5));
  if (dice.percent(33)) {
    placement.ranks = static_cast<int>(dice.between(two ? 3 : 2, 4));
    placement.stages = placement.ranks == 4 && dice.percent(50) ? 2 : placement.ranks;
  }
  placement.timeout_seconds = kind == Kind::kStopForGood ? static_cast<int>(dice.between(4, 8)) : 60;
  if (dice.percent(50)) placement.launcher_kills_after_seconds = 2;  // as launch/run has it
  return placement;
}

Blow random_blow(Dice& dice, Kind kind, int ranks, std::int64_t most_steps) {
  Blow blow{.kind = kind};
  blow.step = dice.between(1, most_steps);
  blow.delay = std::chrono::microseconds(dice.between(0, 15'000));
  if (kind == Kind::kNone) return blow;
  blow.victim = static_cast<int>(dice.between(0, ranks - 1));
  if (kind == Kind::kKillTwo || kind == Kind::kKillAnother)
    blow.second = static_cast<int>((blow.victim + dice.between(1, ranks - 1)) % ranks);
  if (kind == Kind::kKillAnother) blow.pause = milliseconds(dice.between(20, 400));
  if (kind == Kind::kStopAndGoOn) blow.pause = milliseconds(dice.between(0, 2000));
  if (kind == Kind::kStopShortly) blow.pause = milliseconds(dice.between(50, 1500));
  return blow;
}

Kind random_kill(Dice& dice) {
  const auto choice = dice.between(1, 100);
  return choice <= 70 ? Kind::kKill : choice <= 85 ? Kind::kKillTwo : Kind::kKillAnother;
}

Kind random_stop(Dice& dice) {
  const auto choice = dice.between(1, 100);
  return choice <= 50 ? Kind::kStopForGood : choice <= 80 ? Kind::kStopAndGoOn : Kind::kStopShortly;
}

// By its environment.

namespace {

/// Rank of a process; -1: it may be gone.
int rank_of(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/environ", pid), std::ios::binary);
  const std::string environment = '\0' + std::string{std::istreambuf_iterator<char>(file), {}};
  const std::string name("\0OMPI_COMM_WORLD_RANK=", 22);
  const std::size_t at = environment.find(name);
  return at == name.npos ? -1
                         : static_cast<int>(std::strtol(environment.c_str() + at + name.size(), nullptr, 10));
}

}  // namespace

std::vector<pid_t> processes_by_rank(const std::vector<pid_t>& processes, int ranks) {
  std::vector<pid_t> pids(static_cast<std::size_t>(ranks), 0);
  for (const pid_t pid : processes) {
    const int rank = rank_of(pid);
    if (rank >= 0 && rank < ranks) pids[static_cast<std::size_t>(rank)] = pid;
  }
  if (std::ranges::count(pids, 0) > 0) pids.clear();
  return pids;
}

namespace {

/// Text after `words`; nothing if they are not there.
std::optional<std::string> behind(const std::string& line, std::string_view words) {
  const auto at = line.find(words);
  if (at == line.npos) return std::nullopt;
  return line.substr(at + words.size());
}

/// "ranks 0-2, 5" as it stands at the start of `text`; empty: it is no list of ranks.
std::set<int> read_ranks(const std::string& text) {
  std::set<int> ranks;
  const char* at = text.c_str();
  if (text.starts_with("rank ")) at += 5;
  if (text.starts_with("ranks ")) at += 6;
  if (at == text.c_str()) return ranks;
  while (true) {
    char* end = nullptr;
    const auto first = std::strtol(at, &end, 10);
    if (end == at) return ranks;
    auto last = first;
    if (*end == '-') last = std::strtol(end + 1, &end, 10);
    for (auto rank = first; rank <= last; ++rank) ranks.insert(static_cast<int>(rank));
    if (*end != ',') return ranks;
    at = end + 1;
  }
}

void read_line(const std::string& line, Said& said) {
  if (const auto headline = behind(line, "lockstep: verdict: ")) {
    if (said.verdicts++ == 0) said.headline = *headline;
    return;
  }
  if (const auto ranks = behind(line, "lockstep:   initiating: ")) {
    said.initiating = read_ranks(*ranks);
    if (const auto others = behind(*ranks, "; cascading: ")) said.cascading = read_ranks(*others);
    return;
  }
  const auto notice = behind(line, "lockstep: rank ");
  if (!notice) return;
  const int rank = static_cast<int>(std::strtol(notice->c_str(), nullptr, 10));
  if (behind(*notice, ") is silent for ")) said.silent.insert(rank);
  if (behind(*notice, ") is back after ")) said.back.insert(rank);
  if (behind(*notice, ") is alive, but has been in ")) said.stuck.insert(rank);
  if (behind(*notice, " hears no other rank ")) said.hears_nobody = true;
}

}  // namespace

Said read_said(const std::string& text) {
  Said said;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) read_line(line, said);
  return said;
}

namespace {

constexpr std::chrono::milliseconds kBeat{100};
constexpr double kComputes = 0.005;

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

MachinePulse::MachinePulse() : thread_([this] { run(); }) {}

MachinePulse::~MachinePulse() {
  ending_ = true;
  thread_.join();
}

void MachinePulse::run() {
  const auto seconds = [](Clock::duration time) { return std::chrono::duration<double>(time).count(); };
  while (!ending_) {
    const auto before = Clock::now();
    std::this_thread::sleep_for(kBeat);
    const auto awake = Clock::now();
    const double start = thread_seconds();
    while (thread_seconds() - start < kComputes) {
    }
    const auto done = Clock::now();
    const std::lock_guard lock(mutex_);
    beats_.push_back(
        {done, seconds(awake - before - kBeat), seconds(done - awake), thread_seconds() - start});
  }
}

double MachinePulse::latest_since(Clock::time_point since) const {
  const std::lock_guard lock(mutex_);
  double latest = 0;
  // NOLINTNEXTLINE(modernize-loop-convert): clang 14 does not read std::views::reverse
  for (auto beat = beats_.rbegin(); beat != beats_.rend(); ++beat) {
    if (beat->when < since) break;
    latest = std::max(latest, beat->late);
  }
  return latest;
}

double MachinePulse::slowness_since(Clock::time_point since) const {
  const std::lock_guard lock(mutex_);
  double wall = 0, computed = 0;
  // NOLINTNEXTLINE(modernize-loop-convert): clang 14 does not read std::views::reverse
  for (auto beat = beats_.rbegin(); beat != beats_.rend(); ++beat) {
    if (beat->when < since) break;
    wall += beat->wall;
    computed += beat->computed;
  }
  return computed > 0 ? wall / computed : 1;
}

Hog::Hog(unsigned threads) {
  for (unsigned i = 0; i < threads; ++i)
    threads_.emplace_back([this] {
      while (!ending_.load(std::memory_order_relaxed)) {
      }
    });
}

Hog::~Hog() {
  ending_ = true;
  for (std::thread& thread : threads_) thread.join();
}

}  // namespace lockstep::chaos
