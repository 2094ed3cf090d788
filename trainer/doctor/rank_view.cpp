// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A view as JSON, field by field.
#include "common/text/json_text.hpp"
#include "trainer/doctor/rank_view_json.hpp"

namespace lockstep {

std::string to_message(const RankView& view) {
  return json_text(view);
}

RankView rank_view_of(const std::string& message) {
  return parse_json(message).get<RankView>();
}

}  // namespace lockstep
