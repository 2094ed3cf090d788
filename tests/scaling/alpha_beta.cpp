// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Plays the rounds of all ranks through, message by message.
#include "comm/reduce/bucket_plan.hpp"
#include "common/error.hpp"
#include "tests/scaling/scenario.hpp"
#include "tests/support/prelude.hpp"

#include <charconv>

namespace lockstep {

namespace {

class Play {
 public:
  Play(ReduceKind kind, const Cluster& cluster, std::size_t count, std::size_t bytes)
      : cluster_(cluster), bytes_(static_cast<double>(bytes)) {
    for (int rank = 0; rank < cluster.ranks; ++rank) {
      rounds_.push_back(rounds_of(reduce_rounds(kind, cluster, rank, count, bytes)));
      for (std::size_t round = 0; round < rounds_.back().size(); ++round) count_bytes(rank, round);
    }
    next_.resize(rounds_.size());
    clock_.resize(rounds_.size());
  }

  double run() {
    for (std::size_t rank = 0; rank < rounds_.size(); ++rank) begin_round(static_cast<int>(rank));
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < cluster_.ranks; ++rank) {
        while (end_round(rank)) moved = true;
      }
    }
    for (std::size_t rank = 0; rank < rounds_.size(); ++rank)
      LOCKSTEP_CHECK(next_[rank] == rounds_[rank].size());
    return *std::ranges::max_element(clock_);
  }

 private:
  using Round = std::vector<Exchange>;
  struct Message {
    double began;  ///< when this end of it was ready
    std::size_t count;
    double seconds;  ///< on its way
  };
  /// Messages of one rank to another, in order; one message a round at most.
  struct Channel {
    std::vector<Message> sent, received;
  };

  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }

  static std::vector<Round> rounds_of(const std::vector<Exchange>& exchanges) {
    std::vector<Round> rounds;
    for (const Exchange& exchange : exchanges) {
      if (!exchange.together) rounds.emplace_back();
      rounds.back().push_back(exchange);
    }
    return rounds;
  }

  void count_bytes(int rank, std::size_t round) {
    for (const Exchange& exchange : rounds_[at(rank)][round]) {
      if (exchange.send.count > 0 && cluster_.links_between(rank, exchange.to) > 0)
        across_[{cluster_.node_of(rank), round}] += static_cast<double>(exchange.send.count) * bytes_;
    }
  }

  const Round* current(int rank) const {
    const auto& rounds = rounds_[at(rank)];
    return next_[at(rank)] < rounds.size() ? &rounds[next_[at(rank)]] : nullptr;
  }

  void begin_round(int rank) {
    const Round* round = current(rank);
    if (round == nullptr) return;
    const double now = clock_[at(rank)];
    for (const Exchange& exchange : *round) {
      if (exchange.send.count > 0)
        channels_[{rank, exchange.to}].sent.push_back({now, exchange.send.count, seconds(rank, exchange)});
      if (exchange.receive.count > 0)
        channels_[{exchange.from, rank}].received.push_back({now, exchange.receive.count, 0});
    }
  }

  /// The current round of a rank, if the other ends of its messages are there, too.
  bool end_round(int rank) {
    const Round* round = current(rank);
    if (round == nullptr) return false;
    double end = clock_[at(rank)], adding = 0;
    for (const Exchange& exchange : *round) {
      if (exchange.send.count > 0) {
        const Channel& channel = channels_[{rank, exchange.to}];
        if (!arrive(channel, channel.sent.size(), end)) return false;
      }
      if (exchange.receive.count > 0) {
        const Channel& channel = channels_[{exchange.from, rank}];
        if (!arrive(channel, channel.received.size(), end)) return false;
      }
      adding += added(exchange);
    }
    clock_[at(rank)] = end + adding;
    ++next_[at(rank)];
    begin_round(rank);
    return true;
  }

  /// The message of that number, from 1 on. @returns false if one of its ends is not ready yet
  static bool arrive(const Channel& channel, std::size_t number, double& end) {
    if (channel.sent.size() < number || channel.received.size() < number) return false;
    const Message &sent = channel.sent[number - 1], &received = channel.received[number - 1];
    LOCKSTEP_CHECK(sent.count == received.count);
    end = std::max(end, std::max(sent.began, received.began) + sent.seconds);
    return true;
  }

  double seconds(int rank, const Exchange& exchange) {
    const NetworkConstants& network = cluster_.network;
    const int links = cluster_.links_between(rank, exchange.to);
    if (links == 0) {
      const double sent = static_cast<double>(exchange.send.count) * bytes_;
      return network.local_latency + sent / network.local_bandwidth;
    }
    const double of_all = across_[{cluster_.node_of(rank), next_[at(rank)]}];
    return network.latency + links * network.link_latency + of_all / network.bandwidth;
  }

  double added(const Exchange& exchange) const {
    return exchange.add
               ? static_cast<double>(exchange.receive.count) * bytes_ / cluster_.network.sum_bandwidth
               : 0;
  }

  const Cluster& cluster_;
  double bytes_;
  std::vector<std::vector<Round>> rounds_;
  std::map<std::pair<int, std::size_t>, double>
      across_;  ///< bytes that a node sends to others, by number of the round
  std::map<std::pair<int, int>, Channel> channels_;
  std::vector<std::size_t> next_;
  std::vector<double> clock_;
};

}  // namespace

