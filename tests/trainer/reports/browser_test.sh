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

A_pointer_shows_the_values_of_all_charts_dragging_zooms_into_them_and_a_click_makes_an_axis_logarithmic() {
  train run
  with_script run/report.html '
    setTimeout(() => {
      const plot = document.querySelector(".plot"), frame = plot.getBoundingClientRect(), said = document.body.dataset;
      const at = (kind, share) => plot.dispatchEvent(new PointerEvent(kind, { bubbles: true, pointerId: 1,
        clientX: frame.left + share * frame.width, clientY: frame.top + 50 }));
      at("pointermove", 0.6);
      const tips = [...document.querySelectorAll(".tip:not([hidden])")];
      said.tips = tips.length === view.charts.length && tips[0].textContent.startsWith("step ") && tips[1].textContent.includes(" %");
      said.crosses = document.querySelectorAll(".cross").length === view.charts.length;
      at("pointerleave", 0.6);
      said.left = document.querySelectorAll(".tip:not([hidden]), .cross").length;
      plot.setPointerCapture = () => {};
      at("pointerdown", 0.5); at("pointermove", 0.7); at("pointerup", 0.9); at("pointermove", 0.6);
      document.querySelector(".chart button[aria-pressed]").click();
      const [low, high] = view.range;
      said.zoomed = low > 5 && high < 15 && low < high;
      said.charts = view.charts.every((chart) => chart.at.x0 === low);
      said.tip = document.querySelector(".tip").textContent;
    }, 500);'
  browse driven.html 1280
  expect_equal "$console" ""
  expect_contains "$page" 'data-tips="true" data-crosses="true" data-left="0" data-zoomed="true" data-charts="true" data-tip="step '
  expect_contains "$page" 'aria-pressed="true"'
}

Names_of_sixty_letters_are_whole_or_end_with_an_ellipsis_and_F1_is_on_the_page() {
  train run
  local width columns
  sed -i -E 's/"name":"([0-9])","samples"/"name":"class \1 has a very long name which nobody can shorten anywhere","samples"/g;
    s/"label":[0-9],"answer"/"name":"some\/folder\/of\/pictures\/with\/a\/long\/name\/1.png",&/g' run/report.html
  for width in 400 1280 2560; do
    with_script run/report.html '
      setTimeout(() => {
        const all = (what) => [...document.querySelectorAll(what)], right = (node) => node.getBoundingClientRect().right;
        const isCut = (node) => node.scrollWidth > node.clientWidth + 1 || node.scrollHeight > node.clientHeight + 1;
        const first = document.querySelector("figure").getBoundingClientRect().top;
        Object.assign(document.body.dataset, {
          columns: all("figure").filter((one) => one.getBoundingClientRect().top === first).length,
          page: document.documentElement.scrollWidth <= innerWidth,
          f1: all(".classes td:last-child").length === 10 && all(".classes td:last-child").every((one) => right(one) <= right(one.closest(".card"))),
          silent: all(".clip, .cut, .path").filter(isCut).filter((one) => getComputedStyle(one).textOverflow !== "ellipsis" && getComputedStyle(one).webkitLineClamp === "none").length,
          captions: all("figcaption").some(isCut),
          path: getComputedStyle(document.querySelector(".path")).direction });
      }, 500);'
    browse driven.html "$width"
    columns=6
    [ "$width" != 400 ] || columns=2
    expect_contains "$page" "data-columns=\"$columns\" data-page=\"true\" data-f1=\"true\" data-silent=\"0\" data-captions=\"false\" data-path=\"rtl\""
    expect_contains "$page" 'class="soft">taken for </span>'
  done
}

