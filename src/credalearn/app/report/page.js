// The charts and the slider. All numbers and texts come from #page-data, which was computed with
// the page. Text from outside is only ever set as text, never as markup.
"use strict";
(function () {
  const data = JSON.parse(document.getElementById("page-data").textContent);
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);
  const slider = byId("slider"); // null where each class has a threshold of its own
  const charts = [];
  let place = data.start;

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

  // ------------------------------------------------------------------ what charts share

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

  // On a phone the legend takes one line per curve.
  function narrow() {
    return byId("curve-chart").clientWidth < 500;
  }

  function frame(names, extra) {
    return Object.assign(
      {
        animation: false,
        textStyle: { fontFamily: "system-ui, sans-serif", color: color("ink") },
        grid: { left: 58, right: 18, top: 16, bottom: narrow() ? 124 : 84 },
        legend: {
          data: names, bottom: 0, type: names.length > 4 ? "scroll" : "plain",
          itemWidth: 34, itemHeight: 8, itemGap: 18, selectedMode: false, itemStyle: { opacity: 0 },
          textStyle: { color: color("ink"), fontSize: 13 },
          formatter: (name) => (name.length > 28 ? name.slice(0, 27) + "…" : name),
        },
      },
      extra,
    );
  }

  // An element, never a string: a name in a tooltip cannot become markup.
  function tooltip() {
    return {
      trigger: "axis", confine: true, backgroundColor: color("paper"), borderColor: color("rule"),
      axisPointer: { lineStyle: { color: color("gray") } },
      formatter: (hovered) => {
        const box = document.createElement("div");
        box.className = "tip";
        box.style.color = color("ink");
        const list = hovered.filter((each) => each.value.length === 4);
        const rows = list.map((each) => each.seriesName + ": " + each.value[3]);
        if (list.length) rows.unshift("kept: " + list[0].value[2]);
        for (const row of rows) {
          const p = document.createElement("p");
          p.textContent = row;
          box.appendChild(p);
        }
        return box;
      },
    };
  }

  function curves(chart) {
    return chart.curves.map((curve, index) => ({
      name: curve.name, type: "line", data: curve.points, showSymbol: false, symbol: "none", clip: true, z: 3,
      lineStyle: { color: color(line(index).color), type: line(index).type, width: index ? 2 : 2.5 },
      itemStyle: { color: color(line(index).color) },
    }));
  }

  // Ticks at round numbers, in five steps or fewer.
  function step(height) {
    return [1, 2, 5, 10, 20].find((each) => height <= 5 * each);
  }

  function accuracyChart(chart, series) {
    return frame(chart.curves.map((curve) => curve.name), {
      xAxis: axis("kept (% of the test items)"),
      yAxis: axis("accuracy (%)", { min: chart.floor, interval: step(100 - chart.floor), nameGap: 38 }),
      tooltip: tooltip(),
      series,
    });
  }

  // ------------------------------------------------------------------ the three charts

  function region() {
    return {
      silent: true,
      itemStyle: { color: color("region") },
      label: { show: true, position: "insideBottomLeft", color: color("green"), fontSize: 12, formatter: "guaranteed" },
      data: [[{ xAxis: 0, yAxis: data.region.bottom }, { xAxis: data.region.right, yAxis: 100 }]],
    };
  }

  function chosen() {
    const [x] = data.band[place];
    const point = data.chart.curves[0].points.filter((each) => each[0] === x);
    return {
      id: "chosen", name: "chosen", type: "scatter", z: 6, symbolSize: 13, silent: true, tooltip: { show: false },
      data: point.map((each) => each.slice(0, 2)),
      itemStyle: { color: color("blue"), borderColor: color("paper"), borderWidth: 2 },
      markLine: {
        silent: true, symbol: "none", animation: false, label: { show: false },
        lineStyle: { color: color("ink"), type: "dashed", width: 1 }, data: [{ xAxis: x }],
      },
    };
  }

  function band() {
    const bottom = data.chart.floor;
    const common = {
      type: "line", stack: "band", silent: true, symbol: "none", showSymbol: false, tooltip: { show: false },
      lineStyle: { opacity: 0 }, z: 1,
    };
    const low = data.band.map(([x, from]) => [x, Math.max(from, bottom)]);
    const height = data.band.map(([x, from, to]) => [x, Math.max(to - Math.max(from, bottom), 0)]);
    return [
      Object.assign({ id: "band-low", name: "low", data: low }, common),
      Object.assign({ id: "band", name: "interval", data: height, areaStyle: { color: color("band") } }, common),
    ];
  }

  function drawCurve() {
    const series = curves(data.chart);
    if (data.region) series[0].markArea = region();
    return accuracyChart(data.chart, [...band(), ...series, ...(slider ? [chosen()] : [])]);
  }

  function drawCalibration() {
    const total = data.bins.reduce((sum, bin) => sum + bin[2], 0);
    return frame(["this model", "ideal"], {
      grid: { left: 58, right: 18, top: 16, bottom: 76 },
      xAxis: axis("stated probability (%)"),
      yAxis: axis("correct (%)", { nameGap: 38 }),
      series: [
        {
          name: "ideal", type: "line", data: [[0, 0], [100, 100]], symbol: "none", silent: true,
          lineStyle: { color: color("gray"), type: "dashed", width: 1.5 }, itemStyle: { color: color("gray") },
        },
        {
          name: "this model", type: "line", data: data.bins, silent: true, clip: false,
          symbol: "circle", symbolSize: (value) => 7 + 26 * Math.sqrt(value[2] / total),
          lineStyle: { color: color("blue"), width: 2 }, itemStyle: { color: color("blue"), opacity: 0.75 },
        },
      ],
    });
  }

  function drawComparison() {
    return accuracyChart(data.runs, curves(data.runs));
  }

  function add(id, draw) {
    const box = byId(id);
    if (!box) return;
    const label = box.getAttribute("aria-label");
    const made = echarts.init(box, null, { renderer: "svg" });
    box.setAttribute("aria-label", label);
    charts.push({ made, draw });
    made.setOption(draw());
    // A hidden chart has no width: it waits until it has one.
    new ResizeObserver(() => {
      if (!box.clientWidth || root.classList.contains("printing")) return;
      made.resize();
      made.setOption(draw(), { notMerge: true });
    }).observe(box);
  }

  function redraw() {
    for (const { made, draw } of charts) made.setOption(draw(), { notMerge: true });
  }

  // ------------------------------------------------------------------ the slider

  function entered(id) {
    return Math.max(0, Number(byId(id).value) || 0);
  }

  function put(element, text) {
    element.textContent = text.replaceAll(" %", "\u00a0%");
  }

  // Every text of a reading goes into the slots of its name; the words around them are the page's.
  function show() {
    const reading = data.readings[place];
    for (const slot of document.querySelectorAll("[data-reading]")) {
      put(slot, reading.texts[slot.dataset.reading]);
    }
    byId("hours").textContent = ((reading.share * entered("plan") * entered("minutes")) / 60).toFixed(1);
    byId("deferrals").querySelectorAll("tbody tr").forEach((row, index) => {
      const found = reading.classes[index];
      put(row.cells[2], found.deferred);
      row.cells[3].querySelector("i").style.width = found.width + "%";
      put(row.cells[3].querySelector(".number"), found.share);
    });
    const standing = byId("standing");
    if (standing) standing.dataset.standing = place === data.start ? "at" : place < data.start ? "below" : "beyond";
    slider.value = place;
    slider.setAttribute("aria-valuetext", "keeps " + reading.texts.kept + ", error " + reading.texts.error);
    charts[0].made.setOption({ series: [chosen()] });
  }

  function move(to) {
    place = Math.min(Math.max(to, 0), data.readings.length - 1);
    show();
  }

  if (slider) {
    slider.addEventListener("input", () => move(Number(slider.value)));
    slider.addEventListener("keydown", (event) => {
      const step = { PageUp: 10, PageDown: -10 }[event.key];
      if (!step) return;
      event.preventDefault();
      move(place + step);
    });
    byId("minutes").addEventListener("input", show);
    byId("plan").addEventListener("input", show);
    byId("reset").addEventListener("click", () => move(data.start));
  }

  add("curve-chart", drawCurve);
  add("calibration-chart", drawCalibration);
  add("comparison-chart", drawComparison);
  if (slider) show();

  // ------------------------------------------------------------------ dark windows and paper

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  // Paper is white and narrower than the window: the charts are drawn for it, then back.
  const PAPER = { width: 680, height: 240, square: 336 }; // heights as in page.css
  window.addEventListener("beforeprint", () => {
    root.classList.add("printing");
    redraw();
    for (const { made } of charts) {
      const height = made.getDom().classList.contains("square") ? PAPER.square : PAPER.height;
      made.resize({ width: Math.min(PAPER.width, made.getWidth()), height });
      made.getZr().flush();
    }
  });
  window.addEventListener("afterprint", () => {
    root.classList.remove("printing");
    redraw();
    for (const { made } of charts) made.resize();
  });
})();
