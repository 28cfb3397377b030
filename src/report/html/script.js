"use strict";
(() => {
  const filter = document.getElementById("filter");
  const field = (id) => document.getElementById(id);
  const nameIn = (place) => place.querySelector("bdi").textContent.toLowerCase();
  const sections = [...document.querySelectorAll("main section")].map((section) => ({
    section,
    clusters: JSON.parse(section.dataset.clusters),
    units: [...section.querySelectorAll("details")].map((unit) => ({
      unit,
      name: nameIn(unit.querySelector("summary")),
      objects: [...unit.querySelectorAll("li")].map((object) => ({ object, name: nameIn(object), ...object.dataset })),
    })),
  }));
  // Which units stood open before anything was asked for; those that hold what is asked for are opened meanwhile.
  let before = null;

  function unfold(unit, isAsking) {
    if (isAsking) {
      before.set(unit, before.get(unit) ?? unit.open);
    }
    unit.open = isAsking || (before?.get(unit) ?? unit.open);
  }

  function apply() {
    const [name, cluster, kind, state] = ["name", "cluster", "kind", "state"].map((id) => field(id).value);
    const words = name.trim().toLowerCase();
    const isAsking = Boolean(words || cluster || kind || state);
    before ??= isAsking ? new Map() : null;
    let shown = 0, all = 0;
    for (const { section, clusters: here, units } of sections) {
      // What is the same on several clusters is one object of each of them.
      const times = cluster ? 1 : here.length;
      let isAny = false;
      for (const { unit, name: title, objects } of units) {
        const isNamed = title.includes(words);
        let number = 0;
        for (const { object, name: own, kind: ownKind, state: ownState } of objects) {
          const fits = (!cluster || here.includes(cluster)) && (!kind || ownKind === kind) && (!state || ownState === state) &&
            (isNamed || own.includes(words));
          object.hidden = !fits;
          number += fits;
        }
        unit.hidden = number === 0;
        unfold(unit, isAsking);
        shown += number * times;
        all += objects.length * here.length;
        isAny ||= number > 0;
      }
      section.hidden = !isAny;
    }
    before = isAsking ? before : null;
    field("count").textContent = shown === all ? `${all} objects` : `${shown} of ${all} objects`;
  }

  filter.addEventListener("input", apply);
  filter.addEventListener("submit", (event) => event.preventDefault());
  filter.addEventListener("reset", () => setTimeout(apply));
  document.addEventListener("keydown", (event) => {
    const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);
    if (event.key === "/" && !isTyping && !event.ctrlKey && !event.altKey && !event.metaKey) {
      event.preventDefault();
      field("name").focus();
    } else if (event.key === "Escape" && event.target === field("name")) {
      event.preventDefault();
      field("name").value = "";
      apply();
    }
  });
  apply();
})();
