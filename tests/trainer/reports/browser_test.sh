#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# The page of `lockstep report` in a browser without a screen: it is drawn, says nothing on the console (which would
# tell of every request that its policy refused), and answers to the pointer. Needs chromium; skipped without.
#
#   tests/trainer/reports/browser_test.sh [REGEX]
# shellcheck source-path=SCRIPTDIR source=../../launch/harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../launch/harness.sh"
program=${LOCKSTEP_PROGRAM:-$repo/build/release/lockstep}
[ -x "$program" ] || skip "$program is not built"
browser=$(command -v chromium || command -v chromium-browser) || skip "chromium is not installed"

# train NAME [key=value...]: a run of drawn digits in this folder.
train() {
  local name=$1
  shift
  expect_exit 0 "$program" train "$repo/launch/jobs/mnist.yaml" data.set=synthetic data.train_samples=600 \
    data.test_samples=200 data.global_batch=128 train.epochs=3 run.log_every_steps=1 run.dir="$name" "$@"
}

# browse PAGE WIDTH [OPTION...]: what the browser makes of it, in $page; what it has on its console, in $console.
browse() {
  local file=$1 width=$2
  shift 2
  page=$(HOME=$PWD timeout 60 "$browser" --headless=new --no-sandbox --disable-gpu --user-data-dir="$PWD/browser" \
    --window-size="$width,2000" --virtual-time-budget=4000 --enable-logging=stderr "$@" --dump-dom "file://$PWD/$file" \
    2>browser.log) || fail "the browser ended with $?: $(tail -n3 browser.log)"
  console=$(grep CONSOLE browser.log || true)
}

# with_script PAGE SCRIPT: a copy of the page, driven.html, in which the script runs at the end.
with_script() {
  { sed '/^<\/body>/,$d' "$1" && printf '<script>\n%s\n</script>\n</body>\n</html>\n' "$2"; } >driven.html
}

The_page_is_drawn_at_any_width_without_a_word_on_the_console() {
  train run
  local width accuracy
  accuracy=$(sed -n 's/.*"event":"end".*"test_accuracy":\([0-9.]*\).*/\1/p' run/metrics.jsonl)
  for width in 400 1280 2560; do
    browse run/report.html "$width"
    expect_equal "$console" ""
    expect_contains "$page" "$(LC_ALL=C awk -v share="$accuracy" 'BEGIN { printf "<b>%.2f %%</b><span>test accuracy", 100 * share }')"
    expect_contains "$page" '<h2>Classes'
    expect_contains "$page" 'class="curve thin" d="M'
    expect_equal "$(grep -o '<figure>' <<<"$page" | wc -l)" "$(grep -o 'data:image/png' <<<"${page%%</main>*}" | wc -l | awk '{ print $1 - 10 }')"
  done
  browse run/report.html 1280 --blink-settings=preferredColorScheme=0
  expect_equal "$console" ""
}

Dragging_zooms_into_all_curves_and_a_click_makes_an_axis_logarithmic() {
  train run
  with_script run/report.html '
    setTimeout(() => {
      const plot = document.querySelector(".plot"), frame = plot.getBoundingClientRect();
      const at = (kind, share) => plot.dispatchEvent(new PointerEvent(kind, { bubbles: true, pointerId: 1,
        clientX: frame.left + share * frame.width, clientY: frame.top + 50 }));
      plot.setPointerCapture = () => {};
      at("pointerdown", 0.5); at("pointermove", 0.7); at("pointerup", 0.9); at("pointermove", 0.6);
      document.querySelector(".chart button[aria-pressed]").click();
      const [low, high] = view.range;
      document.body.dataset.zoomed = low > 5 && high < 15 && low < high;
      document.body.dataset.charts = view.charts.every((chart) => chart.at.x0 === low);
      document.body.dataset.tip = document.querySelector(".tip").textContent;
    }, 500);'
  browse driven.html 1280
  expect_equal "$console" ""
  expect_contains "$page" 'data-zoomed="true"'
  expect_contains "$page" 'data-charts="true"'
  expect_contains "$page" 'data-tip="step '
  expect_contains "$page" 'aria-pressed="true"'
}

A_box_hides_a_run_and_hostile_names_are_text() {
  train run
  cp -r run '<img src=x onerror=console.log(1)>'
  expect_exit 0 "$program" report run '<img src=x onerror=console.log(1)>' -o both.html
  with_script both.html '
    document.querySelector("input").click();
    document.body.dataset.hidden = [...view.hidden].join();'
  browse driven.html 1280
  expect_equal "$console" ""
  expect_contains "$page" 'data-hidden="0"'
  expect_contains "$page" '&lt;img src=x onerror=console.log(1)&gt;'
}

run_tests "$@"