Curves_are_drawn_by_step_epoch_and_time_smoothed_and_as_single_points() {
  train run
  with_script run/report.html '
    const buttons = [...document.querySelectorAll(".switch button")], show = (xs) => xs.map((x) => x.toFixed(3)).join();
    setTimeout(() => {
      const said = document.body.dataset, unit = () => document.querySelector(".unit").textContent;
      said.smooth = show(smooth([1, 2, 3], [1, 0, 1], 0.5));
      said.ticks = show(ticks(0.22, 0.78, 5));
      said.none = ticks(5, 5, 5).length + ticks(0, Infinity, 5).length;
      said.places = show(placesOf(runs[0], runs[0].curves.step).epoch.slice(0, 6));
      buttons[1].click();
      said.epoch = unit() + view.charts[0].at.x1;
      buttons[2].click();
      said.time = unit();
      const slider = document.querySelector("input[type=range]");
      slider.value = 0.5;
      slider.dispatchEvent(new Event("input"));
      said.raw = document.querySelectorAll(".curve.raw").length > 3;
    }, 500);'
  browse driven.html 1280
  expect_equal "$console" ""
  expect_contains "$page" 'data-smooth="1.000,0.333,0.714" data-ticks="0.300,0.400,0.500,0.600,0.700" data-none="0"'
  expect_contains "$page" 'data-places="0.200,0.400,0.600,0.800,1.000,1.200" data-epoch="epoch3" data-time="seconds" data-raw="true"'
  train short train.max_steps=1
  browse short/report.html 1280
  expect_contains "$page" 'h0" style="--k:var(--c1)"></path><circle class="" cx='
}

The_head_says_when_where_and_how_and_several_runs_where_they_differ() {
  train run
  browse run/report.html 1280
  expect_contains "$page" " UTC on $(uname -n)"
  expect_contains "$page" "train.epochs=3 run.log_every_steps=1 run.dir=run</bdi>"
  train other train.seed=77
  expect_exit 0 "$program" report run other -o both.html
  browse both.html 1280
  expect_contains "$page" '<h2>Where they differ</h2>'
  expect_contains "$page" 'train.seed</span></td><td><span class="mono"><bdi class="clip" title="1234">1234</bdi></span></td><td><span class="mono"><bdi class="clip" title="77">77<'
}

A_page_claims_nothing_of_records_that_are_damaged_or_gone() {
  train run
  cp -r run damaged
  echo torn >>damaged/metrics.jsonl
  expect_exit 0 "$program" report damaged -o damaged.html
  browse damaged.html 1280
  expect_contains "$page" '<p class="soft">No verdict was written.</p>'
  expect_lacks "$page" '>None: no rank was lost'
  rm damaged/job.yaml
  expect_exit 0 "$program" report run damaged -o both.html
  browse both.html 1280
  expect_contains "$page" 'The job of <bdi>damaged</bdi> could not be read: <bdi>it has no job.yaml</bdi>'
  expect_lacks "$page" '>All keys of the jobs are alike.'
}

The_words_of_a_page_follow_from_the_document() {
  train run
  with_script run/report.html '
    setTimeout(() => {
      const said = document.body.dataset, text = (nodes) => make("div", null, nodes).textContent;
      said.seconds = [0.06272, 59.97, 119.7, 3599.7, 7199].map(seconds).join();
      said.resumed = text(headOfOne({ ...runs[0], from_step: 990 })).includes("from step 990 on");
      said.open = text(headOfOne({ ...runs[0], end: null })).includes("of epochs");
      said.prove = ["my run", "runs/a-1"].map((directory) => text(courseSection({ ...runs[0], directory })).match(/lockstep prove (.)/)[1]).join("");
      const none = { ...runs[0].classes, correct: 0, samples: 200, without_answer: 200, mistakes: [], note: "of other data" };
      said.none = ["0 of 200 right, 0.00 %; 200 without an answer", "of other data", "No mistake has finite outputs to show."]
        .every((words) => text(classSection({ ...runs[0], classes: none })).includes(words));
      said.all = text(mistakes({ ...none, correct: 200 }));
      said.shares = [0, 1e-9, 0.00004, 0.5, 0.99996, 1].map(percent).join();
    }, 500);'
  browse driven.html 1280
  expect_equal "$console" ""
  expect_contains "$page" 'data-seconds="0.06272 s,59.97 s,2 min 0 s,1 h 0 min,2 h 0 min" data-resumed="true" data-open="true" data-prove="'"'"'r" data-none="true" data-all="No mistakes." data-shares="0.00 %,0.01 %,0.01 %,50.00 %,99.99 %,100.00 %"'
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
