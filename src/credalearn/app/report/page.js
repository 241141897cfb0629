// The charts and the slider. Every number comes from the table in #page-data, which was computed
// with the page; what comes from outside is only ever set as text.
"use strict";
(function () {
  const data = JSON.parse(document.getElementById("page-data").textContent);
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);
  const NBSP = "\u00a0";
  const percent = (share, digits = 1) => (100 * share).toFixed(digits) + NBSP + "%";
  const whole = (count) => count.toLocaleString("en-US");
  const state = { score: 0, place: data.start };
  const charts = [];

  root.classList.add("scripted");

  function color(name) {
    return getComputedStyle(root).getPropertyValue("--" + name).trim();
  }

  const LINES = [
    { color: "blue", type: "solid" },
    { color: "orange", type: "dashed" },
    { color: "gray", type: "dotted" },
    { color: "green", type: [8, 3, 2, 3] },
    { color: "red", type: [12, 4] },
  ];

  function line(index) {
    return LINES[index % LINES.length];
  }

  function accuracy(walk, place) {
    return walk.judged[place] ? 1 - walk.wrong[place] / walk.judged[place] : null;
  }

  function points(walk, value) {
    return walk.kept.map((kept, place) => [
      (100 * kept) / data.items,
      walk.judged[place] ? 100 * value(walk, place) : null,
    ]);
  }

  // Below a tenth of the items a handful decide: they may leave the picture, not set its scale.
  function floor(walks) {
    let lowest = 1;
    for (const walk of walks) {
      walk.kept.forEach((kept, place) => {
        const found = accuracy(walk, place);
        if (found !== null && kept >= 0.1 * walk.kept[walk.kept.length - 1]) lowest = Math.min(lowest, found);
      });
    }
    return Math.max(0, Math.floor(20 * lowest - 1) * 5);
  }

  function axis(name, extra) {
    return Object.assign(
      {
        type: "value", name, nameLocation: "middle", nameGap: 30, min: 0, max: 100,
        nameTextStyle: { color: color("soft"), fontSize: 13 },
        axisLabel: { color: color("soft"), fontSize: 12 },
        axisLine: { lineStyle: { color: color("gray") } },
        splitLine: { lineStyle: { color: color("rule") } },
      },
      extra,
    );
  }

  function frame(extra) {
    return Object.assign(
      {
        animation: false,
        textStyle: { fontFamily: "system-ui, sans-serif", color: color("ink") },
        grid: { left: 58, right: 18, top: 16, bottom: narrow() ? 124 : 84 },
        legend: {
          bottom: 0, itemWidth: 34, itemHeight: 8, itemGap: 18, selectedMode: false, itemStyle: { opacity: 0 },
          textStyle: { color: color("ink"), fontSize: 13 },
        },
      },
      extra,
    );
  }

  // An element, never a string: a label in a tooltip cannot become mark-up.
  function tooltip(extra) {
    return {
      trigger: "axis", confine: true, backgroundColor: color("paper"), borderColor: color("rule"),
      axisPointer: { lineStyle: { color: color("gray") } },
      formatter: (hovered) => {
        const box = document.createElement("div");
        box.className = "tip";
        box.style.color = color("ink");
        const list = [].concat(hovered).filter((each) => each.value[1] !== null);
        const rows = list.length ? [extra(list[0])] : [];
        for (const each of list) rows.push(each.seriesName + ": " + each.value[1].toFixed(1) + NBSP + "%");
        for (const row of rows) {
          const p = document.createElement("p");
          p.textContent = row;
          box.appendChild(p);
        }
        return box;
      },
    };
  }

  function curves(walks, names) {
    return walks.map((walk, index) => ({
      name: names[index], type: "line", data: points(walk, accuracy), showSymbol: false, symbol: "none", clip: true, z: 3,
      lineStyle: { color: color(line(index).color), type: line(index).type, width: index === state.score ? 2.5 : 2 },
      itemStyle: { color: color(line(index).color) },
    }));
  }

  // On a phone the legend takes a line a curve.
  function narrow() {
    return byId("curve-chart").clientWidth < 500;
  }

  function region() {
    if (!data.region) return undefined;
    return {
      silent: true,
      itemStyle: { color: color("region") },
      label: {
        show: true, position: "insideBottomLeft", color: color("green"), fontSize: 12,
        formatter: narrow() ? "certified" : "certified region: error ≤ " + data.region.limit,
      },
      data: [[
        { xAxis: 0, yAxis: 100 * (1 - data.region.error) },
        { xAxis: 100 * data.region.coverage, yAxis: 100 },
      ]],
    };
  }

  function chosen() {
    const walk = data.walks[state.score];
    const x = (100 * walk.kept[state.place]) / data.items;
    const y = accuracy(walk, state.place);
    return {
      id: "chosen", name: "chosen", type: "scatter", z: 6, symbolSize: 13, silent: true, tooltip: { show: false },
      data: y === null ? [] : [[x, 100 * y]],
      itemStyle: { color: color(line(state.score).color), borderColor: color("paper"), borderWidth: 2 },
      markLine: {
        silent: true, symbol: "none", animation: false, label: { show: false },
        lineStyle: { color: color("ink"), type: "dashed", width: 1 }, data: [{ xAxis: x }],
      },
    };
  }

  function band() {
    const walk = data.walks[state.score];
    const bottom = floor(data.walks);
    const low = points(walk, (w, place) => Math.max(1 - w.high[place], bottom / 100));
    const height = points(walk, (w, place) => Math.max(1 - w.low[place] - Math.max(1 - w.high[place], bottom / 100), 0));
    const common = { type: "line", stack: "band", silent: true, symbol: "none", showSymbol: false, tooltip: { show: false }, lineStyle: { opacity: 0 }, z: 1 };
    return [
      Object.assign({ id: "band-low", name: "low", data: low }, common),
      Object.assign({ id: "band", name: "95 % interval", data: height, areaStyle: { color: color("band") } }, common),
    ];
  }

  function drawCurve() {
    const names = data.walks.map((walk) => "by " + walk.name);
    const series = curves(data.walks, names);
    series[0].markArea = region();
    return frame({
      xAxis: axis("kept (% of the test items)"),
      yAxis: axis("accuracy of the kept (%)", { min: floor(data.walks), nameGap: 38 }),
      legend: Object.assign(frame().legend, { data: names }),
      tooltip: tooltip((each) => "kept: " + each.value[0].toFixed(1) + NBSP + "%"),
      series: [...band(), ...series, chosen()],
    });
  }

  function drawCalibration() {
    const total = data.bins.reduce((sum, bin) => sum + bin[0], 0);
    return frame({
      grid: { left: 58, right: 18, top: 16, bottom: 76 },
      xAxis: axis("stated probability (%)"),
      yAxis: axis("right (%)", { nameGap: 38 }),
      legend: Object.assign(frame().legend, { data: ["this model", "as stated"] }),
      tooltip: Object.assign(tooltip((each) => "stated: " + each.value[0].toFixed(1) + NBSP + "%"), { trigger: "item" }),
      series: [
        {
          name: "as stated", type: "line", data: [[0, 0], [100, 100]], symbol: "none", silent: true,
          lineStyle: { color: color("gray"), type: "dashed", width: 1.5 }, itemStyle: { color: color("gray") },
        },
        {
          name: "this model", type: "line", data: data.bins.map((bin) => [100 * bin[1], 100 * bin[2], bin[0]]),
          symbol: "circle", symbolSize: (value) => 7 + 26 * Math.sqrt(value[2] / total), clip: false,
          lineStyle: { color: color("blue"), width: 2 }, itemStyle: { color: color("blue"), opacity: 0.75 },
        },
      ],
    });
  }

  function drawCompared() {
    const names = data.runs.map((run) => run.name);
    const series = data.runs.map((run, index) => ({
      name: run.name, type: "line", showSymbol: false, symbol: "none",
      data: run.points.map(([x, y]) => [100 * x, 100 * y]),
      lineStyle: { color: color(line(index).color), type: line(index).type, width: 2 },
      itemStyle: { color: color(line(index).color) },
    }));
    const lowest = Math.min(...data.runs.flatMap((run) => run.points.filter(([x]) => x >= 0.1).map(([, y]) => y)));
    return frame({
      xAxis: axis("kept (% of the test items)"),
      yAxis: axis("accuracy of the kept (%)", { min: Math.max(0, Math.floor(20 * lowest - 1) * 5), nameGap: 38 }),
      legend: Object.assign(frame().legend, { data: names, type: "scroll", formatter: (name) => (name.length > 28 ? name.slice(0, 27) + "…" : name) }),
      tooltip: tooltip((each) => "kept: " + each.value[0].toFixed(1) + NBSP + "%"),
      series,
    });
  }

  function add(id, draw) {
    const place = byId(id);
    if (!place) return;
    const label = place.getAttribute("aria-label");
    const made = echarts.init(place, null, { renderer: "svg" });
    place.setAttribute("aria-label", label);
    charts.push({ made, draw });
    made.setOption(draw());
    // A hidden chart has no width: it waits until it has one.
    new ResizeObserver(() => {
      if (!place.clientWidth || root.classList.contains("printing")) return;
      made.resize();
      made.setOption(draw(), { notMerge: true });
    }).observe(place);
  }

  function redraw() {
    for (const { made, draw } of charts) made.setOption(draw(), { notMerge: true });
  }

  function hours(share) {
    const minutes = Math.max(0, Number(byId("minutes").value) || 0);
    const plan = Math.max(0, Number(byId("plan").value) || 0);
    return { value: ((share * plan * minutes) / 60).toFixed(1), minutes, plan };
  }

  function standing() {
    if (!data.rule || state.score !== 0) return "";
    if (state.place === data.start) return data.rule.certified ? " This is the certified threshold." : " This is the rule’s threshold.";
    if (!data.rule.certified) return "";
    return state.place < data.start ? " More cautious than the certified threshold." : " Beyond the certified threshold: nothing is promised here.";
  }

  function text(id, value) {
    byId(id).textContent = value;
  }

  function show() {
    const walk = data.walks[state.score];
    const place = state.place;
    const kept = walk.kept[place];
    const deferred = data.items - kept;
    const judged = walk.judged[place];
    const error = judged ? percent(walk.wrong[place] / judged) : "–";
    const interval = percent(walk.low[place]) + " to " + percent(walk.high[place]);
    const work = hours(deferred / data.items);
    text("coverage", percent(kept / data.items));
    text("coverage-note", whole(kept) + " of " + whole(data.items) + " test items");
    text("error", error);
    text("error-note", "95 % interval " + interval + "; " + whole(walk.wrong[place]) + " wrong of " + whole(judged));
    text("deferred", percent(deferred / data.items));
    text("deferred-note", whole(deferred) + " of " + whole(data.items) + " test items");
    text("hours", work.value);
    text("hours-note", "for " + whole(work.plan) + " items at " + work.minutes + " min each");
    const rows = byId("deferrals").querySelectorAll("tbody tr");
    rows.forEach((row, group) => {
      const total = walk.deferred[0][group];
      const count = walk.deferred[place][group];
      const share = total ? count / total : null;
      row.cells[2].textContent = whole(count);
      row.cells[3].querySelector("i").style.width = 100 * (share || 0) + "%";
      row.cells[3].querySelector(".number").textContent = share === null ? "–" : percent(share);
    });
    const sentence =
      "Keeps " + percent(kept / data.items) + " of the items" +
      (judged ? " at an observed error of " + error + " (95 % interval " + interval + ")" : "") +
      "; " + percent(deferred / data.items) + " go to a human: " + work.value + " hours for " +
      whole(work.plan) + " items." + standing();
    text("reading", sentence);
    const slider = byId("slider");
    slider.setAttribute("aria-valuetext", "keeps " + percent(kept / data.items) + ", error " + error);
    charts[0].made.setOption({ series: [chosen()] });
  }

  function choose(score) {
    const share = data.walks[state.score].kept[state.place];
    state.score = score;
    const walk = data.walks[score];
    let nearest = 0;
    walk.kept.forEach((kept, place) => {
      if (Math.abs(kept - share) < Math.abs(walk.kept[nearest] - share)) nearest = place;
    });
    move(nearest);
    charts[0].made.setOption(charts[0].draw(), { notMerge: true });
  }

  function move(place) {
    state.place = place;
    const slider = byId("slider");
    slider.max = data.walks[state.score].kept.length - 1;
    slider.value = place;
    show();
  }

  add("curve-chart", drawCurve);
  add("calibration-chart", drawCalibration);
  add("compared-chart", drawCompared);

  byId("slider").addEventListener("input", (event) => {
    state.place = Number(event.target.value);
    show();
  });
  byId("slider").addEventListener("keydown", (event) => {
    const step = { PageUp: 10, PageDown: -10 }[event.key];
    if (!step) return;
    event.preventDefault();
    move(Math.min(Math.max(state.place + step, 0), Number(event.target.max)));
  });
  byId("score").addEventListener("change", (event) => choose(Number(event.target.value)));
  byId("minutes").addEventListener("input", show);
  byId("plan").addEventListener("input", show);
  byId("reset").addEventListener("click", () => {
    byId("score").value = "0";
    state.score = 0;
    move(data.start);
    charts[0].made.setOption(charts[0].draw(), { notMerge: true });
  });

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  // Paper is white and narrower than the window: the charts are drawn for it, then back.
  const PAPER = { width: 680, height: 336 };
  window.addEventListener("beforeprint", () => {
    root.classList.add("printing");
    redraw();
    for (const { made } of charts) {
      made.resize({ width: Math.min(PAPER.width, made.getWidth()), height: PAPER.height });
      made.getZr().flush();
    }
  });
  window.addEventListener("afterprint", () => {
    root.classList.remove("printing");
    redraw();
    for (const { made } of charts) made.resize();
  });

  show();
})();
