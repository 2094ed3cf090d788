// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Messages between the ranks' watchdogs, and their encoding: untrusted until it has been read.
#pragma once

#include "comm/rank_status.hpp"
#include "common/buffers.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace lockstep::watchdog {

/// Secret of one job: drawn by rank 0 and handed over by MPI. A process without it is no rank.
using Token = std::array<std::uint8_t, 16>;
/// Takes as long for any two tokens.
bool equal(const Token& a, const Token& b);
/// From the system's generator.
Token draw_token();

/// The first message of a connection, from the rank that made it, and back.
struct Hello {
  Token token{};
  std::uint32_t rank = 0, world_size = 0;
};

/// A sign of life.
struct Beat {
  std::int64_t sent_ns = 0;          ///< the sender's clock
  RankStatus where;                  ///< since_ns by the sender's clock
  std::int32_t witnessed_rank = -1;  ///< a rank on the sender's host that is silent
  char witnessed_state = '?';        ///< and its state in /proc: T stopped, t held by a debugger, ...
  bool traced = false;               ///< a debugger has the sender
  std::array<char, 64> device{};     ///< the sender's; ends with a zero
};

/// The sender is about to end.
struct Leaving {
  std::int32_t code = 0;      ///< its exit code
  std::int32_t because = -1;  ///< the rank that it lost; -1: for other reasons
  bool spoken = false;        ///< it has said why, for all
};

/// The sender ends in good order: it is not lost.
struct Goodbye {};

/// Only as Relayed: the process of the rank is gone.
struct Died {};

struct Relayed;
/// Messages that a watcher passes on in large jobs.
struct Relay {
  std::vector<Relayed> list;  ///< at most kMostRelayed
};
inline constexpr std::size_t kMostRelayed = 1024;

using Message = std::variant<Hello, Beat, Leaving, Goodbye, Died, Relay>;

/// A rank's message to the sender, or the sender's about that rank.
struct Relayed {
  std::uint32_t rank = 0;
  std::int64_t age_ns = 0;  ///< so long ago
  Message said = Beat{};    ///< no Hello and no Relay
};

/// A head of eight bytes (magic, version, kind, size), then the fields, little-endian.
std::vector<std::uint8_t> encode(const Message& message);
/// As many messages as it takes, one after the other; none for an empty list.
std::vector<std::uint8_t> encode_relays(const std::vector<Relayed>& list);

inline constexpr std::size_t kHeadBytes = 8;
inline constexpr std::size_t kMostBytes = 64 * 1024;  ///< for a message without its head

/// Cuts a stream of bytes into messages. Takes nothing that encode() would not have written.
class Parser {
 public:
  /// Appends.
  void feed(std::span<const std::uint8_t> bytes);
  /// The next whole message; nothing: more bytes are needed, or some were bad: the sender is none of ours.
  std::optional<Message> next();
  bool is_bad() const { return bad_; }

 private:
  std::vector<std::uint8_t> bytes_;
  std::size_t begin_ = 0;  ///< first byte that has not been read
  bool bad_ = false;
};

// One rank's knowledge of another.

/// A rank, and the address of its watchdog. Handed over by MPI.
struct Identity {
  int rank = 0;
  std::string host;
  int pid = 0;
  std::vector<std::string> addresses;  ///< its host's, the likeliest first
  int port = 0;
};

/// A rank as this one knows it. For this rank itself, `where` alone counts.
struct Peer {
  Identity who;
  bool watched = false;  ///< there was a connection once, and no goodbye since
  bool dead = false;     ///< its process is gone
  bool ended = false;    ///< it said goodbye
  bool leaving = false;  ///< it said that it ends
  Leaving farewell;
  std::int64_t heard_ns = 0;  ///< this rank's clock: its last sign of life
  RankStatus where;           ///< as of then; since_ns by this rank's clock
  std::string device;
  bool traced = false;       ///< held by a debugger
  char state = '?';          ///< as a rank on its host sees it in /proc; '?': not seen
  std::int64_t lost_ns = 0;  ///< when it was found dead
  bool in_proc = false;      ///< /proc of this host shows its process
  bool ending = false;       ///< and showed once that it ends

  bool is_stopped() const { return state == 'T'; }
  bool is_debugged() const { return traced || state == 't'; }
};
/// All ranks of the job, this one among them, by rank.
using Peers = std::vector<Peer>;

}  // namespace lockstep::watchdog
