// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Levels: groups of neighbours, and which rank has which part after them. No message is sent here.
#include "comm/mpi/mpi_all_reduce.hpp"

#include <algorithm>
#include <bit>

namespace lockstep {

namespace {

/// The i-th of so many parts; none after the last.
Slice part_of(const Slice& slice, int parts, int i) {
  if (i >= parts) return {};
  const auto bound = [&](int at) {
    return slice.count * static_cast<std::size_t>(at) / static_cast<std::size_t>(parts);
  };
  return {slice.offset + bound(i), bound(i + 1) - bound(i)};
}

/// Ranks with the same slice, in groups of neighbours. The groups' ranks with the same part are the next level's.
struct Level {
  int parts;      ///< as many ranks of each group keep a part of the slice
  int groups;     ///< so many
  int guests;     ///< so many groups, the last ones, have a rank more, their last, which keeps none
  int place = 0;  ///< this rank's in its group

  int start(int group) const { return group * parts + std::max(0, group - (groups - guests)); }
  int size(int group) const { return parts + (group < groups - guests ? 0 : 1); }
  int group_of(int index) const {
    const int without = groups - guests, beyond = index - without * parts;
    return beyond < 0 ? index / parts : without + beyond / (parts + 1);
  }
};

/// @param here  ranks of a host: groups divide them, if they can; 1: groups divide all
Level next_level(int size, int here) {
  for (const int parts : {2, 3, 5, 7})
    if ((here > 1 ? here : size) % parts == 0) return {parts, size / parts, size % parts};
  const int parts = size < 13 ? 3 : 4;  // there are more groups than guests
  return {parts, size / parts, size % parts};
}

/// The rank that has this index after these levels.
int rank_behind(const std::vector<Level>& levels, int index) {
  for (auto level = levels.rbegin(); level != levels.rend(); ++level)
    index = level->start(index) + level->place;
  return index;
}

/// One of `size` ranks, at a distance of `stride` from `first` on. Recursive doubling among a power of two of them.
/// The others give their sum to the one before them; what they get back at last is appended to `back`.
/// @returns true if this rank has the sum after these rounds
bool append_doubling(std::vector<Exchange>& rounds, std::vector<Exchange>& back, int index, int size,
                     int first, int stride, const Slice& all) {
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(size)));
  const Level pairs{1, power, size - power};  // those beyond a power of two of ranks are guests
  const int pair = pairs.group_of(index), member = pairs.start(pair);
  const auto rank_of = [&](int other) { return first + other * stride; };
  if (index != member) {
    rounds.push_back({rank_of(member), rank_of(member), all, {}, false, rounds.empty()});
    back.push_back({rank_of(member), rank_of(member), {}, all});
    return false;
  }
  if (pairs.size(pair) > 1) {
    rounds.push_back({rank_of(index + 1), rank_of(index + 1), {}, all, true, false, rounds.empty()});
    back.push_back({rank_of(index + 1), rank_of(index + 1), all, {}});
  }
  for (int mask = 1; mask < power; mask *= 2) {
    const int partner = rank_of(pairs.start(pair ^ mask));
    rounds.push_back({partner, partner, all, all, true, rounds.empty(), rounds.empty()});
  }
  return true;
}

/// Inside each host and then between them where that takes no more rounds between hosts; otherwise among all.
std::vector<Exchange> doubling(int rank, int size, std::size_t count, int ranks_per_host) {
  std::vector<Exchange> rounds, back;
  const bool by_hosts =
      size % ranks_per_host == 0 && std::has_single_bit(static_cast<unsigned>(size / ranks_per_host));
  const int here = by_hosts ? ranks_per_host : size, place = rank % here;
  if (append_doubling(rounds, back, place, here, rank - place, 1, {0, count}))
    append_doubling(rounds, back, rank / here, size / here, place, here, {0, count});
  rounds.insert(rounds.end(), back.rbegin(), back.rend());
  return rounds;
}

/// The hosts' ranks and how they share out, each host for itself at first. A full host makes units of the buffer, of
/// which a rank keeps one; the ranks of a last host that is not full keep some.
struct Hosts {
  int per_host, full, last;  ///< ranks of a full host; full hosts; ranks of one more, which is not
  std::vector<Level> of_full, of_last;
  int units = 1;
  int left = per_host;  ///< ranks of a full host that have the same unit then

  Hosts(int size, int ranks_per_host)
      : per_host(std::min(size, ranks_per_host)), full(size / per_host), last(size % per_host) {
    constexpr int kMostUnits = 8;  // units of a rank
    int most = last > 0 ? kMostUnits : size;
    for (int ranks = last; ranks > 1; ranks = of_last.back().groups) {
      of_last.push_back(next_level(ranks, 1));
      most *= of_last.back().parts;
    }
    while (left > 1) {
      const Level level = next_level(left, 1);
      if (units * level.parts > most) break;
      of_full.push_back(level);
      units *= level.parts;
      left = level.groups;
    }
  }

