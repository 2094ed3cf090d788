// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A cable of any length between a host of tests/hosts/hosts.sh and its switch: slow_link PID NAME FILE
///
/// Makes the network device slow0 in the network namespace of process PID and NAME in its own. Each frame that enters
/// one leaves the other after as many milliseconds as FILE says at that moment, and where FILE has a second number, no
/// more than so many Mbit/s each way. In place of the kernel's netem, which many kernels are built without.
#include "tests/support/prelude.hpp"

#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace {

using Clock = std::chrono::steady_clock;

int checked(int result, const std::string& what) {
  if (result < 0) throw std::runtime_error(what + ": " + std::strerror(errno));
  return result;
}

int open_device(const std::string& name) {
  const int device = checked(open("/dev/net/tun", O_RDWR | O_NONBLOCK), "/dev/net/tun");
  ifreq request{};
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  checked(ioctl(device, TUNSETIFF, &request), "making " + name);
  return device;
}

int open_network(const std::string& process) {
  const std::string path = "/proc/" + process + "/ns/net";
  return checked(open(path.c_str(), O_RDONLY | O_CLOEXEC), path);
}

void enter_network(int network) {
  checked(setns(network, CLONE_NEWNET), "entering a network namespace");
}

struct Frame {
  Clock::time_point due;
  std::vector<char> bytes;
};

struct Cable {
  std::chrono::milliseconds delay{0};
  double bits_per_second = 0;  ///< 0: without a limit
};

/// One direction.
struct Lane {
  int from, to;
  std::deque<Frame> under_way = {};
  Clock::time_point free = {};  ///< when the last frame has left

  /// Frames leave one after the other, so a slow one keeps those behind it waiting.
  Clock::time_point leaves(const Cable& cable, ssize_t bytes) {
    free = std::max(free, Clock::now());
    if (cable.bits_per_second > 0)
      free += std::chrono::nanoseconds(
          static_cast<std::int64_t>(8e9 * static_cast<double>(bytes) / cable.bits_per_second));
    return free;
  }

  void take(const Cable& cable) {
    std::array<char, 65536> bytes{};
    for (;;) {
      const ssize_t size = read(from, bytes.data(), bytes.size());
      if (size <= 0) return;
      under_way.push_back({leaves(cable, size) + cable.delay, {bytes.data(), bytes.data() + size}});
    }
  }

  /// A tenth of a second from now where nothing is under way.
  Clock::time_point next_due() const {
    return under_way.empty() ? Clock::now() + std::chrono::milliseconds(100) : under_way.front().due;
  }

  /// A frame that the other side does not take is lost, as on any cable.
  void deliver() {
    for (; !under_way.empty() && under_way.front().due <= Clock::now(); under_way.pop_front()) {
      const auto& bytes = under_way.front().bytes;
      if (write(to, bytes.data(), bytes.size()) < 0 && errno != EIO && errno != EAGAIN)
        std::fprintf(stderr, "slow_link: %s\n", std::strerror(errno));
    }
  }
};

Cable cable_in(const std::string& file) {
  long milliseconds = 0;
  double megabits = 0;
  std::ifstream(file) >> milliseconds >> megabits;
  return {std::chrono::milliseconds(milliseconds), 1e6 * megabits};
}

timespec time_until(Clock::time_point due) {
  const auto left = std::max(Clock::duration::zero(), due - Clock::now());
  return {.tv_sec = 0, .tv_nsec = std::chrono::nanoseconds(left).count()};
}

void run(const std::string& pid, const std::string& name, const std::string& file) {
  const int here = open_network("self");
  enter_network(open_network(pid));
  const int host = open_device("slow0");
  enter_network(here);
  const int cable = open_device(name);
  Lane out{host, cable}, in{cable, host};
  std::array<pollfd, 2> ready{pollfd{host, POLLIN, 0}, pollfd{cable, POLLIN, 0}};
  for (;;) {
    const timespec until = time_until(std::min(out.next_due(), in.next_due()));
    checked(ppoll(ready.data(), ready.size(), &until, nullptr), "ppoll");
    const Cable as_it_is = cable_in(file);
    out.take(as_it_is);
    in.take(as_it_is);
    out.deliver();
    in.deliver();
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 4) throw std::runtime_error("slow_link PID NAME FILE");
    run(argv[1], argv[2], argv[3]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "slow_link: %s\n", error.what());
    return 1;
  }
}
