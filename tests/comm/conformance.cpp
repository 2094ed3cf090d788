// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/comm/conformance.hpp"

#include "common/error.hpp"
#include "tests/comm/known_sums.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::testing {
namespace {

// Sizes around the edges: nothing, less than one element a rank, odd, both all-reduce algorithms, 4 MiB of
// int64.
constexpr std::size_t kCounts[] = {0, 1, 3, 1000, 8191, 8192, 65537, 524288};

/// Bytes that differ from place to place, and between any two messages.
std::vector<std::byte> letter(int from, int to, int number, std::size_t bytes) {
  std::vector<std::byte> text(bytes);
  const auto first = static_cast<std::size_t>(from * 31 + to * 7 + number * 3);
  for (std::size_t i = 0; i < bytes; ++i)
    text[i] = static_cast<std::byte>((first + i) * 0x9E3779B97F4A7C15U >> 56U);
  return text;
}

void describes_the_group(Communicator& comm) {
  EXPECT_GE(comm.rank(), 0);
  EXPECT_LT(comm.rank(), comm.size());
  EXPECT_LE(comm.local_rank(), comm.rank());
  EXPECT_LT(comm.local_rank(), comm.local_size());
  EXPECT_LE(comm.local_size(), comm.size());
  EXPECT_FALSE(comm.host().empty());
  EXPECT_GT(comm.timeout().count(), 0);
}

void sums_integers_of_any_size(Communicator& comm) {
  for (const std::size_t count : kCounts) {
    std::vector<std::int64_t> data = terms(comm.rank(), count);
    comm.all_reduce(std::span(data));
    expect_sums(data, comm.size(), "a sum");
  }
}

void sums_floats_to_the_same_bits_on_every_rank(Communicator& comm) {
  for (const std::size_t count : kCounts) {
    std::vector<float> data(count);
    for (std::size_t i = 0; i < count; ++i)
      data[i] = 1.0F / static_cast<float>(i + 3 + 7 * static_cast<std::size_t>(comm.rank()));
    comm.all_reduce(std::span(data));
    const auto all = comm.all_gather(std::as_bytes(std::span(data)));
    const auto* first = reinterpret_cast<const float*>(all.data());
    EXPECT_TRUE(std::equal(data.begin(), data.end(), first)) << count << " elements";
    double exact = 0;
    for (int rank = 0; rank < comm.size(); ++rank) exact += 1.0 / (3 + 7 * rank);
    if (count > 0) {
      EXPECT_NEAR(data[0], exact, 1e-6);
    }
  }
}

void keeps_several_collectives_apart(Communicator& comm) {
  const std::vector<std::size_t> counts{70000, 5, 0, 9000, 1};
  std::vector<std::vector<std::int64_t>> data;
  std::vector<std::unique_ptr<PendingCollective>> pending;
  data.reserve(counts.size());
  pending.reserve(counts.size());
  for (const std::size_t count : counts) data.push_back(terms(comm.rank(), count));
  for (auto& part : data) pending.push_back(comm.host_all_reduce().start(std::span(part)));
  std::vector<float> between{1.5F};
  comm.all_reduce(std::span(between));
  for (std::size_t i = pending.size(); i-- > 0;) comm.wait(*pending[i], "a collective, last one first");
  EXPECT_EQ(between[0], 1.5F * static_cast<float>(comm.size()));
  for (const auto& part : data) expect_sums(part, comm.size(), "one of several");
  for (const auto& sum : pending) EXPECT_TRUE(sum->test()) << "it stays complete";
}

void keeps_the_terms_of_a_sum_that_goes_elsewhere(Communicator& comm) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{30}, std::size_t{20000}}) {
    const std::vector<std::int64_t> mine = terms(comm.rank(), count);
    std::vector<std::int64_t> sums(count, -1);
    const auto pending = comm.host_all_reduce().start(std::span(mine), std::span(sums));
    comm.wait(*pending, "a sum");
    expect_sums(sums, comm.size(), "a sum elsewhere");
    EXPECT_TRUE(mine == terms(comm.rank(), count)) << count;
    EXPECT_THROW(comm.host_all_reduce().start(std::span(mine), std::span(sums).first(count - 1)),
                 InternalError);
  }
}

/// Two at once, the first of them looked after first.
class Both final : public PendingCollective {
 public:
  Both(PendingCollective& first, PendingCollective& second) : first_(first), second_(second) {}
  bool test() override {
    const bool first = first_.test(), second = second_.test();
    return first && second;
  }

 private:
  PendingCollective &first_, &second_;
};

