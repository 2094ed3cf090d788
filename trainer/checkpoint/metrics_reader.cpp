// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Scanner that checks a line and notes the positions of its values. Numbers and texts are converted on request.
#include "trainer/checkpoint/metrics_reader.hpp"

#include "common/json_text.hpp"
#include "data/byte_source.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>

namespace lockstep {
namespace {

constexpr int kDeepest = 32;
constexpr std::size_t kBlock = std::size_t{1} << 18;

/// The grammar of JSON. nlohmann-json's parser takes ten times as long, which counts for millions of lines.
class JsonScanner {
 public:
  explicit JsonScanner(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  /// An object's keys, without their quotes, and values, as written.
  bool object(std::vector<std::pair<std::string_view, std::string_view>>* fields, int depth) {
    if (!take('{')) return false;
    if (take('}')) return true;
    do {
      skip_spaces();
      const char* const key = at_;
      if (!string()) return false;
      const std::string_view name(key + 1, static_cast<std::size_t>(at_ - key) - 2);
      if (!take(':')) return false;
      skip_spaces();
      const char* const value = at_;
      if (!this->value(depth)) return false;
      if (fields != nullptr) fields->emplace_back(name, std::string_view(value, at_));
    } while (take(','));
    return take('}');
  }
  bool at_end() {
    skip_spaces();
    return at_ == end_;
  }
  /// Characters of more than one byte, which this scanner does not look into.
  bool has_wide_characters() const { return wide_; }

 private:
  void skip_spaces() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r')) ++at_;
  }
  bool take(char c) {
    skip_spaces();
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }
  bool word(std::string_view text) {
    if (!std::string_view(at_, end_).starts_with(text)) return false;
    at_ += text.size();
    return true;
  }
  bool value(int depth) {
    if (at_ == end_ || depth > kDeepest) return false;
    switch (*at_) {
      case '"':
        return string();
      case '{':
        return object(nullptr, depth + 1);
      case '[':
        return list(depth + 1);
      case 't':
        return word("true");
      case 'f':
        return word("false");
      case 'n':
        return word("null");
      default:
        return number();
    }
  }
  bool list(int depth) {
    ++at_;
    if (take(']')) return true;
    do {
      skip_spaces();
      if (!value(depth)) return false;
    } while (take(','));
    return take(']');
  }
  bool string() {
    if (at_ == end_ || *at_ != '"') return false;
    for (++at_; at_ != end_; ++at_) {
      const auto c = static_cast<unsigned char>(*at_);
      if (c == '"') return ++at_, true;
      if (c < 0x20) return false;
      wide_ = wide_ || c >= 0x80;
      if (c == '\\' && !escape()) return false;
    }
    return false;
  }
  /// Checks an escape. The digits of \u00e9 are left to string().
  bool escape() {
    if (++at_ == end_) return false;
    if (*at_ != 'u') return std::strchr("\"\\/bfnrt", *at_) != nullptr && *at_ != '\0';
    return end_ - at_ > 4 && std::all_of(at_ + 1, at_ + 5, [](char c) {
             return std::isxdigit(static_cast<unsigned char>(c)) != 0;
           });
  }
  bool digits() {
    const char* const begin = at_;
    while (at_ != end_ && *at_ >= '0' && *at_ <= '9') ++at_;
    return at_ != begin;
  }
  bool number() {
    if (*at_ == '-') ++at_;
    const char* const whole = at_;
    if (!digits() || (*whole == '0' && at_ - whole > 1)) return false;
    if (at_ != end_ && *at_ == '.' && (++at_, !digits())) return false;
    if (at_ == end_ || (*at_ != 'e' && *at_ != 'E')) return true;
    if (++at_ != end_ && (*at_ == '+' || *at_ == '-')) ++at_;
    return digits();
  }

  const char* at_;
  const char* end_;
  bool wide_ = false;
};

}  // namespace

std::optional<double> seconds_since_1970(std::string_view time) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00.000Z";
  const auto fits = [](char form, char c) { return form == '0' ? c >= '0' && c <= '9' : c == form; };
  if (!std::ranges::equal(kForm, time, fits)) return std::nullopt;
  const auto number = [&](std::size_t at, std::size_t digits) {
    return *parse_whole<int>(time.substr(at, digits));
  };
  using namespace std::chrono;
  const year_month_day date(year(number(0, 4)), month(static_cast<unsigned>(number(5, 2))),
                            day(static_cast<unsigned>(number(8, 2))));
  if (!date.ok()) return std::nullopt;
  return static_cast<double>(sys_days(date).time_since_epoch().count()) * 86400 + number(11, 2) * 3600 +
         number(14, 2) * 60 + number(17, 2) + number(20, 3) / 1000.0;
}

