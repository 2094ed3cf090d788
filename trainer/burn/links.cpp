// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Messages and sums whose contents every rank knows. In each turn of a tournament every rank has one partner: they
/// send each other a message, both ways at once, and sum integers, the two of them alone; then all ranks sum integers.
#include "comm/agreement.hpp"
#include "comm/collectives.hpp"
#include "common/text_layout.hpp"
#include "kernels/numerics/fingerprint.hpp"
#include "trainer/burn/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <thread>

namespace lockstep::burn {
namespace {

using Word = std::int64_t;

constexpr std::size_t kMessageWords = std::size_t{128} << 10;  // 1 MiB
constexpr std::size_t kSumWords = std::size_t{16} << 10;
constexpr int kMostTurnsAtLeast = 15;  ///< lower limit on a round's turns, or all partners if they are fewer

/// The partner of `rank` in a turn of the circle method; itself where it has none.
int partner_of(int rank, int ranks, std::int64_t turn) {
  const int even = ranks + ranks % 2, circle = even - 1;
  const int t = static_cast<int>(turn % circle);
  int partner = rank == circle ? t : ((2 * t - rank) % circle + circle) % circle;
  if (partner == rank) partner = circle;
  return partner < ranks ? partner : rank;
}

/// Each message and sum needs its own numbers, on every rank.
std::uint64_t burn_key(std::int64_t a, std::int64_t b, std::int64_t c) {
  std::uint64_t key = 0xB0;
  for (const std::int64_t number : {a, b, c}) key = mix_bits(key ^ static_cast<std::uint64_t>(number));
  return key;
}

void fill_words(std::span<Word> words, std::uint64_t key) {
  for (Word& word : words) word = static_cast<Word>(mix_bits(key++));
}

/// Wraps around, as sums do.
std::vector<Word> multiples(std::vector<Word> words, std::uint64_t factor) {
  for (Word& word : words) word = static_cast<Word>(static_cast<std::uint64_t>(word) * factor);
  return words;
}

class Links final : public BurnCheck {
 public:
  explicit Links(const BurnRank& rank)
      : rank_(rank),
        comm_(rank.comm),
        views_(static_cast<std::size_t>(comm_.size())),
        sent_(kMessageWords),
        received_(kMessageWords),
        expected_(kMessageWords) {}

  void work(const CheckTime& slice) override {
    const int at_least = std::min(comm_.size() - 1 + comm_.size() % 2, kMostTurnsAtLeast);
    bool goes_on = true;
    for (int done = 1; goes_on; ++done, ++turn_) {
      const int partner = partner_of(comm_.rank(), comm_.size(), turn_);
      if (partner != comm_.rank()) exchange_with(partner);
      sum_of_pairs(partner);
      sum_of_all();
      rank_.tick("links");
      goes_on = done < at_least || !slice.is_over();
      broadcast(comm_, goes_on);
    }
  }

  void report(RankResult& result) const override {
    std::int64_t messages = 0, partners = 0;
    for (const LinkView& view : views_) {
      if (view.received == 0) continue;
      result.links.push_back(view);
      messages += view.received;
      ++partners;
    }
    result.wrong_sums_of_all = wrong_sums_of_all_;
    result.exercised["links"] =
        fmt::format("{} of 1.0 MiB from {} of {}, {} of pairs, {} of all", counted(messages, "message"),
                    partners, counted(comm_.size() - 1, "other rank"), counted(sums_of_pairs_, "sum"),
                    with_thousands(sums_of_all_));
  }

 private:
  /// The quickest of a few exchanges; small ones before each, so that both are there.
  void exchange_with(int partner) {
    constexpr int kTimes = 3;
    LinkView& view = at(views_, partner);
    view.with = partner;
    for (int i = 0; i < kTimes; ++i) {
      const std::int64_t number = turn_ * kTimes + i;
      fill_words(sent_, burn_key(comm_.rank(), partner, number));
      if (rank_.commits("message")) ++sent_.back();
      measure_latency(partner, view);
      const auto start = Clock::now();
      send_and_receive(comm_, std::as_bytes(std::span(sent_)), partner,
                       std::as_writable_bytes(std::span(received_)), partner);
      if (rank_.commits("slow-link")) std::this_thread::sleep_for(std::chrono::milliseconds(150));
      // The answer: a rank whose sends are late is late here, too, whichever side measures.
      exchange_turns(partner);
      keep_quickest(view.seconds, seconds_since(start));
      view.bytes = static_cast<std::int64_t>(sent_.size() * sizeof(Word));
      ++view.received;
      fill_words(expected_, burn_key(partner, comm_.rank(), number));
      if (expected_ != received_) ++view.damaged;
    }
  }

  /// Makes two exchanges; the second one begins with the data of the first. However late a rank arrives, both
  /// wait for a message that was not under way before.
  void measure_latency(int partner, LinkView& view) {
    constexpr int kTries = 8;
    exchange_turns(partner);
    for (int i = 0; i < kTries; ++i) {
      const auto start = Clock::now();
      exchange_turns(partner);
      exchange_turns(partner);
      keep_quickest(view.latency, seconds_since(start));
    }
  }

  void exchange_turns(int partner) {
    std::int64_t there = 0;
    send_and_receive(comm_, std::as_bytes(std::span(&turn_, 1)), partner,
                     std::as_writable_bytes(std::span(&there, 1)), partner);
  }

  /// Rank r gives (r + 1) times what all know, so that the sum is known without adding.
  bool sums_up(Communicator& comm, std::uint64_t key, std::uint64_t weight, std::uint64_t all_weights) {
    std::vector<Word> words(kSumWords);
    fill_words(words, key);
    std::vector<Word> sum = multiples(words, weight);
    if (rank_.commits("sum")) ++sum.back();
    comm.all_reduce(std::span(sum));
    return sum == multiples(words, all_weights);
  }

  void sum_of_pairs(int partner) {
    const auto [low, high] = std::minmax({partner, comm_.rank()});
    const std::unique_ptr<Communicator> pair = comm_.split(low);
    if (low == high) return;
    const auto key = burn_key(low, high, ~turn_);  // ~: messages have the other numbers
    ++sums_of_pairs_;
    if (!sums_up(*pair, key, comm_.rank() == low ? 1 : 2, 3)) ++at(views_, partner).wrong_sums;
  }

  void sum_of_all() {
    const auto ranks = static_cast<std::uint64_t>(comm_.size());
    ++sums_of_all_;
    if (!sums_up(comm_, burn_key(comm_.size(), comm_.size(), turn_),
                 static_cast<std::uint64_t>(comm_.rank() + 1), ranks * (ranks + 1) / 2))
      ++wrong_sums_of_all_;
  }

  const BurnRank rank_;
  Communicator& comm_;
  std::int64_t turn_ = 0;
  std::vector<LinkView> views_;
  std::vector<Word> sent_, received_, expected_;
  std::int64_t sums_of_pairs_ = 0, sums_of_all_ = 0, wrong_sums_of_all_ = 0;
};

}  // namespace

std::unique_ptr<BurnCheck> make_links(const BurnRank& rank) {
  return rank.comm.size() == 1 ? nullptr : std::make_unique<Links>(rank);
}

}  // namespace lockstep::burn
