// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Connection: one read and one write under way at a time, all on the watchdog's thread.
#include "comm/watch/connection.hpp"

#include "comm/watch/heartbeat.hpp"

#include <span>
#include <utility>

namespace lockstep::watchdog {

Connection::Connection(Heartbeat& owner, asio::ip::tcp::socket socket)
    : owner_(&owner), socket_(std::move(socket)), timer_(socket_.get_executor()) {}

void Connection::connect(const asio::ip::tcp::endpoint& endpoint, std::chrono::milliseconds limit,
                         std::function<void(bool)> done) {
  timer_.expires_after(limit);
  timer_.async_wait([self = shared_from_this()](const asio::error_code& stopped) {
    asio::error_code ignored;
    if (!stopped) self->socket_.close(ignored);
  });
  socket_.async_connect(endpoint,
                        [self = shared_from_this(), done = std::move(done)](const asio::error_code& error) {
                          self->timer_.cancel();
                          if (self->owner_ != nullptr) done(!error && self->socket_.is_open());
                        });
}

void Connection::start() {
  asio::error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  read();
}

std::optional<asio::ip::address> Connection::remote_address() const {
  asio::error_code gone;
  const auto endpoint = socket_.remote_endpoint(gone);
  return gone ? std::nullopt : std::optional(endpoint.address());
}

void Connection::read() {
  socket_.async_read_some(asio::buffer(in_),
                          [self = shared_from_this()](const asio::error_code& error, std::size_t size) {
                            if (self->owner_ == nullptr) return;
                            self->parser_.feed(std::span(self->in_).first(size));
                            bool good = !error;
                            while (good && self->owner_ != nullptr) {
                              const auto message = self->parser_.next();
                              if (!message) break;
                              good = self->owner_->on_message(*self, *message);
                            }
                            if (self->owner_ == nullptr) return;
                            if (good && !self->parser_.is_bad()) return self->read();
                            self->close();
                          });
}

void Connection::send(std::vector<std::uint8_t> bytes) {
  constexpr std::size_t kMostUnsent = 64;  // a few messages: a peer that reads so slowly counts as silent
  if (out_.size() >= kMostUnsent) return;
  out_.push_back(std::move(bytes));
  if (out_.size() == 1) write();
}

void Connection::write() {
  asio::async_write(socket_, asio::buffer(out_.front()),
                    [self = shared_from_this()](const asio::error_code& error, std::size_t /*size*/) {
                      self->out_.pop_front();
                      if (error) self->out_.clear();  // reading will say so, too
                      if (!self->out_.empty()) self->write();
                    });
}

void Connection::close() {
  Heartbeat* const owner = owner_;
  abandon();
  if (owner != nullptr) owner->on_closed(*this);
}

void Connection::abandon() {
  owner_ = nullptr;
  asio::error_code ignored;
  socket_.close(ignored);
}

}  // namespace lockstep::watchdog
