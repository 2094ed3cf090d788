// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/chaos/watchdog/blow.hpp"

#include <fmt/format.h>

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

}  // namespace lockstep::chaos
