// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Everything that the handler touches is lock-free or set before it is installed.
#include "trainer/run/stop_signal.hpp"

#include "comm/launcher.hpp"
#include "common/env.hpp"
#include "common/machine.hpp"
#include "common/output.hpp"
#include "common/timeline.hpp"
#include "trainer/ranks/rank_runner.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

namespace lockstep {

namespace {

constexpr auto kStopSignals = std::to_array<std::pair<int, const char*>>(
    {{SIGINT, "SIGINT"},
     {SIGTERM, "SIGTERM"},
     {SIGHUP, "SIGHUP"},
     {SIGUSR1, "SIGUSR1"},
     {SIGUSR2, "SIGUSR2"},
     {SIGXCPU, "SIGXCPU (the limit on processor time, ulimit -S -t)"}});
/// Exit code that the shell reports for a process that a signal ended.
constexpr int kEndedBySignal = 128;

StopRequests requests;
std::atomic<int> received_signal{0};

struct StopWords {
  const char *first, *again, *leaving;
};
constexpr StopWords kSaving{
    " received: stopping after this step, then saving\n",
    " again: still stopping; the next one leaves at once, unsaved\n",
    " again: leaving now, without saving; the run goes on from its last checkpoint\n"};
constexpr StopWords kReporting{" received: stopping, with a report of what was done\n",
                               " again: still stopping; the next one leaves at once, without a report\n",
                               " again: leaving now, without a report\n"};

/// Set before the handlers are.
const StopWords* stop_words = &kSaving;
bool speaker = true;
bool drops_unread_text = false;
std::array<char, 64> line_start{};  ///< "lockstep: ", "lockstep: rank 3: ", after the code to wipe a bar
std::size_t wipe_size = 0;          ///< bytes of the code that wipes a bar

/// Spaces become line ends, so that no line is longer than `columns`, where words allow it.
void fold_in_place(char* text, std::size_t size, std::size_t columns) {
  std::size_t line = 0;
  std::size_t space = 0;  // 0: none on this line
  for (std::size_t at = 0; at < size; ++at) {
    if (text[at] == ' ') space = at;
    if (at - line < columns || space == 0) continue;
    text[space] = '\n';
    line = space + 1;
    space = 0;
  }
}

/// One write, of functions that a signal handler may call.
void say(const char* signal, const char* text) {
  std::array<char, 256> line{};
  std::size_t size = 0;
  for (const char* part : {static_cast<const char*>(line_start.data()), signal, text}) {
    const std::size_t length = std::strlen(part);
    if (size + length > line.size()) return;
    std::memcpy(line.data() + size, part, length);
    size += length;
  }
  fold_in_place(line.data() + wipe_size, size - 1 - wipe_size,
                static_cast<std::size_t>(last_output_columns()));
  if (write(STDERR_FILENO, line.data(), size) < 0) return;  // standard error is closed: nothing to be done
}

void on_signal(int signal) {
  // Linux repeats it every second beyond the limit: that is no impatience.
  if (signal == SIGXCPU && received_signal.load() != 0) return;
  const int saved_errno = errno;
  switch (requests.add(clock_ns())) {
    case StopRequests::Effect::kStop:
      received_signal = signal;
      if (drops_unread_text) drop_unread_output();
      if (speaker) say(stop_signal_name(signal), stop_words->first);
      break;
    case StopRequests::Effect::kSame:
      break;
    case StopRequests::Effect::kPatience:
      if (speaker) say(stop_signal_name(signal), stop_words->again);
      break;
    case StopRequests::Effect::kLeave:
      say(stop_signal_name(signal), stop_words->leaving);
      std::_Exit(kEndedBySignal + signal);
  }
  errno = saved_errno;
}

void prepare_line_start() {
  speaker = speaks_for_all();
  const OutputTerminal output = output_terminal();
  const std::string_view behind_bar = output.escapes ? "\r\033[J" : output.redraws ? "\n" : "";
  wipe_size = behind_bar.size();
  const auto text =
      fmt::format("{}lockstep: {}", behind_bar, speaker ? "" : fmt::format("rank {}: ", this_launch().rank));
  text.copy(line_start.data(), line_start.size() - 1);
}

bool is_ignored(int signal) {
  struct sigaction action = {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

void catch_stop_signals(OnStop then) {
  prepare_line_start();
  stop_words = then == OnStop::kSave ? &kSaving : &kReporting;
  drops_unread_text = then == OnStop::kSave && this_launch().launcher == Launcher::kOpenMpi;
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  // One at a time: leaving shall not interrupt a word.
  for (const auto& [signal, name] : kStopSignals) sigaddset(&action.sa_mask, signal);
  for (const auto& [signal, name] : kStopSignals)
    if (signal != SIGHUP || !is_ignored(SIGHUP)) sigaction(signal, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

bool stop_requested() noexcept {
  return received_signal.load() != 0;
}

int stop_signal() noexcept {
  return received_signal.load();
}

const char* stop_signal_name(int signal) noexcept {
  for (const auto& [number, name] : kStopSignals)
    if (number == signal) return name;
  return "a signal";
}

// Limits in seconds and in Unix time, as one point of the clock that does not jump.

namespace {

/// Far enough away, without overflow in the clock's units.
constexpr double kForeverSeconds = 1e9;

Clock::duration seconds(double value) {
  return std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(std::min(value, kForeverSeconds)));
}

}  // namespace

TimeLimit::TimeLimit(Clock::time_point start, double max_seconds, std::optional<std::int64_t> allocation_end)
    : end_(start + seconds(max_seconds > 0 ? max_seconds : kForeverSeconds)) {
  if (!allocation_end) return;
  const double left = static_cast<double>(*allocation_end) - now_seconds() - kMarginSeconds;
  end_ = std::min(end_, Clock::now() + seconds(std::max(left, 0.0)));
}

std::optional<std::int64_t> allocation_end_ahead() {
  const char* text = std::getenv("SLURM_JOB_END_TIME");
  const auto end = text == nullptr ? std::nullopt : parse_whole<std::int64_t>(text);
  if (!end || static_cast<double>(*end) >= now_seconds()) return end;
  if (speaks_for_all())
    print_error(
        fmt::format("warning: SLURM_JOB_END_TIME={} is in the past: ignored; unset it, or set "
                    "run.max_seconds for a limit",
                    *end));
  return std::nullopt;
}

}  // namespace lockstep
