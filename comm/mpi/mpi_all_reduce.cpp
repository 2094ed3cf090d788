// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Rounds of receives and sends, mostly one of each. Arriving terms are added when their round is complete.
#include "comm/mpi/mpi_all_reduce.hpp"

#include "comm/mpi/mpi_runtime.hpp"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <utility>

namespace lockstep {

namespace {

/// Elements that arrive to be added in one round, at most.
std::size_t largest_addition(const std::vector<Exchange>& rounds) {
  std::size_t largest = 0, count = 0;
  for (const Exchange& exchange : rounds) {
    if (!exchange.together) count = 0;
    if (exchange.add) count += exchange.receive.count;
    largest = std::max(largest, count);
  }
  return largest;
}

}  // namespace

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
  if (!buffers_.empty()) {
    incoming_ = std::move(buffers_.back());
    buffers_.pop_back();
  }
  const std::size_t bytes = largest_addition(rounds_) * sizeof(T);
  if (incoming_.size() < bytes) incoming_.resize(bytes);
  start_round();
}

template <typename T>
MpiPendingSum<T>::~MpiPendingSum() {
  const bool complete = round_ == rounds_.size();
  if (complete && !incoming_.empty()) buffers_.push_back(std::move(incoming_));
  if (complete) return;
  // Abandoned: the job is ending. MPI may still write here, so the memory is left to it.
  static_cast<void>(new std::vector<std::byte>(std::move(incoming_)));  // NOLINT: leaked on purpose
  for (MPI_Request& request : requests_)
    if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
}

template <typename T>
bool MpiPendingSum<T>::test() {
  while (round_ < rounds_.size()) {
    int complete = 0;
    LOCKSTEP_MPI(
        MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &complete, MPI_STATUSES_IGNORE));
    if (complete == 0) return false;
    finish_round();
  }
  return true;
}

template <typename T>
void MpiPendingSum<T>::start_round() {
  const MPI_Datatype type = std::is_same_v<T, float> ? MPI_FLOAT : MPI_INT64_T;
  T* incoming = this->incoming();
  requests_.clear();
  do {
    const Exchange& exchange = rounds_[next_round_];
    const Slice &receive = exchange.receive, &send = exchange.send;
    if (receive.count > 0) {
      T* to =
          exchange.add ? std::exchange(incoming, incoming + receive.count) : data_.data() + receive.offset;
      MPI_Request& request = requests_.emplace_back(MPI_REQUEST_NULL);
      LOCKSTEP_MPI(
          MPI_Irecv(to, static_cast<int>(receive.count), type, exchange.from, tag_, comm_, &request));
    }
    if (send.count > 0) {
      const T* from = (exchange.own ? mine_.data() : data_.data()) + send.offset;
      MPI_Request& request = requests_.emplace_back(MPI_REQUEST_NULL);
      LOCKSTEP_MPI(MPI_Isend(from, static_cast<int>(send.count), type, exchange.to, tag_, comm_, &request));
    }
  } while (++next_round_ < rounds_.size() && rounds_[next_round_].together);
}

template <typename T>
void MpiPendingSum<T>::finish_round() {
  const T* incoming = this->incoming();
  for (; round_ < next_round_; ++round_) {
    const Exchange& exchange = rounds_[round_];
    const auto& [offset, count] = exchange.receive;
    if (!exchange.add || count == 0) continue;
    const std::span<const T> so_far = exchange.first ? mine_ : std::span<const T>(data_);
    add_up(so_far.subspan(offset, count), std::span(incoming, count), data_.subspan(offset, count));
    incoming += count;
  }
  if (round_ < rounds_.size()) start_round();
}

template class MpiPendingSum<std::int64_t>;
template class MpiPendingSum<float>;

template <typename T>
std::unique_ptr<PendingCollective> MpiAllReduce::start_sum(std::span<const T> mine, std::span<T> sum) {
  next_tag_ = (next_tag_ + 1) % PointToPoint::kTags;
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

}  // namespace lockstep
