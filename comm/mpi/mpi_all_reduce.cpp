// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Rounds of one receive and one send; what arrives to be added is added when its round is complete.
#include "comm/mpi/mpi_all_reduce.hpp"

#include "comm/communicator.hpp"
#include "comm/mpi/mpi_runtime.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace lockstep {

namespace {

constexpr int kTags = 32768;  // what every MPI grants; an operation's tag comes back after as many later ones

MPI_Datatype datatype(const std::int64_t* /*type*/) {
  return MPI_INT64_T;
}
MPI_Datatype datatype(const float* /*type*/) {
  return MPI_FLOAT;
}

std::size_t largest_addition(const std::vector<Exchange>& rounds) {
  std::size_t count = 0;
  for (const Exchange& round : rounds) {
    if (round.add) count = std::max(count, round.receive.count);
  }
  return count;
}

}  // namespace

std::vector<std::byte> ReceiveBuffers::take(std::size_t bytes) {
  std::vector<std::byte> buffer;
  if (!free_.empty()) {
    buffer = std::move(free_.back());
    free_.pop_back();
  }
  if (buffer.size() < bytes) buffer.resize(bytes);
  return buffer;
}

void ReceiveBuffers::give_back(std::vector<std::byte> buffer) {
  free_.push_back(std::move(buffer));
}

template <typename T>
MpiPendingSum<T>::MpiPendingSum(MPI_Comm comm, int tag, std::vector<Exchange> rounds, std::span<const T> mine,
                                std::span<T> data, ReceiveBuffers& buffers)
    : comm_(comm), tag_(tag), rounds_(std::move(rounds)), mine_(mine), data_(data), buffers_(buffers) {
  LOCKSTEP_CHECK(data.size() <= static_cast<std::size_t>(std::numeric_limits<int>::max()));
  LOCKSTEP_CHECK(mine.size() == data.size());
  if (rounds_.empty()) {  // one rank
    if (mine.data() != data.data()) std::ranges::copy(mine, data.begin());
    return;
  }
  incoming_ = buffers_.take(largest_addition(rounds_) * sizeof(T));
  start_round();
}

template <typename T>
MpiPendingSum<T>::~MpiPendingSum() {
  const bool complete = round_ == rounds_.size();
  if (complete && !incoming_.empty()) buffers_.give_back(std::move(incoming_));
  if (complete) return;
  // Abandoned: the job is ending. MPI may still write here, so the memory is left to it.
  static_cast<void>(new std::vector<std::byte>(std::move(incoming_)));  // NOLINT: leaked on purpose
  for (MPI_Request& request : requests_) {
    if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  }
}

template <typename T>
bool MpiPendingSum<T>::test() {
  while (round_ < rounds_.size()) {
    int complete = 0;
    LOCKSTEP_MPI(MPI_Testall(2, requests_.data(), &complete, MPI_STATUSES_IGNORE));
    if (complete == 0) return false;
    finish_round();
  }
  return true;
}

template <typename T>
void MpiPendingSum<T>::start_round() {
  const Exchange& round = rounds_[round_];
  MPI_Datatype type = datatype(data_.data());
  if (round.receive.count > 0) {
    T* to = round.add ? incoming() : data_.data() + round.receive.offset;
    LOCKSTEP_MPI(
        MPI_Irecv(to, static_cast<int>(round.receive.count), type, round.from, tag_, comm_, &requests_[0]));
  }
  if (round.send.count > 0) {
    const T* from = (round.own ? mine_.data() : data_.data()) + round.send.offset;
    LOCKSTEP_MPI(
        MPI_Isend(from, static_cast<int>(round.send.count), type, round.to, tag_, comm_, &requests_[1]));
  }
}

template <typename T>
void MpiPendingSum<T>::finish_round() {
  const Exchange& round = rounds_[round_];
  if (round.add && round.receive.count > 0) {
    const Slice& slice = round.receive;
    const std::span<const T> so_far = added_ ? std::span<const T>(data_) : mine_;
    add_up(so_far.subspan(slice.offset, slice.count), std::span<const T>(incoming(), slice.count),
           data_.subspan(slice.offset, slice.count));
    added_ = true;
  }
  if (++round_ < rounds_.size()) start_round();
}

template class MpiPendingSum<std::int64_t>;
template class MpiPendingSum<float>;

template <typename T>
std::unique_ptr<PendingCollective> MpiAllReduce::start_sum(std::span<const T> mine, std::span<T> sum) {
  next_tag_ = (next_tag_ + 1) % kTags;
  auto rounds = all_reduce_schedule(rank_, size_, sum.size(), sizeof(T), ranks_per_host_);
  return std::make_unique<MpiPendingSum<T>>(comm_, next_tag_, std::move(rounds), mine, sum, receive_buffers_);
}

std::unique_ptr<PendingCollective> MpiAllReduce::start(std::span<const std::int64_t> mine,
                                                       std::span<std::int64_t> sum) {
  return start_sum(mine, sum);
}

std::unique_ptr<PendingCollective> MpiAllReduce::start(std::span<float> data) {
  return start_sum(std::span<const float>(data), data);
}

// Levels: groups of neighbours, and which rank has which part behind them.