double all_reduce_seconds(ReduceKind kind, const Cluster& cluster, std::size_t count,
                          std::size_t bytes_per_element) {
  return Play(kind, cluster, count, bytes_per_element).run();
}

double all_reduce_bound(const Cluster& cluster, std::size_t count, std::size_t bytes_per_element) {
  const NetworkConstants& network = cluster.network;
  const double bytes = static_cast<double>(count * bytes_per_element);
  const auto rounds = [](int members) { return std::ceil(std::log2(members)); };
  const auto but_own = [](int members) { return 1 - 1.0 / members; };
  const int here = std::min(cluster.ranks_per_node, cluster.ranks), nodes = cluster.nodes();
  const double across = network.latency + 2 * network.link_latency;
  const double inside =
      rounds(here) * network.local_latency + but_own(here) * bytes / network.local_bandwidth;
  const double between = rounds(nodes) * across + but_own(nodes) * bytes / network.bandwidth;
  return 2 * (inside + between) + but_own(cluster.ranks) * bytes / network.sum_bandwidth;
}

std::vector<LatencyPoint> latency_of_model(ReduceKind kind, const Cluster& cluster, std::size_t max_bytes,
                                           std::size_t bytes_per_element) {
  std::vector<LatencyPoint> points;
  for (const std::size_t bytes : latency_sizes(max_bytes)) {
    points.push_back(
        {bytes, all_reduce_seconds(kind, cluster, bytes / bytes_per_element, bytes_per_element)});
  }
  return points;
}

// Words of lines; least squares in two unknowns.

namespace {

using Words = std::vector<std::string>;

void for_each_line(std::string_view text, const std::function<void(const Words&)>& f) {
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    f({std::istream_iterator<std::string>(words), {}});
  }
}

/// "1,888.0", "2.595", "67,799"; thousands are no part of a number.
std::optional<double> number(std::string word) {
  std::erase(word, ',');
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(value)) return {};
  return value;
}

/// The number that stands before a word, "2 ranks"; 0 if none does.
double number_before(const Words& words, std::initializer_list<std::string_view> names) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (std::ranges::find(names, words[i]) != names.end()) return number(words[i - 1]).value_or(0);
  }
  return 0;
}
/// Those that stand between plus signs: "leave after 1.5 + 2.5 us".
std::vector<double> terms_behind(const Words& words, std::string_view name) {
  std::vector<double> terms;
  auto word = std::ranges::find(words, name);
  while (word != words.end() && ++word != words.end()) {
    const auto value = number(*word);
    if (!value) break;
    terms.push_back(*value);
    if (++word == words.end() || *word != "+") break;
  }
  return terms;
}
double number_behind(const Words& words, std::string_view name) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == name) return number(words[i + 1]).value_or(0);
  }
  return 0;
}

/// size count type, then time algbw busbw #err twice: out of place, in place.
std::optional<LatencyPoint> int64_row(const Words& words) {
  constexpr std::size_t kWords = 11, kType = 2, kTime = 7;
  if (words.size() != kWords || words[kType] != "int64") return {};
  const auto bytes = number(words[0]), microseconds = number(words[kTime]);
  if (!bytes || !microseconds || *bytes < 8 || *microseconds <= 0) return {};
  return LatencyPoint{static_cast<std::size_t>(*bytes), *microseconds * 1e-6};
}

