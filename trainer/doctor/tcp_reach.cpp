// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Non-blocking connects, all at once.
#include "trainer/doctor/tcp_reach.hpp"

#include "common/clock.hpp"
#include "common/console/output.hpp"
#include "common/error.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>

namespace lockstep {
namespace {

constexpr int kPatienceMilliseconds = 2000;

/// A TCP socket that closes itself.
class Socket {
 public:
  Socket() : number_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    if (number_ < 0) throw IoError(std::string("a socket: ") + std::strerror(errno));
  }
  ~Socket() { close(number_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

/// @returns why not; empty: it is connected
std::string connect_to(const std::string& host, const std::string& port) {
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_family = AF_INET;
  wanted.ai_socktype = SOCK_STREAM;
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &wanted, &found)) return gai_strerror(error);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  const Socket socket;
  if (connect(socket.number(), found->ai_addr, found->ai_addrlen) == 0) return "";
  if (errno != EINPROGRESS) return std::strerror(errno);
  pollfd ready{socket.number(), POLLOUT, 0};
  if (poll(&ready, 1, kPatienceMilliseconds) == 0) return "no answer: a firewall, or no way there";
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0 ? "" : std::strerror(error);
}

}  // namespace

void answer_on_a_port(int seconds) {
  const Socket socket;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof(address);
  auto* general = reinterpret_cast<sockaddr*>(&address);
  if (bind(socket.number(), general, size) != 0 || listen(socket.number(), 64) != 0 ||
      getsockname(socket.number(), general, &size) != 0)
    throw IoError(std::string("a port of this host: ") + std::strerror(errno));
  print("{}\n", ntohs(address.sin_port));
  std::fflush(stdout);
  const auto end = Clock::now() + std::chrono::seconds(seconds);
  while (Clock::now() < end) {
    pollfd ready{socket.number(), POLLIN, 0};
    if (poll(&ready, 1, 100) <= 0) continue;
    if (const int peer = accept(socket.number(), nullptr, nullptr); peer >= 0) close(peer);
  }
}

std::string try_to_reach(const std::vector<std::string>& targets) {
  std::string text;
  for (const std::string& target : targets) {
    const std::size_t colon = target.rfind(':');
    if (colon == std::string::npos) throw UsageError("--reach HOST:PORT");
    const std::string host = target.substr(0, colon);
    const std::string error = connect_to(host, target.substr(colon + 1));
    if (!error.empty()) text += fmt::format("{}{} ({})\n", kNotReached, host, error);
  }
  return text;
}

}  // namespace lockstep
