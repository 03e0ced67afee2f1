// The page: a native form, four questions to the server of which the newest counts, and a player.
(() => {
  const $ = (id) => document.getElementById(id);
  const form = $("controls"), slider = $("frame"), SAMPLES = Number(document.body.dataset.samples);
  const CONFIG = { displayModeBar: false, responsive: true, displaylogo: false };
  const figures = {}; // what moves in each view
  let clock = ["Update", 1, ""], playing = null, found = ""; // the settings that the shown finding is about
  const presets = [...document.querySelectorAll(".preset")];

  // --- the state: the form and the frame; its address holds what differs from the opening one
  const fields = [...form.elements].filter((element) => element.name);
  const frame = () => Number(slider.value);
  const set = (element, value) => { element.value = value; const shown = element.parentElement.querySelector("output"); if (shown) shown.textContent = element.value; };

  // The settings without the moment, and the preset that has them, if one has.
  const bare = (address) => { const given = new URLSearchParams(address); given.delete("frame"); given.sort(); return String(given); };
  const preset = () => { const here = bare(settings().join("&")); return presets.find((one) => bare(one.dataset.address) === here); };
  const settings = () => fields.filter((field) => field.value.trim() !== field.dataset.default).map((field) => written(field.name, field.value.trim()));
  const written = (name, value) => `${name}=${encodeURIComponent(value).replaceAll("%2C", ",")}`;

  function query(withFrame = true) {
    const pairs = settings();
    if (withFrame && frame() > 0) pairs.push(written("frame", frame()));
    return pairs.join("&");
  }

  function go(address, push = false) {
    const given = new URLSearchParams(address);
    for (const field of fields) set(field, given.get(field.name) ?? field.dataset.default);
    slider.max = SAMPLES * value("epochs");
    slider.value = given.get("frame") || 0;
    told(push);
  }

  const value = (name) => { const text = form.elements[name].value; return text !== "" && Number.isFinite(Number(text)) ? Number(text) : text; };

  // The rest of the settings is hidden (another system's) or quiet (without effect at the moment).
  function arrange() {
    const owned = (name) => [...form.elements[name].options].flatMap((option) => option.dataset.uses.split(" ")).filter(Boolean);
    const uses = (name) => form.elements[name].selectedOptions[0].dataset.uses.split(" ");
    const system = value("system"), turning = uses("law").includes("omega");
    const circuit = system === "circuit", held = system === "held", cycle = system === "rps" || circuit || held;
    const looped = system === "graph", family = looped || held || system === "family";
    const hide = {
      depth: !family || looped, width: !family, imbalance: !family, floor: !family, sample: !family, shown: !family || held, epochs: held,
      start: family || circuit, target: system !== "column", seed: system === "rps" || (!family && !circuit && value("turn") !== "fair"),
      law: cycle, policy: cycle, turn: cycle, rule: !circuit,
    };
    // What laws, policies and rules take; what several know is the law's. The seed has a place of its own.
    const lawful = owned("law"), political = owned("policy"), ruled = owned("rule").filter((name) => name !== "seed");
    for (const name of ruled) hide[name] = !circuit;
    for (const name of [...lawful, ...political]) hide[name] = cycle;
    const still = !uses("policy").includes("omega") || !turning;
    const quiet = { width: value("depth") === 1 && !looped, turn: still || value("gate") === "never" };
    for (const name of ruled) quiet[name] = !uses("rule").includes(name);
    for (const name of political) quiet[name] = !uses("policy").includes(name);
    for (const name of lawful) quiet[name] = !uses("law").includes(name);
    quiet.gate = still;
    for (const field of fields) {
      const row = field.closest(".control");
      row.hidden = Boolean(hide[field.name]);
      row.classList.toggle("quiet", Boolean(quiet[field.name]));
      field.disabled = false;
      if (row.hidden && !field.checkValidity()) set(field, field.dataset.default); // nothing that cannot be seen may block
    }
    for (const group of form.querySelectorAll("fieldset")) group.hidden = [...group.querySelectorAll(".control")].every((row) => row.hidden);
  }

  // Words, pills and address follow the settings. A choice that is made is a place to come back to; the way to it is not.
  function told(push = false) {
    arrange();
    const shown = preset();
    const claim = shown ? shown.dataset.preset : "";
    for (const button of presets) button.setAttribute("aria-pressed", String(button === shown));
    for (const story of document.querySelectorAll(".story")) story.hidden = story.dataset.story !== claim;
    $("finding").hidden = !$("finding").textContent || found !== bare(query());
    timed();
    const address = query(), there = address ? `?${address}` : location.pathname;
    if (push && there !== location.pathname + location.search && there !== location.search) history.pushState(null, "", there);
    else history.replaceState(null, "", there);
    for (const [id, kind] of [["get-py", "py"], ["get-json", "json"]]) $(id).href = `/state.${kind}?${address}`;
    stale();
  }

  // What a frame is called: updates, a time or an angle.
  function timed() {
    const [name, size, unit] = clock, shown = `${Number((frame() * size).toFixed(2))}${unit}`;
    $("clock").textContent = name;
    $("frame-value").textContent = shown;
    slider.setAttribute("aria-valuetext", `${name} ${shown}`);
  }

  // What is shown of other settings than those in the form is dimmed, panel by panel, until its answer is there.
  function stale() {
    const broken = [paths, picture, instant, family].some((one) => one.broken()); // what follows a failure is not asked for
    for (const one of [paths, picture, instant, family]) {
      for (const name of one.names()) {
        const view = $(`view-${name}`), old = !one.fresh(), moved = old && one.follows();
        view.classList.toggle("stale", old && !moved);
        view.classList.toggle("late", moved);
        view.setAttribute("aria-busy", String(old && !broken));
      }
    }
  }

  // --- asking: one request of each kind at a time; whatever changes meanwhile is asked for once, when the answer is there
  const theme = () => document.documentElement.dataset.theme;
  function channel(name, use) {
    let busy = false, again = false, shown = "", failed = "", why = "";
    const wanted = () => theme() + "?" + (name === "instant" ? query() : query(false));
    async function ask() {
      if (busy) { again = true; return; }
      const key = wanted();
      if (key === failed) { refuse(why); return; }
      if (key === shown) { if (name === "paths") refuse(standing); return; } // back to what was right before a refusal
      busy = true;
      stale();
      const slow = setTimeout(() => say("Computing…"), 350);
      try {
        const reply = await fetch(`/${name}/${key}`);
        const answer = await reply.json();
        if (reply.ok) { shown = key; failed = ""; if (name === "paths") refuse(standing); await use(answer, key.slice(key.indexOf("?") + 1)); }
        else if (answer.busy) { await new Promise((done) => setTimeout(done, 300)); again = true; }
        else { failed = key; why = answer.error; refuse(why); say(warming); }
      } catch { refuse("The server does not answer. Is it still running?"); }
      clearTimeout(slow);
      busy = false;
      stale();
      settle();
      if (again) { again = false; ask(); }
    }
    const names = () => [...document.querySelectorAll(`[data-portion="${name}"]`)].map((view) => view.id.slice(5));
    const answered = () => !busy && [shown, failed].includes(wanted());
    // whether nothing but the moment differs from what is shown
    const follows = () => name === "instant" && bare(shown.slice(shown.indexOf("?") + 1)) === bare(query());
    const broken = () => failed === wanted();
    return { ask, names, follows, answered, broken, idle: () => !busy, fresh: () => !busy && wanted() === shown };
  }

  // All views of a portion; one without a figure has nothing to show, and goes.
  function drawn(portion, answer) {
    for (const view of document.querySelectorAll(`[data-view][data-portion="${portion}"]`)) {
      view.hidden = !answer.figures[view.dataset.view];
    }
    for (const [name, figure] of Object.entries(answer.figures)) draw(name, figure);
  }
  function draw(name, figure) {
    figures[name] = frames.taken(figure);
    frames.place(figure, figures[name], frame());
    Plotly.react($(`plot-${name}`), figure.data, figure.layout, CONFIG);
  }

  // The paths move first. While they are drawn the server makes the other views of the run; what is left waits for those.
  const paths = channel("paths", (answer, address) => {
    picture.ask();
    clock = answer.clock;
    timed();
    for (const [name, title] of Object.entries(answer.titles)) $(`title-${name}`).textContent = title;
    for (const view of document.querySelectorAll("[data-view]")) {
      const here = view.dataset.view in answer.titles;
      if (here) view.dataset.portion = answer.portions[view.dataset.view];
      if (!here) view.hidden = true;
    }
    drawn("paths", answer);
    $("note").textContent = answer.note;
    $("finding").textContent = answer.finding;
    found = bare(address);
    $("finding").hidden = !answer.finding || found !== bare(query());
    document.body.dataset.paths = address;
  });
  const picture = channel("picture", (answer, address) => {
    drawn("picture", answer);
    document.body.dataset.drawn = String(Number(document.body.dataset.drawn || 0) + 1);
    document.body.dataset.shows = address;
    others();
  });
  const instant = channel("instant", (answer) => {
    drawn("instant", answer);
    $("verdicts").replaceChildren(...answer.verdicts.filter(Boolean).map(verdict));
    const first = $("verdicts").querySelector("p"); // the word about the loop carries the colour that the library gives it
    if (first && answer.colour) { first.style.borderLeft = `4px solid ${answer.colour}`; first.style.paddingLeft = ".5rem"; }
  });
  // The library prints a verdict and then, indented, a name and what it is: here as a heading and a short table.
  function verdict(text) {
    const block = document.createElement("div"), table = document.createElement("dl");
    for (const line of text.replace(/(\d)e-(?=\d)/g, "$1e−").split("\n")) { // a line may break behind a hyphen, and not behind a minus
      const [, name, what] = line.match(/^ {2}(\S+(?: \S+)*) {2,}(.*)$/) || [];
      const parts = name ? [["dt", name], ["dd", what]] : [["p", line]];
      for (const [tag, words] of parts) { const part = document.createElement(tag); part.textContent = words; (name ? table : block).append(part); }
    }
    if (table.children.length) block.append(table);
    return block;
  }
  const family = channel("family", (answer) => { drawn("family", answer); document.body.dataset.family = query(false); });

  function others() { instant.ask(); family.ask(); }
  function ask() { paths.ask(); if (paths.fresh()) { if (picture.fresh()) others(); else picture.ask(); } }
  let standing = $("refusal").textContent; // why the address was refused stays to be read until something is changed
  // A refusal names its setting first: that field is marked, and shown where settings are folded away.
  function refuse(text) {
    $("refusal").textContent = text || "";
    const wrong = fields.find((field) => field.name === (/^(\w+) must /.exec(text || "") || [])[1]);
    for (const field of fields) field.setAttribute("aria-invalid", String(field === wrong));
    if (wrong) { form.classList.add("open"); $("settings").setAttribute("aria-expanded", "true"); }
  }
  const refused = () => $("refusal").textContent !== "" || !form.checkValidity();
  const say = (text) => { $("status").textContent = text; };
  let warming = "";
  const settle = () => { if ([paths, picture, instant, family].every((one) => one.answered())) { say(warming); document.body.dataset.settled = query(); } };

  // --- the player: all on this side of the wire, but for the map of Q, which follows when it can
  function move(to) {
    slider.value = to;
    for (const [name, moving] of Object.entries(figures)) frames.show($(`plot-${name}`), moving, frame());
    told();
    instant.ask();
  }
  function stop() { cancelAnimationFrame(playing); playing = null; $("play").dataset.playing = "false"; $("play").setAttribute("aria-label", "Play"); }
  function play() {
    if (frame() >= Number(slider.max)) move(0);
    $("play").dataset.playing = "true";
    $("play").setAttribute("aria-label", "Pause");
    let last = performance.now(), at = frame();
    const pace = Math.max(10, Number(slider.max) / 14); // frames a second: a run takes some fourteen seconds
    const tick = (now) => {
      at += ((now - last) / 1000) * pace;
      last = now;
      if (Math.floor(at) > frame()) move(Math.min(Math.floor(at), Number(slider.max)));
      if (frame() >= Number(slider.max)) stop(); else playing = requestAnimationFrame(tick);
    };
    playing = requestAnimationFrame(tick);
  }
  $("play").addEventListener("click", () => (playing ? stop() : play()));
  $("back").addEventListener("click", () => { stop(); move(Math.max(0, frame() - 1)); });
  $("ahead").addEventListener("click", () => { stop(); move(Math.min(Number(slider.max), frame() + 1)); });
  slider.addEventListener("input", () => { if (playing) stop(); move(frame()); });

  // --- the form
  let moving = false;
  function changed(event) {
    const field = event.target;
    if (!field.name) return;
    standing = "";
    const shown = field.parentElement.querySelector("output");
    if (shown) shown.textContent = field.value;
    if (field.name === "epochs") slider.max = SAMPLES * value("epochs");
    told(!moving);
    moving = event.type !== "change"; // all of a slider's way is one step back
    ask();
  }
  form.addEventListener("input", (event) => { if (event.target.type !== "text" && event.target.type !== "number") changed(event); });
  form.addEventListener("change", changed);
  form.addEventListener("submit", (event) => event.preventDefault());
  for (const button of presets) button.addEventListener("click", () => { stop(); standing = ""; go(button.dataset.address, true); ask(); });
  $("settings").addEventListener("click", () => { const open = form.classList.toggle("open"); $("settings").setAttribute("aria-expanded", String(open)); });

  // --- taking away
  document.querySelectorAll(".view").forEach((view) => view.querySelectorAll(".save").forEach((button) => button.addEventListener("click", () => {
    const plot = view.querySelector(".plot"), size = plot.getBoundingClientRect();
    const scale = button.dataset.save === "png" ? 3 : 1;
    Plotly.downloadImage(plot, { format: button.dataset.save, scale, width: Math.round(size.width), height: Math.round(size.height), filename: `whorl-${view.dataset.view}` });
  })));
  const unfit = "Correct the marked setting first: this state cannot be shared.";
  for (const id of ["get-py", "get-json"]) $(id).addEventListener("click", (event) => { if (refused()) { event.preventDefault(); say(unfit); } });
  $("copy").addEventListener("click", async () => {
    if (refused()) { say(unfit); return; }
    try { await navigator.clipboard.writeText(location.href); say("Link copied."); } catch { say("Copy the address from the address bar."); }
    setTimeout(() => say(warming), 2500);
  });

  // --- bringing along: the settings of a downloaded file as an address, which the server checks
  $("file").addEventListener("change", async () => {
    const [file] = $("file").files;
    $("file").blur();
    if (!file) return;
    try {
      if (file.size > 10000) throw new Error("it is too large");
      const given = JSON.parse(await file.text());
      if (given === null || given.whorl !== "explorer") throw new Error('it does not hold "whorl": "explorer"');
      delete given.whorl;
      location.assign(`/?${Object.entries(given).map(([name, value]) => written(name, String(value))).join("&")}`);
    } catch (wrong) { standing = `The file must hold a state of the explorer, but ${wrong.message}.`; refuse(standing); }
    $("file").value = "";
  });

  // --- light and dark
  const named = () => { $("theme").textContent = theme() === "dark" ? "Light" : "Dark"; };
  $("theme").addEventListener("click", () => {
    document.documentElement.dataset.theme = theme() === "dark" ? "light" : "dark";
    try { localStorage.setItem("whorl-theme", theme()); } catch { /* no storage: it lasts as long as the page */ }
    named();
    ask();
  });

  // --- warming: the first answers come as soon as their programs are there, and until then the page says so
  async function watch() {
    try {
      const report = await (await fetch("/status")).json();
      warming = report.ready ? "" : `Warming up: ${report.done} of ${report.needed}`;
      settle();
      if (!report.ready) { say(warming); setTimeout(watch, 600); }
    } catch { setTimeout(watch, 2000); }
  }

  named();
  go(document.body.dataset.address);
  ask();
  watch();
  window.addEventListener("popstate", () => { go(location.search.slice(1)); ask(); });
})();