void keeps_sums_apart_that_ranks_look_after_in_another_order(Communicator& comm) {
  for (const std::size_t count : {std::size_t{30}, std::size_t{20000}}) {
    std::vector<std::int64_t> sums = terms(comm.rank(), count), ones(count, 1);
    const auto of_terms = comm.host_all_reduce().start(std::span(sums));
    const auto of_ones = comm.host_all_reduce().start(std::span(ones));
    for (int i = 0; i < 3; ++i) comm.barrier();  // by then the first messages of both are here
    const bool backwards = (comm.rank() & 2) != 0;
    Both both(backwards ? *of_ones : *of_terms, backwards ? *of_terms : *of_ones);
    comm.wait(both, "two sums");
    expect_sums(sums, comm.size(), "the first of two");
    EXPECT_EQ(ones, std::vector<std::int64_t>(count, comm.size())) << count;
  }
}

void runs_many_in_a_row(Communicator& comm) {
  std::int64_t sum = 0;
  for (int i = 0; i < 500; ++i) {
    std::int64_t value = i + comm.rank();
    comm.all_reduce(std::span(&value, 1));
    sum += value;
  }
  const std::int64_t n = comm.size();
  EXPECT_EQ(sum, n * 499 * 500 / 2 + 500 * n * (n - 1) / 2);
}

void broadcasts_from_every_root(Communicator& comm) {
  constexpr std::size_t kLarge = 4 << 20;  // from one rank alone
  for (int root = 0; root < comm.size(); ++root) {
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{100003}, kLarge}) {
      if (count == kLarge && root + 1 < comm.size()) continue;
      std::vector<std::byte> data = letter(comm.rank(), 0, 0, count);
      const std::uint64_t before = comm.activity().status().collective;
      comm.broadcast(data, root);
      EXPECT_EQ(comm.activity().status().collective, before + 1) << "in one piece";
      EXPECT_TRUE(data == letter(root, 0, 0, count)) << count << " bytes from " << root;
    }
  }
}

void gathers_in_rank_order(Communicator& comm) {
  for (const std::size_t count : {std::size_t{0}, std::size_t{5}, std::size_t{4321}}) {
    std::vector<std::byte> expected;
    for (int rank = 0; rank < comm.size(); ++rank) {
      const auto theirs = letter(rank, 0, 0, count);
      expected.insert(expected.end(), theirs.begin(), theirs.end());
    }
    EXPECT_TRUE(comm.all_gather(letter(comm.rank(), 0, 0, count)) == expected) << count << " bytes each";
  }
}

/// Every rank to every rank, itself included, several on a lane and several lanes. All under way at once,
/// with a sum in between, and waited for from the last to the first.
void carries_messages_in_order(Communicator& comm) {
  constexpr std::size_t kBytes[] = {3, 0, 100000, 3};
  std::vector<std::vector<std::byte>> sent, received, expected;
  std::vector<std::unique_ptr<PendingCollective>> pending;
  PointToPoint& mail = comm.point_to_point();
  for (int other = 0; other < comm.size(); ++other) {
    for (int i = 0; i < 4; ++i) {
      const int tag = i % 2 == 0 ? 0 : 32767;
      sent.push_back(letter(comm.rank(), other, i, kBytes[i]));
      expected.push_back(letter(other, comm.rank(), i, kBytes[i]));
      received.emplace_back(kBytes[i]);
      pending.push_back(mail.start_send(sent.back(), other, tag));
      pending.push_back(mail.start_receive(received.back(), other, tag));
    }
  }
  std::vector<std::int64_t> between = terms(comm.rank(), 9000);
  comm.all_reduce(std::span(between));
  for (std::size_t i = pending.size(); i-- > 0;) comm.wait(*pending[i], "a message, last one first");
  expect_sums(between, comm.size(), "a sum between messages");
  EXPECT_TRUE(received == expected);
  for (const auto& message : pending) EXPECT_TRUE(message->test());
  const auto nothing = mail.start_receive({}, comm.rank(), 1);
  EXPECT_FALSE(nothing->test()) << "a message of no bytes is waited for, too";
  const auto sending = mail.start_send({}, comm.rank(), 1);
  comm.wait(*nothing, "a message of no bytes");
  comm.wait(*sending, "its sending");
}

void refuses_ranks_and_tags_that_are_none(Communicator& comm) {
  PointToPoint& mail = comm.point_to_point();
  std::array<std::byte, 4> bytes{};
  for (const auto& [other, tag] : {std::pair(-1, 0), {comm.size(), 0}, {0, -1}, {0, 32768}}) {
    EXPECT_THROW(mail.start_send(bytes, other, tag), InternalError) << other << ' ' << tag;
    EXPECT_THROW(mail.start_receive(bytes, other, tag), InternalError) << other << ' ' << tag;
  }
}

