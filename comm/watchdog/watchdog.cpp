// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What others see of the watch; a Lookout does the work.
#include "comm/watchdog/watchdog.hpp"

#include "comm/watchdog/lookout.hpp"
#include "comm/watchdog/roll_call.hpp"

#include <utility>

namespace lockstep {

using watchdog::Lookout;

std::unique_ptr<Watchdog> Watchdog::start(Communicator& comm) {
  if (comm.size() == 1) return nullptr;
  auto roll = watchdog::call_roll(comm);
  if (!roll) return nullptr;
  return std::unique_ptr<Watchdog>(new Watchdog(comm, std::make_unique<Lookout>(comm, std::move(*roll))));
}

Watchdog::Watchdog(Communicator& comm, std::unique_ptr<Lookout> lookout)
    : comm_(comm), lookout_(std::move(lookout)) {
  comm_.be_watched(this);
}

Watchdog::~Watchdog() {
  comm_.be_watched(nullptr);
}

bool Watchdog::is_over() const noexcept {
  return lookout_->is_over();
}

void Watchdog::report_now() noexcept {
  lookout_->report_now();
}

std::vector<RankScore> Watchdog::scores() const {
  return lookout_->scores();
}

bool Watchdog::has_patience() const noexcept {
  return lookout_->has_patience();
}

void Watchdog::drop_network() noexcept {
  lookout_->drop_network();
}

bool Watchdog::accounts_for_loss() {
  return lookout_->accounts_for_loss();
}

void Watchdog::leave_alone(int exit_code) {
  lookout_->leave_alone(exit_code);
}

}  // namespace lockstep