  Slice elements(const Slice& of_units, std::size_t count) const {
    const auto bound = [&](std::size_t unit) { return count * unit / static_cast<std::size_t>(units); };
    return {bound(of_units.offset), bound(of_units.offset + of_units.count) - bound(of_units.offset)};
  }
  /// The index-th rank that has a unit; the last host's ranks come after those of the others.
  int rank_of(std::size_t unit, int index) const {
    const int host = index / left;
    return host * per_host + rank_with(unit, host < full ? of_full : of_last, index % left, all_units());
  }
  Slice all_units() const { return {0, static_cast<std::size_t>(units)}; }

 private:
  /// The index-th of a host's ranks that have this unit after these levels.
  static int rank_with(std::size_t unit, std::span<const Level> levels, int index, const Slice& of_units) {
    if (levels.empty()) return index;
    const Level& level = levels.front();
    int place = 0;
    Slice part = part_of(of_units, level.parts, 0);
    while (unit >= part.offset + part.count) part = part_of(of_units, level.parts, ++place);
    return level.start(rank_with(unit, levels.subspan(1), index, part)) + place;
  }
};

/// One level: in each group all give each other their parts, of all slices at once.
/// @param one_by_one  one partner after the other
/// @param part        (number of the slice, place in the group): what that rank keeps
/// @param rank_of     (number of the slice, index)
void append_level(std::vector<Exchange>& rounds, const Level& level, int group, std::size_t slices,
                  bool one_by_one, const auto& part, const auto& rank_of) {
  const bool own = rounds.empty();
  const int start = level.start(group), members = level.size(group);
  for (int distance = 1; distance < members; ++distance) {
    const int to = (level.place + distance) % members, from = (level.place + members - distance) % members;
    for (std::size_t i = 0; i < slices; ++i) {
      rounds.push_back({rank_of(i, start + to), rank_of(i, start + from), part(i, to), part(i, level.place),
                        true, own, own && distance == 1, i > 0 || (distance > 1 && !one_by_one)});
    }
  }
}

/// Inside its host. @param index  this rank's there; at last, among those with the same units
/// @returns the units that it keeps
Slice append_inside_host(std::vector<Exchange>& rounds, const Hosts& hosts, int host, int& index,
                         std::size_t count) {
  std::vector<Level> levels;
  Slice units = hosts.all_units();
  for (Level level : host < hosts.full ? hosts.of_full : hosts.of_last) {
    const int group = level.group_of(index);
    level.place = index - level.start(group);
    append_level(
        rounds, level, group, 1, true,
        [&](std::size_t, int place) { return hosts.elements(part_of(units, level.parts, place), count); },
        [&](std::size_t, int other) { return host * hosts.per_host + rank_behind(levels, other); });
    units = part_of(units, level.parts, level.place);
    if (units.count == 0) break;
    levels.push_back(level);
    index = group;
  }
  return units;
}

/// Among all that have these units. @param index  this rank's among those with each of them
void append_between_hosts(std::vector<Exchange>& rounds, const Hosts& hosts, int index, const Slice& units,
                          std::size_t count) {
  std::vector<Level> levels;
  std::vector<Slice> slices;
  for (std::size_t i = 0; i < units.count; ++i)
    slices.push_back(hosts.elements({units.offset + i, 1}, count));
  int here = hosts.left;
  for (int size = hosts.full * here + (hosts.last > 0 ? 1 : 0); size > 1;) {
    const bool joins = here > 1 && size % here > 0;  // the last host's rank, before a full host's go on
    Level level = joins ? Level{1, size - 1, 1} : next_level(size, here);
    const int group = level.group_of(index);
    level.place = index - level.start(group);
    append_level(
        rounds, level, group, slices.size(), here > 1,
        [&](std::size_t i, int place) { return part_of(slices[i], level.parts, place); },
        [&](std::size_t i, int other) {
          return hosts.rank_of(units.offset + i, rank_behind(levels, other));
        });
    if (level.place == level.parts) break;
    for (Slice& slice : slices) slice = part_of(slice, level.parts, level.place);
    levels.push_back(level);
    index = group;
    size = level.groups;
    here = here % level.parts == 0 ? here / level.parts : 1;
  }
}

/// Level by level until one rank has each part; then the same way back.
std::vector<Exchange> sharing_out(int rank, int size, std::size_t count, int ranks_per_host) {
  std::vector<Exchange> rounds;
  const Hosts hosts(size, ranks_per_host);
  const int host = rank / hosts.per_host;
  int index = rank % hosts.per_host;
  const Slice units = append_inside_host(rounds, hosts, host, index, count);
  if (units.count > 0) append_between_hosts(rounds, hosts, host * hosts.left + index, units, count);
  bool together = false;
  for (std::size_t i = rounds.size(); i-- > 0;) {
    const Exchange out = rounds[i];
    rounds.push_back({out.from, out.to, out.receive, out.send, false, false, false, together});
    together = out.together;
  }
  return rounds;
}

}  // namespace

std::vector<Exchange> all_reduce_schedule(int rank, int size, std::size_t count,
                                          std::size_t bytes_per_element, int ranks_per_host) {
  if (count == 0) return {};
  return count * bytes_per_element < kSharedOutFromBytes ? doubling(rank, size, count, ranks_per_host)
                                                         : sharing_out(rank, size, count, ranks_per_host);
}

}  // namespace lockstep