void passes_a_message_around_the_ring(Communicator& comm) {
  const int next = (comm.rank() + 1) % comm.size();
  const int previous = (comm.rank() + comm.size() - 1) % comm.size();
  std::int64_t value = 1;
  const auto bytes = std::as_writable_bytes(std::span(&value, 1));
  if (comm.size() == 1) return;
  if (comm.rank() == 0) comm.send(bytes, next, 7);
  comm.receive(bytes, previous, 7);
  value = value * 3 + comm.rank();
  if (comm.rank() != 0) comm.send(bytes, next, 7);
  std::int64_t expected = 1;
  for (int rank = 1; rank < comm.size(); ++rank) expected = expected * 3 + rank;
  if (comm.rank() == 0) {
    EXPECT_EQ(value, expected * 3);
  }
}

/// Under way is one message of this rank to itself, so every number of ranks will do.
void refuses_a_message_of_another_length(Communicator& comm) {
  for (const std::size_t bytes : {std::size_t{2}, std::size_t{9}}) {
    const std::vector<std::byte> sent(5);
    std::vector<std::byte> received(bytes);
    const auto sending = comm.point_to_point().start_send(sent, comm.rank(), 1);
    const auto text = message_of<InternalError>([&] { comm.receive(received, comm.rank(), 1); });
    EXPECT_TRUE(contains(text, {fmt::format("a message from rank {} ", comm.rank()), "(tag 1)",
                                fmt::format(" {} bytes ", bytes)}));
    if (comm.backend() == "mpi") {
      EXPECT_TRUE(contains(text, {bytes < 5 ? " is longer than the " : " is shorter than the "}));
    }
  }
}

void splits_by_colour(Communicator& comm) {
  const int colour = comm.rank() % 2;
  const auto part = comm.split(colour);
  EXPECT_EQ(part->size(), (comm.size() + 1 - colour) / 2);
  EXPECT_EQ(part->rank(), comm.rank() / 2);
  EXPECT_EQ(part->host(), comm.host());
  EXPECT_EQ(part->rank_in_whole(), comm.rank());
  EXPECT_EQ(part->size_of_whole(), comm.size());
  EXPECT_EQ(part->backend(), comm.backend());
  EXPECT_EQ(part->local_rank(), comm.local_rank());
  EXPECT_EQ(part->local_size(), comm.local_size());
  EXPECT_EQ(part->timeout(), comm.timeout());
  EXPECT_EQ(&part->activity(), &comm.activity()) << "a watcher of the whole sees what it does in a part";
  std::int64_t of_part = comm.rank(), of_all = comm.rank();
  const auto pending = comm.host_all_reduce().start(std::span(&of_all, 1));  // under way at the same time
  part->all_reduce(std::span(&of_part, 1));
  comm.wait(*pending, "a sum");
  std::int64_t expected = 0;
  for (int rank = colour; rank < comm.size(); rank += 2) expected += rank;
  EXPECT_EQ(of_part, expected);
  EXPECT_EQ(of_all, comm.size() * (comm.size() - 1) / 2);
  const int next = (part->rank() + 1) % part->size(),
            before = (part->rank() + part->size() - 1) % part->size();
  const int mine = comm.rank();
  int got = -1;
  const auto sending = part->point_to_point().start_send(std::as_bytes(std::span(&mine, 1)), next, 0);
  part->receive(std::as_writable_bytes(std::span(&got, 1)), before);
  part->wait(*sending, "a message");
  EXPECT_EQ(got, 2 * before + colour);
  EXPECT_EQ(part->split(part->rank())->size(), 1);
}

}  // namespace

const std::vector<ConformanceCase>& conformance_cases() {
  static const std::vector<ConformanceCase> cases{
      {"DescribesTheGroup", describes_the_group},
      {"SumsIntegersOfAnySize", sums_integers_of_any_size},
      {"SumsFloatsToTheSameBitsOnEveryRank", sums_floats_to_the_same_bits_on_every_rank},
      {"KeepsSeveralCollectivesApart", keeps_several_collectives_apart},
      {"KeepsTheTermsOfASumThatGoesElsewhere", keeps_the_terms_of_a_sum_that_goes_elsewhere},
      {"KeepsSumsApartThatRanksLookAfterInAnotherOrder",
       keeps_sums_apart_that_ranks_look_after_in_another_order},
      {"RunsManyInARow", runs_many_in_a_row},
      {"BroadcastsFromEveryRoot", broadcasts_from_every_root},
      {"GathersInRankOrder", gathers_in_rank_order},
      {"CarriesMessagesInOrder", carries_messages_in_order},
      {"RefusesRanksAndTagsThatAreNone", refuses_ranks_and_tags_that_are_none},
      {"PassesAMessageAroundTheRing", passes_a_message_around_the_ring},
      {"RefusesAMessageOfAnotherLength", refuses_a_message_of_another_length},
      {"SplitsByColour", splits_by_colour},
  };
  return cases;
}

}  // namespace lockstep::testing