bool MetricsEvent::read(std::string_view line) {
  fields_.clear();
  line_ = name_ = {};
  JsonScanner scanner(line);
  bool good = scanner.object(&fields_, 0) && scanner.at_end();
  if (good && scanner.has_wide_characters()) good = !parse_json_or_discard(line).is_discarded();
  if (!good) return fields_.clear(), false;
  line_ = line;
  const std::string_view event = raw("event");
  if (event.starts_with('"')) name_ = event.substr(1, event.size() - 2);
  return true;
}

/// Returns the last value if a key is repeated, as JSON parsers do.
std::string_view MetricsEvent::raw(std::string_view key) const {
  for (auto field = fields_.rbegin(); field != fields_.rend(); ++field)
    if (field->first == key) return field->second;
  return {};
}

nlohmann::ordered_json MetricsEvent::json() const {
  return nlohmann::ordered_json::parse(line_, nullptr, /*allow_exceptions=*/false);
}

bool MetricsEvent::has_escaped_keys() const {
  return std::ranges::any_of(fields_,
                             [](const auto& field) { return field.first.find('\\') != field.first.npos; });
}

std::optional<double> MetricsEvent::number(std::string_view key) const {
  const auto number = parse_whole<double>(raw(key));
  return number && std::isfinite(*number) ? number : std::nullopt;
}

std::optional<std::int64_t> MetricsEvent::integer(std::string_view key) const {
  return parse_whole<std::int64_t>(raw(key));
}

std::optional<bool> MetricsEvent::truth(std::string_view key) const {
  const std::string_view text = raw(key);
  if (text == "true") return true;
  return text == "false" ? std::optional(false) : std::nullopt;
}

std::optional<std::string> MetricsEvent::text(std::string_view key) const {
  const std::string_view quoted = raw(key);
  if (!quoted.starts_with('"')) return std::nullopt;
  const auto value = parse_json_or_discard(quoted);
  return value.is_string() ? std::optional(value.get<std::string>()) : std::nullopt;
}

ToldEvaluation told_evaluation(const MetricsEvent& event) {
  ToldEvaluation told{event.number("test_loss"), event.number("test_accuracy"),
                      event.number("validation_loss"), event.number("validation_accuracy")};
  const std::string judged = told.validation_accuracy ? "_validation_accuracy" : "_test_accuracy";
  told.ema_accuracy = event.number("ema" + judged);
  told.swa_accuracy = event.number("swa" + judged);
  return told;
}

void ToldEvaluations::add(const MetricsEvent& event) {
  static_cast<ToldEvaluation&>(*this) = told_evaluation(event);
  const std::int64_t epoch = event.name() == "epoch" ? event.integer("epoch").value_or(0) : 0,
                     step = event.integer("step").value_or(0);
  if (const auto samples = event.integer("test_samples"); samples && accuracy() && !validation_accuracy) {
    if (test_samples >= 0 && *samples != test_samples) best_accuracy = best_loss = std::nullopt, count = 0;
    test_samples = *samples;
  }
  const auto keep_better = [&](std::optional<BestRecord>& best, std::optional<double> now, auto is_better) {
    if (now && (!best || is_better(*now, best->value))) best = {epoch, step, *now};
  };
  keep_better(best_accuracy, accuracy(), std::greater());
  keep_better(best_loss, loss(), std::less());
  if (!accuracy() || (event.name() == "end" && step == counted_step_)) return;
  counted_step_ = step;
  ++count;
}

MetricsLines read_metrics(const std::string& path, const OnMetricsEvent& on_event,
                          const OnDamagedLine& on_damaged) {
  FileSource file(path);
  MetricsLines lines;
  MetricsEvent event;
  std::string text;
  bool in_long_line = false;  // its beginning has been dropped
  while (true) {
    const std::size_t kept = text.size();
    text.resize(kept + kBlock);
    const std::size_t got = file.read({reinterpret_cast<std::uint8_t*>(text.data()) + kept, kBlock});
    text.resize(kept + got);
    if (got == 0) break;
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = text.find('\n', begin)) != text.npos; begin = end + 1) {
      const std::string_view line = std::string_view(text).substr(begin, end - begin);
      const bool good = !in_long_line && event.read(line);
      ++(good ? lines.whole : lines.damaged);
      if (good) on_event(event);
      if (!good && on_damaged) on_damaged(in_long_line ? "" : line);
      in_long_line = false;
    }
    text.erase(0, begin);
    in_long_line = in_long_line || text.size() > kLongestMetricsLine;
    if (in_long_line) text.clear();
  }
  return lines;
}

}  // namespace lockstep
