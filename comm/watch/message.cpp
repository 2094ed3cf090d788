// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One visitor lists the fields of each message; a writer and a reader walk the same list.
#include "comm/watch/message.hpp"

#include "common/error.hpp"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

namespace lockstep::watchdog {
namespace {

constexpr std::array<std::uint8_t, 3> kMagic = {'L', 'S', 'H'};
constexpr std::uint8_t kVersion = 6;
static_assert(std::endian::native == std::endian::little, "fields travel as they lie in memory");

void each(auto& fields, auto&... values) {
  (fields(values), ...);
}

void visit(Hello& hello, auto& fields) {
  each(fields, hello.token, hello.rank, hello.world_size);
}

void visit(RankStatus& where, auto& fields) {
  each(fields, where.step, where.phase, where.waiting, where.collective, where.bucket, where.since_ns,
       where.place);
}

void visit(Beat& beat, auto& fields) {
  fields(beat.sent_ns);
  visit(beat.where, fields);
  each(fields, beat.witnessed_rank, beat.witnessed_state, beat.traced, beat.device);
}

void visit(Leaving& leaving, auto& fields) {
  each(fields, leaving.code, leaving.because, leaving.spoken);
}

void visit(Goodbye& /*goodbye*/, auto& /*fields*/) {}

void visit(Died& /*died*/, auto& /*fields*/) {}

void visit(Relay& relay, auto& fields) {
  fields.count(relay.list, kMostRelayed);
  for (Relayed& relayed : relay.list) {
    each(fields, relayed.rank, relayed.age_ns);
    fields.kind(relayed.said);
    std::visit([&](auto& said) { visit(said, fields); }, relayed.said);
  }
}

/// True for kinds of messages that may be relayed.
constexpr bool can_be_relayed(std::size_t kind) {
  return kind != Message(Hello{}).index() && kind < Message(Relay{}).index();
}

template <std::size_t Kind = 0>
void make_kind(std::size_t kind, Message& message) {
  if constexpr (Kind < std::variant_size_v<Message>) {
    if (kind == Kind) message.emplace<Kind>();
    if (kind != Kind) make_kind<Kind + 1>(kind, message);
  }
}

class Writer {
 public:
  explicit Writer(std::vector<std::uint8_t>& bytes) : bytes_(bytes) {}

  template <typename T>
  void operator()(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto* from = reinterpret_cast<const std::uint8_t*>(&value);
    bytes_.insert(bytes_.end(), from, from + sizeof(T));
  }
  void count(const auto& list, std::size_t most) {
    LOCKSTEP_CHECK(list.size() <= most);
    (*this)(static_cast<std::uint32_t>(list.size()));
  }
  void kind(const Message& said) {
    LOCKSTEP_CHECK(can_be_relayed(said.index()));
    (*this)(static_cast<std::uint8_t>(said.index()));
  }

 private:
  std::vector<std::uint8_t>& bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  template <typename T>
  void operator()(T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    good_ = good_ && bytes_.size() >= sizeof(T);
    if (!good_) return;
    std::memcpy(&value, bytes_.data(), sizeof(T));
    bytes_ = bytes_.subspan(sizeof(T));
  }
  void operator()(bool& value) {
    std::uint8_t byte = 0;
    (*this)(byte);
    good_ = good_ && byte <= 1;
    value = byte == 1;
  }
  void operator()(Phase& phase) { choice(phase, kPhases); }
  void operator()(Waiting& waiting) { choice(waiting, kWaitings); }
  /// A text must end.
  template <std::size_t Size>
  void operator()(std::array<char, Size>& text) {
    std::array<std::uint8_t, Size> bytes{};
    (*this)(bytes);
    std::memcpy(text.data(), bytes.data(), Size);
    good_ = good_ && text.back() == '\0';
  }
  void count(auto& list, std::size_t most) {
    std::uint32_t count = 0;
    (*this)(count);
    good_ = good_ && count <= most && count <= bytes_.size();
    if (good_) list.resize(count);
  }
  void kind(Message& said) {
    std::uint8_t kind = 0;
    (*this)(kind);
    good_ = good_ && can_be_relayed(kind);
    if (good_) make_kind(kind, said);
  }
  template <typename Enum>
  void choice(Enum& value, int count) {
    std::uint8_t byte = 0;
    (*this)(byte);
    good_ = good_ && byte < count;
    if (good_) value = static_cast<Enum>(byte);
  }
  bool read_all() const { return good_ && bytes_.empty(); }

 private:
  std::span<const std::uint8_t> bytes_;
  bool good_ = true;
};

std::optional<Message> read(std::size_t kind, std::span<const std::uint8_t> bytes) {
  Message message;
  make_kind(kind, message);
  Reader reader(bytes);
  std::visit([&](auto& fields) { visit(fields, reader); }, message);
  return reader.read_all() ? std::optional(std::move(message)) : std::nullopt;
}

}  // namespace

bool equal(const Token& a, const Token& b) {
  std::uint8_t difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    // Through volatile: no compiler may stop at the first difference.
    const volatile std::uint8_t one = a[i], other = b[i];
    difference = static_cast<std::uint8_t>(difference | (one ^ other));
  }
  return difference == 0;
}

Token draw_token() {
  Token token{};
  if (::getentropy(token.data(), token.size()) != 0)
    throw InternalError("the system gives no random numbers");
  return token;
}

std::vector<std::uint8_t> encode(const Message& message) {
  std::vector<std::uint8_t> bytes(kHeadBytes);
  std::copy(kMagic.begin(), kMagic.end(), bytes.begin());
  bytes[3] = static_cast<std::uint8_t>(kVersion << 4 | message.index());
  Writer writer(bytes);
  std::visit([&](auto fields) { visit(fields, writer); }, message);
  const auto size = static_cast<std::uint32_t>(bytes.size() - kHeadBytes);
  LOCKSTEP_CHECK(size <= kMostBytes);
  std::memcpy(bytes.data() + 4, &size, 4);
  return bytes;
}

std::vector<std::uint8_t> encode_relays(const std::vector<Relayed>& list) {
  constexpr std::size_t kAtOnce = (kMostBytes - 4) / sizeof(Relayed);
  static_assert(kAtOnce <= kMostRelayed);
  std::vector<std::uint8_t> bytes;
  for (std::size_t begin = 0; begin < list.size(); begin += kAtOnce) {
    const auto some = std::span(list).subspan(begin, std::min(kAtOnce, list.size() - begin));
    const auto more = encode(Relay{{some.begin(), some.end()}});
    bytes.insert(bytes.end(), more.begin(), more.end());
  }
  return bytes;
}

void Parser::feed(std::span<const std::uint8_t> bytes) {
  bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(std::exchange(begin_, 0)));
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

std::optional<Message> Parser::next() {
  const auto rest = std::span<const std::uint8_t>(bytes_).subspan(begin_);
  if (bad_ || rest.size() < kHeadBytes) return std::nullopt;
  std::uint32_t size = 0;
  std::memcpy(&size, rest.data() + 4, 4);
  const std::uint8_t kind = rest[3] & 15U;
  bad_ = !std::equal(kMagic.begin(), kMagic.end(), rest.begin()) || rest[3] >> 4 != kVersion ||
         kind >= std::variant_size_v<Message> || size > kMostBytes;
  if (bad_ || rest.size() - kHeadBytes < size) return std::nullopt;
  auto message = read(kind, rest.subspan(kHeadBytes, size));
  bad_ = !message;
  begin_ += kHeadBytes + size;
  return message;
}

}  // namespace lockstep::watchdog