namespace {

/// The i-th of so many parts; none behind the last.
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
  int guests;     ///< so many groups, the first ones, have a rank more, their last, which keeps none
  int place = 0;  ///< this rank's in its group

  int start(int group) const { return group * parts + std::min(group, guests); }
  int size(int group) const { return parts + (group < guests ? 1 : 0); }
  int group_of(int index) const {
    return index < start(guests) ? index / (parts + 1) : (index - guests) / parts;
  }
};

/// A power of two of ranks; those beyond it are guests.
Level to_power_of_two(int size) {
  return {1, size - static_cast<int>(std::bit_floor(static_cast<unsigned>(size)))};
}

/// @param ranks_per_host  that are left of a host: groups divide them; 0: not known
Level next_level(int size, int ranks_per_host) {
  const bool is_power = std::has_single_bit(static_cast<unsigned>(size));
  if (ranks_per_host == 0 && !is_power) return to_power_of_two(size);
  for (const int parts : {2, 3, 5}) {
    if ((ranks_per_host > 1 ? ranks_per_host : size) % parts == 0) return {parts, size % parts};
  }
  const int parts = size < 13 ? 3 : 4;  // there are more groups than guests
  return {parts, size % parts};
}

/// The rank that has this index behind these levels.
int rank_behind(const std::vector<Level>& levels, int index) {
  for (auto level = levels.rbegin(); level != levels.rend(); ++level)
    index = level->start(index) + level->place;
  return index;
}

/// One of `size` ranks, which are `stride` apart from `first` on: recursive doubling among a power of two of them. The
/// others give their sum to the one before them; what they get back at last is appended to `back`.
/// @returns whether this rank has the sum behind these rounds
bool append_doubling(std::vector<Exchange>& rounds, std::vector<Exchange>& back, int index, int size,
                     int first, int stride, const Slice& all) {
  const Level pairs = to_power_of_two(size);
  const int pair = pairs.group_of(index), member = pairs.start(pair);
  const auto rank_of = [&](int other) { return first + other * stride; };
  if (index != member) {
    rounds.push_back({rank_of(member), rank_of(member), all, {}, false, rounds.empty()});
    back.push_back({rank_of(member), rank_of(member), {}, all});
    return false;
  }
  if (pairs.size(pair) > 1) {
    rounds.push_back({rank_of(index + 1), rank_of(index + 1), {}, all, true});
    back.push_back({rank_of(index + 1), rank_of(index + 1), all, {}});
  }
  for (int mask = 1; mask < size - pairs.guests; mask *= 2) {
    const int partner = rank_of(pairs.start(pair ^ mask));
    rounds.push_back({partner, partner, all, all, true, rounds.empty()});
  }
  return true;
}

/// Inside each host and then between them where that takes no more rounds between hosts; otherwise among all.
std::vector<Exchange> doubling(int rank, int size, std::size_t count, int ranks_per_host) {
  std::vector<Exchange> rounds, back;
  const bool by_hosts =
      ranks_per_host > 0 && std::has_single_bit(static_cast<unsigned>(size / ranks_per_host));
  const int here = by_hosts ? ranks_per_host : size, place = rank % here;
  if (append_doubling(rounds, back, place, here, rank - place, 1, {0, count}))
    append_doubling(rounds, back, rank / here, size / here, place, here, {0, count});
  rounds.insert(rounds.end(), back.rbegin(), back.rend());
  return rounds;
}

/// In each group all give each other their parts, one partner after the other; then the same way back.
std::vector<Exchange> sharing_out(int rank, int size, std::size_t count, int ranks_per_host) {
  std::vector<Exchange> rounds;
  std::vector<Level> levels;
  Slice mine{0, count};
  for (int index = rank; size > 1;) {
    Level level = next_level(size, ranks_per_host);
    const int group = level.group_of(index), start = level.start(group), members = level.size(group);
    level.place = index - start;
    const Slice kept = part_of(mine, level.parts, level.place);
    const bool own = rounds.empty();
    for (int distance = 1; distance < members; ++distance) {
      const int to = (level.place + distance) % members, from = (level.place + members - distance) % members;
      rounds.push_back({rank_behind(levels, start + to), rank_behind(levels, start + from),
                        part_of(mine, level.parts, to), kept, true, own});
    }
    if (level.place == level.parts) break;
    mine = kept;
    levels.push_back(level);
    index = group;
    size = (size - level.guests) / level.parts;
    ranks_per_host = ranks_per_host % level.parts == 0 ? ranks_per_host / level.parts : 1;
  }
  for (std::size_t i = rounds.size(); i-- > 0;) {
    const Exchange& out = rounds[i];
    rounds.push_back({out.from, out.to, out.receive, out.send});
  }
  return rounds;
}

}  // namespace

std::vector<Exchange> all_reduce_schedule(int rank, int size, std::size_t count,
                                          std::size_t bytes_per_element, int ranks_per_host) {
  if (size <= 1 || count == 0) return {};
  return count * bytes_per_element < kSharedOutFromBytes ? doubling(rank, size, count, ranks_per_host)
                                                         : sharing_out(rank, size, count, ranks_per_host);
}

}  // namespace lockstep
