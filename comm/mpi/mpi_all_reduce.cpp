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
    : comm_(comm), tag_(tag), rounds_(std::move(rounds)), from_(mine), data_(data), buffers_(buffers) {
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
        MPI_Irecv(to, static_cast<int>(round.receive.count), type, round.peer, tag_, comm_, &requests_[0]));
  }
  if (round.send.count > 0) {
    const T* from = from_.data() + round.send.offset;
    LOCKSTEP_MPI(
        MPI_Isend(from, static_cast<int>(round.send.count), type, round.peer, tag_, comm_, &requests_[1]));
  }
}

template <typename T>
void MpiPendingSum<T>::finish_round() {
  const Exchange& round = rounds_[round_];
  if (round.add) {
    const Slice& slice = round.receive;
    add_up(from_.subspan(slice.offset, slice.count), std::span<const T>(incoming(), slice.count),
           data_.subspan(slice.offset, slice.count));
  }
  from_ = data_;
  if (++round_ < rounds_.size()) start_round();
}

template class MpiPendingSum<std::int64_t>;
template class MpiPendingSum<float>;

template <typename T>
std::unique_ptr<PendingCollective> MpiAllReduce::start_sum(std::span<const T> mine, std::span<T> sum) {
  next_tag_ = (next_tag_ + 1) % kTags;
  auto rounds = all_reduce_schedule(rank_, size_, sum.size(), sizeof(T));
  return std::make_unique<MpiPendingSum<T>>(comm_, next_tag_, std::move(rounds), mine, sum, receive_buffers_);
}

std::unique_ptr<PendingCollective> MpiAllReduce::start(std::span<const std::int64_t> mine,
                                                       std::span<std::int64_t> sum) {
  return start_sum(mine, sum);
}

std::unique_ptr<PendingCollective> MpiAllReduce::start(std::span<float> data) {
  return start_sum(std::span<const float>(data), data);
}

// Recursive doubling for small sums, halving and doubling for large ones; of the first ranks, as many as are beyond a
// power of two, every second one joins its neighbour.

namespace {

/// Who takes part: a power of two of ranks. Of each of the first `pairs` pairs of neighbours the even rank does.
struct Members {
  int power = 1, pairs = 0;

  explicit Members(int size)
      : power(static_cast<int>(std::bit_floor(static_cast<unsigned>(size)))), pairs(size - power) {}
  bool is_of_pair(int rank) const { return rank < 2 * pairs; }
  int member_of(int rank) const { return is_of_pair(rank) ? rank / 2 : rank - pairs; }
  int rank_of(int member) const { return member < pairs ? 2 * member : member + pairs; }
  int partner(int rank, int mask) const { return rank_of(member_of(rank) ^ mask); }
};

void append_doubling(std::vector<Exchange>& rounds, int rank, const Members& members, std::size_t count) {
  for (int mask = 1; mask < members.power; mask *= 2)
    rounds.push_back({members.partner(rank, mask), {0, count}, {0, count}, true});
}

/// Partners split their common slice; each keeps a half and adds what the other has of it. Then the same way
/// back. The nearest partner comes first, with the largest half: most likely it is on the same node.
void append_halving(std::vector<Exchange>& rounds, int rank, const Members& members, std::size_t count) {
  const std::size_t first = rounds.size();
  Slice mine{0, count};
  for (int mask = 1; mask < members.power; mask *= 2) {
    const Slice lower{mine.offset, mine.count / 2};
    const Slice upper{mine.offset + lower.count, mine.count - lower.count};
    const bool keep_upper = (members.member_of(rank) & mask) != 0;
    mine = keep_upper ? upper : lower;
    rounds.push_back({members.partner(rank, mask), keep_upper ? lower : upper, mine, true});
  }
  for (std::size_t i = rounds.size(); i-- > first;) {
    rounds.push_back({rounds[i].peer, rounds[i].receive, rounds[i].send, false});
  }
}

}  // namespace

std::vector<Exchange> all_reduce_schedule(int rank, int size, std::size_t count,
                                          std::size_t bytes_per_element) {
  std::vector<Exchange> rounds;
  if (size <= 1 || count == 0) return rounds;
  const Members members(size);
  const Slice all{0, count};
  if (members.is_of_pair(rank) && rank % 2 == 1) {
    rounds.push_back({rank - 1, all, {}, false});
    rounds.push_back({rank - 1, {}, all, false});
    return rounds;
  }
  if (members.is_of_pair(rank)) rounds.push_back({rank + 1, {}, all, true});
  if (count * bytes_per_element >= kHalvingFromBytes) {
    append_halving(rounds, rank, members, count);
  } else {
    append_doubling(rounds, rank, members, count);
  }
  if (members.is_of_pair(rank)) rounds.push_back({rank + 1, all, {}, false});
  return rounds;
}

}  // namespace lockstep