/// How often each constant counts in an all-reduce of a size.
struct Terms {
  double latency, bandwidth, sum;
};
Terms terms(int ranks, std::size_t bytes) {
  constexpr double kNever = 1e300;
  const auto with = [&](double latency, double bandwidth, double sum) {
    const Cluster node{
        .ranks = ranks, .ranks_per_node = ranks, .network = {0, 0, kNever, latency, bandwidth, sum}};
    return all_reduce_seconds(ReduceKind::kTrainer, node, bytes / 8, 8);
  };
  return {with(1, kNever, kNever), with(0, 1, kNever), with(0, kNever, 1)};
}

}  // namespace

MeasuredAllReduce read_allreduce_table(std::string_view text, const std::string& file) {
  MeasuredAllReduce measured;
  for_each_line(text, [&](const Words& words) {
    if (words.size() > 2 && words[1] == "all-reduce")
      measured.ranks = static_cast<int>(number_before(words, {"ranks", "rank"}));
    if (const auto row = int64_row(words)) measured.points.push_back(*row);
  });
  std::ranges::sort(measured.points, {}, &LatencyPoint::bytes);
  if (measured.ranks < 2 || measured.points.size() < 2) {
    throw DataError(
        fmt::format("{}: this is not what 'mpirun -np N lockstep bench allreduce' prints for two ranks or "
                    "more; write its standard output there",
                    file));
  }
  return measured;
}

MeasuredStep read_step_table(std::string_view text, const std::string& file) {
  MeasuredStep measured;
  double mflop = 0, batch = 0, grain = 0, ranks = 0, threads = 0, seconds = 0;
  std::array<double, 5> shares{};  // peak, input, exposed, skew, optimiser
  for_each_line(text, [&](const Words& words) {
    if (mflop == 0) mflop = number_before(words, {"MFLOP"});
    if (batch == 0) batch = number_behind(words, "batch");
    if (grain == 0) grain = number_behind(words, "grain");
    if (words.size() > 4 && words[0] == "world:" && words[2] == "leave") {
      for (const double microseconds : terms_behind(words, "after"))
        measured.until_left.push_back(microseconds * 1e-6);
    }
    if (words.size() > 4 && words[2] == "x") {
      ranks = number_before(words, {"ranks", "rank"});
      threads = number_before(words, {"threads,", "thread,"});
    }
    if (words.size() != 13 || words[0] != "world") return;
    seconds = number(words[2]).value_or(0) * 1e-6;
    for (std::size_t i = 0; i < shares.size(); ++i) shares[i] = number(words[3 + 2 * i]).value_or(0) / 100;
  });
  if (mflop <= 0 || batch <= 0 || grain <= 0 || ranks < 1 || threads < 1 || seconds <= 0) {
    throw DataError(
        fmt::format("{}: this is not what 'lockstep bench step JOB.yaml' prints on a CPU; write its standard "
                    "output there",
                    file));
  }
  measured.grains = static_cast<std::int64_t>(std::ceil(batch / grain / ranks));
  const double computing = seconds * (1 - shares[2] - shares[3] - shares[4]);
  measured.flops_per_second = mflop * 1e6 * batch / (ranks * threads) / computing;
  return measured;
}

NetworkConstants fit_local(const MeasuredAllReduce& measured, const NetworkConstants& start,
                           std::size_t most_bytes) {
  // Each point is one equation, latency * a + beta * b = rest, divided by what was measured.
  double aa = 0, ab = 0, bb = 0, ar = 0, br = 0;
  std::size_t used = 0;
  for (const LatencyPoint& point : measured.points) {
    if (point.bytes > most_bytes && used >= 2) continue;
    const Terms its = terms(measured.ranks, point.bytes);
    const double a = its.latency / point.seconds, b = its.bandwidth / point.seconds;
    const double rest = 1 - its.sum / start.sum_bandwidth / point.seconds;
    aa += a * a, ab += a * b, bb += b * b, ar += a * rest, br += b * rest;
    ++used;
  }
  const double determinant = aa * bb - ab * ab;
  double latency = (ar * bb - br * ab) / determinant, beta = (br * aa - ar * ab) / determinant;
  constexpr double kLeastBeta = 1e-12;
  if (!(beta > kLeastBeta)) beta = kLeastBeta, latency = ar / aa;
  if (!(latency > 0)) latency = 0, beta = std::max(kLeastBeta, br / bb);
  NetworkConstants fitted = start;
  fitted.local_latency = latency;
  fitted.local_bandwidth = 1 / beta;
  return fitted;
}

}  // namespace lockstep
